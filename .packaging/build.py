#!/usr/bin/env python3
"""Builds a release: compiles the programs for every target on this Linux machine, and makes every package of them.

    python3 .packaging/build.py --all

With directories instead of `--all`, it makes the packages of finished programs:

    python3 .packaging/build.py --partial x86_64-unknown-linux-musl=target/release

Each directory has `policyd` and `policyd-tools`. Those of one target must run on this machine: they print the man pages and
completions. Needs Python 3.11, its standard library only, and cargo; `--all` names what else is missing.
"""

import argparse
import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable

import debian
import dependencies
import documents
import files
import homebrew
import npm
import plugins
import programs
import wheel
from files import File
from project import NAME, PLATFORM, ROOT, TARGETS, TOOLS, VERSION, Target, readme

# Where Debian and a Python environment have completions, below `share`.
SHARED_COMPLETIONS = {
    "bash": f"bash-completion/completions/{NAME}",
    "fish": f"fish/vendor_completions.d/{NAME}.fish",
    "zsh": f"zsh/vendor-completions/_{NAME}",
}


@dataclass(frozen=True)
class Documents:
    """What the packages of all platforms share."""

    legal: list[File]
    pages: list[File]
    completions: dict[str, File]

    def shared(self) -> list[File]:
        completions = self.completions
        return [page.below("man/man1") for page in self.pages] + [
            File(path, completions[shell].data) for shell, path in SHARED_COMPLETIONS.items()
        ]


def read(target: Target, folder: Path) -> list[File]:
    """The programs of a target, which a package holds in one directory."""
    missing = [str(folder / name) for name in target.programs if not (folder / name).is_file()]
    if missing:
        build = f"cargo build --release -p {NAME} -p {TOOLS}"
        sys.exit(f"{target.triple}: missing: {', '.join(missing)}\nhelp: build both programs: {build}")
    return [File(name, (folder / name).read_bytes(), is_program=True) for name in target.programs]


def archive(target: Target, programs: list[File], shared: Documents) -> tuple[str, bytes]:
    contents = [*programs, *shared.legal, File("README.md", readme().encode())]
    contents += [page.below("man/man1") for page in shared.pages]
    contents += [file.below("completions") for file in shared.completions.values()]
    contents = [file.below(target.stem) for file in contents]
    if target.node[0] == "win32":
        return f"{target.stem}.zip", files.zipped(contents)
    return f"{target.stem}.tar.gz", files.tar_gz(contents)


def native(targets: Iterable[Target]) -> Target:
    """The target of this machine, whose programs print the man pages and completions."""
    found = next((target for target in targets if target.node == PLATFORM), None)
    if found is None:
        sys.exit("no programs for this machine\nhelp: add its target: its programs print the man pages")
    return found


def build(folders: dict[Target, Path], made: dict[str, bytes], runtime: dict[str, str], out: Path) -> None:
    """Writes the packages of the programs, and what was made already. `runtime` has the licenses of linked libraries."""
    built = {target: read(target, folder) for target, folder in folders.items()}
    crates = dependencies.Crates(list(built))
    own = native(folders)
    program = (folders[own] / own.programs[0]).resolve()
    shared = Documents(
        [documents.license_file(), dependencies.notices(crates, runtime)],
        documents.man_pages(program),
        documents.completions(program),
    )
    checksums: dict[str, str] = {}
    for target, programs in built.items():
        name, data = archive(target, programs, shared)
        made[name] = data
        checksums[target.triple] = hashlib.sha256(data).hexdigest()
        parts = [
            ("npm", npm.platform_package(target, programs, shared.legal)),
            ("pypi", wheel.wheel(target, programs, shared.legal, shared.shared())),
        ]
        if target.debian:
            parts.append(("", debian.package(target, programs, shared.legal, shared.shared())))
        made |= {f"{folder}/{name}".lstrip("/"): data for folder, (name, data) in parts}
    name, data = npm.main_package(shared.pages, shared.legal, list(shared.completions.values()))
    made[f"npm/{name}"] = data
    made[f"{NAME}-{VERSION}.cdx.json"] = dependencies.bill_of_materials(crates)
    made[f"{NAME}.rb"] = homebrew.formula(checksums)
    sums = [
        f"{hashlib.sha256(data).hexdigest()}  {name}\n"
        for name, data in sorted(made.items())
        if "/" not in name
    ]
    made["SHA256SUMS"] = "".join(sums).encode()
    made["notes/release.md"] = documents.release_notes().encode()
    for name, data in made.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(path)


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "target/dist", help="Directory of the packages")
    parser.add_argument("--tag", help="Tag of the release; must be `v` and the version of Cargo.toml")
    parser.add_argument("--all", action="store_true", help="Compile the programs for every target")
    parser.add_argument("--only", action="append", metavar="TARGET", help="Compile the programs for this target only")
    parser.add_argument("--profile", default="release", help="Profile of Cargo to compile with")
    parser.add_argument("--partial", action="store_true", help="Accept programs of some targets only")
    parser.add_argument("--compression", type=int, default=9, help="0 to 9")
    parser.add_argument("folders", nargs="*", metavar="TARGET=DIRECTORY")
    return parser.parse_args(arguments)


def chosen(triples: Iterable[str]) -> list[Target]:
    known = {target.triple: target for target in TARGETS}
    triples = set(triples)
    if unknown := triples - known.keys():
        sys.exit(f"unknown target: {', '.join(sorted(unknown))}\nhelp: one of {', '.join(known)}")
    return [target for target in TARGETS if target.triple in triples]


def main() -> None:
    arguments = parsed(sys.argv[1:])
    if arguments.tag is not None and arguments.tag != f"v{VERSION}":
        sys.exit(f"the tag is `{arguments.tag}`, and the version of Cargo.toml is {VERSION}")
    if arguments.tag is not None and not documents.is_dated():
        sys.exit(f"CHANGELOG.md has no section `## {VERSION} - DATE`\nhelp: write the date of the release")
    given = dict(pair.partition("=")[::2] for pair in arguments.folders)
    compiled = TARGETS if arguments.all else chosen(arguments.only or [])
    folders = {target: Path(given[target.triple]) for target in chosen(given)}
    missing = [target.triple for target in TARGETS if target not in folders and target not in compiled]
    if missing and not arguments.partial:
        sys.exit(f"no programs for {', '.join(missing)}\nhelp: pass --all, or --partial")
    if compiled:
        native([*compiled, *folders])
    programs.require(programs.missing(compiled) | (plugins.missing() if arguments.all else {}))
    folders |= programs.build(compiled, arguments.profile) if compiled else {}
    files.compression = arguments.compression
    made = plugins.made() if arguments.all else {}
    build(folders, made, programs.runtime_licenses() if compiled else {}, arguments.out)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failed:
        sys.exit(f"exit code {failed.returncode}: {' '.join(map(str, failed.cmd))}")
