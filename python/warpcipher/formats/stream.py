# SPDX-License-Identifier: Apache-2.0
"""Encrypts and decrypts streams: reading, cipher and writing overlap in a fixed ring of buffers.

    caller's thread         cipher thread                  writer thread
    read piece  --todo-->   process (all cores)  --done--> write
        ^                                                    |
        +------------------------ free <---------------------+

The caller's thread reads, so that a signal interrupts a blocked read. A piece is held back until it
is known whether another follows, as a format marks its final chunk. Memory: SLOTS pairs of buffers
of one piece: a chunk where the chunks of a file are longer than a piece, so eight of them.

From one regular file to another full chunks are copied past all of this (copy_chunks.py).
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from .base import Buffer, Encryptor, Options, PieceCipher, wipe
from .copy_chunks import Copy, DirectFile, direct
from .edits import KeptWriter
from .registry import decryptor_of, take
from .whole import Reader, Writer, read_whole, write_whole

SLOTS = 4
JOIN_SECONDS = 5.0
"""How long a failing run waits for a thread that is stuck in a write; it is a daemon and dies with
the process."""

Progress = Callable[[int], object]


def checked_options(options: object) -> Options:
    """The options given, or none. Raises TypeError for another object."""
    if options is None:
        return Options()
    if not isinstance(options, Options):
        raise TypeError(f"options is {type(options).__name__}: expected warpcipher.formats.Options")
    return options


def encrypt_stream(
    reader: Reader,
    writer: Writer,
    key: object,
    *,
    format: str = "auto",
    options: Options | None = None,
    progress: Progress | None = None,
) -> int:
    """Encrypts all of `reader` to `writer`; returns the bytes written.

    reader, writer: binary file objects, seekable or not, raw or buffered; neither is flushed or
    closed.
    key, format, options: see `warpcipher.formats`; "auto" takes the format from the key.
    progress: called in this thread with the number of plaintext bytes whose ciphertext is written.
    Raises ValueError, FormatError, OSError. On an error, a `readinto` or `write` that returns what
    cannot be among them, the output so far is incomplete: discard it.

    >>> import io
    >>> from warpcipher import formats
    >>> sealed = io.BytesIO()
    >>> formats.encrypt_stream(io.BytesIO(b"text"), sealed, bytes(32))
    76
    """
    _check_streams(reader, writer)
    options = checked_options(options)
    chosen, key = take(format, key, options)
    with chosen.encryptor(key, options) as encryptor:
        wrapper = chosen.wrapped(writer, options)
        headed = _HeadedWriter(wrapper or writer, encryptor.header)
        written = _pump(Source(reader, b""), headed, encryptor, progress)
        headed.finish()
        return wrapper.finish() if wrapper else len(encryptor.header) + written


def decrypt_stream(
    reader: Reader,
    writer: Writer,
    key: object,
    *,
    format: str = "auto",
    options: Options | None = None,
    progress: Progress | None = None,
) -> int:
    """Decrypts all of `reader` to `writer`; returns the bytes written. Arguments as for
    `encrypt_stream`.

    Only authenticated chunks are written (format raw has none to check). Raises InvalidTag,
    FormatError, ValueError, OSError. On an error, a truncated file among them, what was written so
    far is authentic but
    incomplete: discard it. progress: the number of encrypted bytes whose plaintext is written.

    >>> import io
    >>> from warpcipher import formats
    >>> sealed, plain = io.BytesIO(), io.BytesIO()
    >>> size = formats.encrypt_stream(io.BytesIO(b"text"), sealed, bytes(32))
    >>> formats.decrypt_stream(io.BytesIO(sealed.getvalue()), plain, bytes(32))
    4
    >>> plain.getvalue()
    b'text'
    """
    _check_streams(reader, writer)
    options = checked_options(options)
    chosen, key = take(format, key, options)
    source = Source(reader, b"")
    inner = chosen.unwrapped(bytes(source.peek(chosen.unwrap_size)), source)
    if inner is not None:
        source = Source(inner, b"")
    with decryptor_of(chosen, key, options, lambda _, size: source.peek(size)) as decryptor:
        source.skip(decryptor.layout.header_size)
        if decryptor.edits is None:
            return _pump(source, writer, decryptor, progress)
        kept = KeptWriter(writer, decryptor.edits)
        _pump(source, kept, decryptor, progress)
        return kept.count


def _check_streams(reader: object, writer: object) -> None:
    """TypeError for what is not a binary file: a path, or a file opened as text."""
    for name, stream, method in (("reader", reader, "readinto"), ("writer", writer, "write")):
        if not hasattr(stream, method) or isinstance(stream, io.TextIOBase):
            hint = (
                "; encrypt_file and decrypt_file take paths"
                if isinstance(stream, (str, bytes, os.PathLike))
                else ""
            )
            raise TypeError(
                f"{name} is {type(stream).__name__}: expected a file opened in binary{hint}"
            )


class Source:
    """A reader whose first bytes were read before."""

    def __init__(self, reader: Reader, pending: Buffer) -> None:
        self._reader = reader
        self._pending = memoryview(pending)

    def fill(self, buffer: memoryview, check: Callable[[], None] = lambda: None) -> int:
        """Fills the buffer; fewer bytes only at the end of the stream. `check` may raise between
        reads."""
        done = min(len(buffer), len(self._pending))
        buffer[:done] = self._pending[:done]
        rest = self._pending[done:]
        # The few bytes left would keep all of a probe, which is as long as a segment.
        self._pending = rest if len(rest) > done else memoryview(bytes(rest))
        return done + read_whole(self._reader, buffer[done:], check)

    def readinto(self, buffer: memoryview, /) -> int:
        return self.fill(buffer)

    def size(self) -> int | None:
        """About the bytes of the stream, where the reader says so."""
        size = getattr(self._reader, "size", None)
        return size if type(size) is int and size > 0 else None

    def file(self) -> DirectFile | None:
        """The reader where its descriptor may be read from."""
        return None if len(self._pending) else direct(self._reader)

    def peek(self, size: int) -> memoryview:
        """The next bytes, which stay; fewer than `size` only at the end of the stream."""
        if size > len(self._pending):
            grown = memoryview(bytearray(size))
            self._pending = grown[: self.fill(grown)]
        return self._pending[:size]

    def skip(self, size: int) -> None:
        """Drops bytes that were peeked at."""
        self._pending = self._pending[size:]


class _HeadedWriter:
    """Writes the header with the first data: an engine that fails at once leaves nothing."""

    def __init__(self, writer: Writer, header: bytes) -> None:
        self._writer = writer
        self._header = memoryview(header)

    def write(self, data: memoryview, /) -> int:
        self.finish()
        write_whole(self._writer, data)
        return len(data)

    def file(self) -> DirectFile | None:
        """The writer where its descriptor may be written to."""
        return direct(self._writer)

    def finish(self) -> None:
        """Writes the header, where no data followed it."""
        write_whole(self._writer, self._header)
        self._header = memoryview(b"")


class _Slot:
    """A pair of buffers for one piece, and the piece that is in it."""

    def __init__(self, cipher: PieceCipher, most: int | None = None) -> None:
        """most: bytes of the stream, if known: a short one needs less room."""
        size, room = max(cipher.first_piece, cipher.piece), cipher.capacity
        if most is not None and most < size:
            room = most + 1 + max(0, room - size)  # as much more as a whole piece may gain
            size = most + 1  # one more shows that it has grown
        self.buffers = bytearray(size), bytearray(room)
        self.data = memoryview(self.buffers[0])
        self.out = memoryview(self.buffers[1])
        self.size = 0
        self.written = 0
        self.final = False

    def wipe(self) -> None:
        for buffer in self.buffers:
            wipe(buffer)


def _pump(source: Source, writer: Writer, cipher: PieceCipher, progress: Progress | None) -> int:
    """Moves all of the source; returns the bytes written."""
    if cipher.whole:
        return _pump_whole(source, writer, cipher, progress)
    slot = _Slot(cipher, source.size())
    in_ring = False
    try:
        consumed = written = 0
        full = cipher.first_piece
        slot.size = source.fill(slot.data[:full])
        if slot.size == len(slot.data) < full:
            small, slot = slot, _Slot(cipher)
            slot.data[: small.size] = small.data
            small.wipe()
            slot.size = small.size + source.fill(slot.data[small.size : full])
        if slot.size == full and (copy := _copy_of(source, writer, cipher)):
            written = cipher.process(slot.data[:full], slot.out, final=False)
            write_whole(writer, slot.out[:written])
            copy.run(lambda done: progress and progress(cipher.first_piece + done))
            consumed, written = full + copy.consumed, written + copy.written
            full = cipher.piece
            encrypts = isinstance(cipher, Encryptor)
            if copy.ended_early and encrypts:
                full = cipher.layout.chunk
            slot.size = source.fill(slot.data[:full])
            if not slot.size and encrypts and not cipher.layout.final_short:
                # The final chunk is gone, and may be empty in no other format.
                raise OSError("the input became shorter while it was read")
            if copy.ended_early and encrypts and slot.size == full:
                count = cipher.process(slot.data[:full], slot.out, final=False)
                write_whole(writer, slot.out[:count])  # this or the engine says what is wrong
                raise OSError("the input changed while it was encrypted: encrypt it again")
        if slot.size == full:
            in_ring = True
            return _Pipeline(source, writer, cipher, progress, consumed, written).run(slot)
        # A short file: the threads would cost more than they save.
        count = cipher.process(slot.data[: slot.size], slot.out, final=True)
        write_whole(writer, slot.out[:count])
        if progress is not None:
            progress(consumed + slot.size)
        return written + count
    finally:
        if not in_ring:
            slot.wipe()


def _copy_of(source: Source, writer: Writer, cipher: PieceCipher) -> Copy | None:
    """The copy from file to file after the first piece; None: not possible."""
    sizes = cipher.chunk_sizes()
    if sizes is None:
        return None
    reads = source.file()
    writes = writer.file() if isinstance(writer, _HeadedWriter) else direct(writer)
    if reads is None or writes is None:
        return None
    copy = Copy(reads, writes, cipher, sizes)
    return copy if copy.is_worth_it() else None


def _pump_whole(
    source: Source, writer: Writer, cipher: PieceCipher, progress: Progress | None
) -> int:
    """One message, held in memory. It grows with what comes, up to one byte more than is
    allowed."""
    text = bytearray()
    out = bytearray()
    try:
        while len(text) <= cipher.piece:
            part = bytearray(min(max(1 << 20, len(text)), cipher.piece + 1 - len(text)))
            count = source.fill(memoryview(part))
            text += memoryview(part)[:count]
            wipe(part)
            if count < len(part):
                break
        out = bytearray(min(len(text) + cipher.layout.overhead, cipher.capacity))
        count = cipher.process(memoryview(text), memoryview(out), final=True)
        write_whole(writer, memoryview(out)[:count])
        if progress is not None:
            progress(len(text))
        return count
    finally:
        wipe(text)
        wipe(out)


class _Pipeline:
    """The ring and its two threads, for one stream."""

    def __init__(
        self,
        source: Source,
        writer: Writer,
        cipher: PieceCipher,
        progress: Progress | None,
        consumed: int,
        written: int,
    ) -> None:
        """consumed, written: bytes before the stream's first piece."""
        self._source = source
        self._writer = writer
        self._cipher = cipher
        self._progress = progress
        self._free: SimpleQueue[_Slot] = SimpleQueue()
        self._todo: SimpleQueue[_Slot | None] = SimpleQueue()
        self._done: SimpleQueue[_Slot | None] = SimpleQueue()
        self._slots: list[_Slot] = []
        self._error: BaseException | None = None
        self._consumed = consumed
        self._written = written

    def run(self, first: _Slot) -> int:
        """Runs the stream whose first piece, a full one, is in `first`; returns the bytes
        written."""
        self._slots.append(first)
        for _ in range(SLOTS - 1):
            slot = _Slot(self._cipher)
            self._slots.append(slot)
            self._free.put(slot)
        threads = [
            threading.Thread(target=target, name=f"warpcipher-{name}", daemon=True)
            for name, target in (("cipher", self._run_cipher), ("writer", self._run_writer))
        ]
        for thread in threads:
            thread.start()
        try:
            self._read(first)
            for thread in threads:
                thread.join()
        except BaseException as error:
            if self._error is None:
                self._error = error
            self._todo.put(None)
            for thread in threads:
                thread.join(JOIN_SECONDS)
        if not any(thread.is_alive() for thread in threads):
            for slot in self._slots:
                slot.wipe()
        if self._error is not None:
            raise self._error
        if self._progress is not None:
            self._progress(self._consumed)
        return self._written

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _read(self, held: _Slot) -> None:
        """Reads to the end, one piece ahead, so that the last piece is known to be final."""
        while True:
            slot = self._free.get()
            self._check()
            slot.final = False
            slot.size = self._source.fill(slot.data[: self._cipher.piece], self._check)
            if slot.size == 0:
                held.final = True
                break
            self._todo.put(held)
            held = slot
            if self._progress is not None:
                self._progress(self._consumed)
            if slot.size < self._cipher.piece:
                held.final = True
                break
        self._todo.put(held)
        self._todo.put(None)

    def _run_cipher(self) -> None:
        while (slot := self._todo.get()) is not None:
            if self._error is None:
                try:
                    data = slot.data[: slot.size]
                    slot.written = self._cipher.process(data, slot.out, final=slot.final)
                except BaseException as error:
                    self._error = error
            self._done.put(slot)
        self._done.put(None)

    def _run_writer(self) -> None:
        while (slot := self._done.get()) is not None:
            if self._error is None:
                try:
                    write_whole(self._writer, slot.out[: slot.written])
                    self._consumed += slot.size
                    self._written += slot.written
                except BaseException as error:
                    self._error = error
            self._free.put(slot)


__all__ = ["Progress", "Reader", "Writer", "decrypt_stream", "encrypt_stream"]
