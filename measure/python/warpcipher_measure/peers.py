# SPDX-License-Identifier: Apache-2.0
"""Peers on the same machine. libcrypto by its own benchmark, `openssl speed -multi`: one process a
core, each over and over the same buffer, which therefore stays in its cache. And pyca/cryptography:
the same texts in the same process, by turns, so that whatever else the machine does slows both."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import subprocess
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import warpcipher as wc

from .cases import TAG_SIZE, Case, any_iv
from .machine import cores
from .program import Times, by_turns
from .results import PeerRow, Spread

LARGEST_MESSAGE = 1 << 20
SECONDS = 1


def openssl_program() -> str:
    """The openssl command. ValueError: there is none on PATH."""
    found = shutil.which("openssl")
    if found is None:
        raise ValueError("--against openssl runs `openssl speed`, but no openssl is on PATH")
    return found


def openssl_version(path: str) -> str:
    done = subprocess.run([path, "version"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def openssl_name(algorithm: str) -> str:
    """OpenSSL's name: it counts the keys of triple DES by -ede and -ede3."""
    if "chacha20" in algorithm:
        return algorithm
    cipher, _, mode = algorithm.rpartition("-")
    return f"{cipher.removesuffix('2') if cipher == 'des-ede2' else cipher}-{mode}"


def openssl_command(
    path: str, algorithm: str, direction: str, message: int, processes: int
) -> list[str]:
    options = ["-aead"] if algorithm.endswith(("-ccm", "-gcm", "-gcm-siv", "-poly1305")) else []
    if direction == "decrypt":
        options.append("-decrypt")
    line = f"speed -mr -elapsed -multi {processes} -seconds {SECONDS} -bytes {message}"
    return [path, *line.split(), *options, "-evp", openssl_name(algorithm)]


def measure_openssl(
    path: str, its_version: str, algorithm: str, direction: str, message: int, repetitions: int
) -> PeerRow | str:
    """The sum over all processes, or what openssl complained of."""
    processes = cores()
    arguments = openssl_command(path, algorithm, direction, message, processes)
    rates = []
    for _ in range(repetitions):
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        rate = parse_openssl(done.stdout)
        if done.returncode != 0 or rate is None:
            complaint = done.stderr.strip().splitlines() or ["no result"]
            return f"openssl speed: {complaint[0]}"
        rates.append(rate / 1e9)
    what, line = (algorithm, direction, message), shlex.join(["openssl", *arguments[1:]])
    return PeerRow("openssl", its_version, *what, processes, Spread.of(rates), line, message)


def parse_openssl(output: str) -> float | None:
    """Bytes a second of all processes: the last line of `-mr`, +F:NUMBER:NAME:RATE."""
    for line in reversed(output.splitlines()):
        fields = line.split(":")
        if fields[0] == "+F" and len(fields) >= 4:
            return float(fields[-1])
    return None


# --- pyca/cryptography ----------------------------------------------------------------------------

PRIMITIVES = "cryptography.hazmat.primitives.ciphers"
BACKEND = "cryptography.hazmat.backends.openssl.backend"
OWN_CLASSES = {"ccm": "AESCCM", "gcm": "AESGCM", "siv": "AESGCMSIV", "poly1305": "ChaCha20Poly1305"}
"""Of AEADs, by the last part of their names."""
IN_A_ROW = 0.0005
"""Seconds of calls that one takes before it is the other's turn: less than a scheduler gives."""
MOST_PAIRS = 41

Call = Callable[[], Any]


@dataclass(frozen=True)
class Library:
    """pyca/cryptography's modules, and its version with its OpenSSL's."""

    aead: Any
    ciphers: Any
    version: str

    def mode(self, name: str, iv: bytes) -> Any:
        """A mode's object. CFB, CFB8 and OFB have moved to its module of decrepit ones."""
        modes, upper = self.ciphers.modes, name.upper()
        if name in ("cfb", "cfb8", "ofb"):
            modes = importlib.import_module("cryptography.hazmat.decrepit.ciphers.modes")
        return modes.ECB() if name == "ecb" else getattr(modes, upper)(iv)


def pyca_library() -> Library:
    """ValueError: it is not installed here."""
    try:
        names = "cryptography", f"{PRIMITIVES}.aead", PRIMITIVES, BACKEND
        package, aead, ciphers, backend = map(importlib.import_module, names)
    except ImportError:
        raise ValueError(
            "--against pyca needs the package cryptography: pip install 'cryptography>=50'"
        ) from None
    version = f"cryptography {package.__version__}, {backend.backend.openssl_version_text()}"
    return Library(aead, ciphers, version)


def pyca_refusal(case: Case) -> str:
    """Why the peer has nothing to compare a case with; empty where it has."""
    name = case.algorithm.name
    if name.startswith("des") or name == "xchacha20-poly1305":
        return "pyca is compared in AES and ChaCha20, and has no XChaCha20"
    if case.residence not in ("pageable", "pinned") or case.engine.memory == "device":
        return "pyca works on host memory, and is compared with an engine that does"
    return ""


def measure_pyca(peer: Library, case: Case, seconds: float, repetitions: int) -> list[PeerRow]:
    """Both ways of calling: bytes to bytes, and into a buffer. EngineError: the two differ."""
    pair = _Pair(peer, case)
    rows = []
    for into in (False, True):
        own, other = pair.calls(into)
        pair.check(own, other, into)
        mine, theirs = _turns(own, other, seconds, repetitions)
        what = peer.version, case.algorithm.name, case.direction, case.message
        found = Spread.of(theirs.wall).rate(case.size / 1e9)
        ratio = Spread.of([b / a for a, b in zip(mine.wall, theirs.wall, strict=True)])
        rows.append(PeerRow("pyca", *what, 1, found, pair.shown(into), case.size, ratio))
    return rows


def _turns(own: Call, other: Call, seconds: float, repetitions: int) -> tuple[Times, Times]:
    """Times of a call of each, in turns that together take about as many seconds."""
    begin = time.perf_counter()
    own()
    once = max(time.perf_counter() - begin, 1e-9)
    calls = max(1, round(IN_A_ROW / once))
    pairs = max(repetitions, min(MOST_PAIRS, int(seconds / (2 * calls * once))))
    mine, theirs = by_turns({"mine": own, "theirs": other}, pairs, calls=calls).values()
    return mine, theirs


class _Pair:
    """The calls of both on the same messages under one key, with buffers that stay in the cache
    where they fit."""

    def __init__(self, peer: Library, case: Case) -> None:
        info, self._case, self._peer = case.algorithm, case, peer
        self._mode = info.name.rpartition("-")[2]
        self._encrypting = case.direction == "encrypt"
        self._key_bytes = os.urandom(info.key_size)
        self._key = wc.Key(info.name, self._key_bytes)
        self._cipher = wc.Cipher(info.name, self._key, engine=case.engine.name)
        self._ivs = [any_iv(info) for _ in case.lengths]
        self._texts = [os.urandom(length) for length in case.lengths]
        growth = TAG_SIZE if info.is_aead else 0
        if growth and not self._encrypting:
            pairs = zip(self._texts, self._ivs, strict=True)
            self._texts = [self._cipher.encrypt(text, iv=iv) for text, iv in pairs]
            growth = -growth
        self._sizes = [len(text) + growth for text in self._texts]
        self._out = bytearray(sum(self._sizes))
        # update_into asks for room for a block more than it writes.
        room = 0 if info.is_aead else info.block_size - 1
        self._their_out = [bytearray(size + room) for size in self._sizes]

    def calls(self, into: bool) -> tuple[Call, Call]:
        """Ours and theirs: both return what they made, in one piece or in one for each message;
        into: they fill buffers."""
        one = self._their_aead(into) if self._case.algorithm.is_aead else self._theirs(into)
        work = list(zip(range(len(self._texts)), self._texts, self._their_out, strict=True))
        if len(work) == 1:
            return self._own(into), lambda: one(*work[0])
        return self._own(into), lambda: [one(*message) for message in work]

    def _own(self, into: bool) -> Call:
        case, out = self._case, self._out if into else None
        if case.message < case.size:
            source, ivs = b"".join(self._texts), b"".join(self._ivs) or None
            lengths = array("Q", map(len, self._texts))
            run = partial(wc.run_columns, *(case.algorithm.name, case.direction, self._key, source))
            how: Any = {"lengths": lengths, "ivs": ivs, "out": out, "engine": case.engine.name}
            return lambda: run(**how).raise_for_status()
        method = self._cipher.encrypt if self._encrypting else self._cipher.decrypt
        text, iv = self._texts[0], self._ivs[0] or None
        return (lambda: method(text, iv=iv, out=out)) if into else (lambda: method(text, iv=iv))

    def _their_aead(self, into: bool) -> Callable[[int, bytes, bytearray], Any]:
        peer = getattr(self._peer.aead, OWN_CLASSES[self._mode])(self._key_bytes)
        ivs = self._ivs
        if into:
            method = peer.encrypt_into if self._encrypting else peer.decrypt_into
            return lambda i, text, out: method(ivs[i], text, None, out)
        method = peer.encrypt if self._encrypting else peer.decrypt
        return lambda i, text, out: method(ivs[i], text, None)

    def _theirs(self, into: bool) -> Callable[[int, bytes, bytearray], Any]:
        ciphers, ivs = self._peer.ciphers, self._ivs
        if self._mode == "chacha20":
            algorithms = [ciphers.algorithms.ChaCha20(self._key_bytes, iv) for iv in ivs]
            keyed = [ciphers.Cipher(algorithm, None) for algorithm in algorithms]
        else:
            key = ciphers.algorithms.AES(self._key_bytes)
            keyed = [ciphers.Cipher(key, self._peer.mode(self._mode, iv)) for iv in ivs]
        start = [cipher.encryptor if self._encrypting else cipher.decryptor for cipher in keyed]
        if self._mode == "ctr":  # the only one whose context takes a new IV
            context = start[0]()

            def one(i: int, text: bytes, out: bytearray) -> Any:
                context.reset_nonce(ivs[i])
                return context.update_into(text, out) if into else context.update(text)

            return one

        def another(i: int, text: bytes, out: bytearray) -> Any:
            context = start[i]()
            done = context.update_into(text, out) if into else context.update(text)
            context.finalize()
            return done

        return another

    def check(self, own: Call, other: Call, into: bool) -> None:
        """Runs both once, and compares what they made."""
        made, theirs = own(), other()
        if into:
            made = bytes(self._out)
            pairs = zip(self._their_out, self._sizes, strict=True)
            theirs = [bytes(out[:size]) for out, size in pairs]
        elif isinstance(made, wc.Columns):
            made = bytes(made.out)
        if made != (b"".join(theirs) if isinstance(theirs, list) else theirs):
            raise wc.EngineError(
                f"engine {self._case.engine.name} and pyca/cryptography differ in "
                f"{self._case.shown}: nothing of it is worth measuring"
            )

    def shown(self, into: bool) -> str:
        """The calls to time: ours and theirs."""
        verb, out = self._case.direction, ", out=" if into else ""
        split = self._case.message < self._case.size
        own = f"run_columns(...{out})" if split else f"Cipher.{verb}(data{out})"
        update = "update_into" if into else "update"
        if self._case.algorithm.is_aead:
            theirs = f"{OWN_CLASSES[self._mode]}.{verb}{'_into' if into else ''}"
        elif self._mode == "ctr":
            theirs = f"reset_nonce, {update}"
        else:
            theirs = f"{verb}or, {update}, finalize"
        return f"{own} beside {theirs}"
