#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests of the CPU engine on processors that this machine is not: x86-64 without AES instructions, without AVX and
# without VAES, and ARMv8 (cross-compiled). Needs qemu-user, for ARMv8 also g++-aarch64-linux-gnu, libgtest-dev and
# apt-get, which fetches libcrypto. Missing tools are skipped, and the script says so.
#
#   tools/test_processors.sh [x86] [arm]      both without an argument
#
# qemu has no VAES: that runs where the tests run on a processor which has it. JOBS (all cores) compile at once.
set -euo pipefail
cd -P "$(dirname "$0")/.."
PATH=$PWD/.venv/bin:$PATH # cmake and ninja of the venv that make sets up
jobs=${JOBS:-$(nproc)}
build=$PWD/build/processors
say() { printf 'processors: %s\n' "$*"; }

configure() { # FOLDER OPTION...
  cmake -S . -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWARPCIPHER_CUDA=OFF \
    -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DWARPCIPHER_BUILD_TESTS=ON -DWARPCIPHER_BUILD_GPU_TESTS=OFF \
    -DWARPCIPHER_BUILD_PYTHON=OFF "${@:2}" >/dev/null
}

# Every algorithm at short lengths, counters that wrap, known answers: an emulator takes 30 times as long.
short='*EveryShort*:*CountersWrap*:*WrapsCounters*:*WrapCounters*:*GoOn*:*TakeOwn*:*AreChosen*:*SaysWhat*:SelfTest*:*AppliesPk*'

x86() {
  local processor
  command -v qemu-x86_64 >/dev/null || { say "x86-64 skipped: no qemu-x86_64 (Debian: qemu-user)"; return; }
  [ "$(uname -m)" = x86_64 ] || { say "x86-64 skipped: this machine is $(uname -m)"; return; }
  configure "$build/x86"
  cmake --build "$build/x86" -j "$jobs" --target warpcipher_cpu_tests >/dev/null
  for processor in qemu64,+ssse3 Westmere Haswell; do # no AES; AES without AVX; AVX2 without VAES
    say "x86-64, $processor"
    qemu-x86_64 -cpu "$processor" "$build/x86/tests/unit/warpcipher_cpu_tests" --gtest_brief=1 \
      --gtest_filter="$short" 2> >(grep -v "TCG doesn't support" >&2)
  done
  say "x86-64, qemu64, no libcrypto"
  qemu-x86_64 -cpu qemu64,+ssse3 -E LD_LIBRARY_PATH="$build/x86/tests/unit/no_libcrypto" \
    "$build/x86/tests/unit/warpcipher_cpu_tests" --gtest_brief=1 --gtest_filter='*SaysThat*:*SaysWhat*:SelfTest*' \
    2> >(grep -v "TCG doesn't support" >&2)
}

# libcrypto of ARMv8 from this system's archive, without a change to the packages of this machine.
fetch_libcrypto() {
  local apt=$build/arm/apt
  [ -z "$(find "$build/arm/root" -name libcrypto.so.3 2>/dev/null)" ] || return 0
  rm -rf "$apt" && mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  local options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State::lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o Dir::State::status=/dev/null)
  apt-get "${options[@]}" update >/dev/null 2>&1
  (cd "$apt" && { apt-get "${options[@]}" download libssl3 || apt-get "${options[@]}" download libssl3t64; }) \
    >/dev/null 2>&1 || return 1
  dpkg-deb -x "$apt"/libssl3*.deb "$build/arm/root"
}

arm() {
  local compiler=aarch64-linux-gnu-g++ toolchain=$build/arm/toolchain.cmake
  command -v $compiler >/dev/null || { say "ARMv8 skipped: no $compiler (Debian: g++-aarch64-linux-gnu)"; return; }
  [ -f /usr/src/googletest/CMakeLists.txt ] || { say "ARMv8 skipped: no /usr/src/googletest (Debian: libgtest-dev)"; return; }
  mkdir -p "$build/arm"
  printf 'set(CMAKE_SYSTEM_%s)\n' 'NAME Linux' 'PROCESSOR aarch64' >"$toolchain"
  printf 'set(CMAKE_%s_COMPILER aarch64-linux-gnu-%s)\n' C gcc CXX g++ >>"$toolchain"
  cmake -S /usr/src/googletest -B "$build/arm/gtest" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DBUILD_GMOCK=OFF -Wno-deprecated \
    -DCMAKE_INSTALL_PREFIX="$build/arm/installed" >/dev/null
  cmake --build "$build/arm/gtest" -j "$jobs" --target install >/dev/null
  configure "$build/arm/build" -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_PREFIX_PATH="$build/arm/installed"
  cmake --build "$build/arm/build" -j "$jobs" --target warpcipher warpcipher_cpu_tests >/dev/null
  say "ARMv8: the library and its tests compile"
  command -v qemu-aarch64 >/dev/null || { say "ARMv8 not run: no qemu-aarch64 (Debian: qemu-user)"; return; }
  fetch_libcrypto || { say "ARMv8 not run: no libssl3 for arm64 from apt-get"; return; }
  say "ARMv8, $(qemu-aarch64 --version | head -1)"
  qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$build/arm/root/usr/lib/aarch64-linux-gnu" \
    "$build/arm/build/tests/unit/warpcipher_cpu_tests" --gtest_brief=1 --gtest_filter="$short"
}

[ $# -gt 0 ] || set -- x86 arm
for what in "$@"; do
  case $what in
    x86 | arm) "$what" ;;
    *) say "unknown: $what; expected x86 or arm" >&2; exit 2 ;;
  esac
done
