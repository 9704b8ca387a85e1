#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the files of a release into dist/: a wheel for each Python given, with the CUDA engine, the source distribution,
# and a bill of materials (CycloneDX).
#
#   tools/build_wheels.sh python3.10 python3.11 python3.12
#   ARCH=aarch64 tools/build_wheels.sh python3.10 python3.11 python3.12   cross-compiled, after the first
#
# The wheel of 3.12 uses the stable ABI and serves every later version. auditwheel makes the wheels fit for other
# machines: their name says the oldest glibc, this machine's compiler's; releases are built in the image
# that .github/workflows/wheels.yml names. tools/test_wheels.sh tests them. docs/building.md has more.
set -euo pipefail
cd -P "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo 'usage: [ARCH=aarch64] tools/build_wheels.sh PYTHON...' >&2; exit 2; }
machine=$(uname -m)
arch=${ARCH:-$machine}
work=$PWD/build/wheels
limit=$((40 * 1000 * 1000)) # bytes of a wheel
say() { printf 'wheels: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# The lab does without OpenMP: its library is none that every system has.
options=(-DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DWARPCIPHER_BUILD_LIBRARY=OFF -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON)
case $arch in
  x86_64 | aarch64) options+=(-DWARPCIPHER_CUDA=ON "-DWARPCIPHER_CUDA_ARCHITECTURES=${CUDA_ARCHITECTURES:-all}") ;;
  *) die "ARCH is $arch; wheels are for x86_64 and aarch64" ;;
esac
if [ "$arch" != "$machine" ]; then
  [ "$arch" = aarch64 ] || die "ARCH is $arch; only aarch64 is cross-compiled"
  command -v aarch64-linux-gnu-g++ >/dev/null || die "no aarch64-linux-gnu-g++ (Debian: g++-aarch64-linux-gnu)"
  mkdir -p "$work"
  printf 'set(CMAKE_SYSTEM_%s)\n' 'NAME Linux' 'PROCESSOR aarch64' >"$work/aarch64.cmake"
  printf 'set(CMAKE_%s_COMPILER aarch64-linux-gnu-%s)\n' C gcc CXX g++ >>"$work/aarch64.cmake"
  # nvcc compiles for any processor; the runtime that is linked is of the other one, and fetched below.
  runtime=$work/runtime/nvidia/cu13/lib
  printf 'set(%s)\n' 'CMAKE_CUDA_HOST_COMPILER aarch64-linux-gnu-g++' "CMAKE_CUDA_FLAGS_INIT -L$runtime" \
    "WARPCIPHER_CUDART_STATIC $runtime/libcudart_static.a CACHE FILEPATH \"\"" >>"$work/aarch64.cmake"
  [ -f "$work/$machine/_native.pyi" ] || die "no wheel was built for $machine before: the type stubs are from there"
  options+=("-DCMAKE_TOOLCHAIN_FILE=$work/aarch64.cmake" "-DWARPCIPHER_STUBS=$work/$machine")
fi
settings=()
for option in "${options[@]}"; do settings+=(-C "cmake.define.${option#-D}"); done

rm -rf "$work/raw"
mkdir -p dist "$work/raw"
for python in "$@"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  say "$arch, Python $version"
  venv=$work/python$version
  PYTHON=$python VENV=$venv tools/setup.sh packages build nvcc wheel
  # One compiler for all: if it is PyPI's, the first Python's.
  nvcc=$("$venv/bin/python" cmake/find_pypi_nvcc.py)
  [ -z "$nvcc" ] || export CUDACXX=${CUDACXX:-$nvcc/bin/nvcc}
  if [ "$arch" != "$machine" ] && [ ! -f "$runtime/libcudart_static.a" ]; then
    "$venv/bin/python" -m pip download -q --no-deps -d "$work/runtime" --only-binary=:all: \
      --platform manylinux2014_aarch64 \
      "$(PYTHONPATH=build_backend "$venv/bin/python" -c \
        'import warpcipher_build as b; print(*[p for p in b.nvcc_packages() if "runtime" in p])')"
    "$venv/bin/python" -m zipfile -e "$work"/runtime/nvidia_cuda_runtime-*.whl "$work/runtime"
  fi
  # Objects of another Python are kept; all but those that see its headers serve this one too.
  rm -f "$work/$arch/CMakeCache.txt"
  # Only for this command: pip would install the tools of that processor, too.
  target=()
  [ "$arch" = "$machine" ] ||
    target=(_PYTHON_HOST_PLATFORM=linux-$arch "SETUPTOOLS_EXT_SUFFIX=.cpython-${version/./}-$arch-linux-gnu.so")
  PATH=$venv/bin:$PATH env "${target[@]}" python -m pip wheel -q --no-build-isolation --no-deps -w "$work/raw" \
    -C build-dir="$work/$arch" -C cmake.define.WARPCIPHER_BUILD_MEASURE=ON "${settings[@]}" . ./measure
done

export PATH=$venv/bin:$PATH
for wheel in "$work"/raw/*.whl; do
  auditwheel repair --wheel-dir "$work/repaired" "$wheel" >"$work/auditwheel.log" ||
    { cat "$work/auditwheel.log"; exit 1; }
done
export PYTHONPATH=$PWD/build_backend
linked=("nanobind==$(python -c 'import nanobind; print(nanobind.__version__)')"
  "$(python -c 'import warpcipher_build as b; print(*[p for p in b.nvcc_packages() if "runtime" in p])')")
for wheel in "$work"/repaired/*.whl; do
  python tools/add_sbom.py "$wheel" "${linked[@]}"
  ! python -m zipfile -l "$wheel" | grep -q '\.libs/' || die "$wheel brings libraries of this machine along"
  size=$(stat -c %s "$wheel")
  [ "$size" -le $limit ] || die "$wheel has $size bytes; a wheel may have $limit"
  mv "$wheel" dist/
  say "dist/${wheel##*/}: $((size / 1000)) kB"
done
[ "$arch" = x86_64 ] || exit 0

python -c 'import warpcipher_build as b; print(b.build_sdist("dist"))' >"$work/sdist.log"

# The bill of materials: the package, its requirements, and the libraries in its extensions.
version=$(tools/version.sh)
rm -rf "$work/materials"
python -m venv --without-pip "$work/materials"
into=(python -m pip --python "$work/materials/bin/python" install -q --find-links dist)
"${into[@]}" --no-index --no-deps "warpcipher==$version"
"${into[@]}" "warpcipher==$version" "${linked[@]}"
cyclonedx-py environment "$work/materials" --output-reproducible -o "dist/warpcipher-$version.cdx.json"
say "dist: source distribution and warpcipher-$version.cdx.json"
