"""The clients: how each is installed, pointed at the scripted model, and started."""
import json
import os
import re
import shutil
import subprocess
import tempfile

HOME = os.path.abspath(
    os.environ.get("POLICYD_CLIENTS_HOME")
    or os.path.join(tempfile.gettempdir(), "policyd-clients-%d" % os.getuid())
)
KEY = "dummy-not-a-real-key"


class Client:
    """A client. `events` are its names of the events that scenarios refer to."""

    name = package = version = program = harness = ""
    events = {"stop": "Stop", "pre_tool": "PreToolUse", "prompt": "UserPromptSubmit", "session_start": "SessionStart"}
    # Large caches that the client creates in each new home.
    caches = ()

    def path(self):
        own = os.environ.get(self.name.upper() + "_BIN")
        return os.path.abspath(own or "%s/clients/%s/node_modules/.bin/%s" % (HOME, self.name, self.program))

    def is_installed(self):
        return os.path.exists(self.path())

    def install(self):
        """Installs the pinned version with npm."""
        folder = "%s/clients/%s" % (HOME, self.name)
        os.makedirs(folder, exist_ok=True)
        package = "%s@%s" % (self.package, self.version)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, package], check=True)

    def installed_version(self):
        home = HOME + "/home"
        os.makedirs(home, exist_ok=True)
        env = {"PATH": os.environ["PATH"], "HOME": home, "DISABLE_AUTOUPDATER": "1", "COPILOT_AUTO_UPDATE": "false"}
        try:
            done = subprocess.run([self.path(), "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  stdin=subprocess.DEVNULL, universal_newlines=True, timeout=60, env=env)
        except (OSError, subprocess.TimeoutExpired) as error:
            return "unknown (%s)" % type(error).__name__
        number = re.search(r"\d+\.\d+\.\d+[\w.-]*", done.stdout)
        return number.group(0).rstrip(".") if number else "unknown"

    def setup(self, run, url):
        """Writes the client's settings into the run. Returns the command line and the environment."""
        raise NotImplementedError

    def supervised(self, run, command):
        """The command for `policyd run`; `{prompt}` marks the place of the prompt."""
        raise NotImplementedError


class Claude(Client):
    name, package, version = "claude", "@anthropic-ai/claude-code", "2.1.329"
    program, harness = "claude", "claude-code"

    def setup(self, run, url):
        scenario, config = run.scenario, run.folder + "/claude-config"
        os.makedirs(config)
        env = {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-ant-" + KEY, "CLAUDE_CONFIG_DIR": config,
            "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_BUG_COMMAND": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        command = [self.path(), "-p", scenario.get("prompt", "do the task"), "--output-format", "stream-json",
                   "--verbose", "--include-hook-events", *self.model(scenario)]
        tools = scenario.get("allowed_tools", ["Bash", "Read", "Write", "Edit"])
        return command + ["--allowedTools", ",".join(tools), "--debug-file", run.folder + "/debug.log"], env

    def supervised(self, run, command):
        return [self.path(), "-p", "--output-format", "stream-json", "--verbose",
                "--allowedTools", "Bash,Read,Write,Edit", *self.model(run.scenario)]

    @staticmethod
    def model(scenario):
        return ["--model", scenario["model"]] if scenario.get("model") else []


class Codex(Client):
    """The model name selects the tools: `gpt-5.5` has exec_command and apply_patch; `gpt-6-sol` uses code mode, in
    which one tool `exec` runs JavaScript that calls the other tools."""

    name, package, version = "codex", "@openai/codex", "0.169.0"
    program = harness = "codex"

    def setup(self, run, url):
        scenario, home = run.scenario, run.folder + "/codex-home"
        os.makedirs(home)
        with open(home + "/config.toml", "w") as file:
            file.write("""model = "%s"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "%s"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
env_key = "SCRIPTED_API_KEY"
wire_api = "responses"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[features]
plugins = false
[analytics]
enabled = false
[feedback]
enabled = false
[projects."%s"]
trust_level = "trusted"
""" % (scenario.get("model", "gpt-5.5"), scenario.get("codex_sandbox", "workspace-write"), url, run.project))
        command = [self.path(), "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
                   scenario.get("prompt", "do the task")]
        return command, {"CODEX_HOME": home, "SCRIPTED_API_KEY": KEY, "RUST_LOG": "warn"}

    def supervised(self, run, command):
        return command[:-1]  # the prompt comes on standard input


class Gemini(Client):
    name, package, version = "gemini", "@google/gemini-cli", "0.61.0"
    program = harness = "gemini"
    events = {"stop": "AfterAgent", "pre_tool": "BeforeTool", "prompt": "BeforeAgent", "session_start": "SessionStart"}

    def setup(self, run, url):
        os.makedirs(run.home + "/.gemini", exist_ok=True)
        # The authentication type must be in the user settings: otherwise the client selects one that it rejects.
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False}, "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        }
        write_json(run.home + "/.gemini/settings.json", settings)
        command = [self.path(), "-p", run.scenario.get("prompt", "do the task"), "-o", "stream-json",
                   "-m", "gemini-2.5-pro", "--approval-mode", "yolo"]
        return command, {
            "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_TELEMETRY_ENABLED": "false", "GEMINI_CLI_NO_RELAUNCH": "true", "NO_BROWSER": "true", "CI": "1",
        }

    def supervised(self, run, command):
        return [self.path(), "-o", "stream-json", "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p", "{prompt}"]


class Copilot(Client):
    name, package, version = "copilot", "@github/copilot", "1.0.102"
    program = harness = "copilot"
    events = {"stop": "agentStop", "pre_tool": "preToolUse", "prompt": "userPromptSubmitted",
              "session_start": "sessionStart"}
    caches = (".cache/copilot",)

    def setup(self, run, url):
        command = [self.path(), "-p", run.scenario.get("prompt", "do the task"), "--allow-all-tools",
                   "--allow-all-paths", "--output-format", "json"]
        return command, {
            "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": url, "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_API_KEY": KEY, "COPILOT_MODEL": "claude-sonnet-4.5", "COPILOT_AUTO_UPDATE": "false",
            "CI": "1",
        }

    def supervised(self, run, command):
        return [self.path(), "-p", "{prompt}", "--allow-all-tools", "--allow-all-paths", "--output-format", "json"]


class OpenCode(Client):
    name, package, version = "opencode", "opencode-ai", "1.18.33"
    program = harness = "opencode"
    events = {"stop": "session.idle", "pre_tool": "tool.execute.before", "prompt": "chat.message",
              "session_start": "session.created"}
    caches = (".npm", ".cache", ".config/opencode/node_modules")

    def setup(self, run, url):
        limit = {"context": 200000, "output": 8000}
        models = {"claude-sonnet-4-5": {"name": "sonnet", "tool_call": True, "limit": limit},
                  "claude-haiku-4-5": {"name": "haiku", "limit": limit}}
        settings = {
            "autoupdate": False, "share": "disabled", "model": "anthropic/claude-sonnet-4-5",
            "small_model": "anthropic/claude-haiku-4-5",
            "provider": {"anthropic": {"options": {"baseURL": url + "/v1", "apiKey": KEY}, "models": models}},
            "permission": {"edit": "allow", "bash": "allow", "webfetch": "deny"},
            **run.scenario.get("opencode", {}),
        }
        os.makedirs(run.home + "/.config/opencode")
        write_json(run.home + "/.config/opencode/opencode.json", settings)
        command = [self.path(), "run", "--format", "json", run.scenario.get("prompt", "do the task")]
        return command, {"ANTHROPIC_API_KEY": KEY, "OPENCODE_DISABLE_MODELS_FETCH": "1",
                         "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}

    def supervised(self, run, command):
        return [self.path(), "run", "--format", "json", "{prompt}"]


CLIENTS = {client.name: client for client in (Claude(), Codex(), Gemini(), Copilot(), OpenCode())}


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=1)


def policyd():
    """The program under test."""
    path = os.environ.get("POLICYD_BIN") or shutil.which("policyd")
    if not path or not os.path.exists(path):
        raise SystemExit("no policyd: set POLICYD_BIN, or put it on PATH")
    return os.path.realpath(path)
