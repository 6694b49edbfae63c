"""What a finished program declares to its system: the processor, and the libraries that the system has to load.

A program for another system cannot always run where it was built. These facts tell beforehand whether it can start there.
"""

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

from project import MACOS, NAME, Target

# Processors by the names of Node.
ELF_MACHINES = {62: "x64", 183: "arm64"}
MACH_MACHINES = {0x0100_0007: "x64", 0x0100_000C: "arm64"}
PE_MACHINES = {0x8664: "x64", 0xAA64: "arm64"}

# Load commands of macOS (`mach-o/loader.h`).
LOAD_LIBRARY = (0xC, 0x1F | 0x8000_0000, 0x18 | 0x8000_0000)
CODE_SIGNATURE, BUILD_VERSION = 0x1D, 0x32
# Parts of a signature (`cs_blobs.h`).
SIGNATURE, CODE_DIRECTORY, SHA256 = 0xFADE_0CC0, 0xFADE_0C02, 2

# Libraries that each supported Windows has. `api-ms-win-…` are names of parts of the same.
WINDOWS_LIBRARIES = {
    "advapi32.dll", "bcrypt.dll", "bcryptprimitives.dll", "combase.dll", "crypt32.dll", "gdi32.dll", "iphlpapi.dll",
    "kernel32.dll", "ncrypt.dll", "netapi32.dll", "ntdll.dll", "ole32.dll", "oleaut32.dll", "pdh.dll", "powrprof.dll",
    "psapi.dll", "secur32.dll", "shell32.dll", "user32.dll", "userenv.dll", "ws2_32.dll",
}  # fmt: skip
MACOS_LIBRARIES = (
    "/usr/lib/libSystem.B.dylib", "/usr/lib/libcharset.1.dylib", "/usr/lib/libiconv.2.dylib", "/usr/lib/libobjc.A.dylib",
)  # fmt: skip
MACOS_FRAMEWORKS = "/System/Library/Frameworks/"


class Unfit(Exception):
    """A program that its system would not start."""


@dataclass(frozen=True)
class Declared:
    processor: str
    libraries: list[str]
    oldest: str = ""  # the oldest macOS that the program accepts


def text(data: bytes, offset: int) -> str:
    return data[offset : data.index(0, offset)].decode()


def elf(data: bytes) -> Declared:
    machine = struct.unpack_from("<H", data, 18)[0]
    start, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
    for header in range(start, start + size * count, size):
        kind, _, offset = struct.unpack_from("<IIQ", data, header)
        if kind == 3:  # PT_INTERP: the program that loads libraries
            return Declared(ELF_MACHINES[machine], [text(data, offset)])
    return Declared(ELF_MACHINES[machine], [])


def mach(data: bytes) -> Declared:
    processor, count = struct.unpack_from("<I", data, 4)[0], struct.unpack_from("<I", data, 16)[0]
    libraries, oldest, is_signed, offset = [], "", False, 32
    for _ in range(count):
        command, size, first, second = struct.unpack_from("<4I", data, offset)
        if command in LOAD_LIBRARY:
            libraries.append(text(data, offset + first))
        if command == BUILD_VERSION:
            oldest = f"{second >> 16}.{second >> 8 & 255}"
        if command == CODE_SIGNATURE:
            check_signature(data, first, second)
            is_signed = True
        offset += size
    declared = Declared(MACH_MACHINES[processor], libraries, oldest)
    # A system on ARM kills a program without a signature, and one that changed after it was signed.
    if declared.processor == "arm64" and not is_signed:
        raise Unfit("has no signature")
    return declared


def check_signature(data: bytes, offset: int, size: int) -> None:
    """The signature has the hash of each page of the program."""
    blob = data[offset : offset + size]
    magic, _, count = struct.unpack_from(">3I", blob)
    starts = [struct.unpack_from(">I", blob, 16 + 8 * entry)[0] for entry in range(count)]
    found = [at for at in starts if struct.unpack_from(">I", blob, at)[0] == CODE_DIRECTORY]
    if magic != SIGNATURE or not found:
        raise Unfit("has a signature without hashes")
    directory = blob[found[0] :]
    hashes, _, _, slots, limit = struct.unpack_from(">5I", directory, 16)
    hash_size, hash_kind, _, page = struct.unpack_from(">4B", directory, 36)
    if hash_kind != SHA256 or limit != offset:
        raise Unfit("has a signature of another program")
    for slot in range(slots):
        start = slot << page
        actual = hashlib.sha256(data[start : min(start + (1 << page), limit)]).digest()
        if actual != directory[hashes + slot * hash_size :][:hash_size]:
            raise Unfit("changed after it was signed")


def pe(data: bytes) -> Declared:
    header = struct.unpack_from("<I", data, 60)[0]
    machine, sections = struct.unpack_from("<HH", data, header + 4)
    optional = header + 24
    table = optional + struct.unpack_from("<H", data, header + 20)[0]

    def position(address: int) -> int:
        for section in range(table, table + 40 * sections, 40):
            size, start, _, raw = struct.unpack_from("<4I", data, section + 8)
            if start <= address < start + size:
                return address - start + raw
        raise Unfit(f"has no section for the address {address:#x}")

    libraries = []
    entry = position(struct.unpack_from("<I", data, optional + 120)[0])
    while name := struct.unpack_from("<I", data, entry + 12)[0]:
        libraries.append(text(data, position(name)).lower())
        entry += 20
    return Declared(PE_MACHINES[machine], libraries)


def declared(data: bytes) -> Declared:
    if data.startswith(b"\x7fELF"):
        return elf(data)
    if data.startswith(b"\xcf\xfa\xed\xfe"):
        return mach(data)
    if data.startswith(b"MZ"):
        return pe(data)
    raise Unfit("is not a program")


def is_present(library: str, program: Path, target: Target) -> bool:
    """Whether each machine of the target has the library. The program of hooks starts with few libraries, thus fast."""
    if target.node[0] == "win32":
        return library in WINDOWS_LIBRARIES or library.startswith("api-ms-win-")
    if target.node[0] == "darwin":
        is_framework = library.startswith(MACOS_FRAMEWORKS) and program.name != NAME
        return library in MACOS_LIBRARIES or is_framework
    return False  # programs for Linux are static


def check(program: Path, target: Target) -> Declared:
    try:
        found = declared(program.read_bytes())
        if found.processor != target.node[1]:
            raise Unfit(f"is for {found.processor}")
        if target.node[0] == "darwin" and found.oldest != MACOS:
            raise Unfit(f"is for macOS {found.oldest}, and packages are for {MACOS}")
        if other := [it for it in found.libraries if not is_present(it, program, target)]:
            raise Unfit(f"needs {', '.join(other)}, which is not on each machine")
    except Unfit as problem:
        raise SystemExit(f"{target.triple}: {program.name} {problem}") from None
    return found
