#!/usr/bin/env python3
"""Builds the program of hooks for Linux, with the functions that hooks call side by side.

    python3 .packaging/hook.py x86_64-unknown-linux-musl

A hook executes about 2% of the program. In the order of the linker, these functions lie in all of its pages, and each page
costs a fault. Therefore this script builds the program, lets Valgrind list the functions that the events of a session
call, and links it again in that order. Without Valgrind, the order is the one of the linker, and the script says so.

The target must run on this machine. Needs Python 3.11, cargo, a C compiler for the target, and Valgrind.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from project import NAME, ROOT


def build(target: str, *options: str) -> Path:
    command = ["cargo", "rustc", "--locked", "--release", "-p", NAME, "--bin", NAME, "--target", target]
    subprocess.run([*command, "--", *options], check=True, cwd=ROOT)
    metadata = ["cargo", "metadata", "--format-version=1", "--no-deps"]
    found = json.loads(subprocess.run(metadata, check=True, cwd=ROOT, stdout=subprocess.PIPE).stdout)
    return Path(found["target_directory"], target, "release", NAME)


def events(project: Path) -> list[tuple[str, dict]]:
    """The events of a session, the most frequent ones first: their functions come first."""
    transcript = project / "transcript.jsonl"
    texts = [
        {"type": "user", "message": {"role": "user", "content": "please fix the test"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [
            {"type": "text", "text": "The test passes."},
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "cargo test"}},
        ]}},
    ]
    transcript.write_text("".join(json.dumps(text) + "\n" for text in texts * 50))
    session = {"session_id": "s", "cwd": str(project), "transcript_path": str(transcript)}
    file = str(project / "a.rs")
    calls = [
        ("Bash", {"command": "ls -la"}),
        ("Bash", {"command": "cargo test --all 2>&1 | tail -5 && git status"}),
        ("Read", {"file_path": file}),
        ("Edit", {"file_path": file, "old_string": "a", "new_string": "b"}),
    ]
    tools = [("pre-tool-use", {"tool_name": name, "tool_input": given}) for name, given in calls]
    denied = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}}
    result = {**tools[0][1], "tool_response": {"stdout": "", "stderr": ""}}
    others = [
        ("post-tool-use", result),
        ("stop", {}),
        ("stop", {}),
        ("pre-tool-use", denied),
        ("user-prompt-submit", {"prompt": "go on"}),
        ("session-start", {"source": "startup"}),
    ]
    return [(hook, {**session, **fields}) for hook, fields in [*tools, *others]]


def functions(program: Path) -> list[str]:
    """The symbols of the functions that hooks call, each once."""
    found: dict[str, None] = {}
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        project.mkdir()
        subprocess.run(["git", "init", "--quiet", str(project)], check=True)
        environment = {"PATH": os.environ["PATH"], "HOME": folder}
        profile = Path(folder, "profile")
        for hook, event in events(project):
            command = ["valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={profile}"]
            command += [str(program), "eval", "--hook", hook]
            given = json.dumps(event).encode()
            subprocess.run(command, check=True, input=given, env=environment, capture_output=True)
            names = re.findall(r"^c?fn=\(\d+\) ([^\s']+)", profile.read_text(), re.M)
            found.update(dict.fromkeys(names))
    return list(found)


def linker() -> str:
    """The directory with the linker of Rust under the name that C compilers look for."""
    output = subprocess.run(["rustc", "--print", "sysroot"], check=True, stdout=subprocess.PIPE, text=True)
    version = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True)
    host = re.search(r"^host: (.+)$", version.stdout, re.M)[1]
    return str(Path(output.stdout.strip(), "lib/rustlib", host, "bin/gcc-ld"))


def main(target: str) -> None:
    if shutil.which("valgrind") is None:
        program = build(target)
        print("valgrind is absent: functions are not ordered by use", file=sys.stderr)
    else:
        order = functions(build(target, "-Cstrip=none"))
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(order) + "\n")
            file.flush()
            sort = f"-Wl,--symbol-ordering-file={file.name},--no-warn-symbol-ordering"
            link = ["-fuse-ld=lld", f"-B{linker()}", sort]
            program = build(target, *(f"-Clink-arg={option}" for option in link))
        print(f"functions in the order of use: {len(order)}", file=sys.stderr)
    print(program)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
