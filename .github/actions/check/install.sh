#!/usr/bin/env bash
# Downloads policyd into a directory, checks its SHA-256, and prints the directory of its programs.
# The version is the one of Cargo.toml, so an action pinned by a commit installs the release of that commit.
# POLICYD_DOWNLOADS replaces the address of the releases, for mirrors and tests.
set -euo pipefail

folder="$1"
manifest="$(dirname "${BASH_SOURCE[0]}")/../../../Cargo.toml"
version="$(sed -n 's/^version = "\(.*\)"$/\1/p' "$manifest" | head -n 1)"
repository="$(sed -n 's/^repository = "\(.*\)"$/\1/p' "$manifest")"
downloads="${POLICYD_DOWNLOADS:-$repository/releases/download/v$version}"

case "$(uname -m)" in
arm64 | aarch64) processor=aarch64 ;;
*) processor=x86_64 ;;
esac
case "$(uname -s)" in
Linux) target=$processor-unknown-linux-musl suffix=.tar.gz ;;
Darwin) target=$processor-apple-darwin suffix=.tar.gz ;;
*) target=x86_64-pc-windows-gnu suffix=.zip ;;
esac
name="policyd-$version-$target"

mkdir -p "$folder"
cd "$folder"
for file in "$name$suffix" SHA256SUMS; do
    curl --fail --silent --show-error --location --retry 3 --output "$file" "$downloads/$file"
done
expected="$(awk -v file="$name$suffix" '$2 == file { print $1 }' SHA256SUMS)"
actual="$( (sha256sum "$name$suffix" 2>/dev/null || shasum -a 256 "$name$suffix") | cut -d ' ' -f 1)"
if [ "$expected" != "$actual" ]; then
    echo "$name$suffix: the SHA-256 is $actual, and SHA256SUMS lists \`$expected\`" >&2
    exit 1
fi
# The tar of Windows is bsdtar, which also reads zip files.
case "$suffix" in
.zip) "${SYSTEMROOT:-}/System32/tar.exe" -xf "$name$suffix" ;;
*) tar -xzf "$name$suffix" ;;
esac
cygpath -w "$PWD/$name" 2>/dev/null || echo "$PWD/$name"
