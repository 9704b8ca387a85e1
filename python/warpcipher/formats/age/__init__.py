# SPDX-License-Identifier: Apache-2.0
"""Keys of the format age: who a file is encrypted for, and who opens it.

from warpcipher import formats
from warpcipher.formats import age

identity = age.Identity.generate()
recipients = [age.Recipient.parse("age1..."), identity.recipient]
formats.encrypt_stream(reader, writer, recipients)
formats.open("secret.age", identity)
formats.open("secret.age", age.Passphrase("..."))
"""

from __future__ import annotations

from .hybrid import HybridIdentity, HybridRecipient
from .key_files import identities, is_encrypted, recipients
from .keys import Identity, OtherIdentity, Passphrase, Recipient
from .ssh import SshIdentity, SshRecipient

__all__ = [
    "HybridIdentity", "HybridRecipient", "Identity", "OtherIdentity", "Passphrase", "Recipient",
    "SshIdentity", "SshRecipient", "identities", "is_encrypted", "recipients",
]  # fmt: skip
