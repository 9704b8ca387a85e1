#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the wheel that fits this system's python3 and checks it, without network, without a compiler, then without
# libcrypto. To be run as root in a container or chroot that may be thrown away: libcrypto is moved aside.
# Usage: tools/test_wheel.sh FOLDER (with the wheels of warpcipher and of its requirements)
set -eu
here=$(dirname "$0")
for tool in cc c++ gcc g++ clang nvcc cmake; do
  ! command -v $tool >/dev/null || { echo "test-wheel: this system has $tool, so that it shows nothing" >&2; exit 1; }
done
. /etc/os-release
echo "== $PRETTY_NAME, $(python3 --version), $(uname -m)"
rm -rf /tmp/wheel-venv
python3 -m venv /tmp/wheel-venv
/tmp/wheel-venv/bin/python -m pip install -q --no-index --find-links "$1" warpcipher
/tmp/wheel-venv/bin/python "$here/check_wheel.py" libcrypto
/tmp/wheel-venv/bin/warpcipher --version
hidden=$(find / -xdev -name 'libcrypto.so.3' -not -path '/proc/*' 2>/dev/null)
for file in $hidden; do mv "$file" "$file.aside"; done
status=0
/tmp/wheel-venv/bin/python "$here/check_wheel.py" no-libcrypto || status=1
for file in $hidden; do mv "$file.aside" "$file"; done
exit $status
