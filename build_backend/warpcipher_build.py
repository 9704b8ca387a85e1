# SPDX-License-Identifier: Apache-2.0
"""The build backend: scikit-build-core, plus NVIDIA's compiler from PyPI where no toolkit is.

With it, `pip install .` gives a package with the CUDA engine on any Linux machine, GPU or not. The
compiler is a requirement of the build alone; the package it makes needs none of these packages to
run.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403

ConfigSettings = Mapping[str, "str | list[str]"] | None

# One CUDA release: these parts work only together. cmake/CudaCompiler.cmake finds them.
NVCC_PACKAGES = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
]


def _cuda_setting(config_settings: ConfigSettings) -> str:
    """The value of WARPCIPHER_CUDA that CMake will see: from pip's -C, or from the environment."""
    settings = config_settings or {}
    for key in ("cmake.define.WARPCIPHER_CUDA", "skbuild.cmake.define.WARPCIPHER_CUDA"):
        if key in settings:
            return str(settings[key]).upper()
    arguments = [os.environ.get("CMAKE_ARGS", ""), os.environ.get("SKBUILD_CMAKE_ARGS", "")]
    for key in ("cmake.args", "skbuild.cmake.args"):
        given = settings.get(key, "")
        arguments.append(given if isinstance(given, str) else " ".join(given))
    arguments.append("-D" + os.environ.get("SKBUILD_CMAKE_DEFINE", "").replace(";", " -D"))
    found = re.findall(r"-D\s*WARPCIPHER_CUDA(?::\w+)?=(\w+)", " ".join(arguments))
    return found[-1].upper() if found else "AUTO"


def _toolkit_installed() -> bool:
    """True where cmake/CudaCompiler.cmake will find a toolkit without PyPI's."""
    if "CUDACXX" in os.environ or shutil.which("nvcc"):
        return True
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    return any((Path(root) / "bin" / "nvcc").is_file() for root in roots if root)


def nvcc_requirements(config_settings: ConfigSettings = None) -> list[str]:
    """The packages to install before a build with these settings: NVCC_PACKAGES, or none."""
    if _cuda_setting(config_settings) == "OFF" or _toolkit_installed():
        return []
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return []
    return list(NVCC_PACKAGES)


def get_requires_for_build_wheel(config_settings: ConfigSettings = None) -> list[str]:
    return _build.get_requires_for_build_wheel(config_settings) + nvcc_requirements(config_settings)


def get_requires_for_build_editable(config_settings: ConfigSettings = None) -> list[str]:
    requires = _build.get_requires_for_build_editable(config_settings)
    return requires + nvcc_requirements(config_settings)
