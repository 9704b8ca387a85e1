# SPDX-License-Identifier: Apache-2.0
"""The lists of algorithms and of the engines that run them."""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

from . import _native
from ._types import AlgorithmName


class AlgorithmInfo(NamedTuple):
    """One algorithm: a block cipher in a mode, or a stream cipher. Sizes are in bytes.

    name:             such as "aes-256-gcm".
    key_size:         XTS counts both keys.
    block_size:       of the cipher.
    iv:               "none", "block" (exactly block_size bytes), "any" (1 byte or more, usually
                      12) or "fixed" (exactly iv_size bytes, which are not a block).
    is_aead:          takes associated data, and appends a tag to the ciphertext.
    whole_blocks:     without padding the data is a multiple of block_size.
    takes_padding:    padding="pkcs7" is allowed.
    parallel_encrypt: blocks of one message do not wait for each other when it is encrypted.
    parallel_decrypt: the same for decryption.
    iv_size:          the length of an IV or nonce; the usual one where any is allowed; 0: none.
    least_size:       of a text: 16 for XTS, else 0.
    most_size:        of a text.
    """

    name: AlgorithmName
    key_size: int
    block_size: int
    iv: Literal["none", "block", "any", "fixed"]
    is_aead: bool
    whole_blocks: bool
    takes_padding: bool
    parallel_encrypt: bool
    parallel_decrypt: bool
    iv_size: int
    least_size: int
    most_size: int


class EngineInfo(NamedTuple):
    """One engine.

    name:        "cpu", "cuda" or "reference".
    description: one line for people.
    usable:      whether it can run here.
    reason:      why it cannot, and what to do; empty when it can.
    memory:      "host" or "device": where it needs its data. The library brings host data to a
                 device engine.
    devices:     a line for each device that it runs on: name, memory, driver.
    algorithms:  the names of those that it offers.
    """

    name: str
    description: str
    usable: bool
    reason: str
    memory: Literal["host", "device"]
    devices: tuple[str, ...]
    algorithms: tuple[str, ...]

    def constant_time(self, algorithm: AlgorithmName) -> bool:
        """Whether this engine's time for an algorithm does not depend on keys or data.

        ValueError: no algorithm has that name.
        """
        return _native.constant_time(self.name, algorithm)


@cache  # the list is the build's, and a columnar batch on a GPU asks for the size of a key
def algorithms() -> tuple[AlgorithmInfo, ...]:
    """Every algorithm, in a fixed order.

    >>> import warpcipher as wc
    >>> [entry.name for entry in wc.algorithms() if entry.is_aead][:2]
    ['aes-128-gcm', 'aes-192-gcm']
    """
    return tuple(AlgorithmInfo(**entry) for entry in _native.algorithms())


def find_algorithm(name: str) -> AlgorithmInfo:
    """The algorithm of that name, for names known only at run time. Case and separators do not
    matter, here and wherever an algorithm is named.

    ValueError: no algorithm has that name; the text has the nearest. TypeError: it is not a
    str.

    >>> import warpcipher as wc
    >>> wc.find_algorithm("aes-256-xts").key_size
    64
    >>> wc.find_algorithm("AES_256_XTS").name
    'aes-256-xts'
    >>> wc.find_algorithm("aes-256-xtx")
    Traceback (most recent call last):
    ValueError: unknown algorithm 'aes-256-xtx': did you mean aes-256-xts?
    """
    if not isinstance(name, str):
        raise TypeError(f"algorithm is {type(name).__name__}: expected a name like 'aes-256-ctr'")
    return _by_name()[_native.algorithm_name(name)]


@cache
def _by_name() -> dict[str, AlgorithmInfo]:
    return {entry.name: entry for entry in algorithms()}


def engines() -> tuple[EngineInfo, ...]:
    """Every engine of this build, whether it can run here or not, in order of preference.

    >>> import warpcipher as wc
    >>> [engine.name for engine in wc.engines() if engine.name != "cuda"]
    ['cpu', 'reference']
    """
    return tuple(EngineInfo(**entry) for entry in _native.engines())
