# SPDX-License-Identifier: Apache-2.0
"""Bare ciphertext, as `openssl enc -K -iv`: the caller keeps algorithm, key and IV. With a password
in the place of the key it has a salt before it, as `openssl enc -pbkdf2` writes it (openssl.py).

Only AEADs authenticate: otherwise a wrong key or a changed file yields garbage, not an error. A
long file runs as a chain of one-shot messages; the IV of the next one follows from the last:

    ecb        none
    cbc, cfb   the last ciphertext block
    cfb8       the last block-size bytes of IV || ciphertext
    ctr        IV + blocks done (mod 2^8b)
    ofb        last ciphertext block XOR last plaintext block
    chacha20   its counter (the first 4 bytes, little-endian) + blocks done, which may not wrap

All others (AEADs, XTS) take the message whole, up to a limit.
"""

from __future__ import annotations

import hmac
import os

import warpcipher as wc

from .._types import Direction
from . import base
from .base import Decryptor, Encryptor, Format, Options, PieceCipher, ReadAt, key_bytes, wipe
from .chunks import native_key, open_key
from .layout import PIECE_SIZE, FormatError, Layout
from .openssl import BASE64_MAGIC, MAGIC, SALT_SIZE, Password, decoded
from .whole import Parts, Reader, TextWriter, Writer

CHUNK_SIZE = 64 << 10
"""The step of random access; the bytes do not depend on it."""
WHOLE_LIMIT = 128 << 20
"""Bytes of a message that cannot be cut."""
CHAINED = {
    "ecb": "nothing",
    "cbc": "ciphertext",
    "cfb": "ciphertext",
    "cfb8": "ciphertext",
    "ofb": "key stream",
    "ctr": "counter",
    "chacha20": "counter",
}
"""How the IV after a piece is made, for each mode that can be cut."""
TAG_SIZE = 16
PROBE_SIZE = 64
"""Bytes that tell whether a file is one of another format."""


def mode_of(info: wc.AlgorithmInfo) -> str:
    """The last part of the name."""
    return info.name.rpartition("-")[2]


def whole_limit(info: wc.AlgorithmInfo) -> int | None:
    """Bytes of a file that is one message, in memory; None: it is cut into a chain of them."""
    return None if mode_of(info) in CHAINED else min(WHOLE_LIMIT, info.most_size)


class _RawCipher(PieceCipher):
    """One file's algorithm, key and chaining value, in one direction."""

    def __init__(
        self, key: object, options: Options, direction: Direction, salt: bytes = b""
    ) -> None:
        """salt: of the password that the key is."""
        if options.algorithm is None:
            raise ValueError("format raw needs an algorithm, such as aes-256-ctr")
        info = wc.find_algorithm(options.algorithm)
        algorithm = info.name
        mode = mode_of(info)
        limit = whole_limit(info)
        self.whole = limit is not None
        if self.whole and info.takes_padding:
            raise ValueError(f"format raw cannot cut {algorithm} into pieces: use wc.Cipher")
        self._password = isinstance(key, Password)
        self.header = MAGIC + salt if self._password else b""
        iv = options.iv
        if isinstance(key, Password):
            if self.whole:
                raise ValueError(f"openssl enc does not take {algorithm}: give a key and an IV")
            if iv is not None:
                raise ValueError("the IV comes from the password: give none")
            material = key.derive(salt, info.key_size + info.iv_size)
            iv = bytes(material[info.key_size :]) or None
            key = material[: info.key_size]
            wipe(material)
        elif options.armor:
            raise ValueError("format raw takes armor with a password, not with a key")
        self._key: wc.Key | None = native_key(algorithm, key_bytes(key, (), "format raw"))
        self._algorithm = info.name
        self._mode = mode
        self._chained = CHAINED.get(mode)
        self._block = info.block_size
        self._whole_blocks = info.whole_blocks
        self._direction = direction
        self._engine = options.engine
        self._first_iv = self._iv = self._check_iv(iv, info)
        self._context = options.context
        if options.context and not info.is_aead:
            raise ValueError(
                f"{algorithm} authenticates nothing and takes no context: use cobblestone-256"
            )
        if options.padding == "pkcs7" and not info.takes_padding:
            raise ValueError(f"{algorithm} takes messages of any length and no padding")
        self._padded = options.padding != "none" and info.takes_padding
        self._sealing = direction == "encrypt"
        overhead = TAG_SIZE if info.is_aead else 0
        self._shortest = info.least_size + (0 if self._sealing else overhead)
        chunk = CHUNK_SIZE if limit is None else limit
        self.layout = Layout(
            len(self.header), chunk, overhead, chunk, False, 1 if self.whole else 1 << 62
        )
        if self.whole:
            self.piece = chunk + (0 if self._sealing else overhead)
            self.capacity = chunk + overhead
        else:
            self.piece = PIECE_SIZE
            self.capacity = PIECE_SIZE + self._block
        self.first_piece = self.piece

    def _check_iv(self, iv: bytes | None, info: wc.AlgorithmInfo) -> bytes:
        """The IV, empty without one."""
        if info.iv == "none":
            if iv is not None:
                raise ValueError(f"{self._algorithm} takes no IV")
            return b""
        if not iv or (info.iv != "any" and len(iv) != info.iv_size):
            want = "1 or more" if info.iv == "any" else info.iv_size
            given = "none" if iv is None else f"{len(iv)} bytes"
            raise ValueError(f"{self._algorithm} takes an IV of {want} bytes, got {given}")
        return bytes(iv)

    def _run(self, iv: bytes, data: base.Buffer, out: memoryview | bytearray) -> None:
        """One one-shot message."""
        if len(data) == 0 and not self.layout.overhead:
            return
        wc.run_columns(
            self._algorithm,
            self._direction,
            open_key(self._key),
            data,
            lengths=(len(data),),
            ivs=iv or None,
            aad=self._context or None,
            out=out,
            engine=self._engine,
        ).raise_for_status()

    def _chain(self, data: memoryview, out: memoryview) -> None:
        """A message that continues the ones before: sets the IV of the next."""
        if self._mode == "chacha20" and not self._iv and len(data):
            raise FormatError(f"{self._algorithm} has no key stream after block 2^32 - 1")
        self._run(self._iv, data, out[: len(data)])
        text = out if self._sealing else data
        size, block = len(data), self._block
        if self._chained == "ciphertext":
            self._iv = (self._iv + bytes(text[max(0, size - block) : size]))[-block:]
        elif self._chained == "counter":
            self._iv = self._counter(self._iv, size // block)
        elif self._chained == "key stream" and size >= block:
            pair = data[size - block :], out[size - block : size]
            self._iv = bytes(a ^ b for a, b in zip(*pair, strict=True))

    def _counter(self, iv: bytes, blocks: int) -> bytes:
        """CTR: SP 800-38A, appendix B.1, over the whole block. ChaCha20: RFC 8439, section 2.4;
        empty after the last block."""
        if self._mode == "chacha20":
            number = int.from_bytes(iv[:4], "little") + blocks
            return number.to_bytes(4, "little") + iv[4:] if number < 1 << 32 else b""
        value = (int.from_bytes(iv, "big") + blocks) % (1 << 8 * self._block)
        return value.to_bytes(self._block, "big")

    def _too_long(self) -> FormatError:
        return FormatError(
            f"{self._algorithm} takes one message of at most {self.layout.chunk >> 20} MiB, in "
            "memory: use format cobblestone-128 or cobblestone-256 for longer files"
        )

    def _check_whole(self, size: int) -> None:
        """Raises FormatError where a whole message cannot have `size` bytes."""
        if size > self.piece:
            raise self._too_long()
        if size < self._shortest:
            raise FormatError(
                f"{self._algorithm} takes at least {self._shortest} bytes here, got {size}"
            )

    def _check_blocks(self, size: int) -> None:
        if self._whole_blocks and size % self._block:
            raise FormatError(
                f"{size} bytes are not a multiple of the {self._block}-byte block of "
                f"{self._algorithm}" + (" without padding" if self._sealing else "")
            )

    def close(self) -> None:
        self._key = None


def _refuse_foreign(prefix: bytes) -> None:
    """Raises FormatError for a file that says what it is: it would become garbage, in most modes
    without an error."""
    from .foreign import identify

    foreign = identify(prefix, len(prefix))
    if foreign is not None and foreign.certain:
        raise FormatError(f"the file is {foreign.description}: it is not bare ciphertext")


class RawEncryptor(_RawCipher, Encryptor):
    """Encrypts as `openssl enc` does; the header is empty, except for a password's salt."""

    def __init__(self, key: object, options: Options) -> None:
        salt = os.urandom(SALT_SIZE) if isinstance(key, Password) else b""
        super().__init__(key, options, "encrypt", salt)

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        size = len(data)
        if self.whole:
            self._check_whole(size)
            self._run(self._iv, data, out[: size + self.layout.overhead])
            return size + self.layout.overhead
        if not (final and self._padded):
            self._check_blocks(size)
            self._chain(data, out)
            return size
        body = size - size % self._block
        self._chain(data[:body], out)
        fill = self._block - size % self._block
        last = bytearray(data[body:]) + bytes([fill]) * fill
        self._chain(memoryview(last), out[body:])
        wipe(last)
        return body + self._block


class RawDecryptor(_RawCipher, Decryptor):
    """Decrypts what `openssl enc` wrote. Unauthenticated, AEADs excepted."""

    def __init__(self, key: object, prefix: bytes, options: Options) -> None:
        """prefix: the bytes that the file begins with, PROBE_SIZE or all of them."""
        salt = prefix[len(MAGIC) : len(MAGIC) + SALT_SIZE]
        salted = prefix.startswith(MAGIC) and len(salt) == SALT_SIZE
        if isinstance(key, Password) and not salted:
            raise FormatError(
                "the file does not begin with Salted__ and a salt: it was not made from a password "
                "by `openssl enc`: give its key and IV"
            )
        if salted and not isinstance(key, Password):
            raise FormatError(
                "the file begins with Salted__: `openssl enc` made it from a password. Give that, "
                "if it was made with -pbkdf2 (formats.openssl.Password, `raw decrypt -p`); else "
                "`openssl enc -d` reads it"
            )
        if not salted:
            _refuse_foreign(prefix)
        super().__init__(key, options, "decrypt", salt)
        self._ofb_ivs = {0: self._first_iv}

    def process(self, data: memoryview, out: memoryview, *, final: bool) -> int:
        size = len(data)
        if self.whole:
            self._check_whole(size)
            try:
                self._run(self._iv, data, out[: size - self.layout.overhead])
            except wc.InvalidTag:
                wipe(out)
                raise wc.InvalidTag(
                    "the message failed authentication: wrong key, IV or context, or damaged"
                ) from None
            return size - self.layout.overhead
        self._check_blocks(size)
        if final and self._padded and not size:
            raise self._no_padding()
        self._chain(data, out)
        return size - self._padding(out[:size]) if final and self._padded else size

    def _padding(self, text: memoryview) -> int:
        """The length of the PKCS#7 padding. Raises FormatError, and wipes, without one."""
        fill = text[-1]
        if 1 <= fill <= self._block and hmac.compare_digest(text[-fill:], bytes([fill]) * fill):
            return fill
        wipe(text)
        raise self._no_padding()

    def _no_padding(self) -> FormatError:
        wrong = (
            "wrong password, cipher, digest or iterations, made without -pbkdf2 (then `openssl enc "
            "-d` reads it)"
            if self._password
            else "wrong key or IV"
        )
        return FormatError(
            f"the last block has no PKCS#7 padding: {wrong}, damaged or cut file, or it was "
            "encrypted without padding"
        )

    def seek(self, chunk: int, read_at: ReadAt) -> None:
        position = chunk * CHUNK_SIZE
        if chunk == 0:
            self._iv = self._first_iv
        elif self._chained == "counter":
            self._iv = self._counter(self._first_iv, position // self._block)
        elif self._chained == "ciphertext":
            self._iv = read_at(len(self.header) + position - self._block, self._block)
        elif self._chained == "key stream":
            self._iv = self._ofb_iv(chunk)

    def _ofb_iv(self, chunk: int) -> bytes:
        """OFB has no short cut: its keystream is computed up to the chunk, and the IVs passed are
        kept."""
        known = chunk
        while known not in self._ofb_ivs:
            known -= 1
        zeros = bytes(CHUNK_SIZE)
        keystream = bytearray(CHUNK_SIZE)
        for index in range(known, chunk):
            self._run(self._ofb_ivs[index], zeros, keystream)
            self._ofb_ivs[index + 1] = bytes(keystream[-self._block :])
        wipe(keystream)
        return self._ofb_ivs[chunk]

    def plaintext_size(self, file_size: int, read_at: ReadAt) -> int:
        if self.whole:
            self._check_whole(file_size)
            return file_size - self.layout.overhead
        file_size -= (start := len(self.header))
        self._check_blocks(file_size)
        if not self._padded:
            return file_size
        if not file_size:
            raise self._no_padding()
        block = self._block
        tail = read_at(start + max(0, file_size - 2 * block), min(file_size, 2 * block))
        iv = b"" if self._mode == "ecb" else (self._first_iv + tail[:-block])[-block:]
        last = bytearray(block)
        self._run(iv, tail[-block:], last)
        size = file_size - self._padding(memoryview(last))
        wipe(last)
        return size


class Raw(Format):
    """`raw`; the key is the algorithm's, options `algorithm` and `iv` (none for ECB) are required;
    or the key is a `Password` of openssl.py, without an IV."""

    name = "raw"
    takes = ("context", "algorithm", "iv", "padding", "armor")
    description = "bare ciphertext as openssl enc -K -iv writes it: unauthenticated, AEADs excepted"
    found_by_key = False
    command = "raw"
    extension = ".enc"
    authenticated = False
    binds_chunks = False
    unwrap_size = len(BASE64_MAGIC)

    def sizes_of_key(self, algorithm: str | None) -> tuple[int, ...]:
        if algorithm is None:
            raise ValueError(
                "format raw needs an algorithm: `warpcipher info --algorithms` lists them"
            )
        return (wc.find_algorithm(algorithm).key_size,)

    def name_of_key(self, algorithm: str | None) -> str:
        return f"a key of {algorithm}"

    def key_needed(self) -> str:
        return "the key, algorithm and IV that it was encrypted with, for `warpcipher raw decrypt`"

    def make_key(self, template: str, passphrase: bytes | None) -> base.NewKey:
        raise ValueError(
            "the key of an algorithm is made by `warpcipher raw keygen --algorithm NAME`"
        )

    def encryptor(self, key: object, options: Options) -> Encryptor:
        options.check(self)
        return RawEncryptor(key, options)

    def shape(self, prefix: bytes, size: int) -> base.Candidate | None:
        return base.Candidate(self.name, "any bytes can be bare ciphertext")

    def probe_size(self, key: object, options: Options, prefix: base.Buffer = b"") -> int:
        return PROBE_SIZE

    def decryptor(self, key: object, prefix: base.Buffer, options: Options) -> Decryptor:
        options.check(self)
        return RawDecryptor(key, bytes(prefix[:PROBE_SIZE]), options)

    def unwrapped(self, prefix: bytes, reader: Reader) -> Reader | None:
        return Parts(decoded(reader)) if prefix.startswith(BASE64_MAGIC) else None

    def wrapped(self, writer: Writer, options: Options) -> TextWriter | None:
        return TextWriter(writer) if options.armor else None


FORMATS = (Raw(),)
