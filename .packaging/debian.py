"""Debian packages: an `ar` file of two tar files (see `man 5 deb`)."""

import hashlib

from files import File, compressed, tar_gz
from project import NAME, PACKAGE, REPOSITORY, ROOT, TIME, VERSION, Target


def control(target: Target, files: list[File]) -> bytes:
    size = sum(len(file.data) for file in files) // 1024 + 1
    fields = [
        f"Package: {NAME}",
        f"Version: {VERSION}",
        f"Architecture: {target.debian}",
        f"Maintainer: the {NAME} maintainers <{NAME}@users.noreply.github.com>",
        f"Installed-Size: {size}",
        "Section: devel",
        "Priority: optional",
        f"Homepage: {REPOSITORY}",
        f"Description: {PACKAGE['description']}",
        f" {NAME} runs as a hook of coding agents. `{NAME} install` adds the hooks.",
    ]
    return ("\n".join(fields) + "\n").encode()


def ar(members: list[tuple[str, bytes]]) -> bytes:
    out = b"!<arch>\n"
    for name, data in members:
        header = f"{name:<16}{TIME:<12}{0:<6}{0:<6}{0o100644:<8o}{len(data):<10}`\n"
        out += header.encode() + data + b"\n" * (len(data) % 2)
    return out


def package(
    target: Target, programs: list[File], legal: list[File], shared: list[File]
) -> tuple[str, bytes]:
    """`shared` are the files below `/usr/share`."""
    copyright_file, notices = legal
    doc = f"./usr/share/doc/{NAME}"
    changes = (ROOT / "CHANGELOG.md").read_bytes()
    files = [
        *(program.below("./usr/bin") for program in programs),
        File(f"{doc}/copyright", copyright_file.data),
        File(f"{doc}/{notices.path}.gz", compressed(notices.data)),
        File(f"{doc}/changelog.gz", compressed(changes)),
    ]
    # Debian wants a page for each program; the page of `policyd` has every command.
    other = File(f"man/man1/{NAME}-tools.1", f".so man1/{NAME}.1\n".encode())
    for file in [*shared, other]:
        is_page = file.path.startswith("man/")
        data = compressed(file.data) if is_page else file.data
        files.append(File(f"./usr/share/{file.path}{'.gz' if is_page else ''}", data))
    sums = "".join(
        f"{hashlib.md5(file.data, usedforsecurity=False).hexdigest()}  {file.path[2:]}\n"
        for file in sorted(files, key=lambda it: it.path)
    )
    about = [File("./control", control(target, files)), File("./md5sums", sums.encode())]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", tar_gz(about)),
        ("data.tar.gz", tar_gz(files, with_folders=True)),
    ]
    return f"{NAME}_{VERSION}_{target.debian}.deb", ar(members)
