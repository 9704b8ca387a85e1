# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH112, PTH116, PTH118, PTH119
"""`warpcipher list`, and `info` of a tree."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from typing import TYPE_CHECKING, Any

import click

import warpcipher as wc
from warpcipher import stores
from warpcipher._tree_names import JOURNAL, NAME

from . import names, recipients
from .errors import NOT_AUTHENTIC, CliError, command, counted, print_json, shown, usage
from .options import JSON, argument
from .run import Looks

if TYPE_CHECKING:
    from warpcipher.formats.trees import Entry, Manifest

_TYPES = {"folder": stat.S_IFDIR, "file": stat.S_IFREG, "link": stat.S_IFLNK | 0o777}


@command(NOT_AUTHENTIC)
@argument("paths TREE...", required=True)
@recipients.reading_options
@names.FORMAT
@JSON
def list(paths: tuple[str, ...], format_name: str, as_json: bool, **given: Any) -> None:
    """List the content of encrypted trees: permissions, size, time and name.

    Reads the manifest of each tree, and no file: `check` compares them.

    \b
    warpcipher list --key my.key photos.cobblestone
    """
    people, choice, bound_to = recipients.take_reading(given)
    if not (people or choice):
        raise usage("give one key, with --key FILE or age's -i FILE")
    key = people.read(encrypts=False) if people else choice.read(format_name, None)
    trees, looks = [], Looks()
    for path in paths:
        manifest = looks.at(path, lambda path: read(path, key, bound_to, format_name))
        if manifest is None:
            continue
        entries = sorted(manifest.entries.values(), key=lambda entry: entry.name)
        if as_json:
            listed = [entry.to_json() for entry in entries]
            trees.append({"path": path, **summary(manifest), "entries": listed})
            continue
        if len(paths) > 1:
            click.echo(f"{shown(path)}:")
        width = max(len(str(entry.size)) for entry in entries)
        for entry in entries:
            if entry.name:
                click.echo(_line(entry, width))
    if as_json:
        print_json({"trees": trees})
    looks.end()


def _manifest_of(path: str) -> str:
    """The manifest that a path or URL stands for: it, or the folder that it is in."""
    if stores.is_url(path):
        return path if path.endswith(f"/{NAME}") else f"{path.removesuffix('/')}/{NAME}"
    if os.path.isdir(path):
        return os.path.join(path, NAME)
    if os.path.basename(path) in (NAME, JOURNAL):
        return path
    raise usage(f"{shown(path)} is a file: name the folder of an encrypted tree")


def is_tree(path: str) -> bool:
    """Whether a path is an encrypted tree, or its manifest."""
    with contextlib.suppress(CliError, OSError):
        manifest = _manifest_of(path)
        return size_of(manifest) > 0 if stores.is_url(path) else os.path.lexists(manifest)
    return False


def size_of(path: str) -> int:
    """The bytes of a file or object. Raises OSError."""
    if stores.is_url(path):
        return stores.stat(path).size
    return os.stat(path).st_size


def read(path: str, key: object, context: bytes, format_name: str = "auto") -> Manifest:
    """The manifest of a tree. Raises CliError, OSError."""
    from warpcipher.formats.sealed import Sealed, opened_in

    from . import trees
    from .jobs import Tree

    chosen = wc.formats.resolve(format_name, key)
    sealed = Sealed(key, chosen, wc.formats.Options(context=context))
    if stores.is_url(path):
        from warpcipher.formats.tree_parts import Listed

        return Listed(sealed, opened_in(_manifest_of(path).rpartition("/")[0])).all()
    os.stat(path)
    folder, name = os.path.split(_manifest_of(path))
    root = folder or "."
    found = trees.read(sealed, root, "journal" if name == JOURNAL else "manifest")
    if found is None:
        raise trees.without_manifest(Tree(root, root))
    return found


def summary(manifest: Manifest) -> dict[str, Any]:
    """A manifest's facts of its tree as a whole. size: bytes before encryption."""
    counts = dict.fromkeys(_TYPES, 0)
    for entry in manifest.entries.values():
        counts[entry.kind] += bool(entry.name)
    return {
        **{name: getattr(manifest, name) for name in ("id", "base", "made", "format")},
        **{f"{kind}s": counts[kind] for kind in ("file", "folder", "link")},
        "plaintext_size": sum(entry.size for entry in manifest.entries.values()),
    }


def entry_of(path: str, size: int, *, certain: bool, **more: Any) -> dict[str, Any]:
    """The entry of a file in the document of `info`."""
    found = {"path": path, "size": size, "certain": certain}
    return {**found, "candidates": [], "foreign": None, "refusal": None, **more}


def describe(path: str, key: object, context: bytes) -> dict[str, Any]:
    """`info` of a tree, or of its manifest: with the key, its content too."""
    tree = None if key is None else summary(read(path, key, context))
    return entry_of(path, size_of(_manifest_of(path)), certain=key is not None, tree=tree)


def show(entry: dict[str, Any]) -> None:
    """The same for people."""
    path, tree = shown(entry["path"]), entry["tree"]
    click.echo(f"{path}: an encrypted tree, whose manifest has {counted(entry['size'], 'byte')}")
    if tree is None:
        click.echo("  give the key to see its content, here or with `warpcipher list`")
        return
    made = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(tree["made"]))
    click.echo(f"  format     {tree['format']}")
    click.echo(f"  made       {made}, id {tree['id']}")
    click.echo(
        f"  holds      {counted(tree['files'], 'file')} of "
        f"{counted(tree['plaintext_size'], 'byte')}, {counted(tree['folders'], 'folder')}, "
        f"{counted(tree['links'], 'link')}"
    )


def _line(entry: Entry, width: int) -> str:
    mode = stat.filemode(_TYPES[entry.kind] | entry.mode)
    at = " " * 16
    if entry.kind != "link":
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.mtime // 10**9))
    end = {"folder": "/", "file": "", "link": f" -> {shown(entry.target)}"}[entry.kind]
    return f"{mode} {entry.size:{width}} {at} {shown(entry.name)}{end}"
