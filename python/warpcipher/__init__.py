# SPDX-License-Identifier: Apache-2.0
"""Symmetric cryptography for data on GPUs, on its way there, or in many messages; the same on
a CPU.

    import warpcipher as wc

    wc.Cipher("aes-256-ctr", key).encrypt(data, iv=iv)     # any of wc.algorithms()
    wc.aead.AESGCM(key).encrypt(nonce, data, aad)          # as pyca/cryptography's class

`Batch` and `run_columns` take many messages at once, `Queue` makes batches of messages that come
one by one; `formats` reads and writes encrypted files, `weights` encrypted models, `parquet`
encrypted tables; `kv` seals caches of language models; `random` makes random arrays; `keys` finds
keys where they are kept; `search` recovers a lost or partly known key from plaintext and ciphertext
(its parts: `keysearch`).
"""

from __future__ import annotations

import copyreg
import sys

# `python -m warpcipher` imports this first; argv[0] is "-m" until it is found.
if sys.argv[:1] == ["-m"] and any(text.endswith("warpcipher") for text in sys.orig_argv):
    from warpcipher_command import end_on_sigint

    end_on_sigint()

from typing import TYPE_CHECKING

from . import _later, _signatures, aead
from ._errors import EngineError, InvalidTag
from ._native import DeviceArray, Key, PinnedBuffer, Status, pinned
from ._native import version as __version__
from ._uncopied import refuse_key
from .batch import Batch, Handle
from .cipher import Cipher
from .columns import Columns, run_columns
from .engines import AlgorithmInfo, EngineInfo, algorithms, engines, find_algorithm

if TYPE_CHECKING:
    from . import formats, keys, keysearch, kv, parquet, prg, random, tuning, weights
    from .batch_run import BatchRun
    from .keysearch import search
    from .queue import Queue, QueueFuture, QueueStatistics

__all__ = [
    "AlgorithmInfo", "Batch", "BatchRun", "Cipher", "Columns", "DeviceArray", "EngineError",
    "EngineInfo", "Handle", "InvalidTag", "Key", "PinnedBuffer", "Queue", "QueueFuture",
    "QueueStatistics", "Status", "__version__", "aead", "algorithms", "engines", "find_algorithm",
    "formats", "keys", "keysearch", "kv", "parquet", "pinned", "prg", "random", "run_columns",
    "search", "tuning", "weights",
]  # fmt: skip


# Loaded when first used: most programs need no file format, no queue and no search.
_LATER = {
    "BatchRun": "batch_run", "formats": "formats", "keys": "keys", "keysearch": "keysearch",
    "kv": "kv", "parquet": "parquet", "prg": "prg", "random": "random", "search": "keysearch",
    "tuning": "tuning", "weights": "weights", "Queue": "queue", "QueueFuture": "queue",
    "QueueStatistics": "queue",
}  # fmt: skip


# Of native classes: their content stays in the process.
copyreg.pickle(Key, refuse_key)
_signatures.give_class(Key)
_signatures.give_class(DeviceArray)
for _aead in (getattr(aead, _name) for _name in aead.__all__):
    copyreg.pickle(_aead, refuse_key)
    _signatures.give_class(
        _aead, "encrypt", "decrypt", "encrypt_into", "decrypt_into", "generate_key"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name in _LATER:
        module = _later.load(_LATER[name])
        return module if name == _LATER[name] else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
