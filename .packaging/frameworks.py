"""Stubs of the frameworks of macOS: texts that tell the linker which library has a function (`tbd` files).

The programs are linked without the SDK of Apple. `SYMBOLS` lists what the crates call; the linker names any other. The
system has the functions themselves. Zig brings the stub of its C library.
"""

from pathlib import Path

SYMBOLS = {
    "CoreFoundation": "",
    "CoreServices": "",
    "Security": "",
    "SystemConfiguration": "",
}
TARGETS = "[x86_64-macos, arm64-macos]"


def stub(framework: str, symbols: list[str]) -> str:
    return f"""\
--- !tapi-tbd
tbd-version: 4
targets: {TARGETS}
install-name: /System/Library/Frameworks/{framework}.framework/Versions/A/{framework}
exports:
  - targets: {TARGETS}
    symbols: [{', '.join(f'_{symbol}' for symbol in symbols)}]
...
"""


def write(root: Path) -> Path:
    """Writes the stubs below a directory, where they lie as in an SDK."""
    for framework, symbols in SYMBOLS.items():
        folder = root / f"System/Library/Frameworks/{framework}.framework"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{framework}.tbd").write_text(stub(framework, symbols.split()))
    return root
