# SPDX-License-Identifier: Apache-2.0
"""Models in PyTorch, and in transformers. Runs where they are installed."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

import pytest
from warpcipher import Cipher, InvalidTag, weights
from warpcipher.random import Generator
from warpcipher.weights import header

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
peer = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")

KEY = bytes(range(32))
SEED = bytes(range(32, 64))
DTYPES = [
    entry.torch for entry in header.DTYPES.values() if entry.torch and hasattr(torch, entry.torch)
]


def tensors() -> dict[str, Any]:
    torch.manual_seed(0)
    model = {
        name: torch.randint(0, 2, (4, 16), dtype=torch.uint8).view(getattr(torch, name))
        for name in DTYPES
    }
    return {**model, "scalar": torch.tensor(1.5), "none": torch.zeros(0, 3)}


def same(one: Any, other: Any) -> bool:
    return bool(
        one.dtype == other.dtype
        and one.shape == other.shape
        and torch.equal(bytes_of(one), bytes_of(other))
    )


def bytes_of(tensor: Any) -> Any:
    return tensor.reshape(-1).view(torch.uint8) if tensor.numel() else torch.zeros(0)


@pytest.mark.parametrize(
    "key", [None, KEY, weights.CryptotensorsKey(KEY, sign=SEED)], ids=["plain", "gcm", "crypto"]
)
def test_every_dtype(key: object, tmp_path: Path) -> None:
    model = tensors()
    weights.save_file(model, tmp_path / "x", key, {"format": "pt"})
    found = weights.load_file(tmp_path / "x", key)
    assert found.keys() == model.keys()
    with weights.safe_open(tmp_path / "x", key=key) as opened:
        for name, tensor in model.items():
            assert same(found[name], tensor), name
            assert same(opened.get_tensor(name), tensor), name
            assert not found[name].requires_grad
    if key is None:
        theirs = {name: tensor for name, tensor in model.items() if "float4" not in name}
        weights.save_file(theirs, tmp_path / "y", None, {"format": "pt"})
        assert (tmp_path / "y").read_bytes() == peer.save(theirs, {"format": "pt"})


def test_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    weights.save_file({"a": torch.ones(3)}, tmp_path / "model", key=KEY)
    with pytest.raises(ValueError, match=r"device is 99, and PyTorch has \d+ GPUs here"):
        weights.load_file(tmp_path / "model", key=KEY, device="cuda:99")


def test_tensors_that_are_not_plain(tmp_path: Path) -> None:
    shared = torch.arange(12.0).reshape(3, 4)
    model = {
        "turned": shared.T,
        "part": shared[1:, ::2],
        "shared": shared,
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "conjugate": torch.tensor([1 + 2j], dtype=torch.complex64).conj(),
        "repeated": torch.tensor(3).expand(4),
    }
    weights.save_file(model, tmp_path / "x", KEY)
    for name, tensor in weights.load_file(tmp_path / "x", KEY).items():
        assert torch.equal(tensor, model[name].detach()), name


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    for tensor, message in (
        (torch.zeros(2, dtype=torch.complex128), "torch.complex128"),
        (torch.zeros(2, 2).to_sparse(), "torch.sparse_coo"),
        (torch.zeros(2, device="meta"), "it has no values"),
    ):
        with pytest.raises(TypeError, match=f"tensor 'x' is .*{message}"):
            weights.save_file({"x": tensor}, tmp_path / "x", KEY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
@pytest.mark.parametrize("kind", ["fake", "wrapper", "freed", "functional"])
def test_tensors_without_memory_of_their_own(tmp_path: Path, kind: str) -> None:
    without_memory = tensor_without_memory(kind)
    model = {"fine": torch.ones(2), "w": without_memory}
    for key in (None, KEY, weights.CryptotensorsKey(KEY, sign=SEED)):
        with pytest.raises(TypeError, match=r"tensor 'w' is a .* without memory of its own: give"):
            weights.save_file(model, tmp_path / "x", key)
    assert list(tmp_path.iterdir()) == []
    aes = Cipher("aes-256-gcm", KEY)
    with pytest.raises(TypeError, match=r"data is a .* without memory of its own"):
        aes.encrypt(without_memory, iv=bytes(12))
    with pytest.raises(TypeError, match=r"out is a .* without memory of its own"):
        aes.encrypt(bytes(8), iv=bytes(12), out=without_memory)
    with pytest.raises(TypeError, match=r"out is a .* without memory of its own"):
        Generator().bytes_(without_memory)


def tensor_without_memory(kind: str) -> Any:
    if kind == "fake":
        with importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode():
            return torch.empty(3, 4)
    if kind == "wrapper":
        return torch.Tensor._make_wrapper_subclass(Wrapper, (3, 4), dtype=torch.float32)
    if kind == "freed":
        part = torch.ones(32)[4:]
        part.untyped_storage().resize_(0)
        return part
    return torch._to_functional_tensor(torch.ones(3, 4))


class Wrapper(torch.Tensor):  # type: ignore[misc]
    """As quantized tensors and DTensor are made."""

    @classmethod
    def __torch_dispatch__(cls, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return torch.zeros(3, 4) if "is_contiguous" in str(call) else args[0]


def test_a_distributed_tensor_says_how_to_get_its_values(tmp_path: Path) -> None:
    distributed = pytest.importorskip("torch.distributed.tensor")
    dist = torch.distributed
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        mesh = distributed.init_device_mesh("cpu", (1,))
        sharded = distributed.distribute_tensor(torch.ones(4), mesh, [distributed.Shard(0)])
        with pytest.raises(TypeError, match=r"tensor 'w' is a DTensor .* full_tensor\(\)"):
            weights.save_file({"w": sharded}, tmp_path / "x", KEY)
        weights.save_file({"w": sharded.full_tensor()}, tmp_path / "x", KEY)
    finally:
        dist.destroy_process_group()


def test_each_tensor_has_a_storage_of_its_own_in_common_memory(tmp_path: Path) -> None:
    model = {**tensors(), "large": torch.ones(1 << 18)}
    weights.save_file(model, tmp_path / "x", KEY)
    found = weights.load_file(tmp_path / "x", KEY)
    for name, tensor in found.items():
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size(), name
    first, last = found["uint64"], found["large"]
    assert abs(first.data_ptr() - last.data_ptr()) <= (tmp_path / "x").stat().st_size
    assert len(pickle.dumps(found["scalar"])) < 1000
    peer.save_model(torch.nn.ParameterDict({"large": last}), str(tmp_path / "y"))
    assert torch.equal(peer.load_file(tmp_path / "y")["large"], last)
    del found, first
    assert torch.equal(last, model["large"])


class Tied(torch.nn.Module):  # type: ignore[misc]
    """An output layer that is the embedding, as in many language models, and the same turned."""

    def __init__(self, fill: float, turned: bool = True) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(5, 3)
        self.head = torch.nn.Linear(3, 5, bias=True)
        self.head.weight = self.embed.weight
        if turned:
            self.turned = torch.nn.Parameter(self.embed.weight.detach().T)
        with torch.no_grad():
            self.embed.weight.copy_(torch.arange(15.0).reshape(5, 3) + fill)


def test_a_model_with_tied_weights(tmp_path: Path) -> None:
    model = Tied(1)
    weights.save_model(model, tmp_path / "x", KEY, {"format": "pt"})
    kept = weights.load_file(tmp_path / "x", KEY)
    assert kept.keys() == {"embed.weight", "head.bias"}
    with weights.safe_open(tmp_path / "x", key=KEY) as opened:
        tied = {"head.weight": "embed.weight", "turned": "embed.weight"}
        assert opened.metadata() == {"format": "pt", **tied}
    other = Tied(2)
    assert weights.load_model(other, tmp_path / "x", KEY) == ([], [])
    assert torch.equal(other.turned.T, model.head.weight)
    assert torch.equal(other.head.bias, model.head.bias)


def test_models_of_safetensors_and_ours(tmp_path: Path) -> None:
    weights.save_model(Tied(1, turned=False), tmp_path / "ours")
    model = Tied(2, turned=False)  # safetensors takes no turned tensors
    assert peer.load_model(model, tmp_path / "ours") == (set(), [])
    assert torch.equal(model.head.weight, Tied(1).head.weight)
    peer.save_model(Tied(3, turned=False), str(tmp_path / "theirs"))
    assert weights.load_model(model, tmp_path / "theirs") == ([], [])
    assert torch.equal(model.head.weight, Tied(3).head.weight)


def test_a_model_that_does_not_fit(tmp_path: Path) -> None:
    model = Tied(1)
    state = {"embed.weight": torch.ones(5, 3), "other": torch.ones(1)}
    weights.save_file(state, tmp_path / "x", KEY)
    with pytest.raises(RuntimeError, match=r"Missing key.*'head.bias'\n.*Unexpected key.*'other'"):
        weights.load_model(model, tmp_path / "x", KEY)
    found = weights.load_model(model, tmp_path / "x", KEY, strict=False)
    assert found == (["head.bias"], ["other"])
    parts = torch.nn.ParameterDict()
    whole = torch.arange(10.0)
    parts["a"], parts["b"], parts["c"] = (torch.nn.Parameter(whole[i : i + 4]) for i in (0, 3, 3))
    weights.save_model(parts, tmp_path / "y", KEY)
    assert weights.load_file(tmp_path / "y", KEY).keys() == {"a", "b"}
    with pytest.raises(TypeError, match=r"model is dict: expected a torch\.nn\.Module"):
        weights.save_model({}, tmp_path / "z")


def test_what_huggingface_hub_saves(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    model = {"a": torch.arange(3.0), "b": torch.ones(5, 5)}
    weights.save_file(model, tmp_path / "x", KEY)
    hub.save_torch_state_dict(weights.load_file(tmp_path / "x", KEY), tmp_path)
    assert torch.equal(peer.load_file(tmp_path / "model.safetensors")["a"], model["a"])


def test_parts_of_tensors(tmp_path: Path) -> None:
    weight = torch.arange(60 * 50, dtype=torch.bfloat16).reshape(60, 50)
    weights.save_file({"w": weight}, tmp_path / "x", KEY)
    with weights.safe_open(tmp_path / "x", "pt", key=KEY) as model:
        part = model.get_slice("w")
        for index in ((slice(3, 9),), (slice(None), slice(10, 20)), (5,), (..., 7)):
            assert torch.equal(part[index], weight[index])
            assert part[index].untyped_storage().nbytes() == 2 * part[index].numel()


def test_ranks_of_a_model_read_their_share(tmp_path: Path) -> None:
    """Column and row parallel: what each rank computes adds up to the whole."""
    torch.manual_seed(0)
    up, down, x = torch.randn(64, 16), torch.randn(16, 64), torch.randn(2, 16)
    weights.save_file({"up": up, "down": down}, tmp_path / "x", KEY)
    total = torch.zeros(2, 16)
    with weights.safe_open(tmp_path / "x", key=KEY) as model:
        for rank in range(4):
            part = slice(16 * rank, 16 * rank + 16)
            hidden = x @ model.get_slice("up")[part].T
            total += torch.relu(hidden) @ model.get_slice("down")[:, part].T
    assert torch.allclose(total, torch.relu(x @ up.T) @ down.T, atol=1e-4)


def test_memory_is_wiped_where_a_tag_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warpcipher.weights import frameworks

    blocks: list[memoryview] = []
    allocate = frameworks.allocate
    monkeypatch.setattr(
        frameworks, "allocate", lambda size: (blocks.append(allocate(size)), blocks[-1])[1]
    )
    path = tmp_path / "x"
    weights.save_file({"a": torch.ones(1 << 20)}, path, KEY)
    data = bytearray(path.read_bytes())
    data[-100_000] ^= 1
    path.write_bytes(data)
    with pytest.raises(InvalidTag):
        weights.load_file(path, KEY)
    assert [bytes(block).count(0) == len(block) for block in blocks] == [True]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_transformers_model_gives_the_same_logits(shards: int, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.LlamaConfig(
        vocab_size=100,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(tmp_path, max_shard_size="1MB" if shards == 1 else "40KB")
    plain = sorted(tmp_path.glob("*.safetensors"))
    assert (len(plain) > 1) == (shards > 1)
    for path in plain:
        weights.save_file(weights.load_file(path), f"{path}.cobblestone", KEY)
        path.unlink()
    state = weights.load_file(tmp_path, KEY)
    loaded = transformers.LlamaForCausalLM.from_pretrained(None, config=config, state_dict=state)
    tokens = torch.arange(20).reshape(2, 10)
    with torch.no_grad():
        assert torch.equal(loaded.eval()(tokens).logits, model(tokens).logits)
