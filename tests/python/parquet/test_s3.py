# SPDX-License-Identifier: Apache-2.0
"""Tables in an S3 that runs in this process: moto's server, and s3fs as the file system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import warpcipher as wc
from parquet_cases import KEY, KEYS, read_plain, table, write
from warpcipher import parquet

server = pytest.importorskip("moto.server")
s3fs = pytest.importorskip("s3fs")

# Of botocore and werkzeug, which are not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The server's address; what clients need is in the environment."""
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    given = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    yield given["AWS_ENDPOINT_URL"]
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    running.stop()


@pytest.fixture
def bucket(endpoint: str) -> Iterator[tuple[Any, str]]:
    """A file system, and the URL of a bucket with a table of three files."""
    s3fs.S3FileSystem.clear_instance_cache()  # with what it remembers of the bucket before
    system = s3fs.S3FileSystem(skip_instance_cache=True)
    system.mkdir("tables")
    for number in range(3):
        part = table(300).slice(100 * number, 100)
        system.pipe(f"tables/people/part={number}/{number}.parquet", write(part))
    system.pipe("tables/people/_SUCCESS", b"")
    yield system, "s3://tables"
    system.rm("tables", recursive=True)


def test_a_table_is_read(bucket: tuple[Any, str]) -> None:
    _, url = bucket
    one = f"{url}/people/part=1/1.parquet"
    assert parquet.read_table(one, KEY).equals(table(300).slice(100, 100))
    assert parquet.read_table(one, KEY, ["a"]).column_names == ["a"]
    with parquet.open(one, KEY) as file:
        assert file.num_rows == 100


def test_a_folder_is_one_table(bucket: tuple[Any, str]) -> None:
    _, url = bucket
    assert parquet.find_files(f"{url}/people") == [
        f"{url}/people/part={number}/{number}.parquet" for number in range(3)
    ]
    with pytest.warns(UserWarning, match="the column part is only in the names of folders"):
        assert parquet.read_dataset(f"{url}/people", KEY).equals(table(300))


def test_what_is_written_is_there_whole_or_not_at_all(bucket: tuple[Any, str]) -> None:
    system, url = bucket
    source = f"{url}/people/part=0/0.parquet"
    parquet.to_plain(source, KEY, f"{url}/plain.parquet")
    assert read_plain(system.cat("tables/plain.parquet")).equals(table(300).slice(0, 100))
    parquet.rekey(source, f"{url}/new.parquet", KEY, parquet.EncryptionConfig(KEYS[32]))
    assert parquet.read_table(f"{url}/new.parquet", KEYS[32]).num_rows == 100
    damaged = bytearray(system.cat("tables/people/part=0/0.parquet"))
    damaged[len(damaged) // 2] ^= 1
    system.pipe("tables/damaged.parquet", bytes(damaged))
    for name in ("plain", "none"):
        before = system.exists(f"tables/{name}.parquet")
        with pytest.raises(wc.InvalidTag):
            parquet.to_plain(f"{url}/damaged.parquet", KEY, f"{url}/{name}.parquet")
        system.invalidate_cache()
        assert system.exists(f"tables/{name}.parquet") == before
    assert read_plain(system.cat("tables/plain.parquet")).num_rows == 100


def test_what_is_not_there(bucket: tuple[Any, str]) -> None:
    _, url = bucket
    with pytest.raises(FileNotFoundError):
        parquet.read_table(f"{url}/none.parquet", KEY)
    with pytest.raises(FileNotFoundError):
        parquet.read_dataset(f"{url}/nothing/", KEY)
