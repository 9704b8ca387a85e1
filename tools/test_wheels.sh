#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the wheels of dist/ in bare systems without a compiler: root file systems that debootstrap makes, and for ARMv8
# one that is only unpacked and whose Python runs under qemu-user. As root; CI runs test_wheel.sh in containers instead.
#
#   tools/test_wheels.sh [bookworm] [trixie] [jammy] [noble] [arm]      all of them without an argument
#
# The systems are kept in ROOTS (build/roots) for the next run. Needs debootstrap, for ARMv8 qemu-user.
set -euo pipefail
cd -P "$(dirname "$0")/.."
roots=${ROOTS:-$PWD/build/roots}
say() { printf 'test-wheels: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
[ "$(id -u)" = 0 ] || die "debootstrap and chroot need root"
command -v debootstrap >/dev/null || die "no debootstrap (Debian: debootstrap)"
compgen -G 'dist/*.whl' >/dev/null || die "no wheels in dist/; tools/build_wheels.sh makes them"
[ $# -gt 0 ] || set -- bookworm trixie jammy noble arm
mkdir -p "$roots"

# The package's requirements, for every processor and version of Python.
packages=$roots/packages
[ -d "$packages" ] || python3 -m pip download -q --no-deps -d "$packages" 'click>=8.1,<8.2' 'tqdm>=4.64,<5'

archive() { case $1 in jammy | noble) echo http://archive.ubuntu.com/ubuntu ;; *) echo http://deb.debian.org/debian ;; esac; }

bare() { # SUITE
  local root=$roots/$1
  if [ ! -x "$root/usr/bin/python3" ]; then
    say "making $root"
    local script=$1 # a debootstrap that is older than the suite has none for it
    [ -e "/usr/share/debootstrap/scripts/$script" ] || script=$(case $(archive "$1") in *ubuntu) echo jammy ;; *) echo sid ;; esac)
    debootstrap --variant=minbase --components=main,universe --include=python3,python3-venv "$1" "$root" "$(archive "$1")" "$script" \
      >"$roots/$1.log" 2>&1 || { tail "$roots/$1.log"; die "debootstrap of $1 failed"; }
  fi
  rm -rf "$root/wheels" && mkdir "$root/wheels"
  cp dist/*.whl "$packages"/*.whl tools/test_wheel.sh tools/check_wheel.py "$root/wheels/"
  unshare --net chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin /wheels/test_wheel.sh /wheels
}

# An emulator runs one program, not those that it starts: so the wheels are unpacked here, and one Python runs.
arm() {
  local root=$roots/arm suite=trixie wheel
  command -v qemu-aarch64 >/dev/null || die "no qemu-aarch64 (Debian: qemu-user)"
  if [ ! -f "$root/done" ]; then
    say "making $root"
    rm -rf "$root"
    debootstrap --foreign --arch=arm64 --variant=minbase --include=python3 $suite "$root" "$(archive $suite)" \
      >"$roots/arm.log" 2>&1 || { tail "$roots/arm.log"; die "debootstrap of $suite for arm64 failed"; }
    for package in "$root"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
    touch "$root/done"
  fi
  for wheel in dist/*cp312-abi3*_aarch64.whl; do
    rm -rf "$root/site" && mkdir "$root/site"
    for package in "$wheel" "$packages"/*.whl; do python3 -m zipfile -e "$package" "$root/site"; done
    for libcrypto in libcrypto no-libcrypto; do
      [ $libcrypto = libcrypto ] || mv "$root"/usr/lib/aarch64-linux-gnu/libcrypto.so.3{,.aside}
      PYTHONPATH=$root/site qemu-aarch64 -L "$root" "$root/usr/bin/python3" tools/check_wheel.py $libcrypto || touch "$root/failed"
      [ $libcrypto = libcrypto ] || mv "$root"/usr/lib/aarch64-linux-gnu/libcrypto.so.3{.aside,}
    done
    [ ! -e "$root/failed" ] || { rm "$root/failed"; die "${wheel##*/} fails under qemu-aarch64"; }
  done
}

for system in "$@"; do
  case $system in
    bookworm | trixie | jammy | noble) bare "$system" ;;
    arm) arm ;;
    *) die "unknown system: $system" ;;
  esac
done
say "the wheels work in: $*"
