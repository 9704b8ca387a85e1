# SPDX-License-Identifier: Apache-2.0
"""Errors of a build that cannot begin, and the compiler that it asks for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def begin(
    tmp_path: Path, include: Path, hook: str, compiler: bool
) -> subprocess.CompletedProcess[str]:
    """A build in a process whose PATH holds a compiler or nothing."""
    pytest.importorskip("scikit_build_core")
    (tmp_path / "bin").mkdir()
    if compiler:
        (tmp_path / "bin" / "g++").write_text("#!/bin/sh\n")
        (tmp_path / "bin" / "g++").chmod(0o755)
    script = (
        "import sys, sysconfig, warpcipher_build as build\n"
        f"include = {str(include)!r}\n"
        "sysconfig.get_path = lambda name: include\n"
        "build._build.build_wheel = lambda *given: print('built')\n"
        f"build.{hook}\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": str(tmp_path / "bin"), "PYTHONPATH": str(ROOT / "build_backend")},
        capture_output=True,
        text=True,
        check=False,
    )


HOOKS = ["build_wheel('.')", "get_requires_for_build_wheel()", "get_requires_for_build_editable()"]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_build_without_a_compiler_says_what_to_install(tmp_path: Path, hook: str) -> None:
    done = begin(tmp_path, tmp_path, hook, compiler=False)
    assert done.returncode == 1
    assert "a C++ compiler and the headers of Python" in done.stderr
    assert "sudo apt-get install g++ python3-dev " in done.stderr
    assert "sudo dnf install gcc-c++ python3-devel " in done.stderr
    assert "Traceback" not in done.stderr
    assert "built" not in done.stdout


def test_a_build_without_headers_names_them(tmp_path: Path) -> None:
    done = begin(tmp_path, tmp_path / "none", HOOKS[0], compiler=True)
    assert done.returncode == 1
    assert str(tmp_path / "none" / "Python.h") in done.stderr
    assert "compiler" not in done.stderr
    assert "sudo apt-get install python3-dev " in done.stderr


def test_a_build_says_what_it_does(tmp_path: Path) -> None:
    (tmp_path / "Python.h").touch()
    done = begin(tmp_path, tmp_path, HOOKS[0], compiler=True)
    assert done.returncode == 0, done.stderr
    assert re.match(
        r"warpcipher: building with the CUDA engine on \d+ cores.*\nbuilt\n", done.stdout
    )


def required(**environment: str) -> subprocess.CompletedProcess[str]:
    """The compiler's packages that a build asks for where no toolkit is."""
    pytest.importorskip("scikit_build_core")
    script = (
        "import warpcipher_build as build\n"
        "build._toolkit_installed = lambda: False\n"
        "print(*build.nvcc_requirements())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT / "build_backend"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_release_of_the_compiler_can_be_chosen() -> None:
    default = required()
    assert default.returncode == 0, default.stderr
    assert default.stdout == required(WARPCIPHER_NVCC_RELEASE="13.0").stdout
    assert required(WARPCIPHER_NVCC_RELEASE="").stdout == default.stdout
    other = required(WARPCIPHER_NVCC_RELEASE="13.5").stdout.split()
    assert "nvidia-cuda-nvcc==13.5.37" in other
    names = [package.partition("==")[0] for package in default.stdout.split()]
    assert [package.partition("==")[0] for package in other] == names
    wrong = required(WARPCIPHER_NVCC_RELEASE="9.1")
    assert wrong.returncode == 1
    assert wrong.stderr == "WARPCIPHER_NVCC_RELEASE is '9.1'; it can be 13.0 or 13.5\n"
    off = required(WARPCIPHER_NVCC_RELEASE="9.1", CMAKE_ARGS="-DWARPCIPHER_CUDA=OFF")
    assert off.stdout == "\n"
