# SPDX-License-Identifier: Apache-2.0
"""Short files, from memory to memory: of many of them the buffers and threads of a stream take more
time than the cipher."""

from __future__ import annotations

import io

from .base import Format, Options, PieceCipher
from .registry import decryptor_of
from .stream import decrypt_stream, encrypt_stream


def encrypt_short(text: memoryview, key: object, chosen: Format, options: Options) -> memoryview:
    """A whole file. Raises as `encrypt_stream`."""
    if not options.armor:
        encryptor = chosen.encryptor(key, options)
        try:
            if (out := _whole(encryptor, text, encryptor.header)) is not None:
                return out
        finally:
            encryptor.close()
    sealed = io.BytesIO()
    encrypt_stream(io.BytesIO(text), sealed, key, format=chosen.name, options=options)
    return sealed.getbuffer()


def decrypt_short(file: memoryview, key: object, chosen: Format, options: Options) -> memoryview:
    """The plaintext of a whole file. Raises as `decrypt_stream`."""
    if not chosen.unwrap_size:  # of no format that may be text
        decryptor = decryptor_of(chosen, key, options, lambda at, size: file[at : at + size])
        try:
            text = file[decryptor.layout.header_size :]
            if decryptor.edits is None and (out := _whole(decryptor, text)) is not None:
                return out
        finally:
            decryptor.close()
    plain = io.BytesIO()
    decrypt_stream(io.BytesIO(file), plain, key, format=chosen.name, options=options)
    return plain.getbuffer()


def _whole(cipher: PieceCipher, data: memoryview, header: bytes = b"") -> memoryview | None:
    """The result for data of one piece, after the header; None: they are more."""
    if len(data) > (cipher.piece if cipher.whole else cipher.first_piece - 1):
        return None
    begin, more = len(header), cipher.layout.overhead
    if not cipher.whole:
        more = max(0, cipher.capacity - max(cipher.first_piece, cipher.piece))
    out = memoryview(bytearray(begin + len(data) + more))
    out[:begin] = header
    return out[: begin + cipher.process(data, out[begin:], final=True)]
