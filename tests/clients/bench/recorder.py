#!/usr/bin/env python3
"""Replaces the installed policyd in a run: records each hook call, then forwards it to `policyd.real` beside it.

Each call is one file NNN.json in the folder that the file `records` names."""
import fcntl
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REAL = os.path.join(HERE, "policyd.real")


def event_name(arguments, payload):
    if isinstance(payload, dict) and payload.get("hook_event_name"):
        return payload["hook_event_name"]
    return arguments[arguments.index("--hook") + 1] if "--hook" in arguments else "statusline"


def next_number(folder):
    with open(os.path.join(folder, ".number"), "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        number = int(file.read() or 0) + 1
        file.truncate(0)
        file.write(str(number))
        return number


def main():
    arguments = sys.argv[1:]
    if arguments[:1] != ["eval"] and arguments[:2] != ["context", "line"]:
        os.execv(REAL, [REAL] + arguments)
    with open(os.path.join(HERE, "records")) as file:
        folder = file.read().strip()
    stdin = sys.stdin.buffer.read()
    try:
        payload = json.loads(stdin)
    except ValueError:
        payload = None
    began = time.time()
    done = subprocess.run([REAL] + arguments, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    number = next_number(folder)
    record = {
        "number": number, "event": event_name(arguments, payload), "arguments": arguments, "payload": payload,
        "exit": done.returncode, "stdout": done.stdout.decode("utf-8", "replace"),
        "stderr": done.stderr.decode("utf-8", "replace"), "ms": round((time.time() - began) * 1000, 1),
    }
    with open(os.path.join(folder, "%03d.json" % number), "w") as file:
        json.dump(record, file, indent=1, ensure_ascii=False)
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(done.stderr)
    sys.stderr.buffer.flush()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
