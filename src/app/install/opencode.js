// Written by `policyd install --harness opencode`: runs policyd at each event and applies its decision.
// A missing, failed, or slow policyd has no opinion: the plugin then blocks nothing.
// One file for both plugin interfaces: OpenCode 1 calls `server`, OpenCode 2 calls `setup`.
import { execFile } from "node:child_process"
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"

const PROGRAM = "@PROGRAM@"
const TIMEOUT_MS = 20_000
const KEEP_TRANSCRIPTS_MS = 30 * 24 * 3600 * 1000
const TRANSCRIPTS = join(process.env.XDG_STATE_HOME || join(homedir(), ".local", "state"), "policyd", "opencode")

// `opencode run` exits at the first status `idle` of its session.
const HEADLESS = process.argv.slice(2).includes("run")

const parse = (text) => {
  try {
    return JSON.parse(text || "{}") ?? {}
  } catch {
    return {}
  }
}

const evaluate = (event, payload) =>
  new Promise((resolve) => {
    const options = { timeout: TIMEOUT_MS, maxBuffer: 1 << 24, windowsHide: true }
    const answered = (_error, stdout) => resolve(parse(stdout))
    const child = execFile(PROGRAM, ["eval", "--hook", event, "--harness", "opencode"], options, answered)
    child.stdin?.on("error", () => {})
    child.stdin?.end(JSON.stringify({ event, attended: !HEADLESS, ...payload }))
  })

// ---- messages of a session

const texts = (parts) => (parts ?? []).filter((it) => it.type === "text").map((it) => it.text)
// A prompt that policyd sent is marked: it does not begin a new episode of the block limiter.
const isOwn = (parts) => (parts ?? []).some((it) => it.metadata?.policyd === "stop")
const isHuman = ({ info, parts }) =>
  info.role === "user" && !isOwn(parts) && parts.some((it) => it.type === "text" && !it.synthetic)

// ---- the transcript: one line per message, with the fields that policyd reads

const transcriptPath = (session) => join(TRANSCRIPTS, `${String(session).replace(/[^\w-]/g, "_")}.jsonl`)

const toolLine = (part, isDenied) => {
  const { status, input, output, error, title, metadata } = part.state ?? {}
  const { exit, interrupted } = metadata ?? {}
  const state = { status, input, output, error, title, metadata: { exit, interrupted, denied: isDenied || undefined } }
  return { type: "tool", callID: part.callID, tool: part.tool, state }
}

const messageLine = ({ info, parts }, denied) => {
  const { id, sessionID, role, time, modelID, providerID, tokens, path } = info
  // Of a user message it holds the text of each changed file.
  const summary = info.summary === true || undefined
  const lines = parts.flatMap((it) => {
    if (it.type === "tool") return [toolLine(it, denied.has(it.callID))]
    return it.type === "text" ? [it] : []
  })
  return { info: { id, sessionID, role, time, modelID, providerID, tokens, path, summary }, parts: lines }
}

const writeTranscript = async (session, messages, denied) => {
  await mkdir(TRANSCRIPTS, { recursive: true, mode: 0o700 })
  const path = transcriptPath(session)
  const partial = `${path}.${process.pid}`
  const lines = messages.map((it) => `${JSON.stringify(messageLine(it, denied))}\n`)
  await writeFile(partial, lines.join(""), { mode: 0o600 })
  await rename(partial, path)
  return path
}

const removeTranscript = (session) => rm(transcriptPath(session), { force: true }).catch(() => {})

const pruneTranscripts = async () => {
  for (const name of await readdir(TRANSCRIPTS)) {
    const path = join(TRANSCRIPTS, name)
    if (Date.now() - (await stat(path)).mtimeMs > KEEP_TRANSCRIPTS_MS) await rm(path, { force: true })
  }
}

// ---- what both interfaces share

const replaceFields = (target, fields) => {
  for (const key of Object.keys(target)) delete target[key]
  Object.assign(target, fields)
}

const createGate = ({ client, directory }) => {
  const denied = new Set()
  const notify = (notice) => {
    if (HEADLESS) console.error(notice)
    else client?.tui?.showToast?.({ body: { message: notice, variant: "warning" } })?.catch?.(() => {})
  }
  const at = async (event, session, fields) => {
    const answer = await evaluate(event, { session_id: session, cwd: directory, ...fields })
    if (answer.notice) notify(answer.notice)
    return answer
  }
  return {
    at,
    prompt: (session, parts) => at("chat.message", session, { prompt: texts(parts).join("\n") }),
    before: async (session, tool, input, call) => {
      const answer = await at("tool.execute.before", session, { tool, input })
      if (answer.decision === "block") {
        denied.add(call)
        throw new Error(answer.reason)
      }
      if (answer.updated_input && input) replaceFields(input, answer.updated_input)
    },
    // Evaluates the stop; a block sends its reason as the next prompt. Returns whether the agent goes on.
    stop: async (session) => {
      const { data: messages } = await client.session.messages({ path: { id: session } })
      const last = messages?.findLast((it) => it.info.role === "assistant")
      // An interrupted or failed turn is not a stop.
      if (!last || last.info.error) return false
      const human = messages.findLastIndex(isHuman)
      const answer = await at("session.idle", session, {
        transcript_path: await writeTranscript(session, messages, denied),
        prompt_id: messages[human]?.info.id,
        stop_hook_active: messages.slice(human + 1).some((it) => isOwn(it.parts)),
        last_message: texts(last.parts).join("\n"),
      })
      if (answer.decision !== "block") return false
      const { agent, model } = messages.findLast((it) => it.info.role === "user")?.info ?? {}
      const parts = [{ type: "text", text: answer.reason, metadata: { policyd: "stop" } }]
      const sent = await client.session.promptAsync({ path: { id: session }, body: { agent, model, parts } })
      return !sent.error
    },
  }
}

// ---- OpenCode 1

const server = async ({ client, directory }) => {
  const gate = createGate({ client, directory })
  // Sessions of subagents: they have no human, and nothing prompts them again.
  const children = new Set()
  const released = new Set()
  pruneTranscripts().catch(() => {})

  const stop = (session) => gate.stop(session).catch(() => false)
  const idle = (session) => {
    if (!HEADLESS && !children.has(session)) return stop(session)
  }
  // `opencode run`: replaces the status that it waits for, and sends it again when the agent may stop.
  const idleStatus = async (session, properties) => {
    if (!HEADLESS || properties.status?.type !== "idle" || children.has(session) || released.delete(session)) return
    properties.status = { type: "busy" }
    if (await stop(session)) return
    released.add(session)
    const sent = await client.session.abort({ path: { id: session } }).catch((error) => ({ error }))
    if (sent?.error) process.exit()
  }
  const onEvent = {
    "session.created": (session, { info }) => {
      if (info?.parentID) children.add(session)
      else return gate.at("session.created", session)
    },
    "session.status": idleStatus,
    "session.idle": idle,
    "session.error": (session, { error }) => gate.at("session.error", session, { error: error?.data?.message }),
    "session.deleted": removeTranscript,
  }
  return {
    event: async ({ event }) => {
      const properties = event.properties ?? {}
      return onEvent[event.type]?.(properties.sessionID ?? properties.info?.id, properties)
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      if (!children.has(sessionID) && !isOwn(parts)) await gate.prompt(sessionID, parts)
    },
    "tool.execute.before": async ({ sessionID, tool, callID }, { args }) => gate.before(sessionID, tool, args, callID),
    "tool.execute.after": async ({ sessionID, tool, args }, output) => {
      const { context } = await gate.at("tool.execute.after", sessionID, { tool, input: args })
      if (context) output.output = `${output.output ?? ""}\n\n${context}`
    },
  }
}

// ---- OpenCode 2: what a context does not offer is left out

const setup = async (ctx) => {
  const gate = createGate({ client: ctx.client, directory: ctx.directory ?? process.cwd() })
  const call = (event) => [event.sessionID, event.tool, event.input ?? event.args, event.callID]
  await ctx.tool?.hook?.("execute.before", (event) => gate.before(...call(event)))
  await ctx.tool?.hook?.("execute.after", async (event) => {
    const [session, tool, input] = call(event)
    const { context } = await gate.at("tool.execute.after", session, { tool, input })
    if (context) event.output = `${event.output ?? ""}\n\n${context}`
  })
  await ctx.session?.hook?.("prompt", async (event) => {
    const parts = event.parts ?? [{ type: "text", text: event.text ?? event.prompt?.text }]
    if (!isOwn(parts)) await gate.prompt(event.sessionID, parts)
  })
  const canGate = ctx.client?.session?.messages && ctx.client.session.promptAsync
  const onEvent = {
    "session.created": ({ sessionID }) => gate.at("session.created", sessionID),
    "session.execution.succeeded": ({ sessionID }) => canGate && gate.stop(sessionID),
    "session.execution.failed": ({ sessionID, error }) => gate.at("session.error", sessionID, { error: error?.message }),
    "session.deleted": ({ sessionID }) => removeTranscript(sessionID),
  }
  await ctx.event?.subscribe?.(async (event) => onEvent[event.type]?.(event.data ?? {}))
}

export default { id: "policyd", server, setup }
