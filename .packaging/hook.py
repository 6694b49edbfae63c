#!/usr/bin/env python3
"""Links the program of hooks for Linux, with the functions that hooks call side by side.

A hook executes about 2% of the program. In the order of the linker, these functions lie in all of its pages, and each page
costs a fault. Therefore `programs.py` names this script to the Rust compiler as the linker. It links the program, lets
Valgrind list the functions that the events of a session call, and links it again in that order. A program for another
processor cannot run here; it takes the order of the one that can, by the names of the functions.

    POLICYD_HOOK_ORDER=order.txt .packaging/hook.py ARGUMENT...
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import formats
from project import PLATFORM

ORDER = "POLICYD_HOOK_ORDER"
STRIP = ("--strip-all", "--strip-debug", "-s", "-S")


def linker() -> Path:
    """The linker of Rust."""
    output = subprocess.run(["rustc", "--print", "sysroot"], check=True, stdout=subprocess.PIPE, text=True)
    version = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True)
    host = re.search(r"^host: (.+)$", version.stdout, re.M)[1]
    return Path(output.stdout.strip(), "lib/rustlib", host, "bin/rust-lld")


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


def called(program: Path) -> list[str]:
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


def symbols(program: bytes) -> list[str]:
    """The symbols of an ELF file."""
    start, size, count = (*struct.unpack_from("<Q", program, 40), *struct.unpack_from("<HH", program, 58))
    sections = [struct.unpack_from("<IIQQQQII", program, start + size * at) for at in range(count)]
    found = []
    for _, kind, _, _, offset, length, link, _ in sections:
        if kind == 2:  # SHT_SYMTAB
            texts = sections[link][4]
            for entry in range(offset, offset + length, 24):
                name = texts + struct.unpack_from("<I", program, entry)[0]
                found.append(program[name : program.index(0, name)].decode())
    return found


def plain(symbol: str) -> str:
    """A symbol without hashes and without positions in itself, which depend on the target."""
    return re.sub(r"17h[0-9a-f]{16}E|(?<=C)s[0-9A-Za-z]*_|(?<=B)[0-9A-Za-z]*_|\.llvm\.\d+", "", symbol)


def translated(order: list[str], program: Path) -> list[str]:
    """The symbols of a program for another processor, in the order of the one that ran."""
    known: dict[str, list[str]] = {}
    for symbol in symbols(program.read_bytes()):
        known.setdefault(plain(symbol), []).append(symbol)
    return [symbol for name in dict.fromkeys(map(plain, order)) for symbol in known.get(name, [])]


def at_any_address(arguments: list[str]) -> list[str]:
    """The compiler links programs for some processors to a fixed address, although their code and musl need none."""
    if "-pie" in arguments:
        return arguments
    starts = {"crt1.o": "rcrt1.o", "crtbegin.o": "crtbeginS.o", "crtend.o": "crtendS.o"}
    paths = map(Path, arguments)
    files = [str(it.with_name(starts[it.name])) if it.name in starts else given for it, given in zip(paths, arguments)]
    return [*files, "-pie", "--no-dynamic-linker", "-z", "text"]


def link(arguments: list[str]) -> None:
    # The linker uses the job server of cargo, by its open files.
    ended = subprocess.run([linker(), *arguments], close_fds=False)
    if ended.returncode:
        sys.exit(ended.returncode)


def main(arguments: list[str]) -> None:
    arguments = at_any_address(arguments)
    program = Path(arguments[arguments.index("-o") + 1]).resolve()
    file = Path(os.environ[ORDER])
    # Valgrind tells functions by their symbols.
    link([argument for argument in arguments if argument not in STRIP])
    if formats.declared(program.read_bytes()).processor == PLATFORM[1]:
        order = called(program)
        file.write_text("\n".join(order) + "\n")
    else:
        order = translated(file.read_text().split(), program)
    if not order:
        sys.exit(f"{program}: no function of a hook has a symbol")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(order) + "\n")
        listed.flush()
        options = [f"--symbol-ordering-file={listed.name}", "--no-warn-symbol-ordering"]
        link([*arguments, *options])


if __name__ == "__main__":
    main(sys.argv[1:])
