# SPDX-License-Identifier: Apache-2.0
"""Test vectors as data: reads the response files of NIST's CAVP and this project's own, which have
the same form, and turns each record into `Vector`s.

A record is a run of `NAME = value` lines after a blank line. Every field of every record and every
bracketed heading must be used, either as a value or as a check: a field nobody looks at is an
error, so that no file says something that the tests ignore.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

try:
    import cryptography_vectors
except ModuleNotFoundError:  # a machine with a GPU may have only what its image brings
    PUBLISHED: Path | None = None
else:
    PUBLISHED = Path(cryptography_vectors.__file__).parent / "ciphers"

OWN = Path(__file__).parents[2] / "vectors"


class VectorError(Exception):
    """A vector file that says something the tests do not understand."""


@dataclass(frozen=True, slots=True)
class Vector:
    """One message and what must come of it.

    text: the plaintext; data: what encryption makes of it, for AEADs with the tag after it.
    valid: False where decryption must refuse `data` (then `text` is empty).
    """

    source: str
    algorithm: str
    key: bytes
    iv: bytes
    aad: bytes
    text: bytes
    data: bytes
    tag_length: int = 16
    padding: str | None = None
    valid: bool = True


class Record:
    """The fields of one record, under the headings that hold for it. Remembers which were used."""

    def __init__(self, source: str, headings: dict[str, str], fields: dict[str, str]) -> None:
        self.source = source
        self._fields = {**headings, **fields}
        self._unused = set(self._fields)

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def text(self, name: str) -> str:
        self._unused.discard(name)
        try:
            return self._fields[name]
        except KeyError:
            raise VectorError(f"{self.source}: no field {name}") from None

    def number(self, name: str) -> int:
        return int(self.text(name))

    def hex(self, name: str) -> bytes:
        return bytes.fromhex(self.text(name))

    def check_bits(self, name: str, value: bytes) -> None:
        """Uses a field that says how many bits `value` has."""
        if self.number(name) != 8 * len(value):
            raise VectorError(f"{self.source}: {name} is {self.text(name)}, not {8 * len(value)}")

    def finish(self) -> None:
        if self._unused:
            raise VectorError(f"{self.source}: nothing uses {', '.join(sorted(self._unused))}")


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file. `[ENCRYPT]` becomes the heading `direction`, `[A = b]` heading A."""
    headings: dict[str, str] = {}
    fields: dict[str, str] = {}
    start = 0

    def record() -> Record:
        return Record(f"{path.name}:{start}", headings, fields)

    for number, raw in enumerate(path.read_text(encoding="ascii").splitlines(), 1):
        line = raw.strip()
        if line.startswith("#"):
            continue
        if not line or line.startswith("["):
            if fields:
                if any(name.lower() == "count" for name in fields):
                    yield record()
                else:  # what the records after it have in common
                    headings = {**headings, **fields}
                fields = {}
            if line:
                for part in line.strip("[]").split(","):
                    name, equals, value = part.partition("=")
                    if equals:
                        headings = {**headings, name.strip(): value.strip()}
                    else:
                        headings = {"direction": name}
            continue
        name, equals, value = line.partition("=")
        if not fields:
            start = number
        if name.strip() in fields:
            raise VectorError(f"{path.name}:{number}: field {name.strip()} twice in one record")
        fields[name.strip()] = value.strip() if equals else "yes"
    if fields:
        yield record()


def check_direction(record: Record) -> None:
    """Records of both sections hold the same fields; every vector is run both ways."""
    if record.text("direction") not in ("ENCRYPT", "DECRYPT"):
        raise VectorError(f"{record.source}: direction {record.text('direction')}")


def aes_vector(record: Record, algorithm: str) -> Iterator[Vector]:
    check_direction(record)
    record.number("COUNT")
    iv = b"" if algorithm.endswith("-ecb") else record.hex("IV")
    yield Vector(
        record.source,
        algorithm,
        record.hex("KEY"),
        iv,
        b"",
        record.hex("PLAINTEXT"),
        record.hex("CIPHERTEXT"),
    )


def triple_des_vectors(record: Record, mode: str) -> Iterator[Vector]:
    """A triple DES record for each cipher that its keys allow: with K1 = K2 = K3 triple DES is DES,
    with K1 = K3 it is two-key triple DES (SP 800-67, section 3.2, keying options 3 and 2)."""
    check_direction(record)
    record.number("COUNT")
    if "KEYs" in record:
        keys = [record.hex("KEYs")] * 3
    else:
        keys = [record.hex(name) for name in ("KEY1", "KEY2", "KEY3")]
    iv = b"" if mode == "ecb" else record.hex("IV")
    text, data = record.hex("PLAINTEXT"), record.hex("CIPHERTEXT")
    forms = {"des-ede3": b"".join(keys)}
    if keys[0] == keys[2]:
        forms["des-ede2"] = keys[0] + keys[1]
    if keys[0] == keys[1] == keys[2]:
        forms["des"] = keys[0]
    for cipher, key in forms.items():
        yield Vector(record.source, f"{cipher}-{mode}", key, iv, b"", text, data)


def gcm_vector(record: Record, algorithm: str) -> Iterator[Vector]:
    record.number("Count")
    key, iv, aad = record.hex("Key"), record.hex("IV"), record.hex("AAD")
    data, tag = record.hex("CT"), record.hex("Tag")
    valid = "FAIL" not in record
    text = record.hex("PT") if valid else b""
    if not valid:
        record.text("FAIL")
    for name, value in (("Keylen", key), ("IVlen", iv), ("AADlen", aad), ("Taglen", tag)):
        record.check_bits(name, value)
    record.check_bits("PTlen", data)
    yield Vector(
        record.source, algorithm, key, iv, aad, text, data + tag, tag_length=len(tag), valid=valid
    )


def ccm_vector(record: Record, algorithm: str) -> Iterator[Vector]:
    """Texts of no bytes are written as one of zero. A text that is refused is not given."""
    record.number("Count")
    sizes = {name: record.number(f"{name}len") for name in "APNT"}
    valid = "Result" not in record or record.text("Result").startswith("Pass")
    text = record.hex("Payload")[: sizes["P"]] if valid else b""
    aad, data, nonce = record.hex("Adata")[: sizes["A"]], record.hex("CT"), record.hex("Nonce")
    if len(nonce) != sizes["N"] or len(data) != sizes["P"] + sizes["T"]:
        raise VectorError(f"{record.source}: lengths are not those of the heading")
    key = record.hex("Key")
    yield Vector(
        record.source, algorithm, key, nonce, aad, text, data, tag_length=sizes["T"], valid=valid
    )


def gcm_siv_vector(record: Record, _algorithm: str) -> Iterator[Vector]:
    """OpenSSL's records of RFC 8452, for keys of both lengths."""
    record.number("COUNT")
    key = record.hex("Key")
    yield Vector(
        record.source,
        f"aes-{8 * len(key)}-gcm-siv",
        key,
        record.hex("IV"),
        record.hex("AAD") if "AAD" in record else b"",
        record.hex("Plaintext"),
        record.hex("Ciphertext") + record.hex("Tag"),
    )


def chacha20_vector(record: Record, algorithm: str) -> Iterator[Vector]:
    record.number("COUNT")
    iv = record.number("INITIAL_BLOCK_COUNTER").to_bytes(4, "little") + record.hex("NONCE")
    text, data = record.hex("PLAINTEXT"), record.hex("CIPHERTEXT")
    yield Vector(record.source, algorithm, record.hex("KEY"), iv, b"", text, data)


def chacha20_poly1305_vector(record: Record, algorithm: str) -> Iterator[Vector]:
    record.number("COUNT")
    valid = "Result" not in record
    if not valid:
        record.text("Result")
    key, iv, aad = record.hex("Key"), record.hex("IV"), record.hex("AAD")
    text, data = record.hex("Plaintext"), record.hex("Ciphertext") + record.hex("Tag")
    yield Vector(record.source, algorithm, key, iv, aad, text if valid else b"", data, valid=valid)


def boringssl_vector(record: Record, algorithm: str) -> Iterator[Vector]:
    """Values are hexadecimal, or text in quotation marks. Tags may be cut short, which nobody may
    take; such a record gives no vector."""

    def value(name: str) -> bytes:
        text = record.text(name)
        return text[1:-1].encode() if text.startswith('"') else bytes.fromhex(text)

    record.number("COUNT")
    fields = [value(name) for name in ("KEY", "NONCE", "AD", "IN", "CT", "TAG")]
    key, nonce, aad, text, data, tag = fields
    if len(tag) == 16:
        yield Vector(record.source, algorithm, key, nonce, aad, text, data + tag)


def xts_vector(record: Record, algorithm: str) -> Iterator[Vector]:
    """Nothing for data units that are not whole bytes: no interface of this library is in bits."""
    check_direction(record)
    record.number("COUNT")
    if "i" in record:
        tweak = record.hex("i")
    else:  # IEEE 1619, section 5.1: the number, little-endian
        tweak = record.number("DataUnitSeqNumber").to_bytes(16, "little")
    key, text, data = record.hex("Key"), record.hex("PT"), record.hex("CT")
    if record.number("DataUnitLen") % 8:
        return
    record.check_bits("DataUnitLen", text)
    yield Vector(record.source, algorithm, key, tweak, b"", text, data)


def own_vector(record: Record) -> Iterator[Vector]:
    """A record of tests/vectors: the algorithm in a heading, optional fields left out."""
    record.text("COUNT")

    def optional(name: str) -> bytes:
        return record.hex(name) if name in record else b""

    tag = optional("TAG")
    yield Vector(
        record.source,
        record.text("ALGORITHM"),
        record.hex("KEY"),
        optional("IV"),
        optional("AAD"),
        record.hex("PLAINTEXT"),
        record.hex("CIPHERTEXT") + tag,
        tag_length=len(tag) or 16,
        padding=record.text("PADDING").lower() if "PADDING" in record else None,
    )


@dataclass(frozen=True)
class Source:
    """Files that match `pattern` under the published vectors, and what reads their records.

    The pattern's group `bits` is the key length; `skipped` counts records that give no vector.
    """

    pattern: str
    read: Callable[[Record, str], Iterator[Vector]]
    algorithm: str
    skipped: int = 0


def aes_source(mode: str, folder: str, prefix: str) -> Source:
    kinds = "GFSbox|KeySbox|VarKey|VarTxt|MMT"
    return Source(rf"AES/{folder}/{prefix}({kinds})(?P<bits>\d+)\.rsp", aes_vector, mode)


def triple_des_source(mode: str, folder: str, prefix: str) -> Source:
    kinds = "invperm|permop|subtab|varkey|vartext|MMT[123]"
    return Source(rf"3DES/{folder}/{prefix}({kinds})\.rsp", triple_des_vectors, mode)


SOURCES = (
    aes_source("ecb", "ECB", "ECB"),
    aes_source("cbc", "CBC", "CBC"),
    aes_source("cfb", "CFB", "CFB128"),
    aes_source("cfb8", "CFB", "CFB8"),
    aes_source("ofb", "OFB", "OFB"),
    Source(r"AES/CTR/aes-(?P<bits>\d+)-ctr\.txt", aes_vector, "ctr"),
    Source(r"AES/GCM/gcm(Decrypt|EncryptExtIV)(?P<bits>\d+)\.rsp", gcm_vector, "gcm"),
    Source(r"AES/CCM/(DVPT|VADT|VNT|VPT|VTT)(?P<bits>\d+)\.rsp", ccm_vector, "ccm"),
    # Not whole bytes: a fifth of the 2000 records of AES-128 (130 bits), two fifths of the 2000 of
    # AES-256 (140 and 250 bits).
    Source(r"AES/XTS/tweak-\w+/XTSGenAES(?P<bits>\d+)\.rsp", xts_vector, "xts", skipped=1200),
    Source(r"AES/GCM-SIV/openssl\.txt", gcm_siv_vector, "gcm-siv"),
    Source(r"ChaCha20/rfc7539\.txt", chacha20_vector, "chacha20"),
    Source(r"ChaCha20Poly1305/openssl\.txt", chacha20_poly1305_vector, "chacha20-poly1305"),
    Source(r"ChaCha20Poly1305/boringssl\.txt", boringssl_vector, "chacha20-poly1305"),
    triple_des_source("ecb", "ECB", "TECB"),
    triple_des_source("cbc", "CBC", "TCBC"),
    triple_des_source("cfb", "CFB", "TCFB64"),
    triple_des_source("cfb8", "CFB", "TCFB8"),
    triple_des_source("ofb", "OFB", "TOFB"),
)


def published(root: Path) -> Iterator[Vector]:
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    files = {str(path.relative_to(root)): path for path in paths}
    for source in SOURCES:
        matches = [(re.fullmatch(source.pattern, name), path) for name, path in files.items()]
        found = [(match, path) for match, path in matches if match]
        if not found:
            raise VectorError(f"no file of {root} matches {source.pattern}")
        skipped = 0
        for match, path in found:
            bits = match.groupdict().get("bits")
            algorithm = f"aes-{bits}-{source.algorithm}" if bits else source.algorithm
            for record in read_records(path):
                vectors = list(source.read(record, algorithm))
                record.finish()
                skipped += not vectors
                yield from vectors
        if skipped != source.skipped:
            raise VectorError(f"{source.pattern}: {skipped} records skipped, not {source.skipped}")


def own(root: Path) -> Iterator[Vector]:
    for path in sorted(root.glob("*.rsp")):
        for record in read_records(path):
            yield from own_vector(record)
            record.finish()


@functools.cache
def load() -> dict[str, tuple[Vector, ...]]:
    """Every vector by algorithm. Records that the files repeat (the sections for encryption and
    decryption hold the same ones) are kept once, since each vector is run both ways."""
    kept: dict[tuple[object, ...], Vector] = {}
    for origin in (own(OWN), published(PUBLISHED) if PUBLISHED else ()):
        for v in origin:
            identity = (v.algorithm, v.key, v.iv, v.aad, v.text, v.data, v.padding, v.valid)
            kept.setdefault(identity, v)
    by_algorithm: dict[str, list[Vector]] = {}
    for v in kept.values():
        by_algorithm.setdefault(v.algorithm, []).append(v)
    return {name: tuple(vectors) for name, vectors in by_algorithm.items()}
