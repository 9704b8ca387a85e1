# SPDX-License-Identifier: Apache-2.0
# Every target works from a bare clone: it makes .venv, builds what changed, and runs. `make help` lists them.
# All output goes to .venv/ and build/, both ignored by git.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

export PYTHON ?= python3
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# cmake, ninja, clang-format and the installed warpcipher command come from .venv.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

# A build for this machine's GPUs, or a short list if there are none. Releases say CUDA_ARCHITECTURES=all, CI says ci.
CUDA ?= AUTO
CUDA_ARCHITECTURES ?= auto
BUILD := build/dev
# Without a GPU no kernel can run, and they are most of the demo's build: it goes without, in its own folder.
HAS_GPU := $(shell nvidia-smi -L 2>/dev/null)
DEMO_CUDA := $(if $(HAS_GPU)$(filter-out AUTO,$(CUDA)),$(CUDA),OFF)

sources := CMakeLists.txt pyproject.toml $(shell find src include bindings measure cmake python build_backend -type f \
             -not -name '*.pyc' -not -name '_*.pyi' 2>/dev/null)
cpp_files = $(shell find src include bindings tests examples measure -type f 2>/dev/null | \
              grep -E '\.(c|h|cpp|hpp|cu|cuh)$$')

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

# --- set up and build -----------------------------------------------------------------------------------------------
.venv/.stamp-demo: tools/setup.sh pyproject.toml
	@tools/setup.sh venv build demo
	@touch $@

.venv/.stamp-build: .venv/.stamp-demo build_backend/warpcipher_build.py
	@tools/setup.sh venv build nvcc
	@touch $@

.venv/.stamp-test: .venv/.stamp-build
	@tools/setup.sh venv test
	@touch $@

.venv/.stamp-spark: .venv/.stamp-test
	@tools/setup.sh venv spark
	@touch $@

.venv/.stamp-lint: .venv/.stamp-test
	@tools/setup.sh venv lint
	@touch $@

.venv/.stamp-docs: .venv/.stamp-build
	@tools/setup.sh venv docs
	@touch $@

# Holds the settings of the last build, rewritten only when they differ: a new setting is a reason to build.
build/.settings: FORCE
	@mkdir -p build
	@echo '$(CUDA) $(CUDA_ARCHITECTURES)' | cmp -s - $@ || echo '$(CUDA) $(CUDA_ARCHITECTURES)' >$@
.PHONY: FORCE
FORCE:

# Builds the wheels that users get, and the C++ tests in the same folder, and installs the wheels into .venv:
# $(call install,CUDA,FOLDER).
install = echo 'building warpcipher, CUDA $(1), architectures $(CUDA_ARCHITECTURES), $(CMAKE_BUILD_PARALLEL_LEVEL) jobs: some minutes the first time' >&2; \
  python -m pip install -q --no-build-isolation --no-deps --force-reinstall \
  -C build-dir=$(CURDIR)/$(2) \
  -C cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON \
  -C cmake.define.WARPCIPHER_BUILD_TESTS=ON \
  -C cmake.define.WARPCIPHER_UNIT_TESTS=optimized \
  -C cmake.define.WARPCIPHER_BUILD_EXAMPLES=ON \
  -C cmake.define.WARPCIPHER_BUILD_STATIC=ON \
  -C cmake.define.WARPCIPHER_BUILD_MEASURE=ON \
  -C cmake.define.WARPCIPHER_CUDA=$(1) \
  -C cmake.define.WARPCIPHER_CUDA_ARCHITECTURES=$(CUDA_ARCHITECTURES) . ./measure

ifeq ($(DEMO_CUDA),OFF)
build/.stamp-product: .venv/.stamp-demo build/.settings $(sources)
	@echo 'no GPU here: the demo is built without GPU kernels (make demo CUDA=ON builds them)' >&2
	@$(call install,OFF,build/demo)
	@touch $@
else
build/.stamp-product: .venv/.stamp-build build/.settings $(sources)
	@$(call install,$(DEMO_CUDA),$(BUILD))
	@touch $@
endif

build/.stamp-installed: .venv/.stamp-build build/.settings $(sources)
	@$(call install,$(CUDA),$(BUILD))
	@cp $(BUILD)/_native.pyi python/warpcipher/
	@cp $(BUILD)/measure/_native.pyi measure/python/warpcipher_measure/
	@touch build/.stamp-product $@

.PHONY: build
build: build/.stamp-installed ## Build the package and install it into .venv

.PHONY: develop
develop: .venv/.stamp-build ## Install into .venv so that changes to Python files count at once
	@python -m pip install -q --no-build-isolation --no-deps --force-reinstall -C build-dir=$(CURDIR)/$(BUILD) \
	  -C cmake.define.WARPCIPHER_BUILD_MEASURE=ON -e . -e ./measure

# --- use ------------------------------------------------------------------------------------------------------------
.PHONY: demo
demo: build/.stamp-product ## Encrypt, inspect and decrypt real data, and compare rates
	@python tools/demo.py

# --- check ----------------------------------------------------------------------------------------------------------
.PHONY: lint
lint: build .venv/.stamp-lint ## Formatters, linters, type checker, and our own checks of sources and docs
	@python tools/check_layers.py
	@python tools/check_sources.py
	@python tools/check_docs.py
	@clang-format --dry-run -Werror $(cpp_files)
	@ruff check .
	@ruff format --check .
	@mypy
	@zizmor --offline --quiet .github/workflows

.PHONY: format
format: .venv/.stamp-lint ## Let the formatters rewrite the sources
	@clang-format -i $(cpp_files)
	@ruff check --fix .
	@ruff format .

.PHONY: docs
docs: build .venv/.stamp-docs ## The site of the documentation in build/site; a warning is an error
	@rm -rf build/site
	@python -m sphinx -q -W --keep-going -j auto -c docs -d build/site-pages . build/site
	@echo 'built build/site/index.html'

.PHONY: tidy
tidy: .venv/.stamp-lint ## clang-tidy over the host sources (slow)
	@cmake --preset tidy
	@cmake --build --preset tidy

.PHONY: test-cpp
test-cpp: build ## C++ unit tests of optimized code, and examples; test-asan has all unit tests
	@cmake --build $(BUILD)
	@ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(CMAKE_BUILD_PARALLEL_LEVEL)

.PHONY: test-asan
test-asan: .venv/.stamp-build ## C++ unit tests under ASan and UBSan
	@cmake --preset asan
	@cmake --build --preset asan
	@ctest --preset asan -j $(CMAKE_BUILD_PARALLEL_LEVEL)

.PHONY: test-install
test-install: test-cpp ## The installed C package, used from another project
	@tools/test_install.sh $(BUILD)

gpu_tests = $(if $(shell nvidia-smi -L 2>/dev/null),tests/gpu)

.PHONY: test-python
test-python: build .venv/.stamp-test ## The tests of the package and the command, in four processes
	@tools/test_python.sh $(gpu_tests)

.PHONY: test
test: test-cpp test-install test-asan test-python ## Everything that this machine can test; pytest comes last

# More of the random cases that `make test` has: LONG times as many, from SEED if it is given.
LONG ?= 20
.PHONY: fuzz
fuzz: build .venv/.stamp-test ## Random cases for longer: LONG=100 times as many, SEED=7 repeats a run
	@cmake --preset asan
	@cmake --build --preset asan --target fuzz_capi
	@cd build/asan && RUNS=$$((20000 * $(LONG))) $(if $(SEED),SEED=$(SEED)) tests/fuzz/capi/fuzz_capi
	@WARPCIPHER_TEST_LONG=$(LONG) $(if $(SEED),WARPCIPHER_TEST_SEED=$(SEED)) python -m pytest \
	  -o tmp_path_retention_policy=failed $(if $(SEED),--hypothesis-seed=$(SEED)) tests/fuzz

.PHONY: test-spark
test-spark: build .venv/.stamp-spark ## Parquet files exchanged with Spark: half a gigabyte, and a JDK
	@WARPCIPHER_TEST_SPARK=1 python -m pytest tests/interop/test_interop_spark.py

.PHONY: test-gpu
test-gpu: ## GPU tests, offline, with the modules that python3 can already import
	@tools/test_gpu.sh

.PHONY: sanitize-gpu
sanitize-gpu: ## The GPU tests' kernels under compute-sanitizer, after test-gpu
	@tools/sanitize_gpu.sh

.PHONY: test-processors
test-processors: ## The CPU engine's tests on emulated processors, where qemu-user is; ARMv8 cross-compiled
	@tools/test_processors.sh

.PHONY: clean
clean: ## Remove build/ and caches (not .venv)
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis python/warpcipher/_native.pyi \
	  measure/python/warpcipher_measure/_native.pyi
