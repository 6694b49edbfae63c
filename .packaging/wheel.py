"""Python wheels that hold the programs as scripts (https://packaging.python.org/specifications)."""

import base64
import hashlib

from files import File, zipped
from project import NAME, PACKAGE, REPOSITORY, VERSION, Target, readme


def metadata() -> bytes:
    fields = [
        "Metadata-Version: 2.4",
        f"Name: {NAME}",
        f"Version: {VERSION}",
        f"Summary: {PACKAGE['description']}",
        f"License-Expression: {PACKAGE['license']}",
        "License-File: LICENSE",
        "License-File: THIRD-PARTY-NOTICES",
        f"Keywords: {','.join(PACKAGE['keywords'])}",
        f"Project-URL: Source, {REPOSITORY}",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
    ]
    return ("\n".join(fields) + "\n\n" + readme()).encode()


def record(files: list[File], path: str) -> File:
    lines = []
    for file in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.data).digest()).decode()
        lines.append(f"{file.path},sha256={digest.rstrip('=')},{len(file.data)}\n")
    return File(path, ("".join(lines) + f"{path},,\n").encode())


def wheel(
    target: Target, programs: list[File], legal: list[File], shared: list[File]
) -> tuple[str, bytes]:
    """`shared` are the files below `share` of an environment."""
    data, info = f"{NAME}-{VERSION}.data", f"{NAME}-{VERSION}.dist-info"
    tags = "".join(f"Tag: py3-none-{tag}\n" for tag in target.wheel.split("."))
    about = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\n{tags}"
    files = [program.below(f"{data}/scripts") for program in programs]
    files += [file.below(f"{data}/data/share") for file in shared]
    files += [file.below(f"{info}/licenses") for file in legal]
    files += [File(f"{info}/METADATA", metadata()), File(f"{info}/WHEEL", about.encode())]
    files.append(record(files, f"{info}/RECORD"))
    return f"{NAME}-{VERSION}-py3-none-{target.wheel}.whl", zipped(files)
