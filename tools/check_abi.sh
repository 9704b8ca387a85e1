#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the C ABI with the last release's, which tests/abi/warpcipher.abi describes, by libabigail's abidiff. What
# programs of that release cannot run with needs a new major version, before 1.0 a new minor one.
#
#   tools/check_abi.sh             compares
#   tools/check_abi.sh --record    writes the description: once, when a version is released
#
# Needs abidw and abidiff (Debian: abigail-tools); fails without.
set -euo pipefail
cd -P "$(dirname "$0")/.."
recorded=tests/abi/warpcipher.abi
work=$PWD/build/abi
stop() { printf 'check-abi: %s\n' "$*" >&2; exit 1; }
command -v abidiff >/dev/null || stop "no abidiff (Debian: abigail-tools)"

# A library of the functions of warpcipher.h, whose bodies do nothing: only their types are compared, which names are
# exported is checked by tools/test_install.sh.
mkdir -p "$work"
library=$work/libwarpcipher.so.0
version=$(tools/version.sh)
cc -E -P include/warpcipher.h | python3 -c '
import re, sys
print(re.sub(r"(\bwc_\w+ *\([^;{}]*\)) *;", r"\1 { __builtin_trap(); }", sys.stdin.read()))' >"$work/functions.c"
cc -g -fdebug-prefix-map="$work"=. -fPIC -shared -Wl,-soname,libwarpcipher.so.0 -Wl,--version-script=cmake/warpcipher.map "$work/functions.c" -o "$library"
diff <(nm -D --defined-only "$library" | sed -n 's/.* T \(wc_[^@]*\).*/\1/p' | sort) \
  <(grep -ohE '\bwc_[a-z0-9_]+ *\(' include/warpcipher/*.h | tr -d ' (' | sort -u) || stop "functions (>) of the header were left out"
abidw --no-corpus-path --no-comp-dir-path --no-show-locs "$library" >"$work/now.abi"

if [ "${1:-}" = --record ]; then
  { cat "$work/now.abi"; echo "<!-- The C ABI of version $version: tools/check_abi.sh writes and compares it. -->"; } >"$recorded"
  echo "recorded the C ABI of $version"
  exit
fi
of=$(sed -n '$s/.*of version \([0-9.]*\):.*/\1/p' "$recorded")
status=0
abidiff "$recorded" "$library" >"$work/report" || status=$?
[ $((status & 3)) = 0 ] || { cat "$work/report"; stop "abidiff failed"; }
[ "$status" != 0 ] || { echo "the C ABI is as in $of"; exit; }
cat "$work/report"
# Additions break no program, and take no new generation of versions: 0.1, 0.2, 1, 2.
generation() { case $1 in 0.*) cut -d. -f1,2 <<<"$1" ;; *) cut -d. -f1 <<<"$1" ;; esac; }
if ! abidiff --no-added-syms "$recorded" "$library" >/dev/null && [ "$(generation "$of")" = "$(generation "$version")" ]; then
  stop "programs built with $of may not run with this, and CMakeLists.txt says $version: a new major version is needed, before 1.0 a new minor one; if $version is not released yet: tools/check_abi.sh --record"
fi
echo "the C ABI has changed since $of, as $version may"
