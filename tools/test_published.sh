#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a published version as users do, from the index, and runs the check of the wheels and the demo with it.
#
#   tools/test_published.sh 0.1.0
#
# An index may show a new version minutes after it took it: TRIES (20) attempts, WAIT (30) seconds apart. PYTHON chooses
# the interpreter, VENV another folder than build/published. pip's own settings (PIP_INDEX_URL) choose another index.
set -euo pipefail
cd -P "$(dirname "$0")/.."
[ $# -eq 1 ] || { echo 'usage: tools/test_published.sh VERSION' >&2; exit 2; }
venv=${VENV:-build/published}
tries=${TRIES:-20}
rm -rf "$venv"
"${PYTHON:-python3}" -m venv "$venv"
# A wheel, never a build from source: that would show nothing of the published one.
until "$venv/bin/python" -m pip install -q --no-cache-dir --only-binary warpcipher "warpcipher[demo]==$1"; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || { echo "test-published: pip finds no wheel of warpcipher $1 for this system" >&2; exit 1; }
  sleep "${WAIT:-30}"
done
"$venv/bin/python" tools/check_wheel.py libcrypto
"$venv/bin/python" tools/demo.py
