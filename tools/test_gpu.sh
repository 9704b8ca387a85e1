#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds for the GPU of this machine and runs the GPU tests, with no network: cmake, ninja, nanobind, scikit-build-core
# and pytest must be importable by python3 already (PYTHON chooses another). The package goes to build/gpu/site, so
# nothing of that Python is touched.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

nvidia-smi -L || { echo "test-gpu: no NVIDIA GPU here (nvidia-smi failed); this target needs one" >&2; exit 1; }
"$python" -c 'import nanobind, pytest, scikit_build_core, click, tqdm, numpy' ||
  { echo "test-gpu: $python lacks a package of the build or of the tests (docs/building.md lists them)" >&2; exit 1; }

rm -rf build/gpu/site
"$python" -m pip install -q --no-build-isolation --no-deps --no-index --disable-pip-version-check \
  --target build/gpu/site \
  -C build-dir=build/gpu/build \
  -C cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON \
  -C cmake.define.WARPCIPHER_CUDA=ON \
  -C cmake.define.WARPCIPHER_CUDA_ARCHITECTURES=auto .

export PYTHONPATH=$PWD/build/gpu/site${PYTHONPATH:+:$PYTHONPATH}
export PATH=$PWD/build/gpu/site/bin:$PATH
exec "$python" -m pytest tests/gpu tests/python "$@"
