# SPDX-License-Identifier: Apache-2.0
"""ASCII armor: an age file as text, base64 in lines of 64 between two markers (RFC 7468, strict).

Lines end in LF or CR LF. White space may stand before and after the text, nowhere in it; a byte
order mark may stand before it.
"""

from __future__ import annotations

import base64
import binascii
import codecs

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
    """What an armored file that begins so holds, as far as its whole lines tell; empty where they
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


class ArmorReader:
    """The file inside of text."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._text = b""
        self._at_end = False
        self._decoded = memoryview(b"")
        self._line = 0
        self._last = False
        self._begun = False
        self._short_line = False

    def readinto(self, buffer: memoryview, /) -> int:
        while not self._decoded:
            if self._begun and self._last:
                return 0
            self._decode()
        count = min(len(buffer), len(self._decoded))
        buffer[:count] = self._decoded[:count]
        self._decoded = self._decoded[count:]
        return count

    def _fill(self) -> None:
        block = bytearray(BLOCK)
        count = read_whole(self._reader, memoryview(block))
        self._at_end = count < BLOCK
        self._text += block[:count]

    def _decode(self) -> None:
        """Decodes the lines that are there."""
        if not self._at_end:
            self._fill()
        if not self._begun:
            self._text = self._text.removeprefix(MARK).lstrip(SPACE)
        lines = self._text.split(b"\n")
        rest = lines.pop()  # a line that has not ended
        self._text = b"" if self._at_end else rest
        if self._at_end and rest:
            lines.append(rest)
        decoded = []
        for place, line in enumerate(lines):
            self._line += 1
            line = line.removesuffix(b"\r")
            if not self._begun:
                if line != BEGIN:
                    raise self._malformed(f"its first line is not {BEGIN.decode()}")
                self._begun = True
            elif line == END:
                self._last = True
                self._check_end(b"\n".join(lines[place + 1 :]) + self._text)
                break
            else:
                decoded.append(self._decode_line(line))
        if self._at_end and not self._last:
            raise FormatError("truncated: the armor has no line " + END.decode())
        if not self._begun and len(self._text) > BLOCK:
            raise self._malformed(f"its first line is not {BEGIN.decode()}")
        if len(self._text) > COLUMNS + 1 and not self._last:
            raise self._malformed(f"a line has more than {COLUMNS} characters")
        self._decoded = memoryview(b"".join(decoded))

    def _decode_line(self, line: bytes) -> bytes:
        if self._short_line:
            raise self._malformed("a line follows one that is shorter than the others")
        if not line or len(line) > COLUMNS:
            raise self._malformed(f"a line has {len(line)} characters, expected 1 to {COLUMNS}")
        try:
            data = base64.b64decode(line, validate=True)
        except binascii.Error:
            data = None
        if data is None or base64.b64encode(data) != line:
            raise self._malformed("a line is not canonical base64")
        self._short_line = len(data) < TextWriter.LINE
        return data

    def _check_end(self, rest: bytes) -> None:
        """Nothing but white space follows."""
        while True:
            if rest.strip(SPACE):
                raise self._malformed("something follows its last line")
            if self._at_end:
                return
            self._text = b""
            self._fill()
            rest = self._text

    def _malformed(self, why: str) -> FormatError:
        return FormatError(f"malformed armor, line {self._line}: {why}")
