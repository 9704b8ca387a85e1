# SPDX-License-Identifier: Apache-2.0
"""The command against an S3 of this machine (moto), killed in the middle."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_support import ended, run, start

boto3 = pytest.importorskip("boto3")
server = pytest.importorskip("moto.server")
pytest.importorskip("s3fs")

# Of botocore and werkzeug, which are not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

COUNT = 120


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    made = boto3.resource("s3").Bucket("jobs")
    made.create()
    made.objects.all().delete()  # moto keeps them from server to server
    yield made
    running.stop()


def contents(bucket: Any, prefix: str) -> dict[str, bytes]:
    return {
        found.key.removeprefix(prefix): found.get()["Body"].read()
        for found in bucket.objects.filter(Prefix=prefix)
        if "/.warpcipher-" not in found.key
    }


def test_a_command_that_is_killed_goes_on(bucket: Any, tmp_path: Path) -> None:
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(secrets.token_bytes(32))
    for number in range(COUNT):
        bucket.put_object(Key=f"raw/{number % 7}/{number}", Body=secrets.token_bytes(20_000))
    plain = contents(bucket, "raw/")
    given = ("--key", "key", "s3://jobs/raw/", "-o", "s3://jobs/sealed/", "--report", "report")
    for kill in range(3):
        with ended(start("encrypt", *given, "--jobs", "2", cwd=tmp_path)) as process:
            until = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < until:
                done = sum(1 for _ in bucket.objects.filter(Prefix="sealed/"))
                if done > (kill + 1) * COUNT // 5:
                    break
            process.kill()
    run("encrypt", *given, cwd=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    assert {line["input"].removeprefix("s3://jobs/raw/") for line in lines} == plain.keys()
    assert len(lines) == COUNT
    assert {line["state"] for line in lines} <= {"done", "complete"}
    assert not list(bucket.meta.client.list_multipart_uploads(Bucket="jobs").get("Uploads", []))
    run("decrypt", "--key", "key", "s3://jobs/sealed/", "-o", "s3://jobs/back/", cwd=tmp_path)
    assert contents(bucket, "back/") == plain
    run("check", "--key", "key", "s3://jobs/sealed/", cwd=tmp_path)


def test_names_that_are_no_paths(bucket: Any, tmp_path: Path) -> None:
    """They come back, but no tree has them: each fails by itself there."""
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(secrets.token_bytes(32))
    texts = {
        "a": b"",
        "d/../../../up": b"text",
        "dbl//x": secrets.token_bytes(9 << 20),
        "e//": b"a",
        "f/": b"",
    }
    for name, text in texts.items():
        bucket.put_object(Key=f"esc/{name}", Body=text)
    given = ("--key", "key", "s3://jobs/esc/", "-o", "s3://jobs/some/")
    done = run("encrypt", *given, cwd=tmp_path, expect=4)
    assert b"1 object done, 3 failed" in done.stderr
    assert done.stderr.count(b"with empty parts, . or ..") == 3
    given = ("--key", "key", "s3://jobs/esc/", "-o", "s3://jobs/all/", "--no-manifest")
    run("encrypt", *given, cwd=tmp_path)
    given = ("--key", "key", "s3://jobs/all/", "-o", "s3://jobs/back/", "--no-manifest")
    run("decrypt", *given, cwd=tmp_path)
    del texts["f/"]  # what stands for a folder
    assert contents(bucket, "back/") == texts
    given = ("--key", "key", "s3://jobs/all/dbl//x.cobblestone", "-o", "x", "--no-manifest")
    run("decrypt", *given, cwd=tmp_path)
    assert (tmp_path / "x").read_bytes() == texts["dbl//x"]
    given = ("--key", "key", "x", "-o", "s3://jobs/one//x")
    run("encrypt", *given, cwd=tmp_path)
    run("encrypt", *given, cwd=tmp_path, expect=2)
    assert not list(bucket.meta.client.list_multipart_uploads(Bucket="jobs").get("Uploads", []))


def test_streams_and_interrupts(bucket: Any, tmp_path: Path) -> None:
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(secrets.token_bytes(32))
    text = secrets.token_bytes(3 << 20)
    run("encrypt", "--key", "key", "-", "-o", "s3://jobs/one", cwd=tmp_path, stdin=text)
    assert run("decrypt", "--key", "key", "s3://jobs/one", "-o", "-", cwd=tmp_path).stdout == text
    for number in range(COUNT):
        bucket.put_object(Key=f"raw/{number}", Body=secrets.token_bytes(2000))
    arguments = (
        "encrypt",
        "--key",
        "key",
        "s3://jobs/raw",
        "-o",
        "s3://jobs/sealed",
        "--jobs",
        "1",
    )
    with ended(start(*arguments, cwd=tmp_path, stderr=-1, env={**os.environ})) as process:
        until = time.monotonic() + 60
        while not list(bucket.objects.filter(Prefix="sealed/").limit(3)):
            assert time.monotonic() < until
        process.terminate()
        assert process.wait(30) == -15
    found = json.loads(run("encrypt", *arguments[1:], "--json", cwd=tmp_path).stdout)
    assert found["complete"] + found["objects"] == COUNT
    run("check", "--key", "key", "s3://jobs/sealed", cwd=tmp_path)
