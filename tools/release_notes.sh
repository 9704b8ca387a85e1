#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints CHANGELOG.md's section of a release. Fails unless the tag fits the version in CMakeLists.txt, the changelog
# has a section for it, and tests/abi/warpcipher.abi describes its C ABI. Usage: tools/release_notes.sh v0.1.0
set -eu
cd "$(dirname "$0")/.."
stop() { printf 'release-notes: %s\n' "$*" >&2; exit 1; }
version=$(tools/version.sh)
[ "${1:-}" = "v$version" ] || stop "the tag is '${1:-}'; CMakeLists.txt says $version, so it must be v$version"
grep -q "of version $version:" tests/abi/warpcipher.abi || stop "tests/abi/warpcipher.abi is of another version; tools/check_abi.sh --record"
notes=$(awk -v start="## [$version] - " 'index($0, start) == 1 {on = 1; next} /^## / {on = 0} on' CHANGELOG.md)
[ -n "$notes" ] || stop "CHANGELOG.md has no section '## [$version] - DATE', or it is empty"
printf '%s\n' "$notes"
