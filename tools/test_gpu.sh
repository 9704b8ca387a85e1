#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds for the GPU of this machine and runs the GPU tests, with no network: CMake, Ninja, nanobind, scikit-build-core and
# pytest must be there for python3 already (PYTHON chooses another). The package goes to build/gpu/site, so nothing of
# that Python is touched. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
stop() { printf 'test-gpu: %s\n' "$*" >&2; exit 1; }

nvidia-smi -L || stop "no NVIDIA GPU here (nvidia-smi failed); this target needs one"
"$python" -c 'import click, hypothesis, nanobind, numpy, pytest, scikit_build_core, tqdm' ||
  stop "$python lacks a package of the build or of the tests (docs/building.md lists them)"
# cmake and ninja may be that Python's packages.
PATH=$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$PATH
command -v cmake >/dev/null && command -v ninja >/dev/null || stop "cmake and ninja must be on PATH"

rm -rf build/gpu/site
"$python" -m pip install -q --no-build-isolation --no-deps --no-index --disable-pip-version-check \
  --target build/gpu/site \
  -C build-dir="$PWD/build/gpu/build" \
  -C cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON \
  -C cmake.define.WARPCIPHER_CUDA=ON \
  -C cmake.define.WARPCIPHER_CUDA_ARCHITECTURES=auto \
  -C cmake.define.WARPCIPHER_BUILD_GPU_TESTS=ON \
  -C cmake.define.WARPCIPHER_BUILD_MEASURE=ON \
  -C cmake.define.WARPCIPHER_BUILD_EXAMPLES=ON . ./measure
export PYTHONPATH=$PWD/build/gpu/site${PYTHONPATH:+:$PYTHONPATH}
export PATH=$PWD/build/gpu/site/bin:$PATH
"$python" -c 'import warpcipher as wc; cuda = {e.name: e for e in wc.engines()}["cuda"]; exit(cuda.reason or None)' ||
  stop "the package was built, but its cuda engine cannot run"

cmake --build build/gpu/build
ctest --test-dir build/gpu/build --output-on-failure --no-tests=error -j "$(nproc)"
# In as many processes as share one GPU's memory, where pytest-xdist is there. pytest-benchmark warns under it, and
# warnings are errors.
processes=()
! "$python" -c 'import xdist' 2>/dev/null || processes=(-n "$(($(nproc) < 14 ? $(nproc) : 14))")
exec "$python" -m pytest -p no:benchmark "${processes[@]}" \
  tests/gpu tests/python tests/fuzz/test_fuzz_differential.py "$@"
