#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the C library of a build into a prefix, a component at a time, and uses it as another project would: the
# examples through find_package(warpcipher) and through pkg-config, shared and static; then compares the library
# exports with warpcipher.h. Usage: tools/test_install.sh BUILD_DIR (configured with WARPCIPHER_BUILD_STATIC=ON)
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
prefix=$PWD/build/prefix
stop() { printf 'test-install: %s\n' "$*" >&2; exit 1; }
rm -rf "$prefix" build/examples build/examples-static

installed() { (cd "$prefix" && find . -not -type d | sed 's|/lib/[a-z0-9_]*-linux-gnu/|/lib/|; s|/lib64/|/lib/|' | sort); }
component() { # NAME: adds its files
  local before
  before=$(installed)
  cmake --install "$build" --prefix "$prefix" --component "$1" >/dev/null
  comm -13 <(echo "$before") <(installed)
}
mkdir -p "$prefix"
version=$(tools/version.sh)
runtime=$(component runtime)
[ "$runtime" = "./lib/libwarpcipher.so.0"$'\n'"./lib/libwarpcipher.so.$version" ] || stop "the runtime holds $runtime"
development=$(component development)
wanted="./include/warpcipher.h
./include/warpcipher.hpp
./include/warpcipher/chunks.h
./include/warpcipher/columns.h
./include/warpcipher/core.h
./include/warpcipher/files.h
./include/warpcipher/messages.h
./include/warpcipher/queue.h
./include/warpcipher/random.h
./lib/cmake/warpcipher/warpcipherConfig.cmake
./lib/cmake/warpcipher/warpcipherConfigVersion.cmake
./lib/cmake/warpcipher/warpcipherTargets-release.cmake
./lib/cmake/warpcipher/warpcipherTargets.cmake
./lib/libwarpcipher.a
./lib/libwarpcipher.so
./lib/pkgconfig/warpcipher.pc"
diff <(echo "$wanted") <(echo "$development") || stop "the development files are others (>) than expected (<)"
if component documentation | grep -v '^\./share/doc/warpcipher/'; then stop "documentation lies elsewhere"; fi

library=$(find "$prefix" -name libwarpcipher.so)
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort)
declared=$(grep -ohE '\bwc_[a-z0-9_]+ *\(' include/warpcipher/*.h | tr -d ' (' | sort -u)
diff <(echo "$exported") <(echo "$declared") || stop "libwarpcipher.so exports (<) other than what warpcipher.h declares (>)"
if ldd "$library" | grep -E 'libcrypto|libcuda'; then
  stop "libwarpcipher.so must load libcrypto and CUDA's driver at run time, not link them"
fi

# u: inline variables, which a linker joins whatever is asked.
globals=$(nm -g --defined-only "${library%.so}.a" | awk 'NF == 3 && $2 != "u" {print $3}' | sort)
diff <(echo "$globals") <(echo "$declared") || stop "libwarpcipher.a has other global names (<) than warpcipher.h declares (>)"

for kind in "" -static; do
  cmake -S examples -B build/examples$kind -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DWARPCIPHER_CUDA=OFF \
    -DWARPCIPHER_STATIC=${kind:+ON} >/dev/null
  cmake --build build/examples$kind
  ctest --test-dir build/examples$kind --output-on-failure --no-tests=error
done
if ldd build/examples-static/example_encrypt_file | grep libwarpcipher; then stop "the static example needs the shared library"; fi

export PKG_CONFIG_PATH=${library%/*}/pkgconfig
for header in "$prefix"/include/warpcipher/*.h; do cc -std=c11 -Wall -Wextra -Werror -fsyntax-only "$header"; done
for source in examples/*.c; do
  # shellcheck disable=SC2046 # flags
  cc -std=c11 -Wall -Wextra -Werror "$source" -o build/examples/by_pkg_config $(pkg-config --cflags --libs warpcipher)
  LD_LIBRARY_PATH=${library%/*} build/examples/by_pkg_config >/dev/null
done
for standard in c++17 c++20; do
  # shellcheck disable=SC2046 # flags
  c++ -std=$standard -Wall -Wextra -Wpedantic -Werror examples/seal.cpp -o build/examples/by_pkg_config \
    $(pkg-config --cflags --libs warpcipher)
  LD_LIBRARY_PATH=${library%/*} build/examples/by_pkg_config >/dev/null
done
# The C guide's program and commands, as they stand there but for the prefix.
guide=build/examples/guide
mkdir -p "$guide"
block() { awk -v begin="\`\`\`$1" '$0 == begin {inside = 1; next} /^```/ {inside = 0} inside' docs/guides/c.md; }
block c >"$guide/seal.c"
{
  echo set -euo pipefail
  block sh | sed "s|~/.local/lib/pkgconfig|$PKG_CONFIG_PATH|"
} >"$guide/commands.sh"
[ "$(cd "$guide" && bash commands.sh)" = "sealed and opened"$'\n'"sealed and opened" ] || stop "the C guide does not work"
echo "installed package: components, headers, symbols, find_package, pkg-config and the C guide are right, shared and static"
