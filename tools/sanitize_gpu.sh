#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the kernels under compute-sanitizer on the GPU of this machine, on small texts: memcheck, racecheck, initcheck and
# synccheck. After `make test-gpu`, whose programs it uses. Arguments: the tools to run, all four without any.
# The logs go to build/gpu/sanitizer; SAMPLE (16) thins the texts that get a launch of their own, JOBS (6) run at once.
set -euo pipefail
cd "$(dirname "$0")/.."
programs=$PWD/build/gpu/build/tests/gpu
logs=$PWD/build/gpu/sanitizer
parts=4
stop() { printf 'sanitize-gpu: %s\n' "$*" >&2; exit 1; }

command -v compute-sanitizer >/dev/null || stop "compute-sanitizer, of the CUDA toolkit, must be on PATH"
[ -x "$programs/test_cuda_engine" ] || stop "no $programs/test_cuda_engine; run make test-gpu first"
[ $# -gt 0 ] || set -- memcheck racecheck initcheck synccheck
rm -rf "$logs" && mkdir -p "$logs"

check() { # TOOL NAME COMMAND...
  local log=$logs/$1-$2.log
  if compute-sanitizer --tool "$1" --error-exitcode 9 "${@:3}" >"$log" 2>&1; then
    printf '%s %s: clean\n' "$1" "$2"
  else
    printf '%s %s: FAILED, see %s\n' "$1" "$2" "$log"
    return 1
  fi
}
export -f check
export logs

cd "$programs"
for tool in "$@"; do
  for ((part = 0; part < parts; ++part)); do
    printf 'check %s engine-%s ./test_cuda_engine --quick --sample %s --part %s\n' \
      "$tool" "$part" "${SAMPLE:-16}" "$part/$parts"
  done
  printf 'check %s search ./test_cuda_search --few 1\n' "$tool"
  [ ! -x test_lab ] || printf 'check %s lab ./test_lab\n' "$tool"
done | xargs -P "${JOBS:-6}" -I{} bash -c '{}'
