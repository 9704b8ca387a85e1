# SPDX-License-Identifier: Apache-2.0
"""The model loader for vLLM: `vllm serve DIRECTORY --load-format warpcipher`.

vLLM finds `register` by the entry point `vllm.general_plugins`. The directory holds the encrypted
files and the plain `config.json` and tokenizer that vLLM reads itself. Where the key is:

    --model-loader-extra-config '{"key_file": "/run/secrets/model.key"}'
    --model-loader-extra-config '{"key_command": ["aws", "kms", "decrypt", ...]}'

Loaders of tensor parallel models take the whole of each tensor, keep the share of their rank by
`narrow`, and copy that share. So they get deferred tensors: each is read from its file when it is
first used, and then only the part that was cut out of it.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from .. import keys
from .cryptotensors_key import CryptotensorsKey
from .header import DTYPES
from .model import Model, TensorSlice, safe_open

Index = tuple[int | slice, ...]


class Part:
    """A part of a tensor in a file.

    index: which part, an entry a dimension, none with a step. shape: of the part, which has no
    dimension for an int of the index.
    """

    def __init__(self, source: TensorSlice, index: Index, shape: tuple[int, ...]) -> None:
        self._source = source
        self._index = index
        self.shape = shape
        self._value: Any = None

    @property
    def is_read(self) -> bool:
        return self._value is not None

    def read(self) -> Any:
        """The tensor: read once. Raises the errors of `Model.get_tensor`."""
        if self._value is None:
            self._value = self._source[self._index]
        return self._value

    def cut(self, dimension: int, first: int, end: int) -> Part:
        """The part that a slice of one dimension takes, from `first` to before `end`."""
        place = self._place(dimension)
        begin = self._first(place)
        taken = slice(begin + first, begin + end)
        shape = (*self.shape[:dimension], end - first, *self.shape[dimension + 1 :])
        return Part(self._source, self._with(place, taken), shape)

    def pick(self, dimension: int, number: int) -> Part:
        """The part that one index of a dimension takes."""
        place = self._place(dimension)
        shape = self.shape[:dimension] + self.shape[dimension + 1 :]
        return Part(self._source, self._with(place, self._first(place) + number), shape)

    def _place(self, dimension: int) -> int:
        """In the index, of a dimension of the part."""
        return [i for i, entry in enumerate(self._index) if isinstance(entry, slice)][dimension]

    def _first(self, place: int) -> int:
        entry = self._index[place]
        assert isinstance(entry, slice)  # noqa: S101
        return int(entry.start)

    def _with(self, place: int, entry: int | slice) -> Index:
        return (*self._index[:place], entry, *self._index[place + 1 :])


class DeferredTensors:
    """The tensors of an open model, deferred.

    device: where they are read to, as PyTorch names it.
    """

    def __init__(self, model: Model, device: str) -> None:
        self._model = model
        self._device = device
        self._parts: weakref.WeakSet[Part] = weakref.WeakSet()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Names and tensors, in the order of the tensors' bytes."""
        torch = import_module("torch")
        for name in self._model.offset_keys():
            info = self._model.info(name)
            kind = getattr(torch, DTYPES[info.dtype].torch or "", None)
            if kind is None or DTYPES[info.dtype].bits < 8:
                yield name, self._model.get_tensor(name)
                continue
            whole = tuple(slice(0, length) for length in info.shape)
            part = Part(self._model.get_slice(name), whole, info.shape)
            yield name, _tensor_type()(part, kind, self._device, self._parts)

    def read_rest(self) -> None:
        """Reads those that somebody still has: then the model may be closed."""
        for part in list(self._parts):
            part.read()


@functools.cache
def _tensor_type() -> Any:
    torch: Any = import_module("torch")
    tree_map = import_module("torch.utils._pytree").tree_map
    aten = torch.ops.aten

    class DeferredTensor(torch.Tensor):  # type: ignore[misc]
        """A `Part` as a tensor. An operation that cuts it makes another; all others read it."""

        @staticmethod
        def __new__(cls: Any, part: Part, kind: Any, device: Any, parts: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, part.shape, dtype=kind, device=device)

        def __init__(self, part: Part, kind: Any, device: Any, parts: Any) -> None:
            self.part = part
            self.parts = parts
            parts.add(part)

        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(
            cls, call: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if call in cuts and not args[0].part.is_read:
                part = cuts[call](args[0].part, *args[1:], **kwargs)
                if part is not None:
                    return cls(part, args[0].dtype, args[0].device, args[0].parts)
            args, kwargs = tree_map(_value_of, (args, kwargs))
            return call(*args, **kwargs)

        # PyTorch does not dispatch these.

        def data_ptr(self) -> int:
            return int(self.part.read().data_ptr())

        def numpy(self, *, force: bool = False) -> Any:
            return self.part.read().numpy(force=force)

        def tolist(self) -> Any:
            return self.part.read().tolist()

        def __repr__(self, **options: Any) -> str:
            return f"<{type(self).__name__} {list(self.shape)} of {self.dtype}, {self.device}>"

    def _value_of(each: Any) -> Any:
        return each.part.read() if isinstance(each, DeferredTensor) else each

    cuts: dict[Any, Callable[..., Part | None]] = {
        aten.slice.Tensor: _cut, aten.select.int: _picked, aten.detach.default: _same,
        aten.alias.default: _same,
    }  # fmt: skip
    return DeferredTensor


def _cut(
    part: Part, dimension: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Part | None:
    """As `aten.slice.Tensor`."""
    first, stop, _ = slice(start, end).indices(part.shape[dimension])
    if step != 1:
        return None
    return part.cut(dimension % len(part.shape), first, max(first, stop))


def _picked(part: Part, dimension: int, number: int) -> Part | None:
    """As `aten.select.int`."""
    length = part.shape[dimension]
    if not -length <= number < length:
        return None  # it is read, and raises PyTorch's error
    return part.pick(dimension % len(part.shape), number % length)


def _same(part: Part) -> Part:
    return part


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
        raise TypeError(f"model_loader_extra_config: {named[0]} is not a {kind.__name__}")
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
            self._key, self._context = key_of(load_config.model_loader_extra_config or {})

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
