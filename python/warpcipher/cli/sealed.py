# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH118
"""What trees need of a run: reads and writes manifests, knows the contexts of a tree's files."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from . import folders
from .errors import NotAuthenticError, shown, usage
from .outputs import OutputFile
from .tree_names import JOURNAL, NAME

if TYPE_CHECKING:
    from warpcipher.formats import Format, Options

    from .manifest import Manifest

LONGEST = 1 << 30
"""Bytes of the largest manifest that is read."""


class Sealed:
    """The key, format and options of a run, as far as trees need them."""

    def __init__(self, key: object, chosen: Format, options: Options) -> None:
        self.format = chosen
        self._key = key
        self.options = options

    def options_of(self, name: str) -> Options:
        """Those of a file of a tree that has a manifest."""
        from .manifest import context_of_file

        return replace(self.options, context=context_of_file(self.options.context, name))

    def _options_of_manifest(self, kind: str) -> Options:
        from .manifest import context_of_manifest

        return replace(self.options, context=context_of_manifest(self.options.context, kind))

    def opens(self, descriptor: int, options: Options) -> bool:
        """Whether the key opens the beginning of a file, which stays where it is."""
        from warpcipher import InvalidTag
        from warpcipher.formats import FormatError

        def read_at(offset: int, length: int) -> bytes:
            return os.pread(descriptor, length, offset)

        try:
            self.format.open_checked(self._key, read_at, options).close()
        except (InvalidTag, FormatError, OSError):
            return False
        return True

    def read(self, root: str, kind: str) -> Manifest | None:
        """The manifest (kind "manifest") or journal ("journal") of a tree; None: it has none."""
        from warpcipher import InvalidTag
        from warpcipher.formats import FormatError, decrypt_stream

        from .manifest import Manifest, ManifestError, open_regular

        path = os.path.join(root, NAME if kind == "manifest" else JOURNAL)
        try:
            descriptor = open_regular(path)
        except FileNotFoundError:
            return None
        if descriptor is None:
            raise NotAuthenticError(f"{shown(path)} is not a regular file: that is no {kind}")
        text = io.BytesIO()
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123
            if os.fstat(descriptor).st_size > LONGEST:
                raise usage(f"{shown(path)} has more than {LONGEST} bytes: that is no manifest")
            try:
                decrypt_stream(
                    file,
                    text,
                    self._key,
                    format=self.format.name,
                    options=self._options_of_manifest(kind),
                )
                return Manifest.from_bytes(text.getvalue())
            except (InvalidTag, FormatError):
                raise NotAuthenticError(
                    f"{shown(path)} is not the {kind} of a tree with this key and context, or was "
                    "changed: nothing of the tree is trusted"
                ) from None
            except ManifestError as error:
                raise NotAuthenticError(f"{shown(path)}: {error}") from None

    def write(
        self, root: str, manifest: Manifest, kind: str, kept: Mapping[folders.Identity, str]
    ) -> None:
        """Gives a tree its manifest or journal, in the place of the one that it has."""
        from warpcipher.formats import encrypt_stream

        name = NAME if kind == "manifest" else JOURNAL
        folder = folders.open_folder(root, ())
        path = os.path.join(root, name)
        with OutputFile(folder, name, path, force=True, kept=kept) as output:
            encrypt_stream(
                io.BytesIO(manifest.to_bytes()),
                output,
                self._key,
                format=self.format.name,
                options=self._options_of_manifest(kind),
            )
            output.commit(None)
