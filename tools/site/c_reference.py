#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the page of the C interface from the comments of include/warpcipher.h and its parts.

    python tools/site/c_reference.py include/warpcipher.h >page.rst

The page has the conventions of warpcipher.h, then the parts as `PARTS` orders them. A comment that
stands right before a declaration describes it. Functions that follow each other without an empty
line share the comment. A function or type without a comment is an error, and so is a line that is
not understood: nothing is left out in silence.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import markup

_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
_SECTION = re.compile(r" -{2,} (.*?) -{2,} ")
_TYPE = re.compile(r"typedef (enum|struct) (\w+)(?: \{(.*)\})? \2;", re.DOTALL)
_FUNCTION = re.compile(r"WC_API (.*);", re.DOTALL)
_CALLBACK = re.compile(r"typedef \w[\w ]*\(\*(\w+)\)\([^;]*\);", re.DOTALL)
_INCLUDED = re.compile(r'#include "(warpcipher/\w+\.h)"')
# The parts from the most common to the rarest, as a reader wants them.
PARTS = ("core", "messages", "columns", "chunks", "files", "queue", "random")
# A member and the comment after it: `WC_OK = 0,  /* ... */`, `size_t len; /* ... */`.
_MEMBER = re.compile(r"\s*([^,;/]+?)\s*(?:[,;]|(?=/\*)|$)[ \t]*(?:/\*(.*?)\*/)?", re.DOTALL)


class HeaderError(ValueError):
    """The header has something that this generator cannot put on the page."""


class Item(NamedTuple):
    """A comment, or a declaration with its semicolon."""

    is_comment: bool
    text: str
    gap: bool  # an empty line before it


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _comment_lines(text: str) -> list[str]:
    """A comment's lines without the stars at their margin."""
    first, *others = text.strip("\n").splitlines()
    return [first.lstrip(), *(re.sub(r"^ \* ?|^ ?\*?$", "", line) for line in others)]


def _end_of_declaration(body: str, place: int) -> int:
    depth = 0
    for match in re.compile(r"/\*.*?\*/|[{};]", re.DOTALL).finditer(body, place):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if match[0] == ";" and depth == 0:
            return match.end()
    raise HeaderError(f"no end of {_one_line(body[place : place + 80])!r}")


def _items(body: str) -> Iterator[Item]:
    place = 0
    while body[place:].strip():
        start = place + len(body[place:]) - len(body[place:].lstrip())
        gap = body.count("\n", place, start) > 1
        comment = _COMMENT.match(body, start)
        place = comment.end() if comment else _end_of_declaration(body, start)
        yield Item(comment is not None, comment[1] if comment else body[start:place], gap)


def _linked(line: str) -> str:
    """With each `wc_name()` of a text as a link to the function."""
    return re.sub(r"(?<![\w`])(wc_\w+)\(\)", r":c:func:`\1`", line)


def _described(lines: list[str], indent: str) -> list[str]:
    return [_linked(f"{indent}{line}".rstrip()) for line in markup.to_rst(lines)]


def _members(body: str, kind: str) -> list[str]:
    """The enumerators or fields of a type, each with the comment after it."""
    out: list[str] = []
    place = 0
    while body[place:].strip():
        match = _MEMBER.match(body, place)
        if match is None or not match[1]:
            raise HeaderError(f"a member is expected, found {_one_line(body[place:])[:80]!r}")
        name, _, value = (_one_line(part) for part in match[1].partition("="))
        text = _one_line(match[2] or "")
        if value:
            text = f"{value}: {text}" if text else value
        out += [f"   .. c:{'enumerator' if kind == 'enum' else 'member'}:: {name}", ""]
        out += [_linked(f"      {markup.inline(text)}"), ""] if text else []
        place = match.end()
    return out


def _entry(declaration: str, more: list[str], comment: list[str] | None) -> list[str]:
    """A type, or functions that share a comment."""
    found = _TYPE.fullmatch(declaration)
    function = _FUNCTION.fullmatch(declaration)
    callback = _CALLBACK.fullmatch(declaration)
    if found is None and function is None and callback is None:
        raise HeaderError(f"not understood: {_one_line(declaration)[:80]!r}")
    if comment is None:
        raise HeaderError(f"no comment describes {_one_line(declaration)[:80]!r}")
    if found is not None:
        body = _members(found[3], found[1]) if found[3] else []
        return [f".. c:{found[1]}:: {found[2]}", "", *_described(comment, "   "), *body]
    if callback is not None:
        shown = _one_line(declaration.removesuffix(";"))
        return [
            f".. c:type:: {callback[1]}",
            "",
            f"   ``{shown}``",
            "",
            *_described(comment, "   "),
        ]
    signatures = [_one_line(text.removeprefix("WC_API ").removesuffix(";")) for text in more]
    return [
        f".. c:function:: {_one_line(declaration.removeprefix('WC_API ').removesuffix(';'))}",
        *(f"                 {signature}" for signature in signatures),
        "",
        *_described(comment, "   "),
    ]


def read_headers(umbrella: Path) -> list[str]:
    """The text of warpcipher.h and of its parts. HeaderError: it includes others than `PARTS`."""
    first = umbrella.read_text(encoding="utf-8")
    parts = [f"warpcipher/{part}.h" for part in PARTS]
    if sorted(_INCLUDED.findall(first)) != sorted(parts):
        raise HeaderError(f"{umbrella} includes other parts than {', '.join(PARTS)}")
    return [first, *((umbrella.parent / part).read_text(encoding="utf-8") for part in parts)]


def _declarations(part: str) -> Iterator[Item]:
    start = part.find('extern "C" {')
    if start < 0:
        raise HeaderError('expected extern "C" in each part of the header')
    return _items(part[part.index("#endif", start) + 6 : part.rindex("#ifdef")])


def page(header: str, *parts: str) -> str:
    """The page as reStructuredText, without a title. HeaderError: see above."""
    intro = _COMMENT.search(header)
    if intro is None:
        raise HeaderError("expected a comment at the top of the header")
    notes = _comment_lines(intro[1])
    notes = notes[notes.index("", notes.index("") + 1) :]  # without license and the file's purpose
    out = [*_described(notes, ""), "Types of all calls", "------------------", ""]

    items = [item for part in parts for item in _declarations(part)]
    comment: list[str] | None = None
    while items:
        item = items.pop(0)
        if item.is_comment and (section := _SECTION.search(item.text)):
            title = section[1][0].upper() + section[1][1:]
            out += [title, "-" * len(title), ""]
        elif item.is_comment:
            comment = _comment_lines(item.text)
        else:
            more: list[str] = []
            while (
                items
                and not items[0].is_comment
                and not items[0].gap
                and _FUNCTION.match(items[0].text)
            ):
                more.append(items.pop(0).text)
            out += _entry(item.text, more, comment)
            comment = None
    return "\n".join(out)


if __name__ == "__main__":
    sys.stdout.write(page(*read_headers(Path(sys.argv[1]))))
