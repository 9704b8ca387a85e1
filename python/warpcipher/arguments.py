# SPDX-License-Identifier: Apache-2.0
"""Arguments that several parts of the package read alike."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable
from typing import Any, TypeVar

from . import _native
from ._types import Buffer

# These go to the native module at once; everything else passes through the arrays.
PLAIN = frozenset((bytes, bytearray, memoryview))

_UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)},
}


Item = TypeVar("Item")


def kind(value: object) -> str:
    """The name of a value's kind in an error; the value may be part of a key."""
    return type(value).__name__


def require_int(name: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """As Python's own, whose width nothing limits: NumPy's are integers too. TypeError; ValueError
    below `least` or above `most`, which has a `least`."""
    try:
        number = int(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} is {type(value).__name__}: expected an int") from None
    if least is not None and not least <= number <= (number if most is None else most):
        end = "or more" if most is None else f"to {most}"
        raise ValueError(f"{name} is {number}: expected {least} {end}")
    return number


def require_number(name: str, value: object) -> float:
    """A real number as a float: Python's, NumPy's, or an array of one element. TypeError."""
    if isinstance(value, float):
        return float(value)
    if hasattr(type(value), "__float__") or hasattr(type(value), "__index__"):
        try:
            return float(value)  # type: ignore[arg-type]
        except TypeError:  # an array of several
            pass
        except OverflowError:
            raise ValueError(f"{name} is an integer too large for a float") from None
    raise TypeError(f"{name} is {type(value).__name__}: expected a number")


def require_text(name: str, value: object) -> str:
    """The text; TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {kind(value)}: expected a str")
    return value


def require_bytes(name: str, value: object) -> bytes:
    """The bytes of bytes or a bytearray; TypeError for anything else."""
    if not isinstance(value, (bytes, bytearray)):
        raise TypeError(f"{name} is {kind(value)}: expected bytes")
    return bytes(value)


def require_items(name: str, value: Iterable[Item], expected: str) -> list[Item]:
    """The items of an iterable that is not text. expected: for the error."""
    if not isinstance(value, str):
        try:
            items = iter(value)
        except TypeError:
            pass
        else:
            return list(items)
    raise TypeError(f"{name} is {kind(value)}: expected {expected}")


def require_seconds(name: str, value: object) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {kind(value)}: expected a number of seconds")
    seconds = require_number(name, value)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"{name} is {value}: expected a number of seconds, 0 or more")
    return value


def view_bytes(name: str, value: Any) -> memoryview:
    """The bytes of a contiguous bytes-like object. TypeError, BufferError: it is not, or it
    holds Python objects or text, whose bytes are addresses."""
    _native.check_bytes(value, name)
    return memoryview(value).cast("B")


def text_bytes(name: str, value: Any) -> bytes:
    """Text in UTF-8, or the bytes of a bytes-like object. TypeError: it is neither."""
    return value.encode() if isinstance(value, str) else bytes(view_bytes(name, value))


def parse_device(device: object) -> int | None:
    """The CUDA ordinal of a device argument; None for host memory. ValueError."""
    text = str(device)  # of a torch.device, too
    if text == "cpu":
        return None
    if text == "cuda":
        return 0
    number = text.removeprefix("cuda:")
    if number.isascii() and number.isdecimal():
        return int(number)
    raise ValueError(
        f"device is {device!r}: expected 'cpu', 'cuda', 'cuda:0' or the number of a GPU"
    )


def torch_device(torch: Any, device: int | None) -> str:
    """PyTorch's name of a GPU, by number, or of the host. ValueError for one that it does not
    have: built without CUDA, it would raise AssertionError."""
    if device is None:
        return "cpu"
    count = torch.cuda.device_count()
    if device >= count:
        raise ValueError(f"device is {device}, and PyTorch has {count} GPUs here")
    return f"cuda:{device}"


def is_decrypt(direction: str) -> bool:
    """Reads the `direction` argument; ValueError for a name that is not known."""
    if direction == "encrypt":
        return False
    if direction == "decrypt":
        return True
    raise ValueError(f"direction is {direction!r}: expected 'encrypt' or 'decrypt'")


def is_padded(padding: str | None) -> bool:
    """Reads the `padding` argument; ValueError for a name that is not known."""
    if padding is None:
        return False
    if padding == "pkcs7":
        return True
    raise ValueError(f"padding is {padding!r}: expected None or 'pkcs7'")


def require_engine(engine: object) -> str:
    """Reads the `engine` argument; the native module knows the names."""
    if not isinstance(engine, str):
        raise TypeError(f"engine is {kind(engine)}: expected 'auto', or a name of engines()")
    return engine


def make_key(algorithm: str, key: Buffer | _native.Key) -> _native.Key:
    """A `Key` of that algorithm: the one given, or a new one of these bytes."""
    if isinstance(key, _native.Key):
        if key.algorithm != algorithm:
            raise ValueError(f"the key is for {key.algorithm}, but the call asks for {algorithm}")
        return key
    if not isinstance(algorithm, str):
        raise TypeError(
            f"algorithm is {type(algorithm).__name__}: expected a name such as 'aes-256-ctr'"
        )
    return _native.Key(algorithm, key)


def parse_size(text: str) -> int:
    """Bytes of "16", "64KiB" or "1.5GB". ValueError for anything else, and for less than 1."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", text.strip())
    factor = _UNITS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"size is {text!r}: expected bytes, such as 16, 64KiB, 1GB or 16..1GiB")
    size = float(match[1]) * factor if "." in match[1] else int(match[1]) * factor
    if size < 1 or size != int(size):
        raise ValueError(f"size is {text!r}: expected a whole number of bytes, 1 or more")
    return int(size)
