# SPDX-License-Identifier: Apache-2.0
"""The tools that make releases: the check of the C ABI, the notes of a tag, and a wheel's bill of
materials."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COUNT = "WC_API size_t wc_algorithm_count(void);"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that the tools of a release read, to be changed."""
    for folder in ("tools", "cmake", "include", "tests/abi"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for name in ("CMakeLists.txt", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def run(copy: Path, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(copy / "tools" / tool), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


needs_abidiff = pytest.mark.skipif(not shutil.which("abidiff"), reason="no abidiff")


@needs_abidiff
@pytest.mark.parametrize(
    ("change", "good"),
    [
        (COUNT, True),
        (f"{COUNT}\nWC_API int wc_added(int a);", True),
        ("WC_API size_t wc_algorithm_count(int a);", False),
        ("WC_API size_t wc_algorithm_count_renamed(void);", False),
    ],
)
def test_the_c_abi_breaks_with_a_new_version_alone(copy: Path, change: str, good: bool) -> None:
    header = copy / "include/warpcipher/core.h"
    header.write_text(re.sub(r"\bwc_algorithm_count\(\)", "", header.read_text()))  # comments
    assert run(copy, "check_abi.sh", "--record").returncode == 0
    replace(header, COUNT, change)
    done = run(copy, "check_abi.sh")
    assert done.returncode == (0 if good else 1), done.stdout + done.stderr
    assert good or "a new minor one" in done.stderr
    replace(copy / "CMakeLists.txt", "warpcipher VERSION 0.", "warpcipher VERSION 1.")
    assert run(copy, "check_abi.sh").returncode == 0


def test_a_tag_must_be_the_version_and_have_notes(copy: Path) -> None:
    version = run(copy, "version.sh").stdout.strip()
    assert "it must be v" in run(copy, "release_notes.sh", "v99.0.0").stderr
    changelog = copy / "CHANGELOG.md"
    changelog.write_text(
        "# Changelog\n\n## [Unreleased]\n\nlater\n\n## [0.0.1] - 2020-01-01\n\nold\n"
    )
    done = run(copy, "release_notes.sh", f"v{version}")
    assert done.returncode == 1
    assert f"no section '## [{version}] - DATE'" in done.stderr
    replace(changelog, "## [0.0.1]", f"## [{version}] - 2026-01-01\n\n- new\n\n## [0.0.1]")
    done = run(copy, "release_notes.sh", f"v{version}")
    assert (done.returncode, done.stdout.strip()) == (0, "- new"), done.stderr


def test_a_version_that_is_not_published_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "tools/test_published.sh", "99.0.0"],
        env={
            **os.environ,
            "PIP_NO_INDEX": "1",
            "PYTHON": sys.executable,
            "TRIES": "1",
            "VENV": str(tmp_path / "venv"),
            "WAIT": "0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("No matching distribution") == 1
    assert "pip finds no wheel of warpcipher 99.0.0 for this system" in done.stderr


def test_a_wheel_gets_its_bill_of_materials(tmp_path: Path) -> None:
    """pip takes the wheel, whose RECORD then has the bill; a second one is refused."""
    wheel = tmp_path / "warpcipher-1.2.3-py3-none-any.whl"
    folder = "warpcipher-1.2.3.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            f"{folder}/METADATA", "Metadata-Version: 2.1\nName: warpcipher\nVersion: 1.2.3\n"
        )
        archive.writestr(
            f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(
            f"{folder}/RECORD", f"{folder}/METADATA,,\n{folder}/WHEEL,,\n{folder}/RECORD,,\n"
        )
    command = [sys.executable, str(ROOT / "tools/add_sbom.py"), str(wheel), "nanobind==2.9.0"]
    assert subprocess.run(command, check=False).returncode == 0
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (again.returncode, "already" in again.stderr) == (1, True)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        text = archive.read(f"{folder}/sboms/warpcipher.cdx.json")
        record = archive.read(f"{folder}/RECORD").decode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    assert f"{folder}/sboms/warpcipher.cdx.json,sha256={digest},{len(text)}\n" in record
    document = json.loads(text)
    assert document["metadata"]["component"]["purl"] == "pkg:pypi/warpcipher@1.2.3"
    assert [part["purl"] for part in document["components"]] == ["pkg:pypi/nanobind@2.9.0"]
    target = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*install, "--target", str(target), str(wheel)], check=True)
    assert (target / folder / "sboms/warpcipher.cdx.json").read_bytes() == text
