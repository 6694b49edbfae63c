// Written by `policyd install --harness opencode`: asks policyd at each event, and does what it says.
// A policyd that fails, or is gone, is no opinion: nothing is blocked because of it.
import { spawnSync } from "node:child_process"

const PROGRAM = "@PROGRAM@"

const ask = (event, payload) => {
  const asked = spawnSync(PROGRAM, ["eval", "--hook", event, "--harness", "opencode"], {
    input: JSON.stringify({ event, ...payload }),
    encoding: "utf8",
    timeout: 20000,
  })
  try {
    return JSON.parse(asked.stdout || "{}")
  } catch {
    return {}
  }
}

export const Policyd = async ({ client, directory }) => {
  const tell = (answer) =>
    answer.notice &&
    client?.tui?.showToast?.({ body: { message: answer.notice, variant: "warning" } })?.catch?.(() => {})
  const at = (event, session, more) => {
    const answer = ask(event, { session_id: session, cwd: directory, ...more })
    tell(answer)
    return answer
  }
  return {
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (["session.created", "session.idle", "session.error"].includes(event.type)) {
        at(event.type, session, { error: event.properties?.error?.data?.message })
      }
    },
    "chat.message": async (input, output) => {
      const texts = (output.parts ?? []).filter((it) => it.type === "text").map((it) => it.text)
      at("chat.message", input.sessionID, { prompt: texts.join("\n") })
    },
    "permission.ask": async (input, output) => {
      const answer = at("permission.ask", input.sessionID, { tool: input.type, input: input.metadata })
      const status = { allow: "allow", ask: "ask", block: "deny" }[answer.decision]
      if (status) output.status = status
    },
    "tool.execute.before": async (input, output) => {
      const answer = at("tool.execute.before", input.sessionID, { tool: input.tool, input: output.args })
      if (answer.decision === "block") throw new Error(answer.reason)
      if (answer.updated_input) output.args = answer.updated_input
    },
    "tool.execute.after": async (input, output) => {
      const answer = at("tool.execute.after", input.sessionID, { tool: input.tool, input: input.args })
      if (answer.context) output.output = `${output.output ?? ""}\n\n${answer.context}`
    },
  }
}
