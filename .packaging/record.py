#!/usr/bin/env python3
"""Records the terminal session of the README: runs the commands and writes an animated SVG to standard output.

    python3 .packaging/record.py PROGRAM > src/docs/recording.svg

`policyd-tools` must lie beside PROGRAM.
`POLICYD_REGEN=1 cargo test --test repository recording` does the same with the program of the tests.
"""

import html
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from project import NAME, ROOT

COLUMNS = 100
FONT_SIZE = 13
LINE_HEIGHT = 19
CHAR_WIDTH = 7.83
MARGIN = 16
# Seconds before the first line of an output, and to read a scene.
PAUSE = 0.8
READING = 5.0
SCENES = [
    [
        ("The agent wants to run: X=rm; sudo $X -rf /", None),
        (None, "policyd eval --hook pre-tool-use --input call.json --format text"),
    ],
    [
        ("The agent wants to stop, but a test failed. It reads:", None),
        (None, "policyd eval --hook stop --input stop.json --format text --dry-run | grep -A 10 'not done yet'"),
    ],
    [
        ("What would policyd have blocked in your recorded sessions?", None),
        (None, "policyd replay ~/.claude/projects | head -4"),
        ("Write a rule of your own:", None),
        (None, "policyd init | tail -4"),
    ],
]
CALL = (
    '{"session_id": "s", "tool_name": "Bash",'
    ' "tool_input": {"command": "X=rm; sudo $X -rf /"}}\n'
)
STYLE = """\
svg { background: #ffffff; }
rect { fill: #f6f8fa; stroke: #d0d7de; }
text { font: %dpx ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328; white-space: pre; }
.comment { fill: #59636e; }
.command { fill: #0550ae; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; }
  rect { fill: #151b23; stroke: #3d444d; }
  text { fill: #f0f6fc; }
  .comment { fill: #9198a1; }
  .command { fill: #79c0ff; }
}
""" % FONT_SIZE


def output(program: Path, command: str, folder: Path) -> list[str]:
    """The lines that a command prints."""
    home = folder / "home"
    variables = {
        "HOME": str(home),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "TZ": "UTC",
        "LANG": "C.UTF-8",
    }
    ended = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    # The exit code is 1 if policyd blocks.
    if ended.returncode > 1 or not ended.stdout:
        raise AssertionError(f"{command}: exit code {ended.returncode}, no output")
    return ended.stdout.rstrip("\n").split("\n")


def wrapped(line: str) -> list[str]:
    """A line, broken between words."""
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]


def record(program: Path, folder: Path) -> list[list[tuple[str, str]]]:
    """The lines of each scene, each with its class."""
    bin_folder, sessions = folder / "bin", folder / "home/.claude/projects/-work"
    bin_folder.mkdir()
    sessions.mkdir(parents=True)
    (bin_folder / NAME).symlink_to(program.resolve())
    samples = ROOT / "tests/samples"
    shutil.copy(samples / "transcript.jsonl", sessions / "s.jsonl")
    shutil.copy(samples / "transcript.jsonl", folder)
    event = (samples / "stop.json").read_text()
    (folder / "stop.json").write_text(event.replace("tests/samples/", ""))
    (folder / "call.json").write_text(CALL)
    scenes = []
    for steps in SCENES:
        lines = []
        for comment, command in steps:
            if comment:
                lines.append((f"# {comment}", "comment"))
                continue
            lines += [(it, "command") for it in wrapped(f"$ {command}")]
            printed = output(program, command, folder)
            lines += [(part, "output") for line in printed for part in wrapped(line)]
            lines.append(("", "output"))
        scenes.append(lines[:-1])
    return scenes


def draw(scenes: list[list[tuple[str, str]]]) -> str:
    rows = max(len(it) for it in scenes)
    width = round(COLUMNS * CHAR_WIDTH) + 2 * MARGIN
    height = rows * LINE_HEIGHT + 2 * MARGIN
    starts, clock = [], 0.0
    for lines in scenes:
        shown = []
        for _, kind in lines:
            clock += 0.05 if kind == "output" and shown else PAUSE
            shown.append(clock)
        clock += READING
        starts.append((shown, clock))
    frames, texts = [], []
    for scene, (lines, (shown, end)) in enumerate(zip(scenes, starts)):
        for row, ((text, kind), at) in enumerate(zip(lines, shown)):
            name = f"l{scene}-{row}"
            first, last = (100 * it / clock for it in (at, end))
            hidden = "" if last >= 100 else f" {last:.2f}% {{ opacity: 0; }}"
            frames.append(
                f"@keyframes {name} {{ 0% {{ opacity: 0; }} {first:.2f}% {{ opacity: 1; }}{hidden} }}\n"
                f".{name} {{ opacity: {int(scene == len(scenes) - 1)};"
                f" animation: {name} {clock:.1f}s step-end infinite; }}\n"
            )
            x, y = MARGIN, MARGIN + (row + 0.8) * LINE_HEIGHT
            texts.append(
                f'<text class="{kind} {name}" x="{x}" y="{y:.1f}">{html.escape(text, quote=False)}</text>\n'
            )
    title = "Recording: policyd blocks a command and a stop, and reads recorded sessions"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" aria-label="{title}">\n<title>{title}</title>\n'
        f"<style>\n{STYLE}{''.join(frames)}</style>\n"
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>\n{"".join(texts)}</svg>\n'
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(draw(record(Path(sys.argv[1]), Path(folder))))


if __name__ == "__main__":
    main()
