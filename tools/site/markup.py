# SPDX-License-Identifier: Apache-2.0
"""Turns the plain text of docstrings and of C comments into reStructuredText, which Sphinx reads.

Our comments are written to be read in the source. They hold

    paragraphs, with `code` in backticks,
    - lists
    name: the meaning of a parameter or field, over
          more lines that are indented
    name  the same in C, with two spaces or more

and blocks that are shown as they are: those indented by four spaces, such as an example, those that
begin with >>>, which are sessions of Python, and drawings, which begin with + or |. Everything else
is a paragraph. Characters that mean something to reStructuredText are escaped.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

_FIELD = re.compile(r"(\w+(?:, \w+)*)(?::\s+| {2,})(\S.*)")
_BULLET = re.compile(r"\s*- +(.*)")


def inline(text: str, links: Mapping[str, str] | None = None) -> str:
    """One run of text. links: the full Python name for a name in backticks."""
    parts = re.split(r"`([^`]+)`", text)
    found = []
    for i, part in enumerate(parts):
        if i % 2 == 0:
            escaped = re.sub(r"([\\*|`])", r"\\\1", part)
            found.append(re.sub(r"(?<=\w)_(?!\w)", r"\\_", escaped))
            continue
        before = r"\ " if parts[i - 1][-1:].isalnum() else ""
        after = r"\ " if parts[i + 1][:1].isalnum() else ""
        target = (links or {}).get(part.removesuffix("()"))
        found.append(
            f"{before}:py:obj:`{part} <{target}>`{after}"
            if target
            else f"{before}``{part}``{after}"
        )
    return "".join(found)


def _blocks(lines: list[str]) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            blocks[-1].append(line.rstrip())
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _items(block: list[str], pattern: re.Pattern[str]) -> list[re.Match[str] | list[str]] | None:
    """The block as items that match at its margin, each with its further, indented lines; None when
    it is not such a list."""
    margin = len(block[0]) - len(block[0].lstrip())
    items: list[re.Match[str] | list[str]] = []
    for line in block:
        body = line[margin:]
        if body[:1] != " ":
            match = pattern.fullmatch(body)
            if match is None:
                return None
            items.append(match)
        elif items:
            items.append([body.strip()])
        else:
            return None
    return items


def _joined(
    items: list[re.Match[str] | list[str]], group: int
) -> list[tuple[re.Match[str], list[str]]]:
    found: list[tuple[re.Match[str], list[str]]] = []
    for item in items:
        if isinstance(item, list):
            found[-1][1].extend(item)
        else:
            found.append((item, [item[group]]))
    return found


def to_rst(lines: list[str], links: Mapping[str, str] | None = None) -> list[str]:
    """The text as lines of reStructuredText, each block followed by an empty line."""
    out: list[str] = []
    for block in _blocks(lines):
        margin = min(len(line) - len(line.lstrip()) for line in block)
        if block[0].lstrip().startswith(">>>"):
            out += [".. code-block:: pycon", "", *(f"    {line[margin:]}" for line in block), ""]
            continue
        if margin >= 4 or block[0].lstrip()[:1] in "+|":
            out += [".. code-block:: text", "", *(f"    {line[margin:]}" for line in block), ""]
            continue
        # A lead-in, such as "They hold:", and a list below it are one block of the source.
        lead = 0
        while lead < len(block) and not _BULLET.match(block[lead]):
            lead += 1
        if lead < len(block) and _items(block[lead:], _BULLET) is not None:
            if lead:
                out += [inline(" ".join(line.strip() for line in block[:lead]), links), ""]
            items = _items(block[lead:], _BULLET) or []
            for _, words in _joined(items, 1):
                out.append(f"- {inline(' '.join(words), links)}")
            out.append("")
            continue
        fields = _items(block, _FIELD)
        if fields is not None:
            for match, words in _joined(fields, 2):
                out += [f"``{match[1].strip()}``", f"    {inline(' '.join(words), links)}", ""]
            continue
        out += [*textwrap.wrap(inline(" ".join(line.strip() for line in block), links), 100), ""]
    return out
