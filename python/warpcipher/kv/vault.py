# SPDX-License-Identifier: Apache-2.0
"""Blocks of a KV cache, sealed before they leave for other memory, and opened when they return.

A sealed block, all integers big-endian:

    "wkv" 0x01 (4) | session (16) | nonce (12) | ciphertext || tag (16)

The text is the block's bytes in each tensor, one tensor after the other. The AAD is

    "warpcipher.kv.vault" 0x01 | 4: length | tenant | 4: length | model | 8: position | hash

and the key HKDF-SHA256 (RFC 5869) of the vault's key with the session as salt and the info
"warpcipher.kv.vault" 0x01 | algorithm | 0x00 | tenant. A session is 16 random bytes of one vault in
one process; its nonces are counted. docs/design/kv.md says why no nonce comes twice.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .. import _native, keys
from .._not_at_fork import NOT_AT_FORK
from .._uncopied import Uncopied
from ..arguments import require_int, require_items, view_bytes
from ..columns import run_columns
from .blocks import Blocks

if TYPE_CHECKING:
    from .._types import Buffer

Algorithm = Literal["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"]

KEY_SIZES = {"aes-128-gcm": 16, "aes-256-gcm": 32, "chacha20-poly1305": 32}
LEAST_KEY_SIZE = 16
LABEL = b"warpcipher.kv.vault\x01"
MAGIC = b"wkv\x01"
SESSION_SIZE, NONCE_SIZE, TAG_SIZE = 16, 12, 16
HEADER_SIZE = len(MAGIC) + SESSION_SIZE + NONCE_SIZE
OVERHEAD = HEADER_SIZE + TAG_SIZE
"""Bytes of a sealed block beside its text."""

SESSION_BLOCKS = 1 << 32
"""Sealed under one key at most: SP 800-38D, section 8.3."""
SESSION_BYTES = 1 << 40
"""Sealed under one key at most: an attacker then distinguishes AES-GCM from random with 2^-57."""
KEPT_KEYS = 1024
LONGEST_TENANT = 2000
"""Bytes: HKDF of OpenSSL 3.0 takes 2048 of label, algorithm and tenant."""

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class Identity(NamedTuple):
    """The identity that blocks are bound to: a sealed block opens only for the same one.

    tenant:    whose they are, up to 2000 bytes of UTF-8; each tenant has keys of its own.
    model:     whose cache they are: name and version, and the rank that has this part of it.
    hashes:    of each block: the server's hash of its tokens, and of all before them.
    positions: of each block in its sequence, from 0; None where the hashes cover it: 0 for all.
    """

    tenant: str
    model: str
    hashes: Sequence[bytes]
    positions: Sequence[int] | None = None


class Vault(Uncopied):
    """Seals and opens blocks of KV caches. Threads may share one, and so may forks.

    key:       of 16 bytes or more, or a source of `warpcipher.keys`, or a function, which is called
               with the tenant. It is asked once for a tenant, when the key is needed.
    algorithm: "aes-128-gcm", "aes-256-gcm" or "chacha20-poly1305".

    Blocks are one tensor or a list of them (of layers, say), of NumPy or PyTorch, of any dtype; or
    of another library by DLPack: in host memory NumPy must know the dtype, and on a GPU PyTorch.
    `Blocks` of them, made once, serve as well and save time.
    `axis` is the dimension of all of them that counts blocks: 0 for [blocks, 2, tokens, heads,
    width], 1 for [2, blocks, ...], 2 for [layers, 2, blocks, ...]. The last dimension is
    contiguous.

    >>> import numpy as np
    >>> from warpcipher import kv
    >>> vault = kv.Vault(bytes(32))
    >>> layers = [np.ones((8, 2, 16, 4, 64), np.float16) for _ in range(3)]
    >>> who = kv.Identity("tenant", "a-model", [b"hash of block 5", b"of block 2"])
    >>> sealed = vault.seal(layers, [5, 2], identity=who)
    >>> vault.open(sealed, layers, [0, 1], identity=who)  # the numbers of those that are not there
    []
    """

    _instead = "make one of the same key in the process that uses it"

    def __init__(self, key: Any, algorithm: Algorithm = "aes-256-gcm") -> None:
        if algorithm not in KEY_SIZES:
            raise ValueError(f"algorithm is {algorithm!r}: expected one of {', '.join(KEY_SIZES)}")
        self._key = key
        self.algorithm = algorithm
        self._keys: dict[tuple[str, bytes], _native.Key] = {}
        self._secrets: dict[str, bytes] = {}
        self._process: tuple[int, int] | None = None
        self._session = b""
        self._sealed_blocks = self._sealed_bytes = 0

    def sealed_size(self, blocks: Any, axis: int = 0) -> int:
        """Bytes of one sealed block of such tensors."""
        return OVERHEAD + _blocks(blocks, axis).size

    def seal(
        self, blocks: Any, ids: Any, out: Any = None, *, identity: Identity, axis: int = 0
    ) -> Any:
        """Seals the blocks of these numbers, one after the other, into out, and returns it.

        ids: integers, in host memory or on the tensors' device; a block may come more than once.
        out: a writable buffer or tensor of bytes for len(ids) times `sealed_size`; None makes an
             array where the tensors are. From a GPU it may be page-locked memory: the copy is
             enqueued on PyTorch's current stream and not waited for.
             In host memory it may hold plaintext until this returns: nobody else may read it.
        ValueError: a number is out of range, out or identity do not fit, or out overlaps blocks.
        Then nothing is written.
        After any other error parts of out are sealed, the rest is zeros or what it was.
        """
        tensors = _blocks(blocks, axis)
        tensors.require_no_capture()
        numbers = tensors.numbers(ids)
        names = _Names.of(identity, len(numbers))
        size = OVERHEAD + tensors.size
        if out is None:
            out = tensors.new_out(len(numbers), size)
        rows = tensors.rows(out, "out", len(numbers), size)
        first = 0
        # Encrypted where the tensors are: the host sees no text of a GPU.
        for part in tensors.parts_out(rows):
            chosen = slice(first, first + part.shape[0])
            try:
                self._seal(tensors, part, numbers[chosen], names.part(chosen))
            except BaseException:
                part[...] = 0
                raise
            first = chosen.stop
        return out

    def open(
        self, sealed: Any, blocks: Any, ids: Any, *, identity: Identity, axis: int = 0
    ) -> list[int]:
        """Opens sealed blocks into the blocks of these numbers; returns the misses: which of ids
        (0 for the first) have no block, as it was forged, cut, or sealed for another identity.

        sealed: what `seal` gave, or a sequence of buffers, one for each sealed block.
        The block of a miss keeps what it had, or on a GPU is zeros: nothing of the text stays.
        ValueError: a number is out of range or comes twice, sealed or identity do not fit, or
        sealed overlaps blocks. Then nothing is written.
        """
        _, ours, verdicts, count = self._begin(sealed, blocks, ids, identity, axis, waits=True)
        return _misses(ours, verdicts, count)

    def enqueue_open(
        self, sealed: Any, blocks: Any, ids: Any, *, identity: Identity, axis: int = 0
    ) -> Callable[[], list[int]]:
        """As `open`, but returns a function that waits and gives the misses. On a GPU only the
        headers are waited for; blocks are there, or not, when PyTorch's current stream has come so
        far. Keep what is sealed until then.

        >>> import numpy as np
        >>> from warpcipher import kv
        >>> layers, who = np.ones((8, 2, 16), np.float16), kv.Identity("", "", [b"a hash"])
        >>> vault = kv.Vault(bytes(32))
        >>> misses = vault.enqueue_open(
        ...     vault.seal(layers, [5], identity=who), layers, [0], identity=who
        ... )
        >>> misses()
        []
        """
        tensors, ours, verdicts, count = self._begin(
            sealed, blocks, ids, identity, axis, waits=False
        )
        if isinstance(verdicts, bytes):
            return lambda: _misses(ours, verdicts, count)
        wait = tensors.send(verdicts)
        return lambda: _misses(ours, wait(), count)

    def _begin(
        self, sealed: Any, blocks: Any, ids: Any, identity: Identity, axis: int, waits: bool
    ) -> tuple[Blocks, Sequence[int], Any, int]:
        """Opens; the numbers of rows that a vault sealed, a verdict for each of them: bytes, or
        without waits words that may be on their way; and how many rows there are."""
        tensors = _blocks(blocks, axis)
        tensors.require_writable()
        tensors.require_no_capture()
        numbers: Sequence[int] = tensors.numbers(ids, are_distinct=True)
        names = _Names.of(identity, len(numbers))
        size = OVERHEAD + tensors.size
        if isinstance(sealed, list | tuple):
            sealed = _joined(sealed, len(numbers), size)
        count = len(numbers)
        rows = tensors.rows(sealed, "sealed", count, size)
        headers, sessions, index = tensors.read_heads(rows, MAGIC, SESSION_SIZE)
        keys = [self._tenant_key(names.tenant, session) for session in sessions]
        ours: Sequence[int] = range(count)
        if index and -1 in index:
            ours = [j for j, session in enumerate(index) if session >= 0]
            starts = [j * HEADER_SIZE for j in ours]
            headers = b"".join(headers[start : start + HEADER_SIZE] for start in starts)
            index, numbers = [index[j] for j in ours], [numbers[j] for j in ours]
            names = names.chosen(ours)
        chosen = _Chosen(keys, index, headers, numbers, names)
        verdicts = self._open(tensors, rows, ours, chosen, waits, count) if ours else b""
        return tensors, ours, verdicts, count

    def _open(
        self,
        tensors: Blocks,
        rows: Any,
        ours: Sequence[int],
        chosen: _Chosen,
        waits: bool,
        count: int,
    ) -> Any:
        """Opens those rows: verdicts as of `_begin`."""
        words: Any = None
        good, first, done = b"", 0, 0
        for part in tensors.parts_in(rows):
            end = first + part.shape[0]
            stop = bisect_left(ours, end, done)
            if stop > done and tensors.layout is not None:
                keys, place = (chosen.keys, chosen.key_index), 0
                if not (waits and end - first == count):
                    words = tensors.new_verdicts(len(ours)) if words is None else words
                    place = words.data_ptr()
                which = ours if len(ours) < count else None
                args = chosen.numbers, chosen.headers, chosen.names.of_aads(), place
                now = done, stop, first
                good += tensors.crypt(self.algorithm, keys, part, which, *args, now) or b""
            elif stop > done:
                which = [j - first for j in ours[done:stop]]
                own = chosen.part(slice(done, stop))
                good += _open_gathered(tensors, self.algorithm, part, which, own)
            first, done = end, stop
        return good if words is None else tensors.send(words)() if waits else words

    def _seal(self, tensors: Blocks, rows: Any, numbers: Sequence[int], names: _Names) -> None:
        count, size = rows.shape
        session, first = self._reserve(count, count * tensors.size)
        headers = _native.kv_heads(MAGIC + session, first, count)
        key = self._tenant_key(names.tenant, session)
        if tensors.layout is not None:
            args = rows, None, numbers, headers, names.of_aads(), None, (0, count, 0)
            tensors.crypt(self.algorithm, ([key], None), *args)
            return
        tensors.gather(numbers, rows[:, HEADER_SIZE:-TAG_SIZE])
        places = [j * size + HEADER_SIZE for j in range(count)]
        run_columns(
            self.algorithm,
            "encrypt",
            key,
            rows.reshape(-1),
            lengths=[tensors.size] * count,
            offsets=places,
            ivs=b"".join(_nonces(headers)),
            **names.aad_columns(),
            out=rows.reshape(-1),
            out_offsets=places,
            engine=tensors.engine,
        ).raise_for_status()
        rows[:, :HEADER_SIZE] = tensors.of_bytes(headers).reshape(count, HEADER_SIZE)

    def _reserve(self, count: int, size: int) -> tuple[bytes, int]:
        """A session, and the first of `count` nonces that nobody had and nobody gets."""
        # The counter of forks as well as the number of the process, which the system may give
        # again, and which changes where a library forked without Python's handlers.
        process = _forks, os.getpid()
        with NOT_AT_FORK:
            if (
                self._process != process
                or self._sealed_blocks + count > SESSION_BLOCKS
                or self._sealed_bytes + size > SESSION_BYTES
            ):
                self._process, self._session = process, os.urandom(SESSION_SIZE)
                self._sealed_blocks = self._sealed_bytes = 0
            first = self._sealed_blocks
            self._sealed_blocks += count
            self._sealed_bytes += size
            return self._session, first

    def _tenant_key(self, tenant: str, session: bytes) -> _native.Key:
        found = self._keys.get((tenant, session))
        if found is None:
            secret = self._secret(tenant)
            info = LABEL + self.algorithm.encode() + b"\0" + tenant.encode()
            size = KEY_SIZES[self.algorithm]
            derived = _native.hkdf("sha256", secret, session, info, size)
            found = _native.Key(self.algorithm, derived)
            _keep(self._keys, (tenant, session), found)
        return found

    def _secret(self, tenant: str) -> bytes:
        """The tenant's key. The source is asked once: a forged block names any session."""
        found = self._secrets.get(tenant)
        if found is None:
            found = keys.resolve(self._key, tenant, keyset=False, what="a key of a vault")
            if len(found) < LEAST_KEY_SIZE:
                raise ValueError(
                    f"the key has {len(found)} bytes: a vault needs {LEAST_KEY_SIZE} or more"
                )
            _keep(self._secrets, tenant, found)
        return found


def _keep(kept: dict[Any, Any], name: object, value: object) -> None:
    for oldest in list(kept)[: len(kept) - KEPT_KEYS + 1]:
        kept.pop(oldest, None)
    kept[name] = value


def _misses(ours: Sequence[int], verdicts: bytes, count: int) -> list[int]:
    if len(ours) == count and 0 not in verdicts:
        return []
    good = {j for j, is_good in zip(ours, verdicts, strict=True) if is_good}
    return [j for j in range(count) if j not in good]


def _joined(sealed: Sequence[Buffer], count: int, size: int) -> bytearray:
    """Sealed blocks side by side, zeros for those that are not of that size."""
    if len(sealed) != count:
        raise ValueError(f"sealed has {len(sealed)} blocks, and ids {count}")
    views = [view_bytes("a sealed block", one) for one in sealed]
    return bytearray().join(view if len(view) == size else bytes(size) for view in views)


def _blocks(blocks: Any, axis: int) -> Blocks:
    return blocks if isinstance(blocks, Blocks) else Blocks(blocks, axis)


def _nonces(headers: bytes) -> Iterator[bytes]:
    ends = range(HEADER_SIZE, len(headers) + 1, HEADER_SIZE)
    return (headers[end - NONCE_SIZE : end] for end in ends)


@lru_cache(maxsize=64)
def _label(tenant: str, model: str) -> bytes:
    names = [len(n).to_bytes(4, "big") + n for n in (tenant.encode(), model.encode())]
    return LABEL + b"".join(names)


class _Names(NamedTuple):
    """The identity of some blocks. An AAD is the label, 8 bytes of position, and the hash."""

    tenant: str
    label: bytes
    hashes: list[Any]
    positions: list[int] | None

    @classmethod
    def of(cls, identity: Identity, count: int) -> _Names:
        if not isinstance(identity, Identity):
            raise TypeError(f"identity is {type(identity).__name__}: expected a kv.Identity")
        tenant, model, hashes, given = identity
        for name, text in (("tenant", tenant), ("model", model)):
            if not isinstance(text, str):
                raise TypeError(f"the identity's {name} is {type(text).__name__}: expected str")
        if len(tenant.encode()) > LONGEST_TENANT:
            raise ValueError(
                f"the identity's tenant has {len(tenant.encode())} bytes of UTF-8: expected "
                f"{LONGEST_TENANT} or fewer"
            )
        if not isinstance(hashes, list):
            hashes = require_items("the identity's hashes", hashes, "bytes for each block")
        positions = None
        if given is not None:
            given = require_items("the identity's positions", given, "an int for each block")
            positions = [require_int("a position of the identity", one) for one in given]
        if len(hashes) != count or (positions is not None and len(positions) != count):
            places = "" if positions is None else f" and {len(positions)} positions"
            raise ValueError(
                f"identity has {len(hashes)} hashes{places}: expected one for each of {count} "
                "blocks"
            )
        wrong = [one for one in positions or [] if not 0 <= one < 1 << 64]
        if wrong:
            raise ValueError(f"identity has position {wrong[0]}: expected 0 to 2^64 - 1")
        return cls(tenant, _label(tenant, model), hashes, positions)

    def part(self, part: slice) -> _Names:
        if part.stop - part.start == len(self.hashes):
            return self
        positions = self.positions and self.positions[part]
        return self._replace(hashes=self.hashes[part], positions=positions)

    def chosen(self, which: Sequence[int]) -> _Names:
        positions = self.positions and [self.positions[i] for i in which]
        return self._replace(hashes=[self.hashes[i] for i in which], positions=positions)

    def of_aads(self) -> tuple[bytes, list[Any], list[int] | None]:
        return self.label, self.hashes, self.positions

    def aad_columns(self) -> dict[str, Any]:
        positions = self.positions or [0] * len(self.hashes)
        aads = [
            self.label + position.to_bytes(8, "big") + view_bytes("a hash of the identity", one)
            for position, one in zip(positions, self.hashes, strict=True)
        ]
        lengths = [len(aad) for aad in aads]
        starts = list(accumulate(lengths, initial=0))[:-1]
        return {"aad": b"".join(aads), "aad_offsets": starts, "aad_lengths": lengths}


class _Chosen(NamedTuple):
    """Inputs for opening some sealed blocks: keys, the key of each, headers, numbers of blocks,
    identity."""

    keys: list[_native.Key]
    key_index: list[int] | None  # None: there is one key
    headers: bytes
    numbers: Sequence[int]
    names: _Names

    def part(self, part: slice) -> _Chosen:
        if part.stop - part.start == len(self.numbers):
            return self
        return _Chosen(
            self.keys,
            self.key_index and self.key_index[part],
            self.headers[part.start * HEADER_SIZE : part.stop * HEADER_SIZE],
            self.numbers[part],
            self.names.part(part),
        )


def _open_gathered(
    tensors: Blocks, algorithm: Algorithm, rows: Any, which: list[int], chosen: _Chosen
) -> bytes:
    """Opens those rows without a layout, and waits: 1 for each that is good, or 0."""
    size, length = rows.shape[1], tensors.size
    texts = tensors.empty(len(which), length)
    try:
        done = run_columns(
            algorithm,
            "decrypt",
            chosen.keys,
            rows.reshape(-1),
            lengths=[length + TAG_SIZE] * len(which),
            offsets=[j * size + HEADER_SIZE for j in which],
            key_index=chosen.key_index,
            ivs=b"".join(_nonces(chosen.headers)),
            **chosen.names.aad_columns(),
            out=texts.reshape(-1),
            out_offsets=[i * length for i in range(len(which))],
            engine=tensors.engine,
        )
        good = bytes(status == _native.Status.OK.value for status in done.status)
        tensors.scatter(texts, chosen.numbers, [i for i, is_good in enumerate(good) if is_good])
    finally:
        texts[...] = 0
    return good
