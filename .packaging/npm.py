"""npm packages: one for each platform, and `policyd`, which depends on all and runs the one that fits."""

import json

from files import File, tar_gz
from project import NAME, PACKAGE, REPOSITORY, TARGETS, VERSION, Target, readme

LAUNCHER = """\
#!/usr/bin/env node
// Runs the program of this platform. `policyd install` writes its path into hooks, so hooks start no Node.
"use strict";
const { spawnSync } = require("node:child_process");

const suffix = process.platform === "win32" ? ".exe" : "";
let program;
try {
  program = require.resolve(`@policyd/${process.platform}-${process.arch}/bin/policyd${suffix}`);
} catch {
  console.error(`policyd: no package for ${process.platform}-${process.arch} is installed`);
  console.error("help: install without `--omit=optional`, or see https://github.com/policyd/policyd");
  // A hook never blocks because policyd is absent.
  process.exit(process.argv.includes("--hook") ? 0 : 3);
}
// A signal of the terminal reaches both processes; the program decides when to end.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
const ended = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (ended.error) {
  console.error(`policyd: could not start ${program}: ${ended.error.message}`);
  process.exit(process.argv.includes("--hook") ? 0 : 3);
}
process.exit(ended.status ?? 130);
"""


def manifest(name: str, more: dict) -> File:
    described = {
        "name": name,
        "version": VERSION,
        "description": PACKAGE["description"],
        "license": f"({PACKAGE['license']})",
        "repository": {"type": "git", "url": f"git+{REPOSITORY}.git"},
        **more,
    }
    return File("package.json", (json.dumps(described, indent=2) + "\n").encode())


def tarball(name: str, files: list[File]) -> tuple[str, bytes]:
    """The file name is the one that `npm pack` chooses."""
    stem = name.replace("@", "").replace("/", "-")
    return f"{stem}-{VERSION}.tgz", tar_gz(file.below("package") for file in files)


def platform_package(target: Target, programs: list[File], legal: list[File]) -> tuple[str, bytes]:
    system, processor = target.node
    described = manifest(target.npm, {"os": [system], "cpu": [processor], "preferUnplugged": True})
    return tarball(target.npm, [described, *(it.below("bin") for it in programs), *legal])


def main_package(pages: list[File], legal: list[File], completions: list[File]) -> tuple[str, bytes]:
    described = manifest(
        NAME,
        {
            "keywords": PACKAGE["keywords"],
            "bin": {NAME: f"bin/{NAME}.js"},
            "man": [f"./man/{page.path}" for page in pages],
            "engines": {"node": ">=18"},
            "optionalDependencies": {target.npm: VERSION for target in TARGETS},
        },
    )
    launcher = File(f"bin/{NAME}.js", LAUNCHER.encode(), is_program=True)
    files = [described, launcher, File("README.md", readme().encode()), *legal]
    files += [page.below("man") for page in pages]
    files += [file.below("completions") for file in completions]
    return tarball(NAME, files)
