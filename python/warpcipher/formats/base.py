# SPDX-License-Identifier: Apache-2.0
"""The interface of a file format: encryptor and decryptor of pieces, options.

A chunk is the unit that a format authenticates (C2SP: chunk, Tink: segment). A piece is what one
call encrypts or decrypts: many chunks in one buffer, so that calls cost little for each chunk.
"""

from __future__ import annotations

import abc
import io
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from .. import _native
from .._types import StreamLike
from .._uncopied import Closed
from ..arguments import require_engine
from .layout import Layout
from .whole import Reader, TextWriter, Writer, copy_whole

Buffer: TypeAlias = bytes | bytearray | memoryview
T = TypeVar("T")
_OWNER = "owner"
"""In the metadata of an option: who takes it, for the error of a format that does not."""

ReadAt = Callable[[int, int], bytes]
"""`read_at(offset, length)` of the encrypted file; shorter only at the end of the file."""


@dataclass(frozen=True)
class Options:
    """Options of a format besides the key. A format refuses an option that it does not take;
    one that takes others derives a dataclass from this.

    context:   bytes bound to the file and not stored in it (C2SP: context, Tink: associated data,
               raw GCM: additional authenticated data).
    engine:    "auto" or a name of `warpcipher.engines()`.
    algorithm: of `raw`: a name of `warpcipher.algorithms()`; of `awsesdk`: an algorithm suite.
    iv:        only for `raw`: bytes of the length that the algorithm takes; None for ECB.
    padding:   only for `raw`: "pkcs7" or "none"; "auto" is PKCS#7 for ECB and CBC, as openssl does.
    armor:     of `age`, and of `raw` with a password: encrypt to ASCII text. Reading finds out by
               itself.
    """

    context: bytes = b""
    engine: str = "auto"
    algorithm: str | None = field(default=None, metadata={_OWNER: "formats raw and awsesdk"})
    iv: bytes | None = field(default=None, repr=False, metadata={_OWNER: "format raw"})
    padding: Literal["auto", "pkcs7", "none"] = field(
        default="auto", metadata={_OWNER: "format raw"}
    )
    armor: bool = field(default=False, metadata={_OWNER: "format age, and raw with a password"})

    def __post_init__(self) -> None:
        for name, value in (("context", self.context), ("iv", self.iv)):
            if value is not None and not isinstance(value, bytes):
                raise TypeError(f"{name} is bytes, got {type(value).__name__}")
        require_engine(self.engine)
        if self.padding not in ("auto", "pkcs7", "none"):
            raise ValueError(f"padding is {self.padding!r}: expected auto, pkcs7 or none")

    def check(self, chosen: Format) -> None:
        """Raises ValueError where an option was given that the format does not take."""
        for entry in fields(self):
            if entry.name in ("engine", *chosen.takes):
                continue
            default = entry.default
            if entry.default_factory is not MISSING:
                default = entry.default_factory()
            if getattr(self, entry.name) != default:
                owner = entry.metadata.get(_OWNER)
                hint = f": it belongs to {owner}" if owner else ""
                raise ValueError(f"format {chosen.name} takes no {entry.name}{hint}")


class PieceCipher(Closed, abc.ABC):
    """The base of `Encryptor` and `Decryptor`: they take the pieces of a file in order; a `with`
    closes them.

    layout:      where the chunks lie.
    first_piece: bytes that the first call of `process` takes; fewer only if it is the final one.
    piece:       bytes that every later call takes; fewer only in the final one.
    capacity:    bytes of `out` that hold the result of any piece.
    whole:       the algorithm takes the whole message at once; `piece` is then the longest message
                 allowed.
    """

    layout: Layout
    first_piece: int
    piece: int
    capacity: int
    whole: bool = False

    @abc.abstractmethod
    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        """Encrypts or decrypts one piece into `out` (no overlap with `data`); returns the bytes
        written.

        final: nothing follows. Raises InvalidTag or FormatError; `out` then holds no plaintext.
        """

    def chunk_sizes(self) -> tuple[int, int] | None:
        """Bytes of a full chunk, and of what becomes of it, where `copy` works; None: it does
        not."""
        return None

    def copy(self, source: tuple[int, int], target: tuple[int, int], count: int) -> int:
        """Processes the next `count` chunks, all full and none the final one, from one file to
        another: descriptors, and where in them the chunks begin. Returns how many are done, fewer
        where something failed: `process` says what. An encryption, whose numbers of chunks may not
        be used again, raises the OSError of a read or write itself, with the descriptor as its
        `filename`. Raises EngineError, MemoryError."""
        raise NotImplementedError

    @abc.abstractmethod
    def close(self) -> None:
        """Wipes the keys. Idempotent; the object is of no use afterwards."""


class Encryptor(PieceCipher):
    """Encrypts one file.

    header: the bytes that precede the first piece.
    """

    header: bytes

    def write_texts(self, file: io.FileIO, parts: Sequence[Any]) -> bool:
        """Writes the whole file, whose plaintext is the parts: memoryviews, and at least one
        contiguous array on a GPU, which encrypts. False: this format is not encrypted there, and
        nothing was written. Raises ValueError, FormatError, EngineError, MemoryError, OSError."""
        return False


class Decryptor(PieceCipher):
    """Decrypts one file, in order or from any chunk.

    reads_ranges: `read_range` works: the chunks are authenticated each by itself.
    edits:        which bytes of the text are the file's content: see edits.py; None: all of them.
    """

    reads_ranges = False
    edits: tuple[int, ...] | None = None

    @abc.abstractmethod
    def seek(self, chunk: int, read_at: ReadAt) -> None:
        """Makes chunk number `chunk` the one that `process` takes next."""

    def open_on_gpu(
        self, first: int, sealed: _native.DeviceArray, *, final: bool
    ) -> _native.DeviceArray:
        """The plaintext of whole chunks, from number `first` on, whose ciphertext lies on a GPU.
        ValueError: a GPU does not authenticate this format. InvalidTag."""
        raise ValueError("a GPU does not authenticate this format: read it without kvikio")

    def read_range(
        self,
        source: int | Buffer,
        begin: int,
        file_size: int,
        position: int,
        length: int,
        out: Any,
        stream: StreamLike = None,
    ) -> None:
        """Decrypts `length` bytes of plaintext from `position` on to the beginning of `out`, on all
        cores or on the GPU that `out` lies on. Independent of `seek` and `process`; several threads
        may read at a time.

        source: a descriptor of the encrypted file, of file_size bytes; or those of its bytes that
                begin with byte number `begin`, and hold all chunks of the range.
        Raises as `read_chunks`.
        """
        raise ValueError("this format does not authenticate its parts: read it into host memory")

    def plaintext_size(self, file_size: int, read_at: ReadAt) -> int:
        """Plaintext bytes of a file of `file_size` bytes. Raises FormatError where none has that
        size."""
        return self.layout.plaintext_size(file_size)


@dataclass(frozen=True)
class Candidate:
    """A format that a file may have.

    format:         its name.
    reason:         why the file may have it.
    plaintext_size: bytes; None if only the key shows it.
    chunk_size:     bytes of plaintext of a full chunk; None if only the key shows it.
    chunks:         their number; None if only the key shows it.
    """

    format: str
    reason: str
    plaintext_size: int | None = None
    chunk_size: int | None = None
    chunks: int | None = None


class NewKey(NamedTuple):
    """data: of the key file. recipient: public, to be printed. public_file: of the file beside."""

    data: bytes
    recipient: str = ""
    public_file: bytes = b""


class Format(abc.ABC):
    """A file format: an entry of `warpcipher.formats.FORMATS`. All that anything here knows of a
    format it asks of this object: docs/formats.md, "Add a format".

    name:          as `format=` takes it.
    description:   one line for people.
    found_by_key:  whether "auto" chooses it by the key; else it is opened only by its name.
    proof:         the part of a file that shows whether a key opens it.
    extension:     of the names of encrypted files, with its dot.
    authenticated: whether a change within a chunk is detected.
    binds_order:   whether chunks in another order are detected, and one that is missing among
                   others.
    binds_chunks:  whether chunks are bound to their file and its end, by a salt of its own: no
                   chunk of an older version or of another file passes for one of this file, and no
                   file passes that was cut at the edge of a chunk.
    takes:         names of the options that it takes besides the engine.
    unwrap_size:   bytes of a file that tell whether it is text (`unwrapped`); 0: it never is.
    command:       the group of commands that takes it instead of `encrypt`; "": `encrypt` does.
    magic:         the bytes that every file begins with; empty: there are none.

    Of its keys:

    key_sizes:       bytes that a key may have, first those of a new one; empty: a key is not bytes.
    takes_keyset:    whether a key may be a Tink keyset.
    takes_identity:  whether a key may be the secret key of a person: it has files of keys.
    template:        the kind of a new key, if there are several; "": only one.
    pq_template:     the kind that resists quantum computers; "": there is none.
    public_suffix:   of the file beside a new key's that has its public part; "": there is none.
    takes_passphrase: whether a passphrase may encrypt a new key.
    """

    name: str
    description: str
    found_by_key: bool
    extension: str
    authenticated: bool
    binds_chunks: bool
    magic: bytes = b""
    binds_order: bool = True
    takes: tuple[str, ...] = ("context",)
    unwrap_size: int = 0
    proof: str = "header"
    command: str = ""
    key_sizes: tuple[int, ...] = ()
    takes_keyset: bool = False
    takes_identity: bool = False
    template: str = ""
    pq_template: str = ""
    public_suffix: str = ""
    takes_passphrase: bool = False

    @property
    def takes_context(self) -> bool:
        """Whether a context can be bound to a file."""
        return "context" in self.takes

    def sizes_of_key(self, algorithm: str | None) -> tuple[int, ...]:
        """`key_sizes`; for raw, sizes of an algorithm. Raises ValueError for an unknown one."""
        return self.key_sizes

    def name_of_key(self, algorithm: str | None) -> str:
        """The name of a key in an error."""
        return f"a {self.name} key"

    def key_needed(self) -> str:
        """Says which key opens a file, for people who do not have it at hand."""
        return f"{self.key_sizes[0]} bytes, raw, in hex digits or in base64"

    def opened_by(self, head: bytes) -> str:
        """The options of the command that open a file which begins with `head`."""
        return "--key FILE"

    def make_key(self, template: str, passphrase: bytes | None) -> NewKey:
        """A new key. template: see above; passphrase: encrypts it; None: nothing does."""
        return NewKey(os.urandom(self.key_sizes[0]))

    @abc.abstractmethod
    def encryptor(self, key: object, options: Options) -> Encryptor:
        """Begins a file with fresh salts and nonces."""

    @abc.abstractmethod
    def shape(self, prefix: bytes, size: int) -> Candidate | None:
        """Whether a file of `size` bytes that begins with `prefix` may have this format. prefix: 8
        bytes or more, or all of the file."""

    def candidate(self, layout: Layout, size: int, reason: str) -> Candidate:
        """A file of `size` bytes with this layout. Raises FormatError where none has that size."""
        chunks = layout.chunk_count(size)
        return Candidate(self.name, reason, layout.plaintext_size(size), layout.chunk, chunks)

    @abc.abstractmethod
    def probe_size(self, key: object, options: Options, prefix: Buffer = b"") -> int:
        """Bytes of the beginning of a file that `decryptor` wants, as far as `prefix`, which the
        file begins with, shows it; a shorter file is given whole."""

    def beginning(
        self, key: object, options: Options, read_at: Callable[[int, int], Buffer]
    ) -> Buffer:
        """The first bytes of a file, as many as `decryptor` wants."""
        prefix: Buffer = b""
        while len(prefix) < (size := self.probe_size(key, options, prefix)):
            prefix = read_at(0, size)
            if len(prefix) < size:
                break
        return prefix

    def begins(self, prefix: bytes) -> bool:
        """Whether `prefix` says that the file has this format."""
        return bool(self.magic) and prefix.startswith(self.magic)

    def knows(self, key: object) -> bool:
        """Whether "auto" chooses this format by the key, or whether a file of keys, which this is
        the content of, belongs to it."""
        if not (self.found_by_key and isinstance(key, (bytes, bytearray, memoryview))):
            return False
        return len(key) in self.key_sizes

    def opening(self, key: object) -> object:
        """The part of the key that opens files; an empty list: nothing does."""
        return key

    def primary(self, key: object) -> object:
        """The part of the key that encrypts, where other keys in it only decrypt."""
        return key

    def asks_passphrase(self, head: bytes) -> bool:
        """Whether a passphrase opens the file that begins with `head`."""
        return False

    def of_passphrase(self, passphrase: bytes) -> object:
        """The key that a passphrase is. Raises ValueError where it is none."""
        raise ValueError(f"format {self.name} takes no passphrase")

    def public_keys(self, data: bytes | str) -> list[Any]:
        """The keys in a file of public keys, or in the text of one. Raises ValueError."""
        raise ValueError(f"format {self.name} has no public keys")

    def secret_keys(self, data: bytes, passphrase: Callable[[], bytes]) -> list[Any]:
        """The keys in a file of secret keys. One that opens nothing has a `reason`.

        passphrase: called where the file is encrypted. Raises ValueError, InvalidTag.
        """
        raise ValueError(f"format {self.name} has no secret keys of people")

    def public_text(self, secret: Any) -> str:
        """The public key of a secret key, as text."""
        raise ValueError(f"format {self.name} has no public keys")

    def unwrapped(self, prefix: bytes, reader: Reader) -> Reader | None:
        """The file inside of `reader`, if that is text; None: it is not. prefix: the `unwrap_size`
        bytes that come next from `reader`, or all of them."""
        return None

    def decoded(self, source: Reader, prefix: bytes) -> io.BytesIO | None:
        """`unwrapped`, all of it, in memory; positioned at its beginning."""
        inner = self.unwrapped(prefix, source)
        if inner is None:
            return None
        decoded = io.BytesIO()
        copy_whole(inner, decoded)
        decoded.seek(0)
        return decoded

    def wrapped(self, writer: Writer, options: Options) -> TextWriter | None:
        """A writer that turns a file into text, if the options ask for that."""
        return None

    def rewrapped(
        self, key: object, new_key: object, prefix: Buffer, options: Options, *, keep: bool
    ) -> tuple[int, bytes]:
        """The bytes of a file's header, and the header with the same data keys wrapped for other
        keys: all that follows it stays.

        prefix: what `decryptor` wants of the file. keep: those who open it now keep doing so.
        Raises InvalidTag and FormatError where the key does not open the header or it was changed,
        ValueError for keys that it cannot be for, and of a format that wraps no data key.
        """
        raise ValueError(
            f"format {self.name} has no wrapping key, as its key encrypts the data: `warpcipher "
            "rekey` and formats.rekey_file encrypt a file again under another key"
        )

    @abc.abstractmethod
    def decryptor(self, key: object, prefix: Buffer, options: Options) -> Decryptor:
        """Reads the header in `prefix` and derives the keys. `layout.header_size` says how much of
        it was header.

        Raises FormatError on a short header, and InvalidTag where the header or, with it, the first
        chunk shows that key, context and header do not belong together: see `open_checked`.
        """

    def open_checked(self, key: object, read_at: ReadAt, options: Options) -> Decryptor:
        """The decryptor of a file whose beginning the key and context open for certain.

        Raises InvalidTag and FormatError where they do not. Where the header commits to no key, the
        format authenticates the first chunk. `raw` authenticates nothing.
        """
        return self.decryptor(key, self.beginning(key, options, read_at), options)


def several_keys(
    key: object, parsed: Callable[[object], list[T] | None], who: str, takes: str
) -> list[T]:
    """The keys in a value: one that `parsed` knows, which returns None for others, or several.
    TypeError, ValueError."""
    known = parsed(key)
    if known is not None:
        return known
    if isinstance(key, Iterable):
        several = [one for entry in key for one in several_keys(entry, parsed, who, takes)]
        if not several:
            raise ValueError(f"{who} got an empty list of keys")
        return several
    raise TypeError(f"{who} takes {takes} as key, or several, got {type(key).__name__}")


def key_bytes(key: object, sizes: tuple[int, ...], who: str) -> bytearray:
    """A copy of `key` that can be wiped. Raises TypeError and ValueError without showing the
    key."""
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise TypeError(f"{who} takes its key as bytes, got {type(key).__name__}")
    _native.check_bytes(key, f"the key of {who}")
    copy = bytearray(key)
    if sizes and len(copy) not in sizes:
        given = len(copy)
        wipe(copy)
        raise ValueError(f"{who} takes a key of {' or '.join(map(str, sizes))} bytes, got {given}")
    return copy


def wipe(buffer: bytearray | memoryview) -> None:
    """Overwrites a buffer with zeros, a block at a time."""
    view = memoryview(buffer).cast("B")
    for start in range(0, len(view), len(_ZEROS)):
        part = view[start : start + len(_ZEROS)]
        part[:] = _ZEROS[: len(part)]


_ZEROS = memoryview(bytes(1 << 16))
