# SPDX-License-Identifier: Apache-2.0
"""The key options of the commands, and the key that they name. Errors name sources and sizes."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from typing import Any, Union

import click

import warpcipher as wc

from .errors import as_usage, counted, shown, usage, warn
from .options import option, with_options

Key = Union[bytearray, "wc.formats.Keyset"]

STANDARD = "-"
HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")
DESCRIPTORS = 1 << 20
"""More than a process may have open, unless its system is set up otherwise."""


def descriptor(_ctx: click.Context, parameter: click.Parameter, given: str | None) -> int | None:
    """The number of an open descriptor, of an option. The error repeats only a short one: what was
    given may be the key, or the passphrase."""
    if given is None:
        return None
    with contextlib.suppress(ValueError):
        if 0 <= int(given) < DESCRIPTORS:
            return int(given)
    got = given if len(given) < 3 else f"{counted(len(given), 'character')}, not repeated here"
    raise usage(f"{parameter.opts[0]} takes the number of an open descriptor, got {got}")


def of_hex(_ctx: click.Context, parameter: click.Parameter, text: str | None) -> bytes | None:
    """The bytes of an option in hex digits. The error does not repeat them: they may be a key."""
    if text is None:
        return None
    digits = text.encode("ascii", "replace")
    if len(digits) % 2 or not HEX_DIGITS.issuperset(digits):
        from warpcipher.keys.decode import extra_in_hex

        found = extra_in_hex(digits) or counted(len(text), "character")
        raise usage(f"{parameter.opts[0]} takes an even number of hex digits, got {found}")
    return bytes.fromhex(text)


OPTIONS = (
    option("--key --key-file key_file FILE", "A file of `warpcipher keygen`; - is standard input."),
    option("--key-env NAME", "The key is in this environment variable."),
    option("--key-fd N", "The key is read from this open descriptor.", callback=descriptor),
    option("--key-command COMMAND", "Take the key from this command's output; no shell runs."),
    option("--kms URI", "The key is a Tink keyset that this key of a KMS encrypted: aws-kms://..."),
)


key_options = with_options(*OPTIONS)
"""`Choice.take` turns them into a `Choice`."""

KEY_HEX = option("--key-hex HEX", "The key. Others see it in the process list.", callback=of_hex)


@dataclass(frozen=True)
class Choice:
    """Where the key is, as the options say; all None: nowhere."""

    file: str | None = None
    env: str | None = None
    fd: int | None = None
    command: str | None = None
    kms: str | None = None
    option: str = "--key"
    """The name in errors of the option of `file`."""

    @classmethod
    def take(cls, given: dict[str, Any], new: str = "") -> Choice:
        """Takes the options out of a command's arguments. new: "new_" for those of a key that takes
        the place of another. Raises CliError if there are two."""
        names = ("file", "env", "command") if new else ("file", "env", "fd", "command")
        values = {name: given.pop(f"{new}key_{name}") for name in names}
        option = "--new-key" if new else "--key"
        if sum(value is not None for value in values.values()) > 1:
            *some, last = (option, *(f"{option}-{name}" for name in names[1:]))
            raise usage(f"give one key: one of {', '.join(some)} and {last}")
        choice = cls(**values, kms=None if new else given.pop("kms"), option=option)
        if choice.kms is not None and not choice:
            raise usage("--kms decrypts a keyset: name it, with --key FILE")
        return choice

    def __bool__(self) -> bool:
        return any(value is not None for value in (self.file, self.env, self.fd, self.command))

    @property
    def takes_standard_input(self) -> bool:
        return self.file == STANDARD or self.fd == 0

    @property
    def path(self) -> str | None:
        """A name of the file that holds the key; None if there is none."""
        if self.takes_standard_input:
            return "/dev/stdin"
        return self.file if self.fd is None else f"/dev/fd/{self.fd}"

    def source(self) -> wc.keys.KeySource:
        """Where the key is, for processes on other machines too. Raises CliError for a place that
        only this process has."""
        if self.takes_standard_input or self.fd is not None:
            raise usage(
                "--cluster needs a key that nodes find: --key FILE, --key-env, --key-command"
            )
        if self.file is not None and self.kms is None:
            return wc.keys.from_file(os.path.abspath(self.file))  # noqa: PTH100
        if self.kms is not None:
            raise usage("--cluster takes no --kms: give --key-command, which asks the KMS")
        return self._source()

    def _source(self) -> wc.keys.KeySource:
        if self.env is not None:
            return wc.keys.from_env(self.env)
        if self.command is not None:
            return wc.keys.from_command(self.command)
        if self.takes_standard_input:
            if os.isatty(0):
                raise usage("standard input is a terminal, which would show the key: name a file")
            return wc.keys.from_descriptor(0)
        if self.fd is not None:
            return wc.keys.from_descriptor(self.fd)
        return _file(str(self.file), self.option)

    def resolve(self, sizes: tuple[int, ...], what: str) -> bytes:
        """A key that is not a keyset. Raises as `read`."""
        if self.kms is not None:
            raise usage(f"--kms gives a Tink keyset, but {what} is needed here")
        source = self._source()
        with as_usage():
            key = source.resolve(sizes=sizes, keyset=False, what=what)
        _warn_of_text(source.name, key)
        return key

    def read(self, format_name: str, algorithm: str | None, *, named: str | None = None) -> Key:
        """The key, for a format ("auto": what the key is for). named: what an error calls the
        algorithm.

        Raises CliError where it cannot be one, OSError where it cannot be had. Warns where others
        may read its file.
        """
        from warpcipher.formats.registry import get, wanted

        expected = wanted(format_name, algorithm, named)
        source = self._source()
        if self.kms is not None:
            source = wc.keys.from_tink(bytes(source.read(None)), kms=self.kms)
        with as_usage():
            key = source.resolve(**expected)
        only_keyset = format_name != "auto" and get(format_name).takes_keyset
        if not only_keyset and key[:1] != b"{":
            _warn_of_text(source.name, key)
            return bytearray(key)
        if get("awsesdk").knows(key):
            return bytearray(key)
        try:
            return wc.formats.Keyset.from_json(key)
        except wc.formats.FormatError as error:
            if len(key) in expected["sizes"]:
                _warn_of_text(source.name, key)
                return bytearray(key)
            raise usage(f"{source.name}: {error}") from None

    def read_web_keys(self) -> wc.weights.CryptotensorsKey:
        """The JSON Web Keys of a cryptotensors file. Raises CliError and OSError."""
        if self.kms is not None:
            raise usage("--kms needs a Tink keyset; this is a JSON Web Key")
        source = self._source()
        with as_usage(source.name):
            return wc.weights.CryptotensorsKey.from_jwk(source)


def _warn_of_text(name: str, key: bytes) -> None:
    """Warns of a key that was typed. It is not refused, as files that it encrypted must open."""
    # A random key of 16 bytes is text once in 7 million times, a longer one never.
    if len(key) in (16, 24, 32) and all(0x20 <= byte < 0x7F for byte in key):
        warn(
            f"the key of {name} is a text of {len(key)} characters, taken as it is: a password is "
            "not a key, as it can be guessed; `warpcipher keygen` makes one, --passphrase takes one"
        )


def read_context(text: str | None, data: bytes | None) -> bytes:
    """The value of --context or --context-hex; empty without either."""
    if text is not None and data is not None:
        raise usage("--context and --context-hex are the same option: give one")
    return os.fsencode(text or "") if data is None else data


def _file(path: str, option: str) -> wc.keys.KeySource:
    """The file that an option names, with a warning where others may read it."""
    _warn_of_mode(path, status_of(path, option))
    return wc.keys.from_file(path)


def content_of(path: str, what: str, *, secret: bool) -> bytearray:
    """The content of a small file, - for standard input. what: of the option that names it; secret:
    with a warning where others may read it."""
    from warpcipher.keys.sources import read_bounded

    if path == STANDARD:
        return read_bounded(0, "standard input")
    status = status_of(path, what)
    if secret:
        _warn_of_mode(path, status)
    with open(path, "rb", buffering=0) as file, as_usage():  # noqa: PTH123
        return read_bounded(file.fileno(), shown(path))


def status_of(path: str, option: str) -> os.stat_result:
    """Of the file that an option names. Raises OSError; CliError, where a key itself may have been
    given for the name, which is not repeated then."""
    from warpcipher.keys.decode import may_be_key

    if not path:
        raise usage(f"{option} names a file, and - is standard input")
    try:
        return os.stat(path)  # noqa: PTH116 - of the name as it was given
    except OSError as error:
        if not may_be_key(path):
            raise
        raise usage(
            f"{option} names a file: what was given, {counted(len(path), 'character')} not "
            f"repeated here, may be a key itself ({error.strerror})"
        ) from None


def _warn_of_mode(path: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        warn(f"key file {shown(path)} is open to others (mode {mode:04o}): chmod 600 it")
