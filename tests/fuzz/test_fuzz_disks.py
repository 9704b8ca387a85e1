# SPDX-License-Identifier: Apache-2.0
"""Commands that write files where the system refuses: any call may fail, write less than it was
given, or meet the end of the disk. Each failure gets a line, and nothing is half written."""

from __future__ import annotations

import errno
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_support import COMMAND
from fuzz_scenes import Scene, make_scene, places

# EPERM and EOPNOTSUPP are what file systems without hard links give; 0 is less, not an error.
ERRORS = (0, errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EOPNOTSUPP)
ERRORS += (errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ESTALE)
PAGE = 4096


@pytest.fixture(scope="session")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("counted")


def check_told(done: subprocess.CompletedProcess[bytes]) -> None:
    lines = done.stderr.splitlines()
    assert all(line.startswith(b"warpcipher: ") for line in lines), done.stderr.decode()
    assert (done.returncode == 0) == (not lines), done.stderr.decode()
    assert done.returncode in (0, 4), done.stderr.decode()


@pytest.mark.cases(25)
def test_error_of_any_call(choose: random.Random, tmp_path: Path, counted: Path) -> None:
    kind, scene = make_scene(choose, tmp_path)
    number = choose.choice(ERRORS)
    at = choose.randint(1, places(kind, counted)[1])
    done = scene.run({"errno": number, "at": at})
    kept, told = done.stderr, b"faulty_command: unlink failed\n"
    done.stderr = kept.removesuffix(told)
    check_told(done)
    assert number or done.returncode == 0, "less was written than asked for, and not gone on"
    scene.check(finished=done.returncode == 0, leftover=kept.endswith(told))


def run_scene(scene: Scene, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*prefix, *COMMAND, *scene.arguments],
        cwd=scene.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )


@pytest.mark.cases(8)
def test_files_have_a_largest_size(choose: random.Random, tmp_path: Path) -> None:
    _, scene = make_scene(choose, tmp_path)
    limit = choose.choice((0, 1, choose.randrange(500), choose.randrange(250_000)))
    done = run_scene(scene, ("prlimit", f"--fsize={limit}"))
    check_told(done)
    scene.check(finished=done.returncode == 0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    options = "size=3m,nr_inodes=64"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user cannot mount a small file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.cases(8)
def test_disk_is_full(choose: random.Random, small_disk: Path) -> None:
    _, scene = make_scene(choose, small_disk)
    free = os.statvfs(small_disk)
    for number in range(free.f_ffree - choose.randrange(2, 12)):  # with `filler` one more
        scene.add(f"{number}", b"")
    pages = os.statvfs(small_disk).f_bfree - choose.choice((0, 1, 2, choose.randrange(150)))
    with (small_disk / "filler").open("wb") as file:
        if pages > 0:
            os.posix_fallocate(file.fileno(), 0, pages * PAGE)
    scene.note()
    done = run_scene(scene)
    check_told(done)
    scene.check(finished=done.returncode == 0)
