#!/usr/bin/env python3
"""Runs tests for other systems on this Linux machine: for ARM64 in QEMU, and for Windows in Wine.

    python3 .packaging/emulate.py

Runs the unit tests of all crates, and `tests/systems`: hooks, saves, locks, settings, and packs. A system whose emulator is absent
is skipped by name.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import programs
from project import HERE, PLATFORM, TARGETS, Target

# What runs programs of another platform on Linux.
EMULATORS = {
    ("linux", "arm64"): "qemu-aarch64",
    ("linux", "x64"): "qemu-x86_64",
    ("win32", "x64"): "wine",
}
# A program that QEMU runs cannot start another one for the same processor. This test has `policyd` start `policyd-tools`.
STARTS_ANOTHER = "another_release_of_policyd_is_refused"
# A former Wine lacks a library of Windows.
WINE_LIBRARY = "bcryptprimitives.dll"


class Absent(Exception):
    """A program that is needed is not on this machine."""


def need(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            raise Absent(tool)


def emulator(target: Target) -> str:
    """The program that runs the programs of another platform."""
    found = EMULATORS.get(target.node) if PLATFORM[0] == "linux" else None
    if found is None:
        raise Absent("an emulator")
    need(found)
    return found


def windows_path(path: Path) -> str:
    """A path as Wine names it."""
    return "Z:" + str(path).replace("/", "\\")


def variables(emulator: str, home: Path) -> dict[str, str]:
    """What the emulator needs in the environment. `home` keeps its files; in Windows, it is the home directory of the user."""
    if emulator != "wine":
        return {}
    library = home / "library"
    wine_library(library)
    return {
        "WINEPREFIX": str(home / "wine"),
        "WINEDEBUG": "-all",
        "WINEPATH": windows_path(library),
        "WINEDLLOVERRIDES": f"{WINE_LIBRARY.removesuffix('.dll')}=n,b",
        "USERPROFILE": windows_path(home),
    }


def wine_library(folder: Path) -> None:
    """Compiles the library that a former Wine lacks."""
    command = programs.zig()
    if command is None:
        raise Absent("the compiler of `build.py --all`")
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-target", "x86_64-windows-gnu", "-O2", "-shared", "-o", str(folder / WINE_LIBRARY), "-ladvapi32"]
    subprocess.run([*command, "cc", str(HERE / "wine.c"), *options], check=True)


def test(target: Target, arguments: list[str]) -> bool:
    """Compiles and runs the tests of a target. Returns whether they passed."""
    runner = emulator(target)
    environment = programs.environment()
    with tempfile.TemporaryDirectory() as home:
        environment |= variables(runner, Path(home))
        name = target.triple.upper().replace("-", "_")
        environment[f"CARGO_TARGET_{name}_RUNNER"] = runner
        skipped = []
        if runner.startswith("qemu"):
            environment["POLICYD_TEST_RUNNER"] = runner
            skipped = ["--skip", STARTS_ANOTHER]
        command = ["cargo-zigbuild", "test", "--locked", "--no-fail-fast", "--target", target.triple]
        command += ["--config", "profile.dev.debug=0", "--workspace", "--lib", "--bins"]
        command += ["--test", "systems", "--test", "program", "--", *skipped, *arguments]
        print(f"== {target.triple}, by {runner}", file=sys.stderr, flush=True)
        return subprocess.run(command, cwd=programs.ROOT, env=environment).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="TARGET", help="Test this target only")
    parser.add_argument("arguments", nargs="*", help="Arguments of the tests, behind `--`")
    given = parser.parse_args()
    failed = []
    for target in TARGETS:
        if target.node == PLATFORM or given.only not in (None, target.triple):
            continue
        try:
            emulator(target)
            programs.require(programs.missing([target]))
            if not test(target, given.arguments):
                failed.append(target.triple)
        except Absent as tool:
            print(f"== {target.triple} is not tested: {tool} is absent", file=sys.stderr)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
