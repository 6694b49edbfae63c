"""Files that every package holds besides the programs: license, notices, man pages, completions."""

import re
import subprocess
from pathlib import Path

from files import File
from project import NAME, REPOSITORY, ROOT, VERSION

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


def changes() -> tuple[str, str]:
    """The heading and the text of this version in the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text()
    section = re.search(rf"^## ({re.escape(VERSION)} .*)\n(?s:(.*?))(?=^## |\Z)", text, re.M)
    if section is None:
        raise SystemExit(f"CHANGELOG.md has no section for {VERSION}")
    return section[1], section[2].strip()


def is_dated() -> bool:
    return re.fullmatch(rf"{re.escape(VERSION)} - \d{{4}}-\d\d-\d\d", changes()[0]) is not None


def release_notes() -> str:
    """The changes of this version, and how to check what was downloaded."""
    check = (
        "Each file is in `SHA256SUMS` (`sha256sum --check --ignore-missing SHA256SUMS`), and has an attestation of its "
        f"build (`gh attestation verify FILE --repo {REPOSITORY.removeprefix('https://github.com/')}`)."
    )
    return f"{changes()[1]}\n\n## Verify\n\n{check}\n"
