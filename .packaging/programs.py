"""Compiles both programs for each target on one Linux machine.

The C compiler and linker for all systems is Zig, which cargo-zigbuild calls. Both come into a virtual environment in the
target directory, from `requirements.txt`, which pins their content. Everything else must be there: `missing` names it,
and the command that installs it.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import formats
import frameworks
import hook
from project import HERE, MACOS, NAME, PLATFORM, ROOT, TOOLS, Target

REQUIREMENTS = HERE / "requirements.txt"
# Libraries that Zig links, and where it has their licenses.
RUNTIME = {
    "musl": "lib/libc/musl/COPYRIGHT",
    "mingw-w64": "lib/libc/mingw/COPYING",
    "libunwind": "lib/libunwind/LICENSE.TXT",
    "the runtime library of Zig": "LICENSE",
}


def output(*command: str) -> str:
    return subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout


def missing(targets: list[Target]) -> dict[str, str]:
    """What this machine lacks to compile, and the command that installs it. Packages of finished programs name their crates."""
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        return {"cargo": "see https://rustup.rs"}
    if not targets:
        return {}
    if PLATFORM[0] != "linux":
        return {"Linux": "compile on Linux"}
    lacks = {}
    libraries = Path(output("rustc", "--print", "sysroot").strip(), "lib/rustlib")
    for target in targets:
        if not (libraries / target.triple).is_dir():
            lacks[f"the standard library of {target.triple}"] = f"rustup target add {target.triple}"
    if not hook.linker().is_file():
        lacks["the linker of Rust"] = "rustup toolchain install stable"
    if shutil.which("valgrind") is None and any(target.node[0] == "linux" for target in targets):
        lacks["valgrind"] = "apt-get install valgrind"
    if subprocess.run([sys.executable, "-c", "import ensurepip"], capture_output=True).returncode:
        lacks["ensurepip"] = "apt-get install python3-venv"
    return lacks


def require(lacks: dict[str, str]) -> None:
    if lacks:
        lines = [f"missing: {name}\nhelp: {command}" for name, command in lacks.items()]
        sys.exit("\n".join(lines))


@dataclass(frozen=True)
class Builder:
    directory: Path  # the target directory of cargo
    profile: str
    environment: dict[str, str]

    def run(self, targets: list[Target], program: str, *options: str) -> None:
        """Compiles one program for some targets at once. Each program is compiled alone, with only the features that it needs."""
        if not targets:
            return
        subcommand = "rustc" if options else "zigbuild"
        command = ["cargo-zigbuild", subcommand, "--locked", "--keep-going", "--profile", self.profile]
        command += ["-p", program, "--bin", program]
        for target in targets:
            command += ["--target", target.triple]
        names = ", ".join(target.triple for target in targets)
        print(f"compiling {program} for {names}", file=sys.stderr, flush=True)
        subprocess.run([*command, *options], check=True, cwd=ROOT, env=self.environment)

    def compile(self, targets: list[Target]) -> dict[Target, Path]:
        """The directory with both programs of each target."""
        linker = ["-Clinker-flavor=ld.lld", f"-Clinker={HERE / 'hook.py'}", "-Clink-self-contained=yes"]
        linux = [target for target in targets if target.node[0] == "linux"]
        # The first one runs on this machine. The others take the order of its functions.
        for target in sorted(linux, key=lambda it: it.node != PLATFORM):
            self.run([target], NAME, "--", *linker)
        self.run([target for target in targets if target not in linux], NAME)
        self.run(targets, TOOLS)
        return {target: self.checked(target) for target in targets}

    def checked(self, target: Target) -> Path:
        folder = self.directory / target.triple / ("debug" if self.profile == "dev" else self.profile)
        for name in target.programs:
            found = formats.check(folder / name, target)
            size = (folder / name).stat().st_size / 1_000_000
            loads = ", ".join(found.libraries) or "no libraries"
            print(f"{target.triple}: {name}: {size:.1f} MB, loads {loads}", file=sys.stderr)
        return folder


def target_directory() -> Path:
    metadata = json.loads(output("cargo", "metadata", "--format-version=1", "--no-deps"))
    return Path(metadata["target_directory"])


def compiler(directory: Path) -> Path:
    """The virtual environment with Zig and cargo-zigbuild."""
    return directory / "packaging/compiler"


def zig() -> list[str] | None:
    """The command of Zig, if `build` installed it."""
    python = compiler(target_directory()) / "bin/python"
    return [str(python), "-m", "ziglang"] if python.is_file() else None


def runtime_licenses() -> dict[str, str]:
    """The licenses of the linked libraries by their names."""
    folder = next(compiler(target_directory()).glob("lib/python*/site-packages/ziglang"))
    return {name: (folder / path).read_text().strip() for name, path in RUNTIME.items()}


def install_compiler(folder: Path) -> Path:
    """The directory of the programs of a virtual environment with Zig and cargo-zigbuild."""
    programs, stamp = folder / "bin", folder / "requirements.txt"
    wanted = REQUIREMENTS.read_text()
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"installing {REQUIREMENTS.relative_to(ROOT)} into {folder}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
        install = [str(programs / "python"), "-m", "pip", "install", *quiet, "--requirement", str(REQUIREMENTS)]
        subprocess.run(install, check=True)
        stamp.write_text(wanted)
    return programs


def environment() -> dict[str, str]:
    """The environment in which cargo-zigbuild compiles for every target. Installs the compiler."""
    directory = target_directory()
    programs = install_compiler(compiler(directory))
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "MACOSX_DEPLOYMENT_TARGET": MACOS,
        "SDKROOT": str(frameworks.write(directory / "packaging/macos")),
    }


def build(targets: list[Target], profile: str) -> dict[Target, Path]:
    """Compiles the targets, and returns the directory of the programs of each."""
    directory = target_directory()
    variables = environment() | {
        "POLICYD_PACKAGE": "1",  # no path of this machine in the programs
        hook.ORDER: str(directory / "packaging/order.txt"),
    }
    return Builder(directory, profile, variables).compile(targets)
