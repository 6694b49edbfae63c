"""Files that every package holds besides the programs: license, notices, man pages, completions."""

import re
import subprocess
from pathlib import Path

from files import File
from project import NAME, ROOT

# The file names that the shells look for.
COMPLETIONS = {
    "bash": f"{NAME}.bash",
    "elvish": f"{NAME}.elv",
    "fish": f"{NAME}.fish",
    "powershell": f"_{NAME}.ps1",
    "zsh": f"_{NAME}",
}


def output(program: Path, *arguments: str) -> bytes:
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE).stdout


def man_pages(program: Path, command: tuple[str, ...] = ()) -> list[File]:
    """The page of a command and of the commands below it, which the page lists."""
    page = output(program, "man", *command)
    own = "-".join((NAME, *command))
    below = re.findall(rf"^{own}-([a-z-]+)\(1\)$".encode(), page.replace(b"\\-", b"-"), re.M)
    pages = [File(f"{own}.1", page)]
    for name in below:
        if name != b"help":
            pages += man_pages(program, (*command, name.decode()))
    return pages


def completions(program: Path) -> dict[str, File]:
    return {
        shell: File(name, output(program, "completions", shell))
        for shell, name in COMPLETIONS.items()
    }


def license_file() -> File:
    return File("LICENSE", (ROOT / "LICENSE").read_bytes())
