"""The Homebrew formula, with the checksums of the archives."""

from project import DOWNLOADS, NAME, PACKAGE, REPOSITORY, TARGETS, TOOLS

SYSTEMS = {"darwin": "macos", "linux": "linux"}
PROCESSORS = {"arm64": "arm", "x64": "intel"}


def formula(checksums: dict[str, str]) -> bytes:
    """`checksums` has the SHA-256 of each archive by its target."""
    blocks = []
    for node, system in SYSTEMS.items():
        blocks.append(f"  on_{system} do")
        for target in TARGETS:
            if target.node[0] == node and target.triple in checksums:
                blocks += [
                    f"    on_{PROCESSORS[target.node[1]]} do",
                    f'      url "{DOWNLOADS}/{target.stem}.tar.gz"',
                    f'      sha256 "{checksums[target.triple]}"',
                    "    end",
                ]
        blocks += ["  end", ""]
    licenses = ", ".join(f'"{it}"' for it in PACKAGE["license"].split(" OR "))
    return f"""\
class {NAME.capitalize()} < Formula
  desc "{PACKAGE['description']}"
  homepage "{REPOSITORY}"
  license any_of: [{licenses}]

{chr(10).join(blocks)}
  def install
    bin.install "{NAME}", "{TOOLS}"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/{NAME}.bash" => "{NAME}"
    fish_completion.install "completions/{NAME}.fish"
    zsh_completion.install "completions/_{NAME}"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/{NAME} --version")
  end
end
""".encode()
