"""What is compiled into the programs: third-party notices and the software bill of materials."""

import json
import subprocess
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

from files import File
from project import NAME, PACKAGE, REPOSITORY, ROOT, TIME, TOOLS, VERSION, Target

TEXT_NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")
PREAMBLE = """\
policyd contains the crates below. It also contains the standard library of Rust
(MIT OR Apache-2.0, https://github.com/rust-lang/rust). The programs for Linux contain
musl (MIT, https://musl.libc.org), and those for Windows the runtime of mingw-w64
(ZPL-2.1, https://www.mingw-w64.org).
"""


class Crates:
    """The crates that normal dependencies of both programs lead to, on any of the targets."""

    def __init__(self, targets: list[Target]):
        platforms = [f"--filter-platform={target.triple}" for target in targets]
        command = ["cargo", "metadata", "--locked", "--format-version=1", *platforms]
        found = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE)
        metadata = json.loads(found.stdout)
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        self.root = metadata["resolve"]["root"]
        members = set(metadata["workspace_members"])  # parts of the programs
        tools = next(it["id"] for it in metadata["packages"] if it["name"] == TOOLS)
        below: dict[str, set[str]] = {}
        waiting, visited = [self.root, tools], {self.root, tools}
        while waiting:
            node = waiting.pop()
            normal = {
                dep["pkg"]
                for dep in nodes[node]["deps"]
                if any(kind["kind"] is None for kind in dep["dep_kinds"])
            }
            owner = self.root if node in members else node
            below.setdefault(owner, set()).update(normal - members)
            waiting += normal - visited
            visited |= normal
        self.edges = {node: sorted(normal) for node, normal in below.items()}
        packages = [it for it in metadata["packages"] if it["id"] in self.edges]
        self.packages = sorted(packages, key=lambda it: (it["name"], it["version"]))
        lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
        self.checksums = {(it["name"], it["version"]): it.get("checksum") for it in lock}

    def others(self) -> list[dict]:
        return [package for package in self.packages if package["id"] != self.root]


def notices(crates: Crates, runtime: dict[str, str]) -> File:
    """The license texts, each once, below the crates that ship it. `runtime` has those of linked libraries by their names."""
    shipped = {text: [name] for name, text in runtime.items()}
    lines = [PREAMBLE]
    for package in crates.others():
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name}: {package['license']}, {package['repository']}")
        folder = Path(package["manifest_path"]).parent
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.name.upper().startswith(TEXT_NAMES):
                text = path.read_text(errors="replace").strip()
                shipped.setdefault(text, []).append(name)
    for text, names in sorted(shipped.items(), key=lambda it: it[1]):
        lines += ["", "=" * 80, ", ".join(dict.fromkeys(names)), "-" * 80, "", text]
    return File("THIRD-PARTY-NOTICES", ("\n".join(lines) + "\n").encode())


def purl(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package: dict, checksum: str | None) -> dict:
    described = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
        # A slash is a former spelling of OR.
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
    }
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        described["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return described


def bill_of_materials(crates: Crates) -> bytes:
    """CycloneDX 1.6, https://cyclonedx.org/docs/1.6/json."""
    references = {package["id"]: purl(package) for package in crates.packages}
    program = {
        "type": "application",
        "bom-ref": references[crates.root],
        "name": NAME,
        "version": VERSION,
        "description": PACKAGE["description"],
        "purl": references[crates.root],
        "licenses": [{"expression": PACKAGE["license"]}],
        "externalReferences": [{"type": "vcs", "url": REPOSITORY}],
    }
    components = [
        component(it, crates.checksums[it["name"], it["version"]]) for it in crates.others()
    ]
    edges = [
        {"ref": references[node], "dependsOn": sorted(references[it] for it in below)}
        for node, below in crates.edges.items()
    ]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(TIME, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": program,
        },
        "components": components,
        "dependencies": sorted(edges, key=lambda it: it["ref"]),
    }
    identity = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document))
    document["serialNumber"] = f"urn:uuid:{identity}"
    return (json.dumps(document, indent=1) + "\n").encode()
