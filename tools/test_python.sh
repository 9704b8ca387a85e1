#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python tests, in two processes side by side: those of the command line mostly wait for programs that they start.
# Theirs are printed when all are done. Arguments: more tests, for the other process.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/test-command.log
python -m pytest -p no:cacheprovider tests/python/test_cli_*.py >"$log" 2>&1 &
command=$!
trap 'kill "$command" 2>/dev/null' INT TERM
failed=0
python -m pytest --ignore-glob='*/test_cli_*.py' tests/python tests/interop tests/fuzz "$@" || failed=$?
wait "$command" || failed=$?
cat "$log"
exit "$failed"
