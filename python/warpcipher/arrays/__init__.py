# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library as memory for the native module, a file a library. Loads when the first
array, `out=` or `stream=` comes along.

No array library is imported here: an array's library is loaded already, so it is found in
sys.modules. A new library is a file with a class, and a line in `LIBRARIES` of messages.py.

Order on a GPU: `view(x, stream)` makes `stream` wait for the work that writes x, where the library
says which stream that is on (None: its current one, so nothing is to be done); `empty` makes an
array that is first used on `stream`.
"""

from .library import stream_pointer, wait
from .messages import (
    BUFFERS,
    aead_crypt,
    choose_stream,
    crypt,
    device_column,
    finished,
    is_on_device,
    library_of,
    placed,
    size_of,
)

__all__ = [
    "BUFFERS", "aead_crypt", "choose_stream", "crypt", "device_column", "finished", "is_on_device",
    "library_of", "placed", "size_of", "stream_pointer", "wait",
]  # fmt: skip
