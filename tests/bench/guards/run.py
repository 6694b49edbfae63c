#!/usr/bin/env python3
"""Measures policyd and its peers on public sets of tool calls, through the hook that Claude Code calls before a tool.

    python3 tests/bench/guards/run.py fetch                     # clone the sets (100 MB)
    python3 tests/bench/guards/run.py run --page src/docs/about/guard-accuracy.md
    python3 tests/bench/guards/run.py run --half tune --only nah,dcg --lines misjudged.jsonl
    python3 tests/bench/guards/run.py self-test                 # two calls, without the sets

`sets.py` contains the sets and their readers. Nothing that an entry says is executed. A tool is the program of that
name on PATH, or in `POLICYD_BIN` for policyd; a tool that is not installed is named and skipped. The scratch folders
are in the home of the user, since tools judge temporary folders by other rules; they are removed at the end.

Exit code: 0, 1 if a set or a tool fails, 2 for a usage error. Needs Python 3.11 (standard library only) and git.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from uuid import uuid4

sys.dont_write_bytecode = True
import sets  # noqa: E402
from sets import OPEN, ORDINARY, STOP, Entry, SetError, Source  # noqa: E402

SECONDS_MAX = 60
SAMPLE = 1500
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "policyd-guards")
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
DENY, ASK, PASS, FAILED = "deny", "ask", "pass", "failed"
STOPS = (DENY, ASK)


# Tools.


@dataclass(frozen=True)
class Tool:
    """A program that Claude Code can call before a tool: its hook and its version."""

    name: str
    program: str
    hook: tuple[str, ...]
    version: tuple[str, ...] = ("--version",)
    major: str = ""  # versions that this row is about; others have another hook

    def path(self) -> str | None:
        named = os.environ.get("POLICYD_BIN") if self.program == "policyd" else None
        return shutil.which(named or self.program)

    def installed_version(self) -> str | None:
        """The version, or `None` if the tool is absent or another row is about its version."""
        if not (path := self.path()):
            return None
        done = subprocess.run([path, *self.version], capture_output=True, text=True, timeout=SECONDS_MAX)
        found = re.search(r"\d+(\.\d+)+\S*", done.stdout + done.stderr)
        version = found[0] if found else "unknown"
        return version if version.startswith(self.major) else None


TOOLS = (
    Tool("policyd", "policyd", ("eval", "--hook", "pre-tool-use")),
    Tool("cc-safety-net", "cc-safety-net", ("hook", "--coding-cli")),
    Tool("nah (Python)", "nah", ("_claude-hook",), major="0."),
    Tool("nah (Rust)", "nah", ("hook", "claude", "run"), major="1."),
    Tool("Dippy", "dippy", ()),
    Tool("longline", "longline", ()),
    Tool("safe-chains", "safe-chains", ()),
)


def versions(names: list[str]) -> dict[Tool, str | None]:
    """The tools with these names and their installed versions; all if the list is empty."""
    found = {tool: tool.installed_version() for tool in TOOLS if not names or tool.name in names}
    for tool in (tool for tool, version in found.items() if version is None):
        say(f"skipped  {tool.name}: not installed")
    return found


# One call.


@dataclass(frozen=True)
class Scratch:
    """The home and the project of the calls of one worker."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.home / "work" / "project"

    def environment(self) -> dict[str, str]:
        """Only PATH is inherited, so that no setting of the user counts."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "TMPDIR": "/tmp"}

    def create(self) -> None:
        """A git project on a branch, in the middle of work: a changed file and a new one, which git could lose."""
        source = self.project / "src" / "main.py"
        source.parent.mkdir(parents=True)
        source.write_text("print('hello')\n")
        author = ("-c", "user.name=dev", "-c", "user.email=dev@example.org")
        for command in (("init", "-q", "-b", "work"), ("add", "-A"), (*author, "commit", "-qm", "start")):
            subprocess.run(["git", *command], cwd=self.project, env=self.environment(), check=True)
        source.write_text("print('hello, world')\n")
        (self.project / "notes.md").write_text("- greet the world\n")

    def payload(self, entry: Entry) -> str:
        """The event of Claude Code. Each call has a session of its own, so that no call changes another one."""
        session = str(uuid4())
        event = {
            "session_id": session,
            "transcript_path": f"{sets.HOME}/.claude/projects/project/{session}.jsonl",
            "cwd": sets.PROJECT,
            "permission_mode": "default",
            "hook_event_name": "PreToolUse",
            "tool_name": entry.tool,
            "tool_input": entry.input,
            "tool_use_id": f"toolu_{session[:8]}",
        }
        text = json.dumps(event).replace(sets.HOME, str(self.home))
        return text.replace(sets.PROJECT, str(self.project))


@dataclass(frozen=True)
class Result:
    """What a tool decided about an entry, and the reason that it gave."""

    entry: Entry
    decision: str
    reason: str


def call(tool: Tool, entry: Entry, scratch: Scratch) -> Result:
    command = [tool.path() or tool.program, *tool.hook]
    try:
        done = subprocess.run(command, input=scratch.payload(entry), cwd=scratch.project, env=scratch.environment(),
                              capture_output=True, encoding="utf-8", errors="replace", timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return Result(entry, FAILED, f"no answer within {SECONDS_MAX} s")
    return Result(entry, *answer(done))


def answer(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """Decision and reason, as Claude Code reads the answer of a hook. Exit code 2 denies; another one is an error."""
    if done.returncode == 2:
        return DENY, done.stderr.strip()
    if done.returncode:
        return FAILED, f"exit code {done.returncode}: {done.stderr.strip()}"
    if not done.stdout.strip():
        return PASS, ""
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return FAILED, f"not JSON: {done.stdout[:200]}"
    output = said.get("hookSpecificOutput") or {}
    decision = output.get("permissionDecision") or {"block": DENY}.get(said.get("decision"), PASS)
    reason = output.get("permissionDecisionReason") or said.get("reason") or ""
    return (decision if decision in STOPS else PASS), reason


@contextmanager
def scratches(count: int) -> Iterator[list[Scratch]]:
    """Scratch folders, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="guards-", dir=Path.home(), ignore_cleanup_errors=True) as folder:
        made = [Scratch(Path(folder, str(number))) for number in range(count)]
        for scratch in made:
            scratch.create()
        yield made


def judge(tool: Tool, entries: list[Entry], jobs: int) -> list[Result]:
    """The decisions of a tool about all entries, in their order."""
    with scratches(jobs) as free, ThreadPoolExecutor(jobs) as pool:
        queue: SimpleQueue[Scratch] = SimpleQueue()
        for scratch in free:
            queue.put(scratch)

        def one(entry: Entry) -> Result:
            scratch = queue.get()
            try:
                return call(tool, entry, scratch)
            finally:
                queue.put(scratch)

        return list(pool.map(one, entries))


# Tables.


@dataclass(frozen=True)
class Measurement:
    """All results of a run."""

    half: str
    sample: int
    versions: dict[Tool, str | None]
    commits: dict[str, str]
    results: dict[Tool, list[Result]]


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(line) + " |" for line in (head, *rows)]
    lines.insert(1, "|---" * len(head) + "|")
    return "\n".join(lines) + "\n"


def share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f}%)" if whole else "–"


def stops(results: list[Result]) -> int:
    return sum(it.decision in STOPS for it in results)


def about(results: list[Result], source: str, expected: str, group: str = "") -> list[Result]:
    return [it for it in results
            if (it.entry.set, it.entry.expected) == (source, expected) and group in ("", it.entry.group)]


def versions_table(run: Measurement) -> str:
    rows = []
    for tool, version in run.versions.items():
        failed = sum(it.decision == FAILED for it in run.results.get(tool, []))
        command = " ".join((tool.program, *tool.hook))
        rows.append([tool.name, version or "not installed", f"`{command}`", str(failed) if version else "–"])
    return table(["Tool", "Version", "Hook", "Failed calls"], rows)


def summary_table(run: Measurement, expected: str) -> str:
    """One row for each set, with the stops of each tool."""
    rows = []
    for source in run.commits:
        found = {tool: about(results, source, expected) for tool, results in run.results.items()}
        if count := len(next(iter(found.values()))):
            rows.append([source, str(count), *(share(stops(it), count) for it in found.values())])
    return table(["Set", "Calls", *(it.name for it in run.results)], rows)


def group_table(run: Measurement, source: str, expected: str) -> str:
    """One row for each group of a set: the decisions of the first tool, the stops of the others."""
    (first, own), *others = run.results.items()
    rows = []
    for group in sorted({it.entry.group for it in about(own, source, expected)}, key=natural):
        results = about(own, source, expected, group)
        count = Counter(it.decision for it in results)
        left = len(results) - stops(results)
        wrong = [str(left)] if expected == STOP else []
        rows.append([group, str(len(results)), str(count[DENY]), str(count[ASK]), *wrong,
                     *(str(stops(about(it, source, expected, group))) for _, it in others)])
    missed = ["missed"] if expected == STOP else []
    return table(["Class", "Calls", f"{first.name}: denied", "asked", *missed, *(it.name for it, _ in others)], rows)


def natural(text: str) -> list[tuple[int, str]]:
    """Sorts numbers in a text by their value."""
    return [(int(it), "") if it.isdigit() else (0, it) for it in re.split(r"(\d+)", text)]


def markdown(run: Measurement) -> str:
    """The results as they are in the book."""
    titles = {STOP: "to be stopped", ORDINARY: "ordinary", OPEN: "left to the client"}
    sampled = [it.name for it in sets.SOURCES if it.sampled and it.name in run.commits and run.sample]
    sample = f", {run.sample:,} calls each of {' and '.join(sampled)}" if sampled else ""
    parts = [f"Measured on {datetime.date.today()}: the {run.half} half{sample}.\n", versions_table(run)]
    for expected, title in titles.items():
        if any(it.entry.expected == expected for it in next(iter(run.results.values()))):
            parts += [f"### Stopped calls that are {title}\n", summary_table(run, expected)]
    for source, commit in run.commits.items():
        parts.append(f"### {source}, by class\n\nCommit `{commit[:12] or 'unknown'}`.\n")
        for expected, title in titles.items():
            if about(next(iter(run.results.values())), source, expected):
                parts += [f"Calls that are {title}:\n", group_table(run, source, expected)]
    return "\n".join(parts)


def write_page(page: Path, text: str) -> None:
    """Replaces the results between the two marks of a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SetError(f"{page}: contains no `{BEGIN}` and `{END}`\nhelp: add both lines where the results belong")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def write_lines(file: Path, results: list[Result]) -> None:
    """The entries that a tool judged otherwise than their authors, and those that they leave open and it stopped."""
    with file.open("w", encoding="utf-8") as out:
        for it in results:
            if (it.decision in STOPS) != (it.entry.expected == STOP):
                fields = {"set": it.entry.set, "class": it.entry.group, "expected": it.entry.expected,
                          "decision": it.decision, "text": it.entry.text, "reason": it.reason}
                out.write(json.dumps(fields, ensure_ascii=False) + "\n")


# Commands.


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def fetch(arguments: argparse.Namespace) -> None:
    for source in arguments.sources:
        folder = arguments.sets / source.name
        if sets.checked_out(source, folder) != source.commit:
            say(f"fetch  {source.repository} at {source.commit[:12]}")
            sets.fetch(source, folder)
    say(f"the sets are in {arguments.sets}")


def measure(arguments: argparse.Namespace) -> None:
    commits, entries = {}, []
    for source in arguments.sources:
        folder = arguments.sets / source.name
        entries += sets.entries(source, folder, arguments.half, arguments.sample)
        commits[source.name] = sets.checked_out(source, folder)
        if commits[source.name] != source.commit:
            say(f"warning: {source.name} is not a checkout of {source.commit[:12]}")
    tools = versions(arguments.tools)
    results = {}
    for tool in (tool for tool, version in tools.items() if version):
        say(f"run  {tool.name} {tools[tool]}: {len(entries)} calls, {arguments.jobs} at a time")
        results[tool] = judge(tool, entries, arguments.jobs)
    if not results:
        raise SetError("no tool is installed\nhelp: put `policyd` on PATH, or name it in POLICYD_BIN")
    run = Measurement(arguments.half, arguments.sample, tools, commits, results)
    if arguments.page:
        write_page(arguments.page, markdown(run))
    else:
        print(markdown(run))
    if arguments.lines:
        write_lines(arguments.lines, next(iter(results.values())))


def self_test(arguments: argparse.Namespace) -> None:
    """Two calls with known decisions, through the same path as the sets."""
    tools = [it for it in TOOLS if it.program == "policyd"]
    if not tools[0].path():
        raise SetError("policyd is not installed\nhelp: put `policyd` on PATH, or name it in POLICYD_BIN")
    entries = [sets.bash("self-test", "two", STOP, "rm -rf ~/"), sets.bash("self-test", "two", ORDINARY, "git status")]
    results = judge(tools[0], entries, jobs=1)
    wrong = [it for it in results if (it.decision in STOPS) != (it.entry.expected == STOP) or it.decision == FAILED]
    problems = [f"`{it.entry.text}`: expected {it.entry.expected}, decided {it.decision} {it.reason}" for it in wrong]
    example = sets.filled("cp {{[-r|--recursive]}} {{path/to/a path/to/b ...}} {{c}}")
    if example != "cp -r path/to/a path/to/b c":
        problems.append(f"placeholders of tldr: {example}")
    if problems:
        sys.exit("\n".join(problems))
    say("self-test passed")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--sets", type=Path, default=CACHE, metavar="DIR",
                        help="folder with a checkout for each set, named like the set (default: %(default)s)")
    shared.add_argument("--only", type=chosen_sources, dest="sources", default=list(sets.SOURCES), metavar="SETS",
                        help="names of sets, separated by commas (default: all)")
    commands.add_parser("fetch", parents=[shared], help="clone the sets").set_defaults(command=fetch)
    run = commands.add_parser("run", parents=[shared], help="measure the installed tools")
    run.set_defaults(command=measure)
    run.add_argument("--half", choices=("test", "tune", "all"), default="test", help="(default: %(default)s)")
    run.add_argument("--sample", type=int, default=SAMPLE, metavar="N",
                     help="calls of nl2bash and of tldr at most, by hash; 0: all (default: %(default)s)")
    run.add_argument("--tools", type=chosen_tools, default=[], metavar="NAMES",
                     help="names of tools, separated by commas (default: all that are installed)")
    run.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="calls at a time (default: %(default)s)")
    run.add_argument("--page", type=Path, metavar="FILE", help="write the results into this page, between its marks")
    run.add_argument("--lines", type=Path, metavar="FILE",
                     help="write what the first tool judged otherwise; read only the tune half while you write rules")
    commands.add_parser("self-test", help="check the runner with two calls").set_defaults(command=self_test)
    return parser.parse_args()


def chosen(text: str, known: list[str]) -> list[str]:
    """Names of a list that is separated by commas."""
    names = text.split(",")
    if unknown := set(names) - set(known):
        raise argparse.ArgumentTypeError(f"unknown {', '.join(sorted(unknown))}: choose from {', '.join(known)}")
    return names


def chosen_sources(text: str) -> list[Source]:
    names = chosen(text, [it.name for it in sets.SOURCES])
    return [it for it in sets.SOURCES if it.name in names]


def chosen_tools(text: str) -> list[str]:
    return chosen(text, [it.name for it in TOOLS])


if __name__ == "__main__":
    try:
        given = parse_arguments()
        given.command(given)
    except SetError as error:
        sys.exit(f"error: {error}")
