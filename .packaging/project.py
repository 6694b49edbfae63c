"""Facts of a release: what `Cargo.toml` states, and the targets."""

import os
import platform
import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MANIFEST = tomllib.loads((ROOT / "Cargo.toml").read_text())
PACKAGE = MANIFEST["package"] | MANIFEST["workspace"]["package"]
NAME = PACKAGE["name"]
TOOLS_MANIFEST = tomllib.loads((ROOT / "src/tools/Cargo.toml").read_text())
TOOLS = TOOLS_MANIFEST["package"]["name"]  # lies beside the program, which starts it
VERSION = PACKAGE["version"]
REPOSITORY = PACKAGE["repository"]
DOWNLOADS = f"{REPOSITORY}/releases/download/v{VERSION}"
SYSTEMS = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}
PROCESSORS = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64", "arm64": "arm64"}
PLATFORM = (SYSTEMS[platform.system()], PROCESSORS[platform.machine()])  # of this machine, as `Target.node`


def commit_time() -> str:
    """The time of the commit; outside a repository, none."""
    found = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or "0"


# Programs that are called see the same time.
EPOCH = int(os.environ.setdefault("SOURCE_DATE_EPOCH", commit_time()))
TIME = max(EPOCH, 315_532_800)  # zip files cannot represent an earlier time


MACOS = "11.0"  # the oldest one that the programs run on


@dataclass(frozen=True)
class Target:
    """A platform, by the names that each packager has for it."""

    triple: str
    node: tuple[str, str]  # `process.platform` and `process.arch`
    wheel: str
    debian: str = ""

    @property
    def programs(self) -> list[str]:
        suffix = ".exe" if self.node[0] == "win32" else ""
        return [f"{name}{suffix}" for name in (NAME, TOOLS)]

    @property
    def stem(self) -> str:
        return f"{NAME}-{VERSION}-{self.triple}"

    @property
    def npm(self) -> str:
        return f"@{NAME}/{'-'.join(self.node)}"


def linux(triple: str, node: str, debian: str) -> Target:
    """The program is static, so it needs neither a version of glibc nor one of musl."""
    libraries = ("manylinux_2_17", "manylinux2014", "musllinux_1_1")
    processor = triple.partition("-")[0]
    wheel = ".".join(f"{library}_{processor}" for library in libraries)
    return Target(triple, ("linux", node), wheel, debian)


def macos(triple: str, node: str, wheel: str) -> Target:
    return Target(triple, ("darwin", node), f"macosx_{MACOS.replace('.', '_')}_{wheel}")


TARGETS = [
    linux("x86_64-unknown-linux-musl", "x64", "amd64"),
    linux("aarch64-unknown-linux-musl", "arm64", "arm64"),
    macos("x86_64-apple-darwin", "x64", "x86_64"),
    macos("aarch64-apple-darwin", "arm64", "arm64"),
    Target("x86_64-pc-windows-gnu", ("win32", "x64"), "win_amd64"),
]


def readme() -> str:
    """The README for a page outside the repository: relative links become links to this version."""
    text = (ROOT / "README.md").read_text()
    return re.sub(r"\]\((?!https?:|#)", f"]({REPOSITORY}/blob/v{VERSION}/", text)


if __name__ == "__main__":
    print(*(target.triple for target in TARGETS), sep="\n")
