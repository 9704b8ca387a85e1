# SPDX-License-Identifier: Apache-2.0
"""Where keys come from: an environment variable, a file, a descriptor, a command, a KMS.

    from warpcipher import formats, keys

    key = keys.from_env("BACKUP_KEY")                                 # hex, base64, a Tink keyset
    key = keys.from_file("my.key")                                    # raw bytes, too
    key = keys.from_command(["aws", "kms", "decrypt", ...])           # its standard output
    key = keys.from_tink("keyset.json", kms="gcp-kms://projects/...")  # a keyset that a KMS wrapped
    formats.open("file.cobblestone", key)

Everything that takes a key in `formats` and the commands takes such a source, and a function that
is called with the key's id. The source is asked each time the key is needed. No error, log or repr
shows a key.
"""

from __future__ import annotations

from .command import from_command
from .decode import Encoding, decode, identify
from .source import KeySource, is_deferred, resolve
from .sources import from_descriptor, from_env, from_file
from .tink_kms import from_tink, rewrap_tink

__all__ = [
    "Encoding", "KeySource", "decode", "from_command", "from_descriptor", "from_env", "from_file",
    "from_tink", "identify", "is_deferred", "resolve", "rewrap_tink",
]  # fmt: skip
