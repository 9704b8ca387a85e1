# SPDX-License-Identifier: Apache-2.0
"""Keys in environment variables, files and descriptors."""

from __future__ import annotations

import os
import re
from io import FileIO

from .._descriptors import awaited
from .decode import LONGEST, Encoding, may_be_key
from .source import KeyId, KeySource


def shown(name: str) -> str:
    """A name fit for a terminal: control characters and bytes that are not text are escaped."""
    return name if name.isprintable() else ascii(name)[1:-1]


def unnamed(text: str) -> str:
    """Stands for text that may be a key."""
    return f"({len(text)} characters, not repeated: they may be a key)"


def name_of_file(path: str) -> str:
    """How errors call a file. The key itself may have been given for its name; not, if there is
    such a file."""
    return unnamed(path) if may_be_key(path) and not os.path.lexists(path) else shown(path)


def open_key(path: str, name: str) -> FileIO:
    """Opens a file of secrets that errors call so, without a buffer, which could not be wiped."""
    try:
        return open(path, "rb", buffering=0)  # noqa: PTH123
    except OSError as error:
        raise OSError(
            error.errno, error.strerror, name if name == unnamed(path) else path
        ) from None


class _Variable(KeySource):
    text = True

    def __init__(self, variable: str, encoding: Encoding) -> None:
        # The key itself may have been given for the name; not, if there is such a variable.
        is_name = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable) and not may_be_key(variable)
        named = is_name or os.fsencode(variable) in os.environb
        called = shown(variable) if named else unnamed(variable)
        super().__init__(f"environment variable {called}", encoding)
        self._variable = variable

    def read(self, key_id: KeyId) -> bytes:
        try:
            return os.environb[os.fsencode(self._variable)]
        except KeyError:
            raise ValueError(f"{self.name} is not set") from None


def from_env(name: str, *, encoding: Encoding = "auto") -> KeySource:
    """The key in an environment variable, in hex digits or base64, or as a Tink keyset in JSON.

    encoding: "raw" for one that holds the key's bytes themselves. It is read when the key is
    needed; children of the process inherit it.

    >>> import os
    >>> from warpcipher import keys
    >>> os.environ["BACKUP_KEY"] = "00" * 32
    >>> len(keys.resolve(keys.from_env("BACKUP_KEY")))
    32
    """
    if not isinstance(name, str) or not name or "=" in name or "\0" in name:
        raise ValueError("expected the name of an environment variable, got something else")
    return _Variable(name, encoding)


class _File(KeySource):
    def __init__(self, path: str | os.PathLike[str], encoding: Encoding) -> None:
        self._path = os.fspath(path)
        super().__init__(name_of_file(self._path), encoding)

    def read(self, key_id: KeyId) -> bytearray:
        with open_key(self._path, self.name) as file:
            return read_bounded(file.fileno(), self.name)


def from_file(path: str | os.PathLike[str], *, encoding: Encoding = "auto") -> KeySource:
    """The key in a file or named pipe: raw bytes, hex digits, base64, or a Tink keyset in JSON.

    A raw key is exactly its bytes; white space around text is ignored.

    >>> import pathlib
    >>> from warpcipher import keys
    >>> size = pathlib.Path("my.key").write_bytes(bytes(32))
    >>> len(keys.resolve(keys.from_file("my.key")))
    32
    """
    return _File(path, encoding)


class _Descriptor(KeySource):
    def __init__(self, descriptor: int, encoding: Encoding) -> None:
        name = "standard input" if descriptor == 0 else f"descriptor {descriptor}"
        super().__init__(name, encoding)
        self._descriptor = descriptor
        self._content: bytearray | None = None

    def read(self, key_id: KeyId) -> bytearray:
        if self._content is None:
            self._content = read_bounded(self._descriptor, self.name)
        return self._content

    def __reduce__(self) -> str:
        raise TypeError(f"the key of {self.name} cannot be pickled: other processes lack it")


def from_descriptor(descriptor: int, *, encoding: Encoding = "auto") -> KeySource:
    """The key that can be read from a descriptor, to its end; 0 is standard input.

    It is read once, when first needed, and kept: a pipe gives its content once. It stays open.
    """
    if not isinstance(descriptor, int) or isinstance(descriptor, bool) or descriptor < 0:
        raise ValueError("from_descriptor takes the number of an open descriptor, 0 or more")
    return _Descriptor(descriptor, encoding)


def read_bounded(descriptor: int, name: str) -> bytearray:
    """All that can be read. Raises ValueError where that is more than any key, OSError."""
    data = bytearray()
    while len(data) <= LONGEST:
        try:
            part = awaited(os.read, descriptor, LONGEST + 1 - len(data))
        except OSError as error:
            raise OSError(error.errno, error.strerror, name) from None
        if not part:
            return data
        data += part
    raise ValueError(f"{name} holds more than {LONGEST} bytes: that is not a key")
