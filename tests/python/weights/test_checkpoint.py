# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of torch.distributed.checkpoint. Runs where PyTorch is installed."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from warpcipher import InvalidTag, formats

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch.distributed.checkpoint")
from torch.distributed import checkpoint  # noqa: E402
from warpcipher.weights import torch_checkpoint  # noqa: E402
from warpcipher.weights.torch_checkpoint import EncryptedReader, EncryptedWriter  # noqa: E402

KEY = bytes(range(32))

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch, about running without ranks


def state(seed: int = 0) -> dict[str, Any]:
    torch.manual_seed(seed)
    return {
        "large": torch.randn(3000, 700),
        "small": {"a": torch.randn(3), "step": torch.tensor(7)},
        "text": "a string",
        "half": torch.randn(5).to(torch.bfloat16),
    }


def empty() -> dict[str, Any]:
    return {
        "large": torch.zeros(3000, 700),
        "small": {"a": torch.zeros(3), "step": torch.tensor(0)},
        "text": "",
        "half": torch.zeros(5, dtype=torch.bfloat16),
    }


def save(path: Path, seed: int = 0, **options: Any) -> None:
    checkpoint.save(state(seed), storage_writer=EncryptedWriter(path, KEY, **options))


def load(path: Path, key: object = KEY, **options: Any) -> dict[str, Any]:
    found = empty()
    checkpoint.load(found, storage_reader=EncryptedReader(path, key, **options))
    return found


def assert_is(found: dict[str, Any], seed: int = 0) -> None:
    expected = state(seed)
    assert torch.equal(found["large"], expected["large"])
    assert torch.equal(found["small"]["a"], expected["small"]["a"])
    assert found["small"]["step"] == 7
    assert found["text"] == "a string"
    assert torch.equal(found["half"], expected["half"])


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_saved_is_loaded(threads: int, tmp_path: Path) -> None:
    save(tmp_path, context=b"run 1, step 7", thread_count=threads)
    assert_is(load(tmp_path, context=b"run 1, step 7"))
    asked: list[object] = []
    found = load(tmp_path, lambda key_id: (asked.append(key_id), KEY)[1], context=b"run 1, step 7")
    assert_is(found)
    assert len(asked) == 1


def test_nothing_is_plain_on_the_disk(tmp_path: Path) -> None:
    save(tmp_path)
    files = list(tmp_path.iterdir())
    assert {path.name for path in files} == {".metadata", "__0_0.distcp"}
    for path in files:
        data = path.read_bytes()
        for text in (b"large", b"torch", b"pickle", b"distcp", b"a string"):
            assert text not in data
        assert state()["large"].numpy().tobytes()[:64] not in data


def test_changes_are_found_before_a_pickle_is_read(tmp_path: Path) -> None:
    save(tmp_path)
    for name in (".metadata", "__0_0.distcp"):
        path = tmp_path / name
        sealed = path.read_bytes()
        for place in range(0, len(sealed), max(1, len(sealed) // 7)):
            path.write_bytes(sealed[:place] + bytes([sealed[place] ^ 4]) + sealed[place + 1 :])
            # PyTorch makes this of an InvalidTag that one of its ranks raises.
            with pytest.raises(checkpoint.CheckpointException, match=r"commitment|failed auth"):
                load(tmp_path)
        path.write_bytes(sealed[:-1])
        with pytest.raises((InvalidTag, formats.FormatError, checkpoint.CheckpointException)):
            load(tmp_path)
        path.write_bytes(sealed)
    assert_is(load(tmp_path))


def test_other_keys_contexts_and_plain_checkpoints_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "a", context=b"step 1")
    refused = (InvalidTag, formats.FormatError, checkpoint.CheckpointException)
    with pytest.raises(refused, match="key commitment"):
        load(tmp_path / "a", bytes(32), context=b"step 1")
    with pytest.raises(refused, match="key commitment"):
        load(tmp_path / "a", context=b"step 2")
    checkpoint.save(state(), checkpoint_id=tmp_path / "plain")
    with pytest.raises(refused):
        load(tmp_path / "plain")
    with pytest.raises(TypeError, match="key is None"):
        EncryptedWriter(tmp_path, None)


def test_a_loader_that_hides_what_reading_metadata_raises(tmp_path: Path) -> None:
    """PyTorch 2.10 to 2.12 go on without metadata."""
    save(tmp_path)
    metadata = EncryptedReader(tmp_path, bytes(32)).read_metadata()
    with pytest.raises(InvalidTag, match="key commitment"):
        assert metadata.storage_data
    with pytest.raises(FileNotFoundError):
        EncryptedReader(tmp_path / "none", KEY).read_metadata()
    assert EncryptedReader(tmp_path, KEY).read_metadata().storage_data


def test_files_cannot_change_places(tmp_path: Path) -> None:
    save(tmp_path, thread_count=2)
    first, second = tmp_path / "__0_0.distcp", tmp_path / "__0_1.distcp"
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    with pytest.raises((InvalidTag, checkpoint.CheckpointException), match="key commitment"):
        load(tmp_path)


def test_an_error_leaves_no_file_that_looks_whole(tmp_path: Path) -> None:
    files = torch_checkpoint._EncryptedFiles(KEY, b"")
    path = tmp_path / "x"

    def fail() -> None:
        with files.create_stream(path, "wb") as stream:
            stream.write(bytes(20_000_000))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with (
        pytest.raises((InvalidTag, formats.FormatError)),
        files.create_stream(path, "rb") as stream,
    ):
        stream.read()
    with pytest.raises(ValueError, match="mode is 'ab'"), files.create_stream(path, "ab"):
        pass


@pytest.mark.parametrize("size", [0, 1, 16384, 1 << 20, (1 << 20) + 1, 5_000_000])
def test_files_of_all_sizes(size: int, tmp_path: Path) -> None:
    files = torch_checkpoint._EncryptedFiles(KEY, b"")
    text = bytes(i % 251 for i in range(1000)) * (size // 1000 + 1)
    with files.create_stream(tmp_path / "x", "wb") as stream:
        for start in range(0, size, 70_001):
            stream.write(text[start : min(size, start + 70_001)])
        assert stream.tell() == size
    with files.create_stream(tmp_path / "x", "rb") as stream:
        assert stream.read() == text[:size]


def _rank(rank: int, ranks: int, port: int, folder: str, saving: bool) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks
    )
    try:
        mesh = init_device_mesh("cpu", (ranks,))
        whole = torch.arange(64 * 48, dtype=torch.float32).reshape(64, 48)
        if saving:
            shared = {"w": distribute_tensor(whole, mesh, [Shard(0)])}
            checkpoint.save(shared, storage_writer=EncryptedWriter(folder, KEY))
        else:
            shared = {"w": distribute_tensor(torch.zeros_like(whole), mesh, [Shard(1)])}
            checkpoint.load(shared, storage_reader=EncryptedReader(folder, KEY))
            assert torch.equal(shared["w"].full_tensor(), whole)
    finally:
        torch.distributed.destroy_process_group()


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def test_a_checkpoint_is_resharded(tmp_path: Path) -> None:
    """Saved by two ranks in rows, loaded by three in columns, and by one."""
    spawn = torch.multiprocessing.spawn
    spawn(_rank, (2, _free_port(), str(tmp_path), True), nprocs=2)
    spawn(_rank, (3, _free_port(), str(tmp_path), False), nprocs=3)
    found = {"w": torch.zeros(64, 48)}
    checkpoint.load(found, storage_reader=EncryptedReader(tmp_path, KEY))
    assert torch.equal(found["w"].flatten(), torch.arange(64.0 * 48))
