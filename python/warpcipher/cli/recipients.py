# SPDX-License-Identifier: Apache-2.0
"""The options of files for people: recipients, identities, passphrases of age and Crypt4GH.

A passphrase is asked for on the terminal, or comes from a variable or a descriptor: none of them
shows it. With an identity it opens the identity's file; without one it is the key itself.
"""

from __future__ import annotations

import codecs
import functools
import os
from dataclasses import dataclass
from typing import Any

import warpcipher as wc
from warpcipher import stores

from . import keys, process
from .errors import NotAuthenticError, as_usage, counted, shown, usage
from .options import Option, option, with_options

HEAD_SIZE = 64 << 10
"""Bytes of the beginning of a file that say what opens it: it has some hundred recipients."""


def passphrase_options(asks: str, new: str = "") -> tuple[Option, ...]:
    """The options of a passphrase; `People.take` takes them. asks: help of the one that asks for
    it; new: "new-" of those that say who opens a file that is there under other keys."""
    name = f"--{new}passphrase"
    return (
        option(name if new else f"-p {name}", asks),
        option(f"{name}-env NAME", "The passphrase is in this environment variable."),
        option(
            f"{name}-fd N",
            "The passphrase is read from this open descriptor, without its line end.",
            callback=keys.descriptor,
        ),
    )


READING = (
    option(
        "-i --identity identities FILE",
        "Formats age and crypt4gh: a file with secret keys, of SSH too; may be repeated.",
        multiple=True,
    ),
    *passphrase_options(
        "Format age: ask for a passphrase; with -i the passphrase of the identity file."
    ),
)
ARMOR = option("-a --armor", "encrypt, format age: write ASCII text.")


def recipient_options(when: str) -> tuple[Option, ...]:
    """The options of public keys. when: what they are for, in their help."""
    return (
        option(
            "-r --recipient recipients AGE1...",
            f"{when}: who can decrypt, a public key of age or SSH; may be repeated.",
            multiple=True,
        ),
        option(
            "-R --recipients-file recipient_files FILE",
            f"{when}: a file of public keys of age or SSH, or one of Crypt4GH; may be repeated.",
            multiple=True,
        ),
    )


WRITING = (*recipient_options("encrypt"), ARMOR)

CONTEXT = (
    option("--context TEXT", "Text that decryption must give again: authenticated, not stored."),
    option("--context-hex HEX", "The same in hex digits.", callback=keys.of_hex),
)


reading_options = with_options(*keys.OPTIONS, *READING, *CONTEXT)
"""Of a command that only reads files; `take_reading` takes them."""


def take_reading(given: dict[str, Any]) -> tuple[People, keys.Choice, bytes]:
    """Who opens the files, or where their key is, and their context. Raises CliError."""
    people, choice = People.take(given), keys.Choice.take(given)
    if people and choice:
        raise usage("give one key: --key, or -i and a passphrase")
    context = given.pop("context"), given.pop("context_hex")
    if context != (None, None) and not (people or choice):
        raise usage("a context is of no use without --key")
    return people, choice, keys.read_context(*context)


@dataclass(frozen=True)
class People:
    """The options about people; all empty: none was given."""

    recipients: tuple[str, ...] = ()
    recipient_files: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    passphrase: bool = False
    env: str | None = None
    fd: int | None = None
    option: str = "--passphrase"
    """How the options of the passphrase begin."""

    @classmethod
    def take(cls, given: dict[str, Any], new: str = "") -> People:
        """Takes the options out of a command's arguments. new: "new_" of those that say who opens a
        file that is there under other keys. Raises CliError."""
        people = cls(
            given.pop("recipients", ()),
            given.pop("recipient_files", ()),
            () if new else given.pop("identities", ()),
            given.pop(f"{new}passphrase"),
            given.pop(f"{new}passphrase_env"),
            given.pop(f"{new}passphrase_fd"),
            "--new-passphrase" if new else "--passphrase",
        )
        ways = (people.passphrase, people.env is not None, people.fd is not None)
        if sum(ways) > 1:
            name = people.option
            raise usage(f"give one of {name}, {name}-env and {name}-fd")
        return people

    def __bool__(self) -> bool:
        return bool(
            self.recipients or self.recipient_files or self.identities or self.has_passphrase
        )

    @property
    def has_passphrase(self) -> bool:
        return self.passphrase or self.env is not None or self.fd is not None

    @property
    def takes_standard_input(self) -> bool:
        return self.fd == 0 or keys.STANDARD in (*self.identities, *self.recipient_files)

    @property
    def paths(self) -> tuple[str, ...]:
        """Files that no output may replace."""
        given = (*self.identities, *self.recipient_files)
        return tuple(path for path in given if path != keys.STANDARD)

    def expect(self, paths: tuple[str, ...]) -> None:
        """Raises OSError if the only file is missing: an error before a question."""
        if self.passphrase and len(paths) == 1 and paths[0] != keys.STANDARD:
            if stores.is_url(paths[0]):
                return
            os.stat(paths[0])  # noqa: PTH116 - of the name as it was given

    def check(self, *, encrypts: bool) -> None:
        """Raises CliError for options that the command does not take."""
        if not encrypts and (self.recipients or self.recipient_files):
            raise usage("-r and -R say who can decrypt: give your own identity with -i FILE")

    def read(self, *, encrypts: bool) -> list[Any]:
        """Who files are for (encrypts), or who opens them: keys of one format. Raises CliError,
        OSError."""
        secrets = _Secrets(self, encrypts=encrypts)
        found: dict[str, list[Any]] = {}
        others: list[str] = []

        def add(of: wc.formats.Format, keys: list[Any]) -> None:
            found.setdefault(of.name, []).extend(keys)

        for text in self.recipients:
            add(*_recipient(text))
        for path in self.recipient_files:
            add(*_recipients(path))
        for path in self.identities:
            of, identities = secrets.read(path)
            add(of, identities)
            reasons = (getattr(one, "reason", "") for one in identities)
            others += [f"{shown(path)}: {reason}" for reason in reasons if reason]
        if others and (encrypts or len(others) == sum(map(len, found.values()))):
            raise usage(others[0])
        if self.has_passphrase and not self.identities:
            if found:
                raise usage("a passphrase allows no other recipient: give one of the two")
            of = _format_of("")
            what = "New passphrase" if self.option.startswith("--new") else "Passphrase"
            add(of, [of.of_passphrase(secrets.passphrase(what))])
        if self.has_passphrase and self.identities and not secrets.asked:
            raise usage("no identity is encrypted: the passphrase opens nothing")
        if len(found) > 1:
            raise usage(
                f"keys of formats {' and '.join(found)} do not go together: give keys of one format"
            )
        return [key for keys in found.values() for key in keys]


def _format_of(data: bytes | str) -> wc.formats.Format:
    """The format that keys of people are of, whose content this is; where none knows it, the first,
    whose error says what it is."""
    from warpcipher.formats.registry import of_people

    known = of_people()
    return next((entry for entry in known if entry.knows(data)), known[0])


def head_of(path: str) -> bytes:
    """The beginning of a regular file; nothing of what is none or cannot be read."""
    from warpcipher.formats.source import open_source

    if path == keys.STANDARD:
        return b""
    try:
        with open_source(path) as source:
            return source.read_at(0, HEAD_SIZE)
    except OSError:
        return b""


def without_key(paths: tuple[str, ...], format_name: str) -> People:
    """Who opens files where no key was given: a passphrase that is asked for, if each file says
    that it wants one; else nobody. Raises CliError for a file that says what it wants."""
    from warpcipher.formats.registry import by_magic

    def named(head: bytes) -> wc.formats.Format | None:
        found = by_magic(head)
        return found if found is not None and format_name in ("auto", found.name) else None

    heads = [head_of(path) for path in paths]
    formats = [named(head) for head in heads]
    if all(of and of.asks_passphrase(head) for of, head in zip(formats, heads, strict=True)):
        return People(passphrase=True)
    for path, of, head in zip(paths, formats, heads, strict=True):
        if of is not None:
            raise usage(f"{shown(path)} is a file of format {of.name}: give {of.opened_by(head)}")
    return People()


class _Secrets:
    """Identities, and the passphrases that they are encrypted with. One is asked for each file; a
    variable or a descriptor holds one for all."""

    def __init__(self, people: People, *, encrypts: bool) -> None:
        self._people = people
        self._encrypts = encrypts
        self._passphrase: bytes | None = None

    @property
    def asked(self) -> bool:
        return self._passphrase is not None

    def passphrase(self, what: str, *, new: bool | None = None) -> bytes:
        on_terminal = self._people.env is None and self._people.fd is None
        if self._passphrase is None or on_terminal:
            twice = self._encrypts if new is None else new
            self._passphrase = read_passphrase(self._people, what, twice=twice)
        return self._passphrase

    def read(self, path: str) -> tuple[wc.formats.Format, list[Any]]:
        """The identities in a file, and their format."""
        data = _content(path, "-i")
        name, of = shown(path), _format_of(data)
        with as_usage(name):
            try:
                ask = functools.partial(self.passphrase, f"Passphrase of {name}", new=False)
                return of, of.secret_keys(data, ask)
            except wc.InvalidTag as error:
                raise NotAuthenticError(f"{name}: {error}") from None


def _content(path: str, option: str) -> bytes:
    """The content of a file of keys."""
    found = keys.content_of(path, option, secret=option == "-i")
    return bytes(found).removeprefix(codecs.BOM_UTF8)


def _recipient(text: str) -> tuple[wc.formats.Format, list[Any]]:
    """The recipient of -r."""
    try:
        of = _format_of(text.strip())
        return of, of.public_keys(text.strip())
    except ValueError as error:
        if os.path.isfile(text):  # noqa: PTH113
            raise usage(
                f"-r takes a recipient itself, and {shown(text)} is a file: -R reads a file of "
                "recipients, and -i one of identities"
            ) from None
        raise usage(f"-r: {error}") from None


def _recipients(path: str) -> tuple[wc.formats.Format, list[Any]]:
    """The recipients in a file of -R."""
    data = _content(path, "-R")
    of = _format_of(data)
    with as_usage(shown(path)):
        return of, of.public_keys(data)


def read_passphrase(people: People, what: str, *, twice: bool) -> bytes:
    """The passphrase, from where the options say; from the terminal where they do not. Raises
    CliError, OSError. twice: it is asked for two times, as one that is new."""
    from warpcipher.keys.sources import read_bounded

    if people.env is not None:
        try:
            text = bytes(wc.keys.from_env(people.env).read(None))
        except ValueError:  # which may show what was given, and that may be the passphrase
            raise usage(
                f"{people.option}-env takes the name of an environment variable, and none has the "
                f"given name of {counted(len(people.env), 'character')}, not shown as it may be a "
                "secret"
            ) from None
    elif people.fd is not None:
        name = "standard input" if people.fd == 0 else f"the descriptor of {people.option}-fd"
        text = bytes(read_bounded(people.fd, name)).removesuffix(b"\n").removesuffix(b"\r")
    else:
        text = _ask(what, people.option)
        if twice and text != _ask(f"{what} again", people.option):
            raise usage("the two passphrases differ: nothing was done")
    if not text:
        raise usage("the passphrase is empty")
    return text


def _ask(what: str, option: str) -> bytes:
    """Asks on the terminal of the process, which shows nothing of the answer."""
    import getpass

    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        raise usage(
            f"no terminal can ask for the passphrase: give {option}-env NAME or {option}-fd N"
        ) from None
    try:
        with process.asking():
            return getpass.getpass(f"{what}: ").encode("utf-8", "surrogateescape")
    except EOFError:
        raise usage("the terminal was closed before a passphrase came") from None
