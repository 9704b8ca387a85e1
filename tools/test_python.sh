#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python tests, in two processes side by side that take about as long: the command line, other programs and random
# cases in one, whose results are printed when all are done; the package in the other. Arguments: more tests, for the other.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/test-command.log
python -m pytest -p no:cacheprovider tests/python/test_cli_*.py tests/interop tests/fuzz >"$log" 2>&1 &
command=$!
trap 'kill "$command" 2>/dev/null' INT TERM
failed=0
python -m pytest --ignore-glob='*/test_cli_*.py' tests/python "$@" || failed=$?
wait "$command" || failed=$?
cat "$log"
exit "$failed"
