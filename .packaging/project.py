"""Facts of a release: what `Cargo.toml` states, and the targets."""

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = tomllib.loads((ROOT / "Cargo.toml").read_text())
PACKAGE = MANIFEST["package"] | MANIFEST["workspace"]["package"]
NAME = PACKAGE["name"]
TOOLS_MANIFEST = tomllib.loads((ROOT / "src/tools/Cargo.toml").read_text())
TOOLS = TOOLS_MANIFEST["package"]["name"]  # lies beside the program, which starts it
VERSION = PACKAGE["version"]
REPOSITORY = PACKAGE["repository"]
DOWNLOADS = f"{REPOSITORY}/releases/download/v{VERSION}"
# Zip files cannot represent an earlier time.
TIME = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315_532_800)


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


TARGETS = [
    linux("x86_64-unknown-linux-gnu", "x64", "amd64"),
    linux("aarch64-unknown-linux-gnu", "arm64", "arm64"),
    Target("x86_64-apple-darwin", ("darwin", "x64"), "macosx_10_12_x86_64"),
    Target("aarch64-apple-darwin", ("darwin", "arm64"), "macosx_11_0_arm64"),
    Target("x86_64-pc-windows-msvc", ("win32", "x64"), "win_amd64"),
]


def readme() -> str:
    """The README for a page outside the repository: relative links become links to this version."""
    text = (ROOT / "README.md").read_text()
    return re.sub(r"\]\((?!https?:|#)", f"]({REPOSITORY}/blob/v{VERSION}/", text)
