#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the kernels under compute-sanitizer on the GPU of this machine, on small texts: memcheck, racecheck, initcheck and
# synccheck. After `make test-gpu`, whose programs it uses. Arguments: the tools to run, all four without any.
# The logs go to build/gpu/sanitizer; SAMPLE (16) thins the texts that get their own launch. The conformance program
# is parted in PARTS (4) processes; JOBS (6) run at once, spread over the GPUs of this machine, and each is stopped, as a
# failure, after LIMIT (0: never) seconds. CUDA_VISIBLE_DEVICES leaves GPUs out, as everywhere.
set -euo pipefail
cd "$(dirname "$0")/.."
programs=$PWD/build/gpu/build/tests/gpu
logs=$PWD/build/gpu/sanitizer
parts=${PARTS:-4}
stop() { printf 'sanitize-gpu: %s\n' "$*" >&2; exit 1; }

command -v compute-sanitizer >/dev/null || stop "compute-sanitizer, of the CUDA toolkit, must be on PATH"
[ -x "$programs/test_cuda_engine" ] || stop "no $programs/test_cuda_engine; run make test-gpu first"
IFS=, read -ra gpus <<<"${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=index --format=csv,noheader | paste -sd,)}"
[ ${#gpus[@]} -gt 0 ] || stop "nvidia-smi finds no GPU"
[ $# -gt 0 ] || set -- memcheck racecheck initcheck synccheck
rm -rf "$logs" && mkdir -p "$logs"

check() { # GPU TOOL NAME COMMAND...
  local log=$logs/$2-$3.log status=0
  # initcheck of CUDA 13.0 does not see what a batch of copies writes.
  [ "$2" != initcheck ] || export WARPCIPHER_FORCE=copies=calls
  CUDA_VISIBLE_DEVICES=$1 timeout "${LIMIT:-0}" \
    compute-sanitizer --tool "$2" --error-exitcode 9 "${@:4}" >"$log" 2>&1 || status=$?
  case $status in
    0) printf '%s %s: clean\n' "$2" "$3" ;;
    124) printf '%s %s: FAILED, not done within %s s, see %s\n' "$2" "$3" "$LIMIT" "$log" ;;
    *) printf '%s %s: FAILED, see %s\n' "$2" "$3" "$log" ;;
  esac
  return $((status != 0))
}
export -f check
export logs

cd "$programs"
for tool in "$@"; do
  for ((part = 0; part < parts; ++part)); do
    printf 'check %s %s engine-%s ./test_cuda_engine --quick --sample %s --part %s\n' \
      "${gpus[part % ${#gpus[@]}]}" "$tool" "$part" "${SAMPLE:-16}" "$part/$parts"
  done
  printf 'check %s %s search ./test_cuda_search --few 1\n' "${gpus[0]}" "$tool"
  printf 'check %s %s prg ./test_cuda_prg --few\n' "${gpus[0]}" "$tool"
  [ ! -x test_lab ] || printf 'check %s %s lab ./test_lab\n' "${gpus[0]}" "$tool"
done | xargs -P "${JOBS:-6}" -I{} bash -c '{}'
