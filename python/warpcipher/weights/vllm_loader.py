# SPDX-License-Identifier: Apache-2.0
"""The model loader for vLLM: `vllm serve DIRECTORY --load-format warpcipher`.

vLLM finds `register` by the entry point `vllm.general_plugins`. The directory holds the encrypted
files and the plain `config.json` and tokenizer that vLLM reads itself. Where the key is:

    --model-loader-extra-config '{"key_file": "/run/secrets/model.key"}'
    --model-loader-extra-config '{"key_command": ["aws", "kms", "decrypt", ...]}'
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from .. import keys
from .cryptotensors_key import CryptotensorsKey
from .deferred import DeferredTensors
from .opening import safe_open

LOAD_FORMAT = "warpcipher"

_SOURCES: dict[str, tuple[Callable[[Any], object], type]] = {
    "key_file": (keys.from_file, str),
    "key_env": (keys.from_env, str),
    "key_command": (keys.from_command, list),
}


def key_of(config: Mapping[str, Any]) -> tuple[object, bytes]:
    """The key and the context that the extra configuration names.

    config: one of `key_file`, `key_env` and `key_command` (a list); "keys": "jwk" where it holds
    the JSON Web Keys of cryptotensors files; "context": a text. Raises ValueError and TypeError.
    """
    unknown = sorted(set(config) - {*_SOURCES, "keys", "context"})
    named = [name for name in _SOURCES if name in config]
    if unknown or len(named) != 1:
        what = f"{unknown[0]!r} is unknown" if unknown else f"{len(named)} keys are named"
        raise ValueError(
            f"model_loader_extra_config: {what}: expected one of {', '.join(_SOURCES)}, and "
            '"context" or "keys": "jwk" where they are needed'
        )
    make, kind = _SOURCES[named[0]]
    value, context = config[named[0]], config.get("context", "")
    if not isinstance(value, kind) or not isinstance(context, str):
        raise TypeError(f"model_loader_extra_config: {named[0]} is no {kind.__name__}")
    source = make(value)
    if config.get("keys", "raw") == "raw":
        return source, context.encode()
    if config["keys"] != "jwk":
        raise ValueError('model_loader_extra_config: keys is "jwk" or "raw"')
    return CryptotensorsKey.from_jwk(source), context.encode()


def register() -> None:
    """Makes the loader known to vLLM. Called by vLLM in each of its processes, more than once."""
    loaders: Any = import_module("vllm.model_executor.model_loader")

    class WarpcipherModelLoader(loaders.BaseModelLoader):  # type: ignore[misc]
        """Loads encrypted models. Each rank reads the share that it keeps of a tensor."""

        def __init__(self, load_config: Any) -> None:
            super().__init__(load_config)
            extra = load_config.model_loader_extra_config or {}
            self._key, self._context = key_of(extra)

        def download_model(self, model_config: Any) -> None:
            """Checks that the model is a directory: encrypted models are not fetched from a hub."""
            if not os.path.isdir(model_config.model):  # noqa: PTH112
                raise ValueError(
                    f"load format {LOAD_FORMAT} takes a directory, and {model_config.model!r} is "
                    "none"
                )

        def load_weights(self, model: Any, model_config: Any) -> None:
            """Loads the tensors to where the model is. ValueError: some of the model's parameters
            are in none of the files."""
            self.download_model(model_config)
            parameters = dict(model.named_parameters())
            devices = {str(parameter.device) for parameter in parameters.values()}
            device = devices.pop() if len(devices) == 1 else "cpu"
            with safe_open(
                model_config.model, "pt", device, key=self._key, context=self._context
            ) as opened:
                tensors = DeferredTensors(opened, device)
                loaded = model.load_weights(iter(tensors))
                tensors.read_rest()
            if loaded is not None and model_config.quantization is None:
                missing = sorted(parameters.keys() - set(loaded))
                if missing:
                    raise ValueError(f"the files have no weights for {missing[0]!r}")

    loaders.register_model_loader(LOAD_FORMAT)(WarpcipherModelLoader)
