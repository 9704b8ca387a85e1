# SPDX-License-Identifier: Apache-2.0
"""The message format of the AWS Encryption SDK, versions 1 and 2.

    +--------+---------+---------+-----+-------------+--------+
    | header | frame 1 | frame 2 | ... | final frame | footer |
    +--------+---------+---------+-----+-------------+--------+

The header (header.py) has the data key, encrypted by one key or several (keys.py); body.py has the
frames, and the one block that a message may have in their place; signature.py the footer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import warpcipher as wc

from ..._errors import counted
from ..base import Buffer, Candidate, Decryptor, Encryptor, Format, NewKey, several_keys, wipe
from ..base import Options as AnyOptions
from ..layout import FormatError
from . import body, header, keys
from .signature import Signer, Verifier

_FIRST_PROBE = 4096
FRAME_LENGTH = 4 << 10
_OWNER = {"owner": "format awsesdk"}


@dataclass(frozen=True)
class Options(AnyOptions):
    """Options of format awsesdk, besides the common ones.

    algorithm:          the suite, by its name or number ("0x0478"); see `SUITES`. None: to encrypt,
                        0x0578, as the SDK does: key commitment and a signature. To decrypt: any
                        with key commitment; only a suite that is named is read without.
    encryption_context: texts that are authenticated and stored, not encrypted. To decrypt: pairs
                        that the message must have, stored or required.
    required_context:   keys of these pairs that are authenticated and not stored: who decrypts must
                        give the pairs again (the SDK's required encryption context).
    frame_length:       bytes of plaintext of a frame, 1 to 2^32 - 1.
    """

    encryption_context: Mapping[str, str] = field(default_factory=dict, metadata=_OWNER)
    required_context: Sequence[str] = field(default=(), metadata=_OWNER)
    frame_length: int = field(default=FRAME_LENGTH, metadata=_OWNER)

    def __post_init__(self) -> None:
        super().__post_init__()
        header.check_context(self.encryption_context)
        if isinstance(self.required_context, str):
            raise TypeError("required_context is a str: expected a sequence of keys")
        if absent := [key for key in self.required_context if key not in self.encryption_context]:
            raise ValueError(f"encryption_context has no {absent[0]!r}, which is required")
        if not 0 < self.frame_length <= header.LONGEST_FRAME:
            raise ValueError(
                f"frame_length is {self.frame_length}: expected 1 to {header.LONGEST_FRAME}"
            )


def _parsed(key: object) -> list[keys.AnyKey]:
    takes = "a RawAES, RawRSA, KMS or Discovery of formats.awsesdk, or a keyring in JSON,"
    return several_keys(key, _known, "format awsesdk", takes)


def _known(key: object) -> list[keys.AnyKey] | None:
    if isinstance(key, keys.KEYS):
        return [key]
    if isinstance(key, (str, bytes, bytearray, memoryview)):
        return keys.keyring(key if isinstance(key, str) else bytes(key))
    return None


class AwsEsdk(Format):
    """`awsesdk`; the key is a RawAES, RawRSA, KMS or Discovery, several of them, or a keyring in
    JSON."""

    name = "awsesdk"
    description = "AWS Encryption SDK, AES-GCM in frames of 4 KiB, for raw AES, RSA and KMS keys"
    found_by_key = True
    extension = ".awsesdk"
    authenticated = True
    binds_chunks = True
    takes = ("algorithm", "encryption_context", "required_context", "frame_length")
    takes_keyset = True

    def name_of_key(self, algorithm: str | None) -> str:
        return "a keyring of awsesdk"

    def key_needed(self) -> str:
        return "a keyring in JSON, with a key that encrypted its data key"

    def make_key(self, template: str, passphrase: bytes | None) -> NewKey:
        return NewKey(keys.new_keyring())

    def knows(self, key: object) -> bool:
        if isinstance(key, (list, tuple)):
            return bool(key) and all(self.knows(one) for one in key)
        return isinstance(key, keys.KEYS) or keys.is_keyring(key)

    def primary(self, key: object) -> object:
        return _parsed(key)[0]  # which makes the data key

    def _options(self, options: AnyOptions) -> Options:
        options.check(self)
        if isinstance(options, Options):
            return options
        return Options(engine=options.engine, algorithm=options.algorithm)

    def encryptor(self, key: object, options: AnyOptions) -> Encryptor:
        chosen = self._options(options)
        suite = header.suite_of(chosen.algorithm) or header.DEFAULT
        wrapping = _parsed(key)
        context = dict(chosen.encryption_context)
        signer = Signer(suite) if suite.curve else None
        if signer is not None:
            context[header.PUBLIC_KEY] = signer.public_key
        message_id = os.urandom(32 if suite.commits else 16)
        data_key, first = wrapping[0].generate(suite.key_size, context)
        try:
            wrapped = [first, *(one.wrap(data_key, context) for one in wrapping[1:])]
            committed = header.commitment(data_key, message_id) if suite.commits else b""
            required = {name: context.pop(name) for name in chosen.required_context}
            text = header.build(suite, message_id, context, wrapped, chosen.frame_length, committed)
            content = header.content_key(suite, data_key, message_id)
        finally:
            wipe(data_key)
        whole = header.sealed(suite, content, text, required)
        if signer is not None:
            signer.update(whole)
        return body.FrameEncryptor(header.parse(whole), whole, content, chosen.engine, signer)

    def shape(self, prefix: bytes, size: int) -> Candidate | None:
        try:
            parsed = header.parse(prefix)
        except FormatError:
            return None
        keys_of_it = counted(len(parsed.keys), "encrypted data key")
        reason = f"a header of suite 0x{parsed.suite.number:04x}, with {keys_of_it}"
        if not parsed.frame_length:
            return Candidate(self.name, f"{reason}, and one block")
        try:
            return self.candidate(body.frame_layout(parsed, parsed.size), size, reason)
        except FormatError as error:
            return Candidate(self.name, f"{reason}; {error}")

    def probe_size(self, key: object, options: AnyOptions, prefix: Buffer = b"") -> int:
        try:
            parsed = header.parse(bytes(prefix))
        except header.TruncatedError as short:
            return max(short.wanted, min(2 * len(prefix), header.LONGEST), _FIRST_PROBE)
        except FormatError:  # `decryptor` says it
            return len(prefix)
        return parsed.size + (0 if parsed.frame_length else body.BLOCK_HEAD_SIZE)

    def decryptor(self, key: object, prefix: Buffer, options: AnyOptions) -> Decryptor:
        chosen = self._options(options)
        wrapping = _parsed(key)
        data = bytes(prefix)
        parsed = header.parse(data)
        _check_suite(parsed.suite, chosen.algorithm)
        head = data[parsed.size : parsed.size + body.BLOCK_HEAD_SIZE]
        if not parsed.frame_length and len(head) < body.BLOCK_HEAD_SIZE:
            raise FormatError("truncated: the file ends before its block")
        data_key, content = _opened(parsed, wrapping, _required(parsed, chosen))
        wipe(data_key)
        try:
            verifier = None
            if parsed.suite.curve:
                verifier = Verifier(parsed.suite, parsed.context[header.PUBLIC_KEY])
                verifier.update(data[: parsed.size])
            if parsed.frame_length:
                return body.FrameDecryptor(parsed, content, chosen.engine, verifier)
            return body.BlockDecryptor(parsed, head, content, chosen.engine, verifier)
        finally:
            wipe(content)

    def rewrapped(
        self, key: object, new_key: object, prefix: Buffer, options: AnyOptions, *, keep: bool
    ) -> tuple[int, bytes]:
        parsed = header.parse(bytes(prefix))
        chosen = self._options(options)
        _check_suite(parsed.suite, chosen.algorithm)
        if parsed.suite.curve:
            raise ValueError(
                "the header of a signed message is signed, and its key is gone: it cannot be "
                "wrapped for other keys; `warpcipher rekey` encrypts it again"
            )
        required = _required(parsed, chosen)
        data_key, content = _opened(parsed, _parsed(key), required)
        try:
            context = {**parsed.context, **required}
            wrapped = [one.wrap(data_key, context) for one in _parsed(new_key)]
            body_bytes = header.build(
                parsed.suite,
                parsed.message_id,
                parsed.context,
                [*(parsed.keys if keep else ()), *wrapped],
                parsed.frame_length,
                parsed.commitment,
            )
            return parsed.size, header.sealed(parsed.suite, content, body_bytes, required)
        finally:
            wipe(data_key)
            wipe(content)


def _required(parsed: header.Header, chosen: Options) -> dict[str, str]:
    """The pairs that were given and that the message does not store: if it does not require them,
    it does not open. InvalidTag for one that it stores with another value."""
    required = dict(chosen.encryption_context)
    for name in parsed.context.keys() & required:
        if parsed.context[name] != required.pop(name):
            raise wc.InvalidTag(
                f"the message's encryption context does not have {name!r} as it was given"
            )
    return required


def _opened(
    parsed: header.Header, wrapping: list[keys.AnyKey], required: dict[str, str]
) -> tuple[bytearray, bytearray]:
    """The data key and the content key of an authentic header. InvalidTag, PermissionError."""
    try:
        return _opened_with(parsed, wrapping, required)
    except wc.InvalidTag as error:
        if not required:
            raise
        raise wc.InvalidTag(
            f"the message's encryption context does not have {min(required)!r}, and was not made "
            f"with it; or {error}"
        ) from None


def _opened_with(
    parsed: header.Header, wrapping: list[keys.AnyKey], required: dict[str, str]
) -> tuple[bytearray, bytearray]:
    data_key = _unwrapped(parsed, wrapping, {**parsed.context, **required})
    content = bytearray()
    try:
        parsed.check_commitment(data_key)
        content = header.content_key(parsed.suite, data_key, parsed.message_id)
        parsed.check(content, required)
    except BaseException:
        wipe(data_key)
        wipe(content)
        raise
    return data_key, content


def _check_suite(suite: header.Suite, asked: str | None) -> None:
    """Raises FormatError for a suite that is not read."""
    wanted = header.suite_of(asked)
    if wanted is None and not suite.commits:
        raise FormatError(
            f"the message has suite 0x{suite.number:04x}, without key commitment: it is read where "
            f"algorithm 0x{suite.number:04x} is given"
        )
    if wanted is not None and wanted != suite:
        raise FormatError(
            f"the message has suite 0x{suite.number:04x}, and 0x{wanted.number:04x} was asked for"
        )


def _unwrapped(
    parsed: header.Header, wrapping: list[keys.AnyKey], context: dict[str, str]
) -> bytearray:
    """The data key. Raises InvalidTag where no key opens one, PermissionError of a KMS."""
    reasons: list[str] = []
    refusal: PermissionError | None = None
    for encrypted in parsed.keys:
        for one in wrapping:
            if not one.owns(encrypted):
                continue
            try:
                found = bytearray(one.unwrap(encrypted, context))
            except keys.DataKeyError as error:
                reasons.append(str(error))
                continue
            except PermissionError as error:
                refusal = error
                continue
            if len(found) == parsed.suite.key_size:
                return found
            wipe(found)
            reasons.append(
                f"a data key of {len(found)} bytes, and the suite's has {parsed.suite.key_size}"
            )
    if refusal is not None:
        raise refusal
    named = f"the message has {counted(len(parsed.keys), 'encrypted data key')}"
    if not reasons:
        raise wc.InvalidTag(f"{named}, and none for a key that was given")
    raise wc.InvalidTag(f"{named}, and none opens: {reasons[0]}")


FORMATS = (AwsEsdk(),)
