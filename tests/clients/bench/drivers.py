"""The three ways to run a scenario: the client once, under `policyd run`, and in a terminal (Claude Code's TUI).

Each returns the exit code, whether the time was over, and additional names for checks."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

from .clients import write_json
from .run import end, wait

SUPERVISED_FILES = {"README.md": "# calc\n", ".gitignore": ".policyd/\n__pycache__/\n.claude/\n.gemini/\n"}


def run_once(run, client, model, timeout):
    command, own = client.setup(run, model.url)
    env = run.environment(**own)
    run.place_policyd()
    run.install_hooks(client.harness, env)
    if run.scenario.get("stream_in"):
        code, timed_out = converse(run, command, env, timeout)
    else:
        process = run.start(command, env, "client")
        timed_out = wait(process, timeout)
        code = process.returncode
    for number, arguments in enumerate(run.scenario.get("then", []), 2):
        more = [argument.replace("@SID@", session_id(run)) for argument in arguments]
        wait(run.start([command[0]] + more, env, "client%d" % number), timeout)
    return code, timed_out, {}


def session_id(run):
    ids = ((call.get("payload") or {}).get("session_id") for call in run.calls())
    return next((it for it in ids if it), "")


def converse(run, command, env, timeout):
    """Sends several user messages to one process of Claude Code, each after the previous result."""
    messages = list(run.scenario["stream_in"])
    command = [command[0], "-p", "--input-format", "stream-json"] + command[3:]
    process = run.start(command, env, "client", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send():
        line = {"type": "user", "message": {"role": "user", "content": messages.pop(0)}}
        process.stdin.write((json.dumps(line) + "\n").encode())
        process.stdin.flush()

    def read():
        with open(run.folder + "/client.out", "wb") as out:
            for line in process.stdout:
                out.write(line)
                if b'"type":"result"' in line and not process.stdin.closed:
                    send() if messages else process.stdin.close()

    send()
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(timeout)
    timed_out = reader.is_alive()
    if timed_out:
        end(process)
    return process.wait(), wait(process, 10) or timed_out


# ---- policyd run

def run_supervised(run, client, model, timeout):
    run.write(run.project, {**SUPERVISED_FILES, **run.scenario.get("files", {})})
    run.scenario["prompt"] = "{prompt}"
    run.commit_project()
    command, own = client.setup(run, model.url)
    env = run.environment(**own)
    goal = run.scenario.get("goal", "Write an add function in calc.py with a test")
    supervisor = [run.place_policyd(), "run", "--goal", goal, *run.scenario.get("run_args", []), "--"]
    process = run.start(supervisor + client.supervised(run, command), env, "run")
    timed_out = wait(process, timeout)
    said = run.text("run.out")
    return process.returncode, timed_out, {
        "said": said, "turns": re.findall(r"^turn (\d+) of", said, re.M), "left": processes_left(run),
        "tests_pass": lambda: tests_pass(run),
    }


def processes_left(run):
    """Processes of this run that are still alive; ended ones get a moment."""
    for _ in range(15):
        listed = subprocess.run(["ps", "-eo", "pid,args"], stdout=subprocess.PIPE, universal_newlines=True).stdout
        left = [line.strip() for line in listed.splitlines() if run.folder in line]
        if not left:
            break
        time.sleep(0.2)
    return left


def tests_pass(run):
    """Runs the project's tests independently of the client."""
    done = subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], cwd=run.project, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
    return done.returncode == 0 and not re.search("Ran 0 tests|NO TESTS RAN", done.stderr)


# ---- Claude Code's TUI

def run_in_terminal(run, client, model, timeout):
    command, own = client.setup(run, model.url)
    env = run.environment(**{**own, "TERM": "xterm-256color"})
    accept_dialogs(run, env)
    run.place_policyd()
    run.install_hooks(client.harness, env)
    # A slow model needs more time before the next key.
    slack = model.latency * (len(run.scenario["turns"]) + 2)
    keys = [(delay + slack if delay > 4 else delay, text) for delay, text in run.scenario["keys"]]
    return type_keys([command[0], *client.model(run.scenario)], run, env, keys), False, {}


def accept_dialogs(run, env):
    """Writes the settings of a user who completed onboarding and trusts the folder and the API key."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
    approved = {"approved": [env["ANTHROPIC_API_KEY"][-20:]], "rejected": []}
    write_json(env["CLAUDE_CONFIG_DIR"] + "/.claude.json", {
        "hasCompletedOnboarding": True, "theme": "dark", "lastOnboardingVersion": "9.9.9", "numStartups": 5,
        "customApiKeyResponses": approved, "projects": {run.project: trusted},
    })
    write_json(env["CLAUDE_CONFIG_DIR"] + "/settings.json", {
        "permissions": {"allow": ["Bash", "Read", "Write", "Edit"]},
        "statusLine": {"type": "command", "command": run.folder + "/rec/policyd context line"},
    })


def type_keys(command, run, env, keys):
    """Types each text after its delay. Returns the exit code, or nothing if the client was ended."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(run.project)
        os.execve(command[0], command, env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    keys = list(keys)
    due = time.time() + keys[0][0]
    with open(run.folder + "/terminal.raw", "wb") as log:
        while keys or time.time() < due:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    log.write(os.read(terminal, 65536))
                except OSError:
                    break
            if keys and time.time() >= due:
                os.write(terminal, keys.pop(0)[1].encode())
                due = time.time() + (keys[0][0] if keys else 4)
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number:
            os.kill(pid, number)
        for _ in range(20):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
            time.sleep(0.1)
    return None


DRIVERS = {"once": run_once, "supervised": run_supervised, "terminal": run_in_terminal}
TIMEOUTS = {"once": 120, "supervised": 200, "terminal": 120}
