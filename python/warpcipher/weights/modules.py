# SPDX-License-Identifier: Apache-2.0
"""`save_model` and `load_model`: modules of PyTorch, in which parameters may share memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from .._types import PathLike
from .model import load_file
from .saving import save_file


def save_model(
    model: Any,
    path: PathLike,
    key: object = None,
    metadata: Mapping[str, str] | None = None,
    *,
    format: str = "auto",
    context: bytes = b"",
) -> None:
    """Writes the state of a `torch.nn.Module` to one file; of tied parameters one is written.

    The other arguments, and the errors, are as for `save_file`. The metadata say by the name
    of each parameter that is left out which one stands for it, as safetensors does: its
    `load_model` reads a plain file.

    >>> import torch
    >>> from warpcipher import weights
    >>> layer = torch.nn.Linear(2, 3)
    >>> weights.save_model(layer, "layer.safetensors.cobblestone", bytes(32))
    >>> weights.load_model(layer, "layer.safetensors.cobblestone", bytes(32))
    ([], [])
    """
    state = _state_of(model)
    tied = _tied(state, ())
    texts = {**tied, **(metadata or {})} if tied or metadata is not None else None
    kept = {name: tensor for name, tensor in state.items() if name not in tied}
    save_file(kept, path, key, texts, format=format, context=context)


def load_model(
    model: Any,
    path: PathLike,
    key: object = None,
    strict: bool = True,
    device: str | int = "cpu",
    *,
    context: bytes = b"",
) -> tuple[list[str], list[str]]:
    """Copies the tensors of a model's files into a `torch.nn.Module`.

    path, key, device, context: as for `load_file`; device is where the tensors lie before they are
    copied to the module's.
    strict: raise RuntimeError, as PyTorch does, where names are missing or left over.

    Returns the names of the module that are in no file, and names of the files that the module
    does not have, or has tied to another. A parameter that is tied to one of the files is not
    missing. Raises the errors of `load_file`; of the module nothing was changed then.

    >>> import torch
    >>> from warpcipher import weights
    >>> layer = torch.nn.Linear(2, 3)
    >>> weights.save_model(layer, "layer.safetensors.cobblestone", bytes(32))
    >>> weights.load_model(layer, "layer.safetensors.cobblestone", bytes(32))
    ([], [])
    """
    state = _state_of(model)
    found = load_file(path, key, device, "pt", context=context)
    tied = _tied(state, found.keys())
    missing, unexpected = model.load_state_dict(found, strict=False)
    missing = [name for name in missing if tied.get(name) not in found]
    unexpected = [*unexpected, *(name for name in tied if name in found)]
    if strict and (missing or unexpected):
        parts = [
            f"\n    {what} key(s) in state_dict: {', '.join(map(repr, sorted(names)))}"
            for what, names in (("Missing", missing), ("Unexpected", unexpected))
            if names
        ]
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(model).__name__}:{''.join(parts)}"
        )
    return missing, unexpected


def _state_of(model: Any) -> dict[str, Any]:
    if not hasattr(model, "state_dict") or not hasattr(model, "load_state_dict"):
        raise TypeError(f"model is {type(model).__name__}: expected a torch.nn.Module")
    return dict(model.state_dict())


def _tied(state: Mapping[str, Any], preferred: Collection[str]) -> dict[str, str]:
    """Of tensors that share memory all names but one, each with that one: a tensor that covers the
    whole storage, else one that is the same part of it. preferred: names to be that one."""
    storages: dict[object, list[str]] = defaultdict(list)
    for name in sorted(state, key=lambda name: (name not in preferred, name)):
        tensor = state[name]
        try:
            storage = tensor.untyped_storage()
            if tensor.numel() and storage.data_ptr():
                storages[tensor.device, storage.data_ptr()].append(name)
        except (AttributeError, RuntimeError):  # no tensor, or one without memory: shares none
            continue
    tied: dict[str, str] = {}
    for names in storages.values():
        whole = [name for name in names if _is_whole(state[name])]
        first: dict[object, str] = {}
        for name in names:
            kept = whole[0] if whole else first.setdefault(_part(state[name]), name)
            if kept != name:
                tied[name] = kept
    return tied


def _is_whole(tensor: Any) -> bool:
    size: int = tensor.untyped_storage().nbytes()
    return tensor.numel() * tensor.element_size() == size and _is_dense(tensor)


def _is_dense(tensor: Any) -> bool:
    """Whether each element has its own place, and no place is left out."""
    expected = 1
    for stride, length in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def _part(tensor: Any) -> object:
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()
