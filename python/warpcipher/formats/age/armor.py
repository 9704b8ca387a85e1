# SPDX-License-Identifier: Apache-2.0
"""ASCII armor: an age file as text, base64 in lines of 64 between two markers (RFC 7468, strict).

Lines end in LF or CR LF. White space may stand before and after the text, nowhere in it; a byte
order mark may stand before it.
"""

from __future__ import annotations

import base64
import binascii
import codecs
from collections.abc import Iterator

from ...keys.decode import in_utf16
from ..layout import FormatError
from ..whole import Reader, TextWriter, Writer, read_whole

BEGIN = b"-----BEGIN AGE ENCRYPTED FILE-----"
END = b"-----END AGE ENCRYPTED FILE-----"
COLUMNS = TextWriter.COLUMNS
SPACE = b" \t\r\n"
MARK = codecs.BOM_UTF8
MOST_SPACE = 1024
"""White space before the text."""
BLOCK = 1 << 16


def is_armor(prefix: bytes) -> bool:
    """Whether a file that begins so is armored."""
    start = prefix[: len(MARK) + MOST_SPACE + len(BEGIN)].removeprefix(MARK)
    return start.lstrip(SPACE).startswith(BEGIN)


def beginning(prefix: bytes) -> bytes:
    """The first bytes in an armored file that begins so, of its whole lines only; empty where they
    are malformed, which the reader says."""
    lines = prefix.removeprefix(MARK).lstrip(SPACE).split(b"\n")[1:-1]
    text = b"".join(line.strip() for line in lines if not line.startswith(b"-"))
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def misplaced(prefix: bytes) -> str | None:
    """Why a file that begins so is not read, though an age file is in its text; None where there is
    none."""
    if in_utf16(prefix):
        text = prefix[: len(prefix) // 2 * 2].decode("utf-16", "replace")
        if BEGIN.decode() in text or text.startswith("age-encryption.org/"):
            return (
                "it is text in UTF-16, as `>` of PowerShell writes it: write armor in ASCII, and "
                "name the file with -o where it is made"
            )
    found = prefix.find(BEGIN)
    if found < 0:
        return None
    if prefix[:found].rpartition(b"\n")[2].removeprefix(MARK).strip(SPACE):
        return (
            "its armor is quoted: take what stands before -----BEGIN AGE ENCRYPTED FILE-----, "
            "such as `> `, off every line"
        )
    return (
        "other text stands before its armor: keep the lines from -----BEGIN AGE ENCRYPTED "
        "FILE----- to -----END AGE ENCRYPTED FILE-----"
    )


def armored(writer: Writer) -> TextWriter:
    """Writes a file as text."""
    return TextWriter(writer, BEGIN + b"\n", END + b"\n")


def decoded(reader: Reader) -> Iterator[bytes]:
    """The file inside of text, in parts. Raises FormatError."""
    block = memoryview(bytearray(BLOCK))
    text, number, at_end = b"", 0, False
    begun = is_short = False
    while not at_end:
        count = read_whole(reader, block)
        at_end = count < BLOCK
        text += block[:count]
        if not begun:
            text = text.removeprefix(MARK).lstrip(SPACE)
        lines = text.split(b"\n")
        text = b"" if at_end and lines[-1] else lines.pop()  # a line that has not ended
        part: list[bytes] = []
        for place, line in enumerate(lines):
            number += 1
            line = line.removesuffix(b"\r")
            if line == END and begun:
                yield b"".join(part)
                _check_end(b"\n".join([*lines[place + 1 :], text]), reader, number)
                return
            if begun:
                if is_short:
                    raise _malformed("a line follows one that is shorter than the others", number)
                part.append(_decoded_line(line, number))
                is_short = len(part[-1]) < TextWriter.LINE
            elif line != BEGIN:
                raise _malformed(f"its first line is not {BEGIN.decode()}", number)
            begun = True
        if not begun and len(text) > BLOCK:
            raise _malformed(f"its first line is not {BEGIN.decode()}", number)
        if len(text) > COLUMNS + 1:
            raise _malformed(f"a line has more than {COLUMNS} characters", number)
        yield b"".join(part)
    raise FormatError("truncated: the armor has no line " + END.decode())


def _decoded_line(line: bytes, number: int) -> bytes:
    if not line or len(line) > COLUMNS:
        raise _malformed(f"a line has {len(line)} characters, expected 1 to {COLUMNS}", number)
    try:
        data = base64.b64decode(line, validate=True)
    except binascii.Error:
        data = None
    if data is None or base64.b64encode(data) != line:
        raise _malformed("a line is not canonical base64", number)
    return data


def _check_end(rest: bytes, reader: Reader, number: int) -> None:
    """Nothing but white space follows."""
    block = memoryview(bytearray(BLOCK))
    while True:
        if rest.strip(SPACE):
            raise _malformed("something follows its last line", number)
        if not (count := read_whole(reader, block)):
            return
        rest = bytes(block[:count])


def _malformed(why: str, number: int) -> FormatError:
    return FormatError(f"malformed armor, line {number}: {why}")
