# SPDX-License-Identifier: Apache-2.0
"""The loader for vLLM: with a stand-in for vLLM's registry, and with vLLM where it is installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from warpcipher import InvalidTag, keys, weights
from warpcipher.weights import ed25519, vllm_loader
from warpcipher.weights.images import FormatImage

KEY = bytes(range(32))


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({}, ValueError, "0 keys are named"),
        ({"key_file": "a", "key_env": "b"}, ValueError, "2 keys are named"),
        ({"key": "secret"}, ValueError, "'key' is unknown"),
        ({"key_file": 5}, TypeError, "key_file is not a str"),
        ({"key_command": "cat x"}, TypeError, "key_command is not a list"),
        ({"key_file": "a", "context": 5}, TypeError, "is no"),
        ({"key_file": "a", "keys": "pem"}, ValueError, 'keys is "jwk" or "raw"'),
    ],
)
def test_bad_configurations(config: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        vllm_loader.key_of(config)
    assert "secret" not in str(caught.value)


def test_keys_from_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k").write_bytes(KEY)
    monkeypatch.setenv("MODEL_KEY", KEY.hex())
    for config in (
        {"key_file": str(tmp_path / "k")},
        {"key_env": "MODEL_KEY"},
        {"key_command": ["cat", str(tmp_path / "k")]},
    ):
        key, context = vllm_loader.key_of({**config, "context": "c"})
        assert keys.resolve(key, sizes=(32,)) == KEY
        assert context == b"c"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The registrations that a stand-in for vLLM's module got."""
    known: dict[str, Any] = {}

    class BaseModelLoader:
        def __init__(self, load_config: Any) -> None:
            self.load_config = load_config

    module = ModuleType("vllm.model_executor.model_loader")
    module.BaseModelLoader = BaseModelLoader  # type: ignore[attr-defined]
    module.register_model_loader = (  # type: ignore[attr-defined]
        lambda name: lambda loader: known.update({name: loader})
    )
    for name in ("vllm", "vllm.model_executor"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    vllm_loader.register()
    return known


def loader_of(registry: dict[str, Any], **config: Any) -> Any:
    return registry["warpcipher"](SimpleNamespace(model_loader_extra_config=config))


@pytest.mark.parametrize("crypto", [False, True])
def test_the_loader_fills_a_model(crypto: bool, tmp_path: Path, registry: dict[str, Any]) -> None:
    import base64

    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    class Layer(torch.nn.Linear):  # type: ignore[misc, name-defined]
        def load_weights(self, found: Any) -> set[str]:
            parameters = dict(self.named_parameters())
            loaded = set()
            for name, tensor in found:
                parameters[name].data.copy_(tensor)
                loaded.add(name)
            return loaded

    source, target = Layer(4, 3), Layer(4, 3)
    key: object = KEY
    config = {"key_file": str(tmp_path / "k")}
    (tmp_path / "k").write_bytes(KEY)
    if crypto:
        key = weights.CryptotensorsKey(KEY, sign=KEY)
        encoded = [base64.b64encode(part).decode() for part in (KEY, ed25519.public_key_of(KEY))]
        pair = [{"kty": "oct", "k": encoded[0]}, {"kty": "okp", "x": encoded[1]}]
        (tmp_path / "k").write_text(json.dumps({"keys": pair}))
        config["keys"] = "jwk"
    weights.save_file(source.state_dict(), tmp_path / "model.safetensors", key)
    model_config = SimpleNamespace(model=str(tmp_path), quantization=None)
    loader = loader_of(registry, **config)
    loader.download_model(model_config)
    loader.load_weights(target, model_config)
    for name, tensor in source.state_dict().items():
        assert torch.equal(target.state_dict()[name], tensor)
    weights.save_file({"weight": source.weight}, tmp_path / "model.safetensors", key)
    with pytest.raises(ValueError, match="no weights for 'bias'"):
        loader.load_weights(target, model_config)
    data = bytearray((tmp_path / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(InvalidTag):
        loader.load_weights(target, model_config)


def test_ranks_read_the_share_that_they_keep(
    tmp_path: Path, registry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer that is cut by rows and one that is cut by columns, loaded as vLLM's layers are."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    whole = {"up": torch.randn(64, 1 << 14), "down": torch.randn(8, 1 << 17)}
    weights.save_file(whole, tmp_path / "model.safetensors", KEY)
    monkeypatch.setenv("MODEL_KEY", KEY.hex())
    asked: list[int] = []
    read = FormatImage.read

    def count(self: FormatImage, offset: int, out: Any) -> None:
        asked.append(len(out))
        read(self, offset, out)

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        cuts = {"up": 0, "down": 1}  # noqa: RUF012

        def __init__(self, rank: int) -> None:
            super().__init__()
            self.rank = rank
            self.up = torch.nn.Parameter(torch.zeros(16, 1 << 14))
            self.down = torch.nn.Parameter(torch.zeros(8, 1 << 15))

        def load_weights(self, found: Any) -> set[str]:
            monkeypatch.setattr(FormatImage, "read", count)
            for name, tensor in found:
                target = getattr(self, name).data
                cut, size = self.cuts[name], target.shape[self.cuts[name]]
                target.copy_(tensor.narrow(cut, self.rank * size, size))
            return {"up", "down"}

    for rank in range(4):
        model = Model(rank)
        asked.clear()
        loader_of(registry, key_env="MODEL_KEY").load_weights(
            model, SimpleNamespace(model=str(tmp_path), quantization=None)
        )
        monkeypatch.setattr(FormatImage, "read", read)
        assert torch.equal(model.up, whole["up"].chunk(4, 0)[rank])
        assert torch.equal(model.down, whole["down"].chunk(4, 1)[rank])
        assert sum(asked) == 2 * (1 << 20)


def test_models_of_a_hub_are_refused(registry: dict[str, Any]) -> None:
    loader = loader_of(registry, key_env="MODEL_KEY")
    with pytest.raises(ValueError, match="takes a directory, and 'org/model' is none"):
        loader.download_model(SimpleNamespace(model="org/model"))


def test_the_entry_point_names_the_function() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert '[project.entry-points."vllm.general_plugins"]' in text
    line = next(line for line in text.splitlines() if "vllm_loader" in line)
    name, value = (part.strip().strip('"') for part in line.split("="))
    point = importlib.metadata.EntryPoint(name, value, "vllm.general_plugins")
    assert point.load() is vllm_loader.register


def has_plugin() -> bool:
    """Whether vLLM and this package are installed side by side, so that vLLM finds the plug-in."""
    points = importlib.metadata.entry_points(group="vllm.general_plugins")
    return importlib.util.find_spec("vllm") is not None and "warpcipher" in points.names


needs_vllm = pytest.mark.skipif(
    not has_plugin(), reason="vLLM and warpcipher are not installed in one environment"
)

REGISTRY = """
from vllm.config.load import LoadConfig
from vllm.model_executor.model_loader import get_model_loader
from vllm.plugins import load_general_plugins

load_general_plugins()
config = LoadConfig(load_format="warpcipher", model_loader_extra_config={"key_env": "MODEL_KEY"})
print(type(get_model_loader(config)).__name__)
"""


@needs_vllm
def test_the_loader_is_in_the_registry_of_vllm() -> None:
    done = subprocess.run([sys.executable, "-c", REGISTRY], capture_output=True, text=True)
    assert "WarpcipherModelLoader" in done.stdout, done.stderr


def answers(model: Path, ranks: int, *arguments: str) -> Any:
    """The tokens that vLLM answers with, and their logits. Of several ranks on a CPU each gets a
    core."""
    cores = sorted(os.sched_getaffinity(0))
    bound = {"VLLM_CPU_OMP_THREADS_BIND": "|".join(map(str, cores[:ranks]))} if ranks > 1 else {}
    parallel = ["--tensor-parallel-size", str(ranks)]
    options = ["--skip-tokenizer-init", "--enforce-eager", "--max-model-len", "64"]
    program = [sys.executable, str(Path(__file__).parents[1] / "support" / "vllm_program.py")]
    done = subprocess.run(
        [*program, "--model", str(model), *options, *parallel, *arguments],
        capture_output=True,
        text=True,
        env=os.environ
        | {"MODEL_KEY": KEY.hex(), "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
        | bound,
    )
    line = next((x for x in done.stdout.splitlines() if x.startswith("FOUND ")), None)
    assert line is not None, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(line.removeprefix("FOUND "))


@needs_vllm
@pytest.mark.parametrize("ranks", [1, 2])
def test_vllm_answers_from_encrypted_weights_as_from_plain_ones(tmp_path: Path, ranks: int) -> None:
    """A small Llama with random weights, in each of the formats."""
    torch = pytest.importorskip("torch")
    transformers = importlib.import_module("transformers")
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=128,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        tie_word_embeddings=False,
    )
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(plain)
    shutil.copytree(plain, sealed)
    (sealed / "model.safetensors").unlink()
    weights.save_file(weights.load_file(plain), sealed / "model.safetensors.cobblestone", KEY)
    expected = answers(plain, ranks)
    assert len(expected["tokens"]) == 8
    extra = ["--model-loader-extra-config", '{"key_env": "MODEL_KEY"}']
    assert answers(sealed, ranks, "--load-format", "warpcipher", *extra) == expected
