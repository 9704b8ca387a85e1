# SPDX-License-Identifier: Apache-2.0
"""`warpcipher info`."""

from __future__ import annotations

import functools
import math
import os
import stat
from typing import Any

import click

import warpcipher as wc
from warpcipher import stores

from . import keys, recipients
from . import list as trees
from .errors import ENGINE, NOT_AUTHENTIC, command, complain, counted, print_json, shown, usage
from .options import JSON, argument, option
from .run import Looks

Entry = dict[str, Any]


@command(NOT_AUTHENTIC, ENGINE)
@argument("paths [FILE]...")
@recipients.reading_options
@option("--engines", "List engines, their devices, and why one cannot run here.")
@option("--algorithms", "List algorithms.")
@option("--formats", "List file formats.")
@JSON
def info(
    paths: tuple[str, ...],
    engines: bool,
    algorithms: bool,
    formats: bool,
    as_json: bool,
    **key_options: Any,
) -> None:
    """Show what encrypted files may be, without their key; and what this installation can do.

    A FILE may be a URL, or the prefix of an encrypted tree. Of models it lists the tensors: of a
    file that is encrypted as a whole, or lies at a URL, only with --key. Files
    of age, Crypt4GH and ags1 have a magic number: without the key the size and the first byte show
    which of the other formats a file can be. With --key or -i the answer is certain: exit code 3
    means that the key does not open the file.
    """
    people, choice, context = recipients.take_reading(key_options)
    if not (paths or engines or algorithms or formats):
        raise usage("name a FILE, or give --engines, --algorithms or --formats")
    if (choice or people) and not paths:
        raise usage("a key is for a FILE: name one")
    if any("://" in path for path in paths):
        paths = tuple(map(stores.local_path, paths))
    document: Entry = {"version": wc.__version__}
    looks = Looks()
    if paths:
        document["files"] = _files(paths, choice, people, context, looks)
    if formats:
        document["formats"] = _formats()
    if algorithms:
        document["algorithms"] = [entry._asdict() for entry in wc.algorithms()]
    if engines:
        document["engines"] = [_engine(entry) for entry in wc.engines()]
        document["tuning"] = _tuning()
    if as_json:
        print_json(document)
    else:
        _print(document)
    looks.end()


def _files(
    paths: tuple[str, ...],
    choice: keys.Choice,
    people: recipients.People,
    context: bytes,
    looks: Looks,
) -> list[Entry]:
    """An entry for each file."""

    @functools.cache
    def read_key() -> object:
        if people:
            return people.read(encrypts=False)
        return choice.read("auto", None) if choice else None

    @functools.cache
    def read_web_keys() -> object:
        return choice.read_web_keys() if choice else None

    found = []
    for path in paths:
        signed = looks.at(path, _is_signed)
        if signed is None:
            continue
        key = read_web_keys() if signed else read_key()
        if signed:
            entry = looks.at(path, functools.partial(_signed, key=key))
        elif trees.is_tree(path):
            entry = looks.at(path, functools.partial(trees.describe, key=key, context=context))
        else:
            entry = looks.at(path, functools.partial(_file, key=key, context=context))
        if entry is not None:
            if key is not None and not entry["certain"]:
                complain(f"{shown(path)}: {entry['refusal']}")
                looks.code = looks.code or NOT_AUTHENTIC
            found.append(entry)
    return found


def _is_signed(path: str) -> bool:
    """Whether a file is one of cryptotensors. Refuses pipes and devices, which have no size and
    could keep the command waiting."""
    if path == keys.STANDARD:
        raise usage("info needs the size and the beginning of a file: standard input (-) has none")
    if stores.is_url(path):
        return False  # a model there is read only with the format's key
    kind = os.stat(path).st_mode  # noqa: PTH116 - Path("") is the current folder
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise usage(f"{shown(path)} is not a regular file")
    return stat.S_ISREG(kind) and wc.weights.is_cryptotensors(path)


def _refusal(answer: wc.formats.FileInfo, context: bytes) -> str | None:
    """Why the key does not open a file."""
    if answer.refusal is None:
        return None
    foreign = answer.foreign
    if foreign is not None and foreign.certain:
        return f"the key does not open it; it is {foreign.description}"
    perhaps = "" if foreign is None else f"; it may be {foreign.description}"
    if isinstance(answer.refusal, wc.formats.FormatError):
        return f"{answer.refusal}{perhaps}"
    given = f"a context of {counted(len(context), 'byte')}" if context else "no context"
    return f"the key does not open it, with {given}: {answer.refusal}{perhaps}"


def _signed(path: str, key: object) -> Entry:
    """A cryptotensors file, whose header says what it is."""
    size = os.stat(path).st_size  # noqa: PTH116
    return trees.entry_of(path, size, certain=True, model=describe_model(path, key, b""))


def _file(path: str, key: object, context: bytes) -> Entry:
    answer = wc.formats.info(path, key, context=context)
    candidates = [
        _candidate(entry, path.endswith(wc.formats.FORMATS[entry.format].extension))
        for entry in answer.candidates
    ]
    # Stable: the formats' order otherwise.
    candidates.sort(key=lambda entry: not entry["name_fits"])
    certain = answer.certain
    looks_inside = certain or (key is None and not stores.is_url(path))
    model = describe_model(path, key, context) if looks_inside else None
    if key is None and model is not None:
        certain, candidates = True, []  # plain tensors, and nothing encrypted
    foreign = answer.foreign if model is None else None
    return trees.entry_of(
        path,
        answer.size,
        certain=certain,
        candidates=candidates,
        foreign=None if foreign is None else foreign._asdict(),
        refusal=_refusal(answer, context),
        **({} if model is None else {"model": model}),
    )


def _candidate(entry: wc.formats.Candidate, name_fits: bool) -> Entry:
    return {
        "format": entry.format,
        "description": wc.formats.FORMATS[entry.format].description,
        "reason": entry.reason,
        "name_fits": name_fits,
        "plaintext_size": entry.plaintext_size,
        "chunk_size": entry.chunk_size,
        "chunks": entry.chunks,
        "key": wc.formats.FORMATS[entry.format].key_needed(),
    }


def _formats() -> list[Entry]:
    return [
        {
            "name": entry.name,
            "description": entry.description,
            "suffix": entry.extension,
            "authenticated": entry.authenticated,
            "key": entry.key_needed(),
        }
        for entry in wc.formats.FORMATS.values()
    ]


def _engine(entry: wc.EngineInfo) -> Entry:
    """constant_time: for every algorithm."""
    constant = all(entry.constant_time(one.name) for one in wc.algorithms())
    return {**entry._asdict(), "constant_time": constant}


def _tuning() -> Entry:
    """The rates that `auto` decides by, with a complaint where the cache is ignored."""
    import dataclasses
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        now = wc.tuning.current()
    if now.warning:
        complain(f"warning: {now.warning}")
    return dataclasses.asdict(now)


def _print(document: Entry) -> None:
    """The document for people."""
    for entry in document.get("files", ()):
        _print_file(entry)
    for entry in document.get("formats", ()):
        click.echo(f"{entry['name']:16} {entry['suffix']:13} {entry['description']}")
    if "algorithms" in document:
        _print_algorithms(document["algorithms"])
    for entry in document.get("engines", ()):
        click.echo(f"{entry['name']}: {entry['description']}")
        click.echo(f"  {'usable' if entry['usable'] else 'cannot run here: ' + entry['reason']}")
        if not entry["constant_time"]:
            click.echo("  not constant time: its time depends on keys and data")
        for device in entry["devices"]:
            click.echo(f"  device: {device}")
    if "tuning" in document:
        _print_tuning(document["tuning"])


def _print_algorithms(entries: list[Entry]) -> None:
    """A table whose columns are as wide as their longest entry."""
    rows = [("algorithm", "key", "block", "IV", "parallel")]
    for entry in entries:
        directions = [name for name in ("encrypt", "decrypt") if entry[f"parallel_{name}"]]
        sizes = (str(entry["key_size"]), str(entry["block_size"]), str(entry["iv"]))
        rows.append((entry["name"], *sizes, ", ".join(directions) or "-"))
    name, key, block, iv, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    for row in rows:
        click.echo(f"{row[0]:{name}}  {row[1]:>{key}}  {row[2]:>{block}}  {row[3]:{iv}}  {row[4]}")


_RATE_NAMES = {
    "cpu": "cpu", "pageable": "cuda", "pinned": "cuda page-locked", "both_pageable": "both",
    "both_pinned": "both page-locked",
}  # fmt: skip


def _print_tuning(entry: Entry) -> None:
    for policy in entry["policies"]:
        where = "host transfer" if policy["device"] is None else f"GPU {policy['device']}"
        others = ", ".join(value for value in policy["values"] if value != policy["value"])
        instead = f" (not {others})" if others else ""
        click.echo(f"{where}: {policy['name']} {policy['value']}{instead}: {policy['reason']}")
    click.echo(f"auto: {entry['origin']}")
    for rates in entry["rates"]:
        figures = ", ".join(
            f"{name} {rates[key] / 1e9:.1f}" for key, name in _RATE_NAMES.items() if rates[key]
        )
        click.echo(f"  {rates['algorithm']} {rates['direction']}: {figures} GB/s")


def _print_file(entry: Entry) -> None:
    if "tree" in entry:
        trees.show(entry)
        return
    click.echo(f"{shown(entry['path'])}: {counted(entry['size'], 'byte')}")
    if (foreign := entry["foreign"]) is not None:
        verdict = "is" if foreign["certain"] else "may be"
        click.echo(f"  {verdict} {foreign['name']}: {foreign['description']}")
        click.echo(f"    opened by  {foreign['hint']}")
    for candidate in entry["candidates"]:
        verdict = "is" if entry["certain"] else "may be"
        click.echo(f"  {verdict} {candidate['format']}: {candidate['description']}")
        because = candidate["reason"] + ("; the name fits" if candidate["name_fits"] else "")
        click.echo(f"    why        {because}")
        if candidate["plaintext_size"] is not None:
            click.echo(f"    plaintext  {counted(candidate['plaintext_size'], 'byte')}")
            click.echo(f"    chunks     {candidate['chunks']} of {candidate['chunk_size']} bytes")
        click.echo(f"    key        {candidate['key']}")
    if "model" in entry:
        show_model(entry["model"])


SHOWN = 20
"""Tensors that are listed for people; --json lists all."""
_PROTECTION = {
    "none": "{}, not encrypted",
    "format": "{}",
    "cryptotensors": "cryptotensors: safetensors with a key for each tensor, signed",
}


def describe_model(path: str, key: object, context: bytes) -> dict[str, Any] | None:
    """The model in a file, for JSON; None where it holds none.

    Raises FormatError where its name says that it does.
    """
    try:
        found = wc.weights.describe(path, key, context=context)
    except wc.formats.FormatError:
        if key is not None and (".safetensors" in path or ".gguf" in path):
            raise
        return None
    return _entry(found)


def _entry(found: wc.weights.ModelInfo) -> dict[str, Any]:
    from warpcipher.weights.gguf import logical_shape

    names = found.ggml or {}
    shapes = {
        name: logical_shape(info, names[name]) if names else info.shape
        for name, info in found.tensors.items()
    }
    tensors = [
        {
            "name": name,
            "dtype": names.get(name, info.dtype),
            "shape": list(shapes[name]),
            "offset": info.start,
            "size": info.size,
        }
        for name, info in found.tensors.items()
    ]
    return {
        "kind": "safetensors" if found.ggml is None else "GGUF",
        "protection": found.protection,
        "authentic": found.authentic,
        "metadata": found.metadata,
        "parameters": sum(map(math.prod, shapes.values())),
        "tensors": tensors,
    }


def show_model(entry: dict[str, Any]) -> None:
    """The same for people."""
    click.echo(f"  holds {_PROTECTION[entry['protection']].format(entry['kind'])}")
    if entry["protection"] == "cryptotensors":
        checked = "is by the key" if entry["authentic"] else "not checked: no key was given"
        click.echo(f"    signature  {checked}; its policy is not evaluated")
    for name, text in entry["metadata"].items():
        click.echo(f"    metadata   {shown(name)}: {shown(text[:200])}")
    tensors = entry["tensors"]
    total = f"{counted(len(tensors), 'tensor')}, {counted(entry['parameters'], 'parameter')}"
    click.echo(f"    tensors    {total}")
    for tensor in tensors[:SHOWN]:
        shape = "x".join(map(str, tensor["shape"])) or "scalar"
        size = counted(tensor["size"], "byte")
        click.echo(f"      {shown(tensor['name'])}  {tensor['dtype']} {shape}, {size}")
    if len(tensors) > SHOWN:
        click.echo(f"      and {len(tensors) - SHOWN} more: --json lists them all")
