#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python tests, in four processes: many tests wait, for a child, a cluster or a moment, and two would leave cores
# idle. The output of three of them comes when all are done. Arguments: more tests, for the fourth.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
names=() processes=()
begin() { # NAME TEST...
  local name=$1
  shift
  python -m pytest -p no:cacheprovider "$@" >"build/test-$name.log" 2>&1 &
  names+=("$name") processes+=("$!")
}
trap 'kill "${processes[@]}" 2>/dev/null' INT TERM
in_python=tests/python
begin command $in_python/cli
begin peers tests/interop tests/fuzz
begin first $in_python/{arrays,engines,formats,keys,measure,messages}
failed=0
# The rest, so that no folder is left out.
python -m pytest $in_python --ignore-glob="$in_python/"{cli,arrays,engines,formats,keys,measure,messages} "$@" || failed=$?
for i in "${!names[@]}"; do
  wait "${processes[i]}" || failed=$?
  cat "build/test-${names[i]}.log"
done
exit "$failed"
