#!/usr/bin/env python3
"""Installs the packages of this machine's platform into temporary directories and runs them. Runs the programs of the
other platforms in an emulator: QEMU for other processors, and Wine for Windows. Nothing on Linux runs programs for macOS.

    python3 .packaging/try.py dist

Nothing is fetched. A package whose installer or emulator is absent is skipped by name.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

from emulate import Absent, emulator, need, variables
from project import (
    DOWNLOADS,
    NAME,
    PACKAGE,
    PLATFORM,
    REPOSITORY,
    ROOT,
    TARGETS,
    TOOLS,
    TOOLS_MANIFEST,
    VERSION,
    Target,
)

DANGEROUS = {"tool_name": "Bash", "tool_input": {"command": "rm -rf ~"}}


# The first commands after the installation, and a text that each of them prints.
FIRST_STEPS = {
    "replay": ("replay", "~/.claude/projects"),
    "hooks": ("install",),
    "doctor": ("doctor",),
}
PROOFS = {
    "replay": "local_testing",
    "hooks": "Claude Code",
    "doctor": "PreToolUse",
}
FIRST_STEPS_SECONDS_MAX = 120


def run(*command: str | Path, **options) -> str:
    """The standard output of a command, which must succeed."""
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    if ended.returncode != 0:
        words = " ".join(map(str, command))
        raise AssertionError(f"{words}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def one(dist: Path, pattern: str) -> Path:
    found = list(dist.glob(pattern))
    assert len(found) == 1, f"{pattern}: {len(found)} files"
    return found[0]


def archive(path: Path) -> tarfile.TarFile | zipfile.ZipFile:
    return zipfile.ZipFile(path) if path.suffix == ".zip" else tarfile.open(path)


def from_archive(dist: Path, target: Target, folder: Path) -> Path:
    """By the metadata of `cargo binstall`, which installs each of the two packages from the same archive."""
    metadata = PACKAGE["metadata"]["binstall"]
    assert TOOLS_MANIFEST["package"]["metadata"]["binstall"] == metadata, "metadata of binstall differ"

    suffix = ".exe" if target.node[0] == "win32" else ""
    metadata = metadata | metadata["overrides"].get(target.triple, {})

    def filled(template: str, name: str = NAME) -> str:
        values = {"repo": REPOSITORY, "version": VERSION, "target": target.triple, "bin": name}
        for key, value in (values | {"binary-ext": suffix}).items():
            template = template.replace("{ %s }" % key, value)
        return template

    address = filled(metadata["pkg-url"])
    assert address.rpartition("/")[0] == DOWNLOADS, address
    with archive(dist / Path(address).name) as opened:
        opened.extractall(folder)
    program, tools = (folder / filled(metadata["bin-dir"], name) for name in (NAME, TOOLS))
    if suffix:
        for file in (program, tools):
            file.chmod(0o755)  # Wine wants the permission, which Python's zip files lose
    for path in ("LICENSE", "THIRD-PARTY-NOTICES", f"man/man1/{NAME}.1", f"completions/_{NAME}"):
        assert (program.parent / path).stat().st_size > 0, path
    return program


def from_action(dist: Path, _: Target, folder: Path) -> Path:
    """By the download script of the GitHub Action."""
    need("bash", "curl")
    script = ROOT / ".github/actions/check/install.sh"
    environment = {**os.environ, "POLICYD_DOWNLOADS": dist.resolve().as_uri()}
    return Path(run(script, folder, env=environment).strip()) / NAME


def from_deb(dist: Path, target: Target, folder: Path) -> Path:
    if not target.debian:
        raise Absent("Debian")
    need("dpkg", "dpkg-deb")
    database = folder / "var/lib/dpkg"
    for name in ("info", "updates"):
        (database / name).mkdir(parents=True)
    (database / "status").touch()
    package = one(dist, f"*_{target.debian}.deb")
    forced = "--force-not-root"
    run("dpkg", f"--root={folder}", forced, "--install", package)
    for line in (database / f"info/{NAME}.md5sums").read_text().splitlines():
        expected, path = line.split("  ")
        actual = hashlib.md5((folder / path).read_bytes(), usedforsecurity=False).hexdigest()
        assert actual == expected, path
    assert (folder / f"usr/share/man/man1/{NAME}.1.gz").is_file()
    return folder / f"usr/bin/{NAME}"


def from_npm(dist: Path, target: Target, folder: Path) -> Path:
    need("node", "npm")
    (folder / "package.json").write_text("{}")
    platform_package = one(dist, f"npm/{NAME}-{'-'.join(target.node)}-{VERSION}.tgz").resolve()
    main_package = one(dist, f"npm/{NAME}-{VERSION}.tgz").resolve()
    quiet = ("--offline", "--no-audit", "--no-fund", "--no-update-notifier")
    run("npm", "install", *quiet, platform_package, main_package, cwd=folder)
    return folder / f"node_modules/.bin/{NAME}"


def from_wheel(dist: Path, target: Target, folder: Path) -> Path:
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
        raise Absent("pip")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin/python"
    package = one(dist, f"pypi/*{target.wheel}.whl")
    quiet = ("--no-index", "--no-cache-dir", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, "install", *quiet, package)
    assert (folder / f"share/man/man1/{NAME}.1").is_file()
    return folder / f"bin/{NAME}"


WAYS = {
    "archive": from_archive,
    "action": from_action,
    "deb": from_deb,
    "npm": from_npm,
    "wheel": from_wheel,
}


def use(program: Path, home: Path) -> None:
    """The program states its version, for which it starts `policyd-tools`, and its hook blocks a dangerous call."""
    environment = {**os.environ, "HOME": str(home)}
    version = run(program, "--version", env=environment).strip()
    assert version == f"{NAME} {VERSION}", version
    blocks(str(home), program, env=environment)


def blocks(directory: str, *command: str | Path, **options) -> None:
    event = json.dumps({"session_id": "s", "cwd": directory, **DANGEROUS})
    answer = run(*command, "eval", "--hook", "pre-tool-use", input=event, **options)
    decision = json.loads(answer)["hookSpecificOutput"]["permissionDecision"]
    assert decision == "deny", answer


def emulate(dist: Path, target: Target) -> str:
    """Runs both programs of another platform, and returns the name of the emulator."""
    runner = emulator(target)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        program = from_archive(dist, target, Path(folder))
        environment = {**os.environ, "HOME": home, **variables(runner, Path(home))}
        # A program that QEMU runs cannot start another one for the same processor.
        for name in (TOOLS,) if runner != "wine" else (NAME, TOOLS):
            file = program.with_name(program.name.replace(NAME, name))
            version = run(runner, file, "--version", env=environment).strip()
            assert version == f"{NAME} {VERSION}", version
        blocks(home, runner, program, env=environment)
    return runner


def first_steps(name: str, install: float, program: Path, home: Path) -> None:
    """The first three commands of a new user: install the package, replay the own history, prove that hooks work."""
    sessions, project = home / ".claude/projects/-project", home / "project"
    sessions.mkdir(parents=True)
    project.mkdir()
    shutil.copy(ROOT / "tests/samples/transcript.jsonl", sessions)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    times = {"install": install}
    for step, command in FIRST_STEPS.items():
        began = time.monotonic()
        words = [word.replace("~", str(home)) for word in command]
        printed = run(program, *words, env=environment, cwd=project)
        times[step] = time.monotonic() - began
        assert PROOFS[step] in printed, f"{step}: {printed}"
    total = sum(times.values())
    shown = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in times.items())
    print(f"time     {name}: {shown}; total {total:.1f} s")
    assert total < FIRST_STEPS_SECONDS_MAX, shown


def check_sums(dist: Path) -> None:
    listed = dict(line.split("  ")[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    files = {it.name for it in dist.iterdir() if it.is_file() and it.name != "SHA256SUMS"}
    assert listed.keys() == files, listed.keys() ^ files
    for name, expected in listed.items():
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == expected, name
    formula = (dist / f"{NAME}.rb").read_text()
    for name in files:
        if name.endswith(".tar.gz"):
            assert f'{name}"\n      sha256 "{listed[name]}"' in formula, name


def main() -> None:
    dist = Path(sys.argv[1])
    target = next(it for it in TARGETS if it.node == PLATFORM)
    check_sums(dist)
    for name, install in WAYS.items() if PLATFORM[0] != "win32" else [("archive", from_archive)]:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
            try:
                began = time.monotonic()
                program = install(dist, target, Path(folder))
                installed = time.monotonic() - began
                use(program, Path(home))
                print(f"ok       {name}")
                if name in ("npm", "wheel"):
                    first_steps(name, installed, program, Path(home))
            except Absent as tool:
                print(f"skipped  {name}: {tool} is absent")
    for other in TARGETS:
        if other.node != PLATFORM and list(dist.glob(f"{other.stem}.*")):
            try:
                print(f"ok       {other.triple}, by {emulate(dist, other)}")
            except Absent as tool:
                print(f"skipped  {other.triple}: {tool} is absent")
    try:
        need("ruby")
        run("ruby", "-c", dist / f"{NAME}.rb")
        print("ok       formula")
    except Absent as tool:
        print(f"skipped  formula: {tool} is absent")


if __name__ == "__main__":
    main()
