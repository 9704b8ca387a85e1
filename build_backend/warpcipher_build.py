# SPDX-License-Identifier: Apache-2.0
"""The build backend: scikit-build-core, plus NVIDIA's compiler from PyPI where no toolkit is.

With it, `pip install .` gives a package with the CUDA engine on any Linux machine, GPU or not. The
compiler is a requirement only of the build; the package it makes needs none of these packages to
run. Before anything is fetched or compiled it says what this system lacks, with the line that
installs it; `pip install -v` also shows what the build does.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403

ConfigSettings = Mapping[str, "str | list[str]"] | None

# The parts of one CUDA release work only together. cmake/CudaCompiler.cmake finds them. The first
# release is what packages are built with; WARPCIPHER_NVCC_RELEASE chooses another.
NVCC_RELEASES = {
    "13.0": [
        "nvidia-cuda-nvcc==13.0.88",
        "nvidia-nvvm==13.0.88",
        "nvidia-cuda-crt==13.0.88",
        "nvidia-cuda-runtime==13.0.96",
        "nvidia-cuda-cccl==13.0.85",
    ],
    "13.5": [
        "nvidia-cuda-nvcc==13.5.37",
        "nvidia-nvvm==13.5.37",
        "nvidia-cuda-crt==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-cccl==13.3.5.0.6",
    ],
}


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


def nvcc_packages() -> list[str]:
    """The compiler's packages, of the release that WARPCIPHER_NVCC_RELEASE names."""
    release = os.environ.get("WARPCIPHER_NVCC_RELEASE") or next(iter(NVCC_RELEASES))
    if release not in NVCC_RELEASES:
        known = " or ".join(NVCC_RELEASES)
        raise SystemExit(f"WARPCIPHER_NVCC_RELEASE is {release!r}; it can be {known}")
    return NVCC_RELEASES[release]


def nvcc_requirements(config_settings: ConfigSettings = None) -> list[str]:
    """The packages to install before a build with these settings: nvcc_packages(), or none."""
    if _cuda_setting(config_settings) == "OFF" or _toolkit_installed():
        return []
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return []
    return list(nvcc_packages())


def get_requires_for_build_wheel(config_settings: ConfigSettings = None) -> list[str]:
    _require_tools()
    return _build.get_requires_for_build_wheel(config_settings) + nvcc_requirements(config_settings)


def get_requires_for_build_editable(config_settings: ConfigSettings = None) -> list[str]:
    _require_tools()
    requires = _build.get_requires_for_build_editable(config_settings)
    return requires + nvcc_requirements(config_settings)


def missing_tools() -> str:
    """The missing requirements of a build, with the lines that install them; empty: none."""
    compilers = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    lacks = []
    if not any(shutil.which(name.split()[0]) for name in compilers if name):
        lacks.append(("a C++ compiler", "g++", "gcc-c++"))
    if not headers.is_file():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        lacks.append(
            (f"the headers of Python {version} ({headers})", "python3-dev", "python3-devel")
        )
    if not lacks:
        return ""
    names = " and ".join(lack[0] for lack in lacks)
    debian = " ".join(lack[1] for lack in lacks)
    fedora = " ".join(lack[2] for lack in lacks)
    return (
        f"warpcipher cannot be built: this system lacks {names}. Install with\n"
        f"  sudo apt-get install {debian}    (Debian, Ubuntu)\n"
        f"  sudo dnf install {fedora}    (Fedora, RHEL)\n"
        "and run pip again. A Python that is not the system's brings its own headers; "
        "docs/building.md has more."
    )


def _require_tools() -> None:
    if missing := missing_tools():
        raise SystemExit(missing)


def _begin(config_settings: ConfigSettings) -> None:
    _require_tools()
    cuda = "without" if _cuda_setting(config_settings) == "OFF" else "with"
    cores = len(os.sched_getaffinity(0))
    print(f"warpcipher: building {cuda} the CUDA engine on {cores} cores: minutes", flush=True)


def build_wheel(
    wheel_directory: str,
    config_settings: ConfigSettings = None,
    metadata_directory: str | None = None,
) -> str:
    _begin(config_settings)
    return _build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str,
    config_settings: ConfigSettings = None,
    metadata_directory: str | None = None,
) -> str:
    _begin(config_settings)
    return _build.build_editable(wheel_directory, config_settings, metadata_directory)
