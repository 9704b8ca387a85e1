# SPDX-License-Identifier: Apache-2.0
"""CTR_DRBG of NIST SP 800-90A Rev. 1, section 10.2, with AES-256, on the host. It seeds
`Generator`, and serves those who must name a standard. Names are the standard's.

Nothing here is a validated module in the sense of FIPS 140.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING

from .._native import Key, PlainCipher
from .._not_at_fork import NOT_AT_FORK
from .._uncopied import Uncopied
from ..arguments import require_int, view_bytes
from ..engines import engines
from . import entropy as entropy_module
from .entropy import HealthTestError
from .forks import process

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._types import Buffer

# SP 800-90A, table 3, the column of AES-256.
KEY_LEN = 32
BLOCK_LEN = 16
SEED_LEN = 48
SECURITY_STRENGTH = 256
MOST_REQUEST = 1 << 16
"""Bytes that one call of `generate` gives at most: 2^19 bits."""
MOST_RESEED_INTERVAL = 1 << 48
MOST_INPUT = 1 << 32
"""Bytes of an input at most with the derivation function: 2^35 bits."""

_ZEROS = bytes(MOST_REQUEST)


@cache
def _engine() -> str:
    """On the host, whatever WARPCIPHER_ENGINE says: this generator is no work for a GPU."""
    cpu = next(engine for engine in engines() if engine.name == "cpu")
    return "cpu" if cpu.usable and "aes-256-ctr" in cpu.algorithms else "reference"


def _cipher(mode: str, key: Buffer) -> PlainCipher:
    return PlainCipher(Key(f"aes-256-{mode}", key), False, _engine())


def _wipe(*buffers: bytearray) -> None:
    for buffer in buffers:
        buffer[:] = bytes(len(buffer))


def _key_stream(key: bytearray, counter: bytearray, size: int) -> bytearray:
    """E(K, V + 1) || E(K, V + 2) || ... to `size` bytes; `counter` (V) becomes the last."""
    first = int.from_bytes(counter, "big") + 1
    out = bytearray(size)
    iv = (first % (1 << 128)).to_bytes(BLOCK_LEN, "big")
    _cipher("ctr", key).encrypt(memoryview(_ZEROS)[:size], out, iv, None, 16)
    last = first + -(-size // BLOCK_LEN) - 1
    counter[:] = (last % (1 << 128)).to_bytes(BLOCK_LEN, "big")
    return out


def _padded(text: bytearray) -> bytes:
    return bytes(text).ljust(SEED_LEN, b"\0")


def block_cipher_df(text: bytes | bytearray, size: int = SEED_LEN) -> bytearray:
    """Block_Cipher_df of section 10.3.2: `size` bytes, at most 64, of all of the text."""
    if size > 64:
        raise ValueError(f"the derivation function gives at most 64 bytes, asked for were {size}")
    s = bytearray(len(text).to_bytes(4, "big") + size.to_bytes(4, "big"))
    s += text
    s.append(0x80)
    s += bytes(-len(s) % BLOCK_LEN)
    cbc = _cipher("cbc", bytes(range(KEY_LEN)))
    temp = bytearray()
    index = 0
    while len(temp) < KEY_LEN + BLOCK_LEN:
        # BCC (section 10.3.3) is the last block of a CBC encryption with an IV of zeros.
        chain = bytearray(BLOCK_LEN + len(s))
        cbc.encrypt(
            index.to_bytes(4, "big") + bytes(BLOCK_LEN - 4) + s, chain, bytes(BLOCK_LEN), None, 16
        )
        temp += chain[-BLOCK_LEN:]
        _wipe(chain)
        index += 1
    ecb = _cipher("ecb", memoryview(temp)[:KEY_LEN])
    x = temp[KEY_LEN : KEY_LEN + BLOCK_LEN]
    out = bytearray()
    while len(out) < size:
        ecb.encrypt(x, x, None, None, 16)
        out += x
    _wipe(s, temp, x)
    del out[size:]
    return out


def _xor(a: bytearray, b: bytes | bytearray) -> bytearray:
    return bytearray(x ^ y for x, y in zip(a, b, strict=True))


class CtrDrbg(Uncopied):
    """CTR_DRBG with AES-256: a generator of seeds and keys, of security strength 256.

    personalization:       bytes that tell this generator from others; need not be secret.
    derivation_function:   whether inputs go through Block_Cipher_df. Without it the entropy is 48
                           bytes with full entropy, and other inputs are at most 48 bytes.
    prediction_resistance: whether each `generate` reseeds first.
    reseed_interval:       calls of `generate` between two seeds, 1 to 2^48.
    entropy:               a function of a number n, which returns n bytes of full entropy. None:
                           the operating system, with the continuous tests of SP 800-90B.
    nonce:                 at least 16 bytes, with the derivation function alone. None: taken from
                           the source of entropy.

    Known answers are tested before the first generator of a process is made. A child of a fork
    reseeds before it generates. Safe to use from several threads. Copies are refused.

    ValueError: a length or an interval that the standard does not allow. HealthTestError: a test of
    health failed.

    >>> from warpcipher.random import CtrDrbg
    >>> len(CtrDrbg(b"my program").generate(32))
    32
    """

    __slots__ = (
        "_counter",
        "_derives",
        "_entropy",
        "_interval",
        "_key",
        "_lock",
        "_process",
        "_requests",
        "_resists",
        "_usable",
    )
    _instead = "make a new one, which seeds itself"

    def __init__(
        self,
        personalization: Buffer = b"",
        *,
        derivation_function: bool = True,
        prediction_resistance: bool = False,
        reseed_interval: int = MOST_RESEED_INTERVAL,
        entropy: Callable[[int], Buffer] | None = None,
        nonce: Buffer | None = None,
    ) -> None:
        reseed_interval = require_int("reseed_interval", reseed_interval)
        if not 0 < reseed_interval <= MOST_RESEED_INTERVAL:
            raise ValueError(f"reseed_interval is {reseed_interval}: expected 1 to 2^48")
        self._prepare(
            derivation_function,
            prediction_resistance,
            reseed_interval,
            entropy_module.system if entropy is None else entropy,
        )
        run_known_answers()
        self._instantiate(self._input("personalization", personalization), nonce)

    def _prepare(
        self, derives: bool, resists: bool, interval: int, entropy: Callable[[int], Buffer]
    ) -> None:
        self._usable = False
        self._derives = derives
        self._resists = resists
        self._interval = interval
        self._entropy = entropy
        self._lock = threading.Lock()
        self._process = process()
        self._key = bytearray(KEY_LEN)
        self._counter = bytearray(BLOCK_LEN)
        self._requests = 0

    def _instantiate(self, personalization: bytearray, nonce: Buffer | None) -> None:
        seed = self._get_entropy()
        if self._derives:
            salt = bytearray(view_bytes("nonce", self._entropy(16) if nonce is None else nonce))
            if len(salt) < 16:
                raise ValueError(f"nonce has {len(salt)} bytes: expected at least 16")
            material = bytearray(seed + salt + personalization)
            _wipe(seed)
            seed = block_cipher_df(material)
            _wipe(material)
        else:
            if nonce is not None:
                raise ValueError("a nonce was given: without derivation function there is none")
            seed = _xor(seed, _padded(personalization))
        self._update(seed)
        _wipe(seed)
        self._requests = 1
        self._usable = True

    def _input(self, name: str, text: Buffer) -> bytearray:
        data = bytearray(view_bytes(name, text))
        most = MOST_INPUT if self._derives else SEED_LEN
        if len(data) > most:
            raise ValueError(f"{name} has {len(data)} bytes: expected at most {most}")
        return data

    def _get_entropy(self) -> bytearray:
        size = SEED_LEN
        data = bytearray(view_bytes("the entropy", self._entropy(size)))
        least = SECURITY_STRENGTH // 8 if self._derives else SEED_LEN
        most = MOST_INPUT if self._derives else SEED_LEN
        if not least <= len(data) <= most:
            raise HealthTestError(
                f"the source of entropy gave {len(data)} bytes, asked for were {size}"
            )
        return data

    def _update(self, provided: bytes | bytearray) -> None:
        """CTR_DRBG_Update of section 10.2.1.2."""
        stream = _key_stream(self._key, self._counter, SEED_LEN)
        temp = _xor(stream, provided)
        self._key[:] = temp[:KEY_LEN]
        self._counter[:] = temp[KEY_LEN:]
        _wipe(stream, temp)

    def _reseed(self, additional: bytearray) -> None:
        seed = self._get_entropy()
        if self._derives:
            material = bytearray(seed + additional)
            _wipe(seed)
            seed = block_cipher_df(material)
            _wipe(material)
        else:
            seed = _xor(seed, _padded(additional))
        self._update(seed)
        _wipe(seed)
        self._requests = 1

    def _enter(self) -> threading.Lock:
        """The lock of this process."""
        if self._process != process():
            with NOT_AT_FORK:
                if self._process != process():
                    # The parent goes on from the same state: the next call reseeds.
                    self._lock = threading.Lock()
                    self._requests = MOST_RESEED_INTERVAL + 1
                    self._process = process()
        return self._lock

    def reseed(self, additional_input: Buffer = b"") -> None:
        """Takes new entropy, and the additional input, into the state (section 9.2)."""
        additional = self._input("additional_input", additional_input)
        with self._enter():
            self._check_usable()
            try:
                self._reseed(additional)
            except HealthTestError:
                self._forget()
                raise

    def generate(
        self, size: int, additional_input: Buffer = b"", *, prediction_resistance: bool = False
    ) -> bytes:
        """`size` bytes, at most 65,536 (section 9.3).

        prediction_resistance: reseeds first, whatever the generator was made with.
        """
        size = require_int("size", size)
        if not 0 <= size <= MOST_REQUEST:
            raise ValueError(f"size is {size}: expected 0 to {MOST_REQUEST} (2^19 bits)")
        additional = self._input("additional_input", additional_input)
        with self._enter():
            self._check_usable()
            if self._resists or prediction_resistance or self._requests > self._interval:
                try:
                    self._reseed(additional)
                except HealthTestError:
                    self._forget()
                    raise
                additional = bytearray()
            provided = bytearray(SEED_LEN)
            if additional:
                provided = (
                    block_cipher_df(additional) if self._derives else bytearray(_padded(additional))
                )
                self._update(provided)
            out = _key_stream(self._key, self._counter, size)
            self._update(provided)
            _wipe(provided)
            self._requests += 1
            found = bytes(out)
            _wipe(out)
            return found

    @property
    def reseed_counter(self) -> int:
        """Calls of `generate` since the last seed, and one: the standard's reseed_counter."""
        return self._requests

    def uninstantiate(self) -> None:
        """Wipes the state; every later call is an error (section 9.4)."""
        with self._enter():
            self._forget()

    def _check_usable(self) -> None:
        if not self._usable:
            raise HealthTestError(
                "this generator was uninstantiated, or failed a test: make another"
            )

    def _forget(self) -> None:
        self._usable = False
        _wipe(self._key, self._counter)

    def __del__(self) -> None:
        if hasattr(self, "_counter"):
            self._forget()

    def __repr__(self) -> str:
        what = "with" if self._derives else "without"
        return f"<warpcipher.random.CtrDrbg AES-256 {what} derivation function>"


# Of NIST's CAVP, drbgvectors_no_reseed and drbgvectors_pr_true: the first record of AES-256 with
# and without derivation function. Instantiate, generate, generate; the second output is the answer.
_KNOWN = (
    (
        True,
        False,
        ("36401940fa8b1fba91a1661f211d78a0b9389a74e5bccfece8d766af1a6d3b14",),
        "5862eb38bd558dd978a696e6df164782ddd887e7e9a6c9f3f1fbafb78941b535"
        "a64912dfd224c6dc7454e5250b3d97165e16260c2faf1cc7735cb75fb4f07e1d",
    ),
    (
        False,
        True,
        (
            "faf346c9c8afbc5ab6e33ce492247fac6db9a7ba4297557f"
            "587a42563ddf56c90e41c6afb56233815b74e091bac7d8e5",
            "dfc111252d7146922713720ae1e348a07ae403b5238fefb4"
            "e8592f6f6cc4a61c94828db84c6faecd1502261008011f2c",
            "4528bac5b99c772347d44f4ece79bc811ca8ebea9483fa5f"
            "5040c02f77069dad1aec7adaa8a9a6a9ddabab045d328a90",
        ),
        "bc013dc891db12c34ad11944805bf13dfd67ff2c23176d83f5b396b69e400042"
        "252e11816c3095421137181a5d0ee37c83a339c58d080946ca90aa437d50d9cf",
    ),
)
_NONCE = "496f25b0f1301b4f501be30380a137eb"


@cache
def run_known_answers() -> None:
    """Tests the generator on known answers, once in a process (section 11.3). HealthTestError."""
    for derives, resists, inputs, answer in _KNOWN:
        drbg = CtrDrbg.__new__(CtrDrbg)
        drbg._prepare(derives, resists, MOST_RESEED_INTERVAL, _source(inputs))
        drbg._instantiate(bytearray(), bytes.fromhex(_NONCE) if derives else None)
        drbg.generate(64)
        if drbg.generate(64) != bytes.fromhex(answer):
            raise HealthTestError("CTR_DRBG does not give the known answer: it is not used")


def _source(inputs: tuple[str, ...]) -> Callable[[int], Buffer]:
    rest = map(bytes.fromhex, inputs)
    return lambda size: next(rest)
