"""The packages that contain no program: the extension of VS Code, and the plugin of Claude Code."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import files
from files import File
from project import NAME, ROOT, VERSION

EXTENSION = ROOT / "src/editors/vscode"
PLUGIN = ROOT / ".claude-plugin"


def missing() -> dict[str, str]:
    """What this machine lacks to make them, and the command that installs it."""
    return {} if shutil.which("npm") else {"npm": "apt-get install npm"}


def extension() -> dict[str, bytes]:
    """Installs the packages that the lock file pins, and runs the scripts of the extension."""
    with tempfile.TemporaryDirectory() as folder:
        quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
        steps = [["ci", *quiet], ["run", "compile"], ["run", "package", "--", "--out", f"{folder}/"]]
        for step in steps:
            subprocess.run(["npm", *step], check=True, cwd=EXTENSION, stdout=subprocess.DEVNULL)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def plugin() -> dict[str, bytes]:
    """The directory of a marketplace, for a machine that cannot reach the repository."""
    stem = f"{NAME}-{VERSION}-claude-code"
    contents = []
    for path in sorted(PLUGIN.rglob("*")):
        if path.is_file():
            name = f"{stem}/.claude-plugin/{path.relative_to(PLUGIN)}"
            contents.append(File(name, path.read_bytes(), is_program=bool(path.stat().st_mode & 0o100)))
    return {f"{stem}.zip": files.zipped(contents)}


def made() -> dict[str, bytes]:
    return extension() | plugin()
