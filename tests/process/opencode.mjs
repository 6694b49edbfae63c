// Runs the installed OpenCode plugin with simulated clients: `node opencode.mjs PLUGIN DIRECTORY [run]`.
// Prints one JSON object with what the plugin did. `run` as the last argument: as in `opencode run`.
import { existsSync, readFileSync, statSync } from "node:fs"

const [plugin, directory] = process.argv.slice(2)
const { default: policyd } = await import(plugin)

const text = (value, more) => ({ type: "text", text: value, ...more })
const user = (id, ...parts) => ({ info: { id, role: "user", agent: "build", model: { modelID: "m" } }, parts })
const assistant = (id, ...parts) => ({ info: { id, role: "assistant" }, parts })
const tool = (callID, name, input, output, exit) => ({
  type: "tool", callID, tool: name, state: { status: "completed", input, output, metadata: { exit } },
})
const failedTest = [
  user("msg_1", text("Write an add function")),
  assistant("msg_2",
    tool("c1", "write", { filePath: `${directory}/calc.py`, content: "def add(a, b):\n    return a - b\n" }, "ok"),
    tool("c2", "bash", { command: "python3 -m unittest -q" }, "FAILED (failures=1)\n", 1)),
  assistant("msg_3", text("All done.")),
]

const simulate = (messages) => {
  const seen = { prompts: [], aborts: 0, toasts: [] }
  const session = {
    messages: async () => ({ data: messages }),
    promptAsync: async ({ body }) => {
      seen.prompts.push(body)
      messages.push(user(`msg_${messages.length + 1}`, ...body.parts), assistant("msg_last", text("Done anyway.")))
      return {}
    },
    abort: async () => ({ data: ++seen.aborts }),
  }
  const tui = { showToast: async ({ body }) => seen.toasts.push(body.message) }
  return { seen, client: { session, tui } }
}

const settle = async (send) => {
  const outcome = {}
  await send().catch((error) => (outcome.error = error.message))
  return outcome
}

const first = async () => {
  const { seen, client } = simulate(structuredClone(failedTest))
  const hooks = await policyd.server({ client, directory })
  const emit = (type, properties) => hooks.event({ event: { type, properties } })
  const idle = async () => {
    const status = { sessionID: "ses_1", status: { type: "idle" } }
    const sent = emit("session.status", status)
    seen.status = status.status.type
    await sent
    await emit("session.idle", { sessionID: "ses_1" })
  }
  await emit("session.created", { info: { id: "ses_1" } })
  await hooks["chat.message"]({ sessionID: "ses_1" }, { parts: failedTest[0].parts })
  const denied = await settle(() => hooks["tool.execute.before"](
    { sessionID: "ses_1", tool: "bash", callID: "c0" }, { args: { command: "git push --force origin main" } }))
  const rounds = []
  for (let round = 0; round < 4; round += 1) {
    await idle()
    rounds.push(seen.prompts.length)
  }
  const transcript = `${process.env.XDG_STATE_HOME}/policyd/opencode/ses_1.jsonl`
  const kept = { mode: (statSync(transcript).mode & 0o777).toString(8), lines: readFileSync(transcript, "utf8").split("\n").length - 1 }
  await emit("session.created", { sessionID: "ses_2", info: { id: "ses_2", parentID: "ses_1" } })
  const before = seen.prompts.length
  await emit("session.idle", { sessionID: "ses_2" })
  const child = seen.prompts.length - before
  await emit("session.deleted", { info: { id: "ses_1" } })
  return { ...seen, denied, rounds, kept, child, removed: !existsSync(transcript) }
}

const interrupted = async () => {
  const messages = structuredClone(failedTest)
  messages.at(-1).info.error = { name: "MessageAbortedError" }
  const { seen, client } = simulate(messages)
  const hooks = await policyd.server({ client, directory })
  await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_3" } } })
  return seen.prompts.length
}

const second = async () => {
  const { seen, client } = simulate(structuredClone(failedTest))
  const hooks = {}
  const hook = (kind) => ({ hook: async (name, handler) => (hooks[`${kind}.${name}`] = handler) })
  let emit
  const event = { subscribe: async (handler) => (emit = handler) }
  await policyd.setup({ client, directory, tool: hook("tool"), session: hook("session"), event })
  await hooks["session.prompt"]({ sessionID: "ses_4", text: "Write an add function" })
  const denied = await settle(() => hooks["tool.execute.before"](
    { sessionID: "ses_4", tool: "bash", callID: "c0", input: { command: "git push --force origin main" } }))
  await emit({ type: "session.execution.succeeded", data: { sessionID: "ses_4" } })
  return { denied, prompts: seen.prompts.length }
}

// A context that offers nothing must not fail: OpenCode 1.18 calls `setup`, too.
await policyd.setup({})
console.log(JSON.stringify({ id: policyd.id, first: await first(), interrupted: await interrupted(), second: await second() }))
