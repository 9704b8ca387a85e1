# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH118
"""What trees need of a run: reads and writes manifests, knows the contexts of a tree's files."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from warpcipher._tree_names import JOURNAL, NAME

from . import folders
from .errors import NotAuthenticError, shown
from .outputs import Kept, OutputFile

if TYPE_CHECKING:
    from warpcipher.formats import Format, Options
    from warpcipher.formats.trees import Manifest


class Sealed:
    """The key, format and options of a run, as far as trees need them."""

    def __init__(self, key: object, chosen: Format, options: Options) -> None:
        self.format = chosen
        self._key = key
        self.options = options
        # A public key encrypts, and opens nothing.
        opening = [one for one in key if hasattr(one, "unwrap")] if isinstance(key, list) else key
        self._opening = opening if chosen.name == "age" else key

    @property
    def can_open(self) -> bool:
        """Whether the key opens what it encrypts."""
        return self._opening != []

    def options_of(self, name: str) -> Options:
        """Those of a file of a tree that has a manifest."""
        if not self.format.takes_context:
            return self.options
        from warpcipher.formats.trees import options_of

        return options_of(self.options, name)

    def opens(self, descriptor: int, options: Options) -> bool:
        """Whether the key opens the beginning of a file, which stays where it is."""
        from warpcipher.formats.trees import opens

        return self.can_open and opens(descriptor, self._opening, self.format, options)

    def options_in_place(
        self, path: str, descriptor: int, names: list[str] | None
    ) -> Options | None:
        """Those of a file that does not open by itself, where it is that of a tree: one of these
        names opens it; None: its manifest lists it. Raises InvalidTag."""
        chosen = self.format
        if not (chosen.takes_context and chosen.binds_chunks):
            return None
        if self.opens(descriptor, self.options):
            return None
        from warpcipher.formats.trees import options_in_place

        if names is None:
            return options_in_place(path, self._opening, chosen, self.options)
        named = (self.options_of(name) for name in names)
        return next((options for options in named if self.opens(descriptor, options)), None)

    def read(self, root: str, kind: str) -> Manifest | None:
        """The manifest (kind "manifest") or journal ("journal") of a tree; None: it has none."""
        from warpcipher import InvalidTag
        from warpcipher.formats import FormatError
        from warpcipher.formats.trees import Manifest, ManifestError, read_text

        path = os.path.join(root, NAME if kind == "manifest" else JOURNAL)
        try:
            text = read_text(root, kind, self._opening, self.format, self.options)
            return None if text is None else Manifest.from_bytes(text)
        except ManifestError as error:
            raise NotAuthenticError(f"{shown(path)}: {error}") from None
        except (InvalidTag, FormatError):
            raise NotAuthenticError(
                f"{shown(path)} is not the {kind} of a tree with this key and context, or was "
                "changed: nothing of the tree is trusted"
            ) from None

    def write(self, root: str, manifest: Manifest, kind: str, kept: Kept) -> None:
        """Gives a tree its manifest or journal, in the place of the one that it has."""
        from warpcipher.formats import encrypt_stream
        from warpcipher.formats.trees import options_of_manifest

        name = NAME if kind == "manifest" else JOURNAL
        folder = folders.open_folder(root, ())
        path = os.path.join(root, name)
        with OutputFile(folder, name, path, force=True, kept=kept, beneath=True) as output:
            encrypt_stream(
                io.BytesIO(manifest.to_bytes()),
                output,
                self._key,
                format=self.format.name,
                options=options_of_manifest(self.format, self.options, kind),
            )
            output.commit(None)
