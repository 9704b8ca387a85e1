# SPDX-License-Identifier: Apache-2.0
"""`warpcipher raw`: bare ciphertext, as `openssl enc` has it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import click

import warpcipher as wc

from . import jobs, keygen, keys, names, recipients
from .errors import EPILOG, Command, Group, epilog, usage
from .files import open_output
from .options import argument, in_section, option, with_options
from .run import TELLING
from .settings import COMPUTING, EARLIER, PATHS, WRITING, Settings
from .transfer import Transfer

if TYPE_CHECKING:
    from warpcipher.formats.openssl import Password

_CIPHER = (
    names.algorithm_option("Such as aes-256-ctr: `warpcipher info --algorithms` lists them."),
    keys.KEY_HEX,
    option("--iv-hex HEX", "The IV or nonce.", callback=keys.of_hex),
    option("--no-padding", "ECB and CBC: no PKCS#7 padding."),
    *recipients.passphrase_options("A password, asked for, as `openssl enc -pbkdf2`."),
    option("--digest NAME", "With a password: openssl's -md.  [default: sha256]"),
    option("--iterations N", "With a password: openssl's -iter.  [default: 10000]", type=int),
)
_raw_options = with_options(
    *PATHS,
    *in_section("Cipher", *_CIPHER, *COMPUTING),
    *in_section("Output", *WRITING),
    *in_section("Outputs of earlier runs", *EARLIER),
    *TELLING,
)


@dataclass(kw_only=True)
class RawSettings(Settings):
    """The options of a run, as given."""

    algorithm: str
    key_hex: bytes | None
    iv_hex: bytes | None
    no_padding: bool
    digest: str | None
    iterations: int | None

    def _check_key(self) -> None:
        if sum((bool(self.key), self.key_hex is not None, bool(self.people))) != 1:
            raise usage("give one key: --key FILE, --key-hex HEX, or a password: --passphrase")
        if self.people and self.iv_hex is not None:
            raise usage("the IV comes from the password: leave --iv-hex out")
        if not self.people:
            for name in ("digest", "iterations", "armor"):
                if not (getattr(self, name) is None or getattr(self, name) is False):
                    raise usage(f"--{name} is for a password: --passphrase")


class RawTransfer(Transfer):
    """One run of `raw encrypt` or `raw decrypt`."""

    def __init__(self, settings: RawSettings, task: Literal["encrypt", "decrypt"]) -> None:
        self._raw = settings
        super().__init__(settings, task)

    def _make_options(self) -> wc.formats.Options:
        given = self._raw
        padding: Any = "none" if given.no_padding else "auto"
        made = super()._make_options()
        return replace(made, algorithm=given.algorithm, iv=given.iv_hex, padding=padding)

    def _read_key(self) -> bytes | bytearray | Password | keys.Key:
        given = self._raw
        if given.people:
            return self._read_password()
        key = (
            given.key.read("raw", given.algorithm)
            if given.key_hex is None
            else bytearray(given.key_hex)
        )
        self._check_iv()
        return key

    def _read_password(self) -> Password:
        given = self._raw
        given.people.expect(given.paths)
        text = recipients.read_passphrase(given.people, "Password", twice=self._encrypt)
        return wc.formats.openssl.Password(
            text,
            wc.formats.openssl.DIGEST if given.digest is None else given.digest,
            wc.formats.openssl.ITERATIONS if given.iterations is None else given.iterations,
        )

    def _check_iv(self) -> None:
        """Names the option where an IV is missing: the library knows no options."""
        named = self._raw.algorithm
        size = next((entry.iv_size for entry in wc.algorithms() if entry.name == named), 0)
        if size and self._raw.iv_hex is None:
            raise usage(f"{named} takes an IV of {size} bytes: give it with --iv-hex HEX")

    def _check_plan(self, plan: jobs.Plan) -> None:
        """Decryption is free to: it is encryption that makes texts which share a key stream."""
        count = len(plan.jobs)
        if self._encrypt and self._sealed.options.iv is not None and count > 1:
            raise usage(
                f"{count} files cannot be encrypted with one --iv-hex: under one key and IV, "
                f"files of {self._raw.algorithm} give away equal parts, or all "
                "of their text. Run it once for each file with its own IV, or take "
                "`warpcipher encrypt`, which needs none"
            )

    def _warn_unauthenticated(self) -> None:
        named = self._raw.algorithm
        if named not in {entry.name for entry in wc.algorithms() if entry.is_aead}:
            self._warn_of(f"raw with {named}")


@click.group(cls=Group, epilog=EPILOG)
def raw() -> None:
    """Encrypt and decrypt bare ciphertext, for other programs. AEADs excepted, it is NOT
    authenticated: a change or a wrong key goes unnoticed.

    \b
    warpcipher raw encrypt --algorithm aes-256-ctr --key my.key --iv-hex ... report.pdf
    warpcipher raw decrypt --algorithm aes-256-cbc --passphrase backup.enc
    """


@raw.command("encrypt", cls=Command, epilog=EPILOG)
@_raw_options
@option("-a --armor", "With a password: write base64, as openssl's -a.")
def raw_encrypt(**given: Any) -> None:
    """Encrypt files, directory trees or standard input (-). FILE becomes FILE.enc.

    With a key it writes as `openssl enc -K -iv` does; one IV encrypts one file. With a password it
    writes as `openssl enc -pbkdf2`, with a fresh salt for each file.

    \b
    warpcipher raw encrypt --algorithm aes-256-ctr --key my.key --iv-hex ... report.pdf
    warpcipher raw encrypt --algorithm aes-256-cbc -p --iterations 600000 report.pdf
    """
    RawTransfer(RawSettings.of({**given, "format_name": "raw"}), "encrypt").run()


@raw.command("decrypt", cls=Command, epilog=EPILOG)
@_raw_options
def raw_decrypt(**given: Any) -> None:
    """Decrypt files, directory trees or standard input (-).

    The file names neither its algorithm nor, made from a password, its digest and iterations: give
    those that it was made with. Base64 is found. Files of `openssl enc` without -pbkdf2 are not
    read: `openssl enc -d` reads them.

    \b
    warpcipher raw decrypt --algorithm aes-256-ctr --key my.key --iv-hex ... report.pdf.enc
    warpcipher raw decrypt --algorithm aes-256-cbc -p --iterations 600000 report.pdf.enc
    """
    RawTransfer(RawSettings.of({**given, "format_name": "raw"}), "decrypt").run()


@raw.command("keygen", cls=Command, epilog=epilog())
@argument("path FILE")
@names.algorithm_option("The algorithm that the key is for.")
@option("-f --force", "Replace FILE. Files that it encrypted are lost without it.")
@option("--json as_json", "Print the result as JSON; never the key.")
def raw_keygen(path: str, algorithm: str, force: bool, as_json: bool) -> None:
    """Make a key of an algorithm and write its bytes to FILE, readable only by its owner.

    \b
    warpcipher raw keygen --algorithm des-ede3-cbc old.key
    """
    from warpcipher.formats.base import NewKey

    keygen.refuse_standard(path)
    made = NewKey(os.urandom(wc.find_algorithm(algorithm).key_size))
    with open_output(path, force=force) as output:
        output.write_all(made.data, 0o600)
    keygen.tell(path, made, algorithm, {"path": path, "algorithm": algorithm}, as_json)
