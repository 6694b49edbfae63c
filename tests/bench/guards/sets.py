"""Public sets of tool calls: where they come from, and what their entries should lead to.

The sets are never part of this repository. `fetch` clones each of them at a pinned commit, and `Source.load` reads the
clone. An entry is one call of a tool:

    stop      the authors of the set say that the call must be stopped
    ordinary  the authors say that the call must pass, or wrote it as an everyday example
    open      the authors leave the call to the client: it counts neither way
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STOP, ORDINARY, OPEN = "stop", "ordinary", "open"
EXPECTATIONS = (STOP, ORDINARY, OPEN)
# Texts that the runner replaces with its own folders.
HOME, PROJECT = "@HOME@", "@PROJECT@"


class SetError(Exception):
    """A set cannot be fetched or read; the message says how to fix it."""


@dataclass(frozen=True)
class Entry:
    """One call of a tool, and what the authors of its set expect."""

    set: str
    group: str
    expected: str
    tool: str
    input: dict[str, Any]

    @property
    def text(self) -> str:
        """The command line, or the input of another tool as JSON."""
        return self.input["command"] if self.tool == "Bash" else json.dumps(self.input, sort_keys=True)

    @property
    def digest(self) -> str:
        """Decides the half and the order of the sample, whatever the set, the machine, and the date."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def half(self) -> str:
        return "tune" if int(self.digest[0], 16) < 8 else "test"


@dataclass(frozen=True)
class Source:
    """A public repository, the commit that the results are about, and its reader."""

    name: str
    repository: str
    commit: str
    license: str
    paths: tuple[str, ...]
    load: Callable[[Path], Iterator[Entry]] = field(repr=False)
    sampled: bool = False


def bash(source: str, group: str, expected: str, command: str) -> Entry:
    return Entry(source, group, expected, "Bash", {"command": command})


# nah: one JSON object a line. `block` is what nah proves to be dangerous, `delegate` is what it leaves to the client.


def load_nah(root: Path) -> Iterator[Entry]:
    """Without `self-protection`: those calls are about files of nah."""
    for file in sorted((root / "corpus").glob("*.jsonl")):
        if file.stem == "self-protection":
            continue
        for line in filter(str.strip, file.read_text(encoding="utf-8").splitlines()):
            line = line.replace("/home/test", HOME).replace("/workspace/project", PROJECT)
            case = json.loads(line)
            expected = {"block": STOP, "delegate": OPEN}.get(case["expected"].get("verdict"))
            if expected and case.get("tool") != "Delete":  # Claude Code has no such tool
                yield nah_entry(case, file.stem, expected)


def nah_entry(case: dict[str, Any], group: str, expected: str) -> Entry:
    if "command" in case:
        return bash("nah", group, expected, case["command"])
    values = dict(case["input"])
    for key in {"file_path", "path"} & set(values):
        if not values[key].startswith(("/", HOME, PROJECT)):
            values[key] = f"{PROJECT}/{values[key]}"
    return Entry("nah", group, expected, case["tool"], values)


# dcg: TOML with an expected decision, and YAML whose key, list, or step says it.


def load_dcg(root: Path) -> Iterator[Entry]:
    """Without `future_packs`: dcg allows these destructive commands until it has rules for them."""
    for file in sorted((root / "tests/corpus").rglob("*.toml")):
        group = file.stem if file.parent.name in ("corpus", "edge_cases") else file.parent.name
        for case in tomllib.loads(file.read_text(encoding="utf-8")).get("case", []):
            decision = case.get("expected", case.get("expected_decision"))
            is_command = case.get("input_kind", "command") == "command"
            if is_command and decision in DCG_DECISIONS and group != "future_packs":
                yield bash("dcg", group.replace("_", " "), DCG_DECISIONS[decision], case["command"])
    for file in sorted((root / "tests/fixtures").rglob("*.yaml")):
        is_scenario = file.parent.name == "scenarios"
        for key, command, decision in yaml_commands(file.read_text(encoding="utf-8")):
            group = "scenarios" if is_scenario else key.split(".")[0]
            expected = DCG_DECISIONS.get(decision if is_scenario else DCG_LISTS.get(file.stem) or key)
            if expected:
                yield bash("dcg", f"packs: {group.replace('_', ' ')}", expected, command)


DCG_DECISIONS = {"deny": STOP, "false_negatives": STOP, "allow": ORDINARY, "false_positives": ORDINARY}
DCG_LISTS = {"destructive_commands": "deny", "safe_commands": "allow"}


def yaml_commands(text: str) -> Iterator[tuple[str, str, str]]:
    """The commands of a fixture of dcg: the key of the list, the command, and the decision if it has one.

    These files use a small part of YAML. A command that is not one valid scalar is left out: dcg has such lines."""
    key = ""
    found: list[tuple[str, str | None, str]] = []
    for line in text.splitlines():
        if named := re.fullmatch(r"([\w.]+):\s*", line):
            key = named[1]
        elif command := re.fullmatch(r"\s+- command: (.*)", line):
            found.append((key, scalar(command[1]), ""))
        elif decision := re.fullmatch(r"\s+expected_decision: (.*)", line):
            found[-1] = (*found[-1][:2], scalar(decision[1]) or "")
    yield from ((key, command, decision) for key, command, decision in found if command is not None)


def scalar(text: str) -> str | None:
    """A scalar of YAML on one line; `None` if it is not valid."""
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return None
    if text.startswith("'"):
        found = re.fullmatch(r"'((?:[^']|'')*)'", text)
        return found[1].replace("''", "'") if found else None
    return text.strip()


# RedCode-Exec: 30 scripts for each kind of risk: 20 kinds in Bash, 27 in Python.

REDCODE_KINDS = {
    1: "1 send a file away",
    2: "2 download a script",
    4: "4 copy a system file",
    6: "6 write encoded code",
    8: "8 delete a system file",
    9: "9 aliases in .bashrc",
    10: "10 remote shell",
    18: "18 kill processes",
}


def load_redcode(root: Path) -> Iterator[Entry]:
    """The kinds that a guard can be about. A script in Bash is the command line; Python is piped to `python3 -`."""
    for language, folder in (("bash", "bash2text_dataset_json"), ("python", "py2text_dataset_json")):
        for number, kind in REDCODE_KINDS.items():
            for file in sorted((root / "dataset/RedCode-Exec" / folder).glob(f"index{number}_30_*.json")):
                for case in json.loads(file.read_text(encoding="utf-8")):
                    code = case["Code"] if language == "bash" else heredoc(case["Code"])
                    yield bash("redcode", f"{language}: {kind}", STOP, code)


def heredoc(code: str) -> str:
    return f"python3 - <<'PYTHON_SCRIPT'\n{code.rstrip()}\nPYTHON_SCRIPT"


# nl2bash and tldr: ordinary lines of the shell.


def load_nl2bash(root: Path) -> Iterator[Entry]:
    """One command line a line, collected from questions, answers, and tutorials."""
    for line in filter(str.strip, (root / "data/bash/all.cm").read_text(encoding="utf-8").splitlines()):
        group = "find" if line.split()[0] == "find" else "other programs"
        yield bash("nl2bash", group, ORDINARY, line.strip())


def load_tldr(root: Path) -> Iterator[Entry]:
    """The examples of the English pages for all systems and for Linux."""
    for platform in ("common", "linux"):
        for file in sorted((root / "pages" / platform).glob("*.md")):
            for line in file.read_text(encoding="utf-8").splitlines():
                if example := re.fullmatch(r"`(.+)`", line):
                    yield bash("tldr", platform, ORDINARY, filled(example[1]))


def filled(example: str) -> str:
    """An example with its placeholders filled: the first of several options or files."""
    def choice(found: re.Match[str]) -> str:
        text = found[1].removesuffix(" ...")
        options = re.fullmatch(r"\[(.*)\]", text)
        return (options[1] if options else text).split("|")[0]
    return re.sub(r"\{\{(.*?)\}\}", choice, example).replace(r"\{", "{").replace(r"\}", "}")


SOURCES = (
    Source("nah", "https://github.com/manuelschipper/nah", "04ef756b34f5aeb745ac301c23799936f9f62569",
           "MIT", ("corpus",), load_nah),
    Source("dcg", "https://github.com/Dicklesworthstone/destructive_command_guard",
           "1a52415130fffec249e3c8adde72f58e3c4d6de0", "MIT", ("tests/corpus", "tests/fixtures"), load_dcg),
    Source("redcode", "https://github.com/AI-secure/RedCode", "c84b6db88fd8bd258e29f12e692ccfd4287a454d",
           "CC BY 4.0", ("dataset/RedCode-Exec",), load_redcode),
    Source("nl2bash", "https://github.com/TellinaTool/nl2bash", "466c5fe873ab08c7cc0112ea1521cc6ad9c20992",
           "MIT", ("data/bash",), load_nl2bash, sampled=True),
    Source("tldr", "https://github.com/tldr-pages/tldr", "08e345f42639f67d99282813247ac670dc6e87cb",
           "CC BY 4.0", ("pages/common", "pages/linux"), load_tldr, sampled=True),
)


def git(*arguments: str, folder: Path) -> str:
    """Output of git.

    Errors: `SetError` if git fails."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SetError(f"`git {shlex.join(arguments)}` failed in {folder}: {done.stderr.strip()}")
    return done.stdout.strip()


def fetch(source: Source, folder: Path) -> None:
    """Clones the pinned commit of a set, and only the paths that are read."""
    folder.mkdir(parents=True, exist_ok=True)
    git("init", "--quiet", folder=folder)
    git("sparse-checkout", "set", "--no-cone", *(f"/{it}/" for it in source.paths), folder=folder)
    git("fetch", "--quiet", "--depth", "1", "--filter=blob:none", source.repository, source.commit, folder=folder)
    git("checkout", "--quiet", "--detach", "FETCH_HEAD", folder=folder)


def checked_out(source: Source, folder: Path) -> str:
    """The commit of a checkout; empty if the folder is not one, or if its fetch was cut off."""
    if not (folder / ".git").exists():
        return ""
    try:
        return git("rev-parse", "--verify", "HEAD", folder=folder)
    except SetError:
        return ""


def entries(source: Source, folder: Path, half: str, sample: int) -> list[Entry]:
    """The entries of a half, each once, in the order of their hashes; at most `sample` of a set that is sampled.

    Errors: `SetError` if the folder is not what the reader expects."""
    if not all((folder / it).exists() for it in source.paths):
        raise SetError(f"{source.name}: {folder} does not contain {' and '.join(source.paths)}\n"
                       "help: run `fetch`, or name the folder of the checkouts with `--sets`")
    try:
        found = unique(source.load(folder))
    except (KeyError, ValueError, OSError) as error:
        raise SetError(f"{source.name}: could not read {folder}: {error!r}\n"
                       f"help: check out {source.commit}") from error
    chosen = sorted((it for it in found if half in ("all", it.half)), key=lambda it: it.digest)
    return chosen[:sample] if source.sampled and sample else chosen


def unique(found: Iterable[Entry]) -> list[Entry]:
    """Each call once by its text and expectation; the first group wins."""
    by_call: dict[tuple[str, str, str], Entry] = {}
    for entry in found:
        by_call.setdefault((entry.tool, entry.text, entry.expected), entry)
    return list(by_call.values())
