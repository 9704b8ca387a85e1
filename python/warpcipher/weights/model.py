# SPDX-License-Identifier: Apache-2.0
"""An open model and its tensors, and the calls that read one: `safe_open`, `load_file`, `load`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, overload

import warpcipher as wc

from .._types import Buffer, PathLike
from .._uncopied import Closed, Uncopied
from ..arguments import parse_device
from ..formats import FormatError
from . import frameworks
from .boxes import box, read_box, tensor_of
from .files import TensorFile, open_file, resolved
from .frameworks import Framework
from .header import TensorInfo, shown
from .images import place_of
from .shards import files_of

if TYPE_CHECKING:
    import numpy
    import torch  # type: ignore[import-not-found,unused-ignore]


class Model(Closed):
    """An open model, of one file or several; a context manager. Made by `safe_open`.

    Reads of several threads are safe. Headers are checked when it is opened, tensors when they are
    read.
    """

    def __init__(
        self,
        files: dict[str, set[str] | None],
        open_one: Callable[[str], TensorFile],
        framework: Framework,
    ) -> None:
        self._framework = framework
        self._files: list[TensorFile] = []
        self._places: dict[str, TensorFile] = {}
        try:
            for path, promised in files.items():
                with _named_after(os.path.basename(path)):  # noqa: PTH119
                    file = open_one(path)
                self._add(file, promised)
        except BaseException:
            self.close()
            raise

    def _add(self, file: TensorFile, promised: set[str] | None) -> None:
        self._files.append(file)
        name = file.name
        held = file.header.tensors.keys()
        if promised is not None and held != promised:
            lacks = sorted(promised - held)
            more = sorted(held - promised)
            what = f"does not hold {shown(lacks[0])}" if lacks else f"also holds {shown(more[0])}"
            raise FormatError(f"{name} {what}, by the index: file and index do not belong together")
        twice = sorted(held & self._places.keys())
        if twice:
            raise FormatError(f"{name} holds {shown(twice[0])}, which another file has too")
        self._places.update(dict.fromkeys(held, file))

    def _open(self) -> dict[str, TensorFile]:
        """Each tensor's file. ValueError after `close`."""
        if not self._files:
            raise ValueError("the model is closed")
        return self._places

    def _file(self, name: str) -> TensorFile:
        places = self._open()
        if name not in places:
            raise KeyError(f"no tensor {shown(str(name))}")
        return places[name]

    def keys(self) -> list[str]:
        """The names of the tensors, sorted. Raises ValueError after `close`."""
        return sorted(self._open())

    def offset_keys(self) -> list[str]:
        """The names in the order of the tensors' bytes."""
        return list(self._open())

    def metadata(self) -> dict[str, str] | None:
        """The metadata of the header, None if there is none; of several files only the texts
        that all of them have. Raises ValueError after `close`."""
        self._open()
        first, *others = (file.metadata for file in self._files)
        if first is None:
            return None
        return {
            name: text
            for name, text in first.items()
            if all(other is not None and other.get(name) == text for other in others)
        }

    def info(self, name: str) -> TensorInfo:
        """Dtype, shape and place of a tensor. KeyError: no tensor has that name."""
        return self._file(name).header.tensors[name]

    def get_tensor(self, name: str) -> Any:
        """One tensor, with its own memory. Reads and decrypts the chunks that hold it.

        Raises KeyError, TypeError (the library has no such dtype), InvalidTag, FormatError and
        OSError.
        """
        return self.get_slice(name)[...]

    def get_slice(self, name: str) -> TensorSlice:
        """A tensor that is read when it is indexed: `get_slice(name)[:, 128:256]` reads and
        decrypts only the chunks that hold that part."""
        return TensorSlice(self._file(name), name, self._framework)

    def close(self) -> None:
        """Wipes keys and lets go of the files. Tensors that were given out stay."""
        self._places.clear()
        while self._files:
            self._files.pop().close()

    def __repr__(self) -> str:
        return f"<warpcipher.weights.Model of {len(self._places)} tensors>"


class TensorSlice(Uncopied):
    """A tensor that is read when it is indexed. Made by `Model.get_slice`."""

    def __init__(self, file: TensorFile, name: str, framework: Framework) -> None:
        self._file = file
        self._name = name
        self._framework = framework
        self._info = file.header.tensors[name]

    def get_shape(self) -> list[int]:
        """The shape of the whole tensor."""
        return list(self._info.shape)

    def get_dtype(self) -> str:
        """The dtype, as safetensors names it."""
        return self._info.dtype

    def __repr__(self) -> str:
        name = shown(self._name)
        return f"<warpcipher.weights.TensorSlice {name}: {self.get_dtype()} {self.get_shape()}>"

    def __getitem__(self, index: object) -> Any:
        """The part of the tensor, with its own memory: ints, slices with a positive step, and
        one ellipsis, as NumPy takes them. Raises IndexError, TypeError and the errors of
        `get_tensor`."""
        wanted = box(index, self._info.shape)
        if wanted.shape == self._info.shape and wanted.rest is None:
            return self._whole()

        def read(offset: int, block: Any) -> None:
            with _named_after(self._file.name):
                self._file.read(self._framework, offset, block)

        return read_box(self._framework, read, self._name, self._info, wanted, self._file.unit)

    def _whole(self) -> Any:
        block = self._framework.block(self._info.size)
        if self._info.size:
            try:
                with _named_after(self._file.name):
                    self._file.read(self._framework, self._info.start, block)
            except BaseException:
                self._framework.wipe(block)
                raise
        return tensor_of(self._framework, block, self._info.dtype, self._info.shape, self._name)


@contextmanager
def _named_after(name: str) -> Iterator[None]:
    """Puts the name of its file before an error: a model may have many."""
    try:
        yield
    except (wc.InvalidTag, FormatError) as error:
        raise type(error)(f"{name}: {error}") from None


def safe_open(
    path: PathLike,
    framework: str = "pt",
    device: str | int = "cpu",
    *,
    key: object = None,
    context: bytes = b"",
    gds: bool = False,
) -> Model:
    """Opens a model to read tensors of it, or parts of tensors.

    The arguments are as for `load_file`. Raises InvalidTag if the key does not open the file,
    FormatError where a header is not right, ValueError, TypeError, ImportError and OSError.

    >>> import numpy
    >>> from warpcipher import weights
    >>> weights.save_file({"w": numpy.ones(3, "f4")}, "model.safetensors.cobblestone", bytes(32))
    >>> with weights.safe_open("model.safetensors.cobblestone", "np", key=bytes(32)) as model:
    ...     list(model.keys())
    ['w']
    """
    if gds and parse_device(device) is None:
        raise ValueError(f"gds reads to a GPU, and device is {device!r}")
    chosen, key = frameworks.get(framework, device), resolved(key)
    open_one = partial(open_file, key=key, context=context, gds=gds)
    return Model(files_of(path, key, context), open_one, chosen)


@overload
def load_file(
    path: PathLike,
    key: object = None,
    device: str | int = "cpu",
    framework: Literal["pt"] = "pt",
    *,
    context: bytes = b"",
    gds: bool = False,
) -> dict[str, torch.Tensor]: ...


@overload
def load_file(
    path: PathLike,
    key: object = None,
    device: str | int = "cpu",
    *,
    framework: Literal["np"],
    context: bytes = b"",
    gds: bool = False,
) -> dict[str, numpy.ndarray[Any, Any]]: ...


@overload
def load_file(
    path: PathLike,
    key: object = None,
    device: str | int = "cpu",
    framework: str = "pt",
    *,
    context: bytes = b"",
    gds: bool = False,
) -> dict[str, Any]: ...


def load_file(
    path: PathLike,
    key: object = None,
    device: str | int = "cpu",
    framework: str = "pt",
    *,
    context: bytes = b"",
    gds: bool = False,
) -> dict[str, Any]:
    """All tensors of a model, by name.

    path: a safetensors file, plain or encrypted; the index JSON of a sharded model; or a directory
    with such files.
    key: what `warpcipher.formats.open` takes, or a `CryptotensorsKey`: then every file must be
    encrypted with it, and a plain one is refused. None: the files are plain.
    device: "cpu", "cuda", "cuda:0" or the number of a GPU.
    framework: "pt" (PyTorch), "np" (NumPy), "jax" or "cupy".
    context: the context that the files were encrypted with.
    gds: read to a GPU by kvikio (the extra `gds`), for disks with GPUDirect Storage: files in
    only cobblestone and Tink's AES-GCM.

    The tensors of a file are views of one block of memory, which lives as long as one of them.
    No tensor is given out before all of them were authenticated. Raises InvalidTag, FormatError,
    ValueError, TypeError (the library has no such dtype), ImportError, MemoryError and OSError;
    decrypted bytes are then wiped.

    >>> import numpy
    >>> from warpcipher import weights
    >>> weights.save_file({"w": numpy.ones(3, "f4")}, "model.safetensors.cobblestone", bytes(32))
    >>> weights.load_file("model.safetensors.cobblestone", bytes(32), framework="np")["w"].tolist()
    [1.0, 1.0, 1.0]
    """
    with safe_open(path, framework, device, key=key, context=context, gds=gds) as model:
        return _all_of(model)


def load(
    data: Buffer | BinaryIO,
    key: object = None,
    device: str | int = "cpu",
    framework: str = "pt",
    *,
    context: bytes = b"",
) -> dict[str, Any]:
    """All tensors of a file that is given as bytes, or as a binary file object, which is read from
    where it stands to its end. The other arguments, and the errors, are as for `load_file`.

    >>> import numpy
    >>> from warpcipher import weights
    >>> data = weights.save({"w": numpy.ones(3, "f4")}, bytes(32))
    >>> weights.load(data, bytes(32), framework="np")["w"].tolist()
    [1.0, 1.0, 1.0]
    """
    chosen, key = frameworks.get(framework, device), resolved(key)
    with place_of(data) as place:

        def open_one(name: str) -> TensorFile:
            file = open_file(place, key, context)
            file.name = name
            return file

        with Model({"data": None}, open_one, chosen) as model:
            return _all_of(model)


def _all_of(model: Model) -> dict[str, Any]:
    """All tensors of an open model; after an error the bytes read are wiped."""
    framework = model._framework
    tensors: dict[str, Any] = {}
    blocks: list[Any] = []
    try:
        for file in model._files:
            blocks.append(framework.block(file.header.data_size))
            if file.header.data_size:
                with _named_after(file.name):
                    file.read(framework, 0, blocks[-1])
        for file, block in zip(model._files, tuple(blocks), strict=True):
            for name, info in file.header.tensors.items():
                part = block[info.start : info.end]
                fitting = framework.aligned(part, info.dtype)
                if fitting is not part:
                    blocks.append(fitting)
                    framework.wipe(part)
                tensors[name] = framework.tensor(fitting, info.dtype, info.shape, name)
        for name in tensors:
            tensors[name] = framework.given(tensors[name])
    except BaseException:
        tensors.clear()
        for block in blocks:
            framework.wipe(block)
        raise
    return tensors
