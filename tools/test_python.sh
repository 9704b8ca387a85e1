#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python tests, in four processes: many tests wait, for a child, a cluster or a moment, and two would leave cores
# idle. What three of them print comes when all are done. Arguments: more tests, for the fourth.
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
begin command tests/python/test_cli_*.py
begin peers tests/interop tests/fuzz
first=()
for test in tests/python/test_[a-k]*.py; do
  case $test in */test_cli_*) ;; *) first+=("$test") ;; esac
done
begin first "${first[@]}"
failed=0
python -m pytest tests/python/test_[l-z]*.py "$@" || failed=$?
for i in "${!names[@]}"; do
  wait "${processes[i]}" || failed=$?
  cat "build/test-${names[i]}.log"
done
exit "$failed"
