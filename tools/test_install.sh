#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the C library of a build into a prefix and uses it as another project would: the examples through
# find_package(warpcipher), one of them through pkg-config; then checks what the library exports.
# Usage: tools/test_install.sh BUILD_DIR (configured with WARPCIPHER_BUILD_LIBRARY=ON)
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
prefix=$PWD/build/prefix
rm -rf "$prefix" build/examples
cmake --install "$build" --prefix "$prefix" --component library >/dev/null

headers=$(cd "$prefix/include" && find . -type f | sort | tr '\n' ' ')
[ "$headers" = "./warpcipher.h ./warpcipher.hpp " ] || { echo "other headers are installed: $headers"; exit 1; }

library=$(find "$prefix" -name libwarpcipher.so)
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort)
declared=$(grep -oE '\bwc_[a-z0-9_]+ *\(' include/warpcipher.h | tr -d ' (' | sort -u)
diff <(echo "$exported") <(echo "$declared") ||
  { echo "libwarpcipher.so exports (<) other than what warpcipher.h declares (>)"; exit 1; }
if ldd "$library" | grep -E 'libcrypto|libcuda'; then
  echo "libwarpcipher.so must load libcrypto and CUDA's driver at run time, not link them"
  exit 1
fi

cmake -S examples -B build/examples -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DWARPCIPHER_CUDA=OFF >/dev/null
cmake --build build/examples
ctest --test-dir build/examples --output-on-failure --no-tests=error

export PKG_CONFIG_PATH=${library%/*}/pkgconfig
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
echo "installed package: headers, symbols, find_package and pkg-config are right"
