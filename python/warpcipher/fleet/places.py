# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as in the command:
# ruff: noqa: PTH103, PTH108, PTH112, PTH116, PTH118
"""Where the objects of a job are: a local folder or a prefix of a store, in one form.

    Items     what a job reads: a folder, a prefix, or several of them and single objects, each
              under the first part of the names
    Target    what it writes to

Names are relative, their parts are parted by "/", and they come in the order of their bytes, as
stores list them. Nothing is read or written through a symbolic link below a local root.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import stores
from .._new_file import NewFile, require_replaceable
from .._tree_names import is_own
from .._uncopied import Closed
from ..formats.source import Regular
from ..formats.whole import write_whole
from ..stores.store import Store, changed

if TYPE_CHECKING:
    from typing_extensions import Buffer

SHORT = 512 << 10
"""Bytes of an object that is read and written whole, in one request each. In most formats it is one
piece."""
PRIVATE = ".warpcipher-"
"""The prefix of the names of journals and of unfinished outputs."""
_OWN = re.compile(r"\.warpcipher-(journal.*|[0-9a-f]+\.part)", re.DOTALL)


class Item(NamedTuple):
    """An object of a job. name: in the job; modified: nanoseconds since 1970; version: of the
    store, "" where it has none; mode: of a local file, None for an object of a store."""

    name: str
    size: int
    modified: int
    version: str = ""
    mode: int | None = None

    @property
    def state(self) -> str:
        """Another one, where the object has changed."""
        return f"{self.size} {self.version or self.modified}"


class Skipped(NamedTuple):
    """Something that no job takes."""

    name: str
    reason: str


def is_of_a_job(name: str) -> bool:
    """Whether an object is a journal, or an output that a run which was killed left."""
    return _OWN.fullmatch(name.rpartition("/")[2]) is not None


def is_unfinished(name: str) -> bool:
    """Whether an object is an output that a run which was killed left."""
    return is_of_a_job(name) and name.endswith(".part")


def is_prefix(place: str) -> bool:
    """Whether a path or URL is a folder or prefix, and not an object. Raises FileNotFoundError
    where it is neither, OSError, ValueError."""
    if not stores.is_url(place):
        return stat.S_ISDIR(os.stat(place).st_mode)
    path = stores.store_of(place)[1]  # a ValueError, where it has no bucket
    if not path or path.endswith("/"):
        return True
    try:
        stores.stat(place)
    except IsADirectoryError:
        return True
    except FileNotFoundError:
        if next(iter(stores.listing(place + "/")), None) is None:
            raise
        return True
    return False


def real(place: str) -> str:
    """A path or URL in a form that another spelling of it has too."""
    return place.rstrip("/") if stores.is_url(place) else os.path.realpath(place)


def join(place: str, name: str) -> str:
    """The path or URL of a name below a folder or prefix."""
    return f"{place.removesuffix('/') if name else place}/{name}" if place != "/" else f"/{name}"


def split(place: str) -> tuple[str, str]:
    """The folder or prefix that a path or URL lies in, and its last name."""
    folder, slash, name = place.rstrip("/").rpartition("/")
    return folder or ("/" if slash else "."), name


def item_of(place: str, name: str) -> Item:
    """The object at a path or URL. Raises OSError."""
    if stores.is_url(place):
        info = stores.stat(place)
        return Item(name, info.size, info.modified, info.version or "")
    status = os.stat(place)
    return Item(name, status.st_size, status.st_mtime_ns, mode=status.st_mode & 0o777)


def _below(root: str, keys: frozenset[tuple[int, int]] = frozenset()) -> Iterator[Item | Skipped]:
    if not stores.is_url(root):
        yield from _walk(root, keys)
        return
    start = root.removesuffix("/") + "/"
    for info in stores.listing(start):
        name = info.url[len(start) :]
        if not name and info.size:
            yield Skipped("", "an object of the name of the prefix: take it by itself")
        elif name and (info.size or not name.endswith("/")):  # consoles show folders by such ones
            yield Item(name, info.size, info.modified, info.version or "")


def _walk(root: str, keys: frozenset[tuple[int, int]]) -> Iterator[Item | Skipped]:
    """The files below a folder, in the order of all of their names: `a.b` is before the name of
    `a/b`."""
    waiting: list[Item | Skipped | str] = [""]  # a str: a folder; the last is the next
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            inside = dict(_inside(root, found, keys))
            waiting += (inside[name] for name in sorted(inside, key=os.fsencode, reverse=True))
        else:
            yield found


def _inside(
    root: str, above: str, keys: frozenset[tuple[int, int]]
) -> Iterator[tuple[str, Item | Skipped | str]]:
    """The entries of one folder below a root, each with its name; a slash ends a folder's name."""
    descriptor = _folder(root, tuple(filter(None, above.split("/"))))
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                name = above + entry.name
                if entry.is_dir(follow_symlinks=False):
                    yield f"{name}/", f"{name}/"
                elif not entry.is_file(follow_symlinks=False):
                    kind = "a symbolic link" if entry.is_symlink() else "not a regular file"
                    yield name, Skipped(name, kind)
                else:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # such as what another run has given its name
                        continue
                    if (status.st_dev, status.st_ino) in keys:
                        why = "the key file, which nobody could decrypt without itself"
                        yield name, Skipped(name, why)
                        continue
                    modified, mode = status.st_mtime_ns, status.st_mode & 0o777
                    yield name, Item(name, status.st_size, modified, mode=mode)
    finally:
        os.close(descriptor)


def _folder(root: str, parts: tuple[str, ...], *, create: int = 0) -> int:
    """A descriptor of a folder below a local root, which only itself may be a symbolic link.
    create: makes those that are missing, with these permissions, less the umask's."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(root, flags)
    for part in parts:
        try:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, create, dir_fd=folder)
            below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.path.join(root, *parts)) from None
        finally:
            os.close(folder)
        folder = below
    return folder


def _regular(descriptor: int) -> Regular:
    """An open file: the part of `stores.ObjectFile` that jobs use. Raises OSError."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return Regular(descriptor)


class Held(Closed):
    """A short object of a store, all of it, as the library of the store gave it: one request,
    whatever is read, and no copy."""

    def __init__(self, data: Buffer, info: stores.ObjectInfo) -> None:
        self.info = info
        self.view = memoryview(data)
        self.size = len(self.view)
        self._position = 0

    def read_at(self, offset: int, length: int) -> bytes:
        return bytes(self.view[offset : offset + length])

    def readinto(self, buffer: memoryview, /) -> int:
        part = self.view[self._position : self._position + len(buffer)]
        buffer[: len(part)] = part
        self._position += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        self._position = start + offset
        return self._position

    def close(self) -> None:
        pass


class _Stores:
    """The stores of folders and prefixes: a URL is looked up once, not for each of millions of
    objects. Of one process: it does not travel."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Store, str]] = {}

    def __reduce__(self) -> tuple[type[_Stores], tuple[()]]:
        return _Stores, ()

    def find(self, root: str, name: str) -> tuple[Store, str]:
        """The store of an object, and its path there."""
        found = self._known.get(root)
        if found is None:
            found = self._known[root] = stores.store_of(root)
        return found[0], join(found[1], name) if name and found[1] else found[1] + name


class Items:
    """The inputs of a job. roots: the folders, prefixes and objects, each under its first part of a
    name; {"": place}: one folder or prefix, under no further name."""

    def __init__(
        self,
        roots: Mapping[str, str],
        prefixes: frozenset[str],
        keys: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        """prefixes: the names of those that are folders or prefixes. keys: device and inode of key
        files, which are left out of local folders."""
        self.roots = dict(roots)
        self.prefixes = prefixes
        self._keys = keys
        self._stores = _Stores()

    def __iter__(self) -> Iterator[Item | Skipped]:
        """All of them, in order, as they are listed. Raises OSError."""
        for top in sorted(
            self.roots, key=lambda top: os.fsencode(top + "/" * (top in self.prefixes))
        ):
            if top not in self.prefixes:
                yield item_of(self.roots[top], top)
                continue
            before = f"{top}/" if top else ""
            for item in _below(self.roots[top], self._keys):
                yield item._replace(name=before + item.name)

    def place(self, name: str) -> str:
        """The path or URL of an object."""
        if "" in self.roots:
            return join(self.roots[""], name)
        top, slash, rest = name.partition("/")
        return join(self.roots[top], rest) if slash else self.roots[top]

    def again(self, item: Item) -> Item:
        """The object as it is now. Raises OSError."""
        return item_of(self.place(item.name), item.name)

    def opened(self, name: str) -> Any:
        """The object of that name, to be read. Raises OSError."""
        return self.open(item_of(self.place(name), name))

    def open(self, item: Item) -> Any:
        """The object, to be read: `readinto`, `read_at`, `size`. Raises OSError; an object of a
        store that has changed since it was listed is one (ESTALE)."""
        top, rest = ("", item.name) if "" in self.roots else item.name.partition("/")[::2]
        root, place = self.roots[top], self.place(item.name)
        if stores.is_url(root):
            info = stores.ObjectInfo(place, item.size, item.modified, item.version or None)
            store, path = self._stores.find(root, rest)
            if item.size > SHORT:
                return stores.ObjectFile(store, path, info)
            if item.size:
                return Held(store.read(path, 0, item.size, info), info)
            if self.again(item).state != item.state:  # a read of no bytes has no condition
                raise changed(place)
            return Held(b"", info)
        parts = rest.split("/") if rest else []
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        if not parts:
            return _regular(os.open(root, flags))
        folder = _folder(root, tuple(parts[:-1]))
        try:
            return _regular(os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=folder))
        except OSError as error:
            raise OSError(error.errno, error.strerror, place) from None
        finally:
            os.close(folder)


class Target:
    """The folder or prefix that a job writes to."""

    def __init__(self, place: str) -> None:
        self.place_of_all = place
        self._stores = _Stores()

    def place(self, name: str) -> str:
        return join(self.place_of_all, name)

    @property
    def keeps_times(self) -> bool:
        """Whether outputs have the times of what they are made of."""
        return not stores.is_url(self.place_of_all)

    def prepare(self, modes: Mapping[str, int]) -> None:
        """Makes a local folder, and folders of these names below it, outer ones first, with these
        permissions and the owner's own. Raises OSError."""
        if not stores.is_url(self.place_of_all):
            os.makedirs(self.place_of_all, modes.get("", 0o777) | 0o700, exist_ok=True)
            for name in filter(None, modes):
                parts = tuple(name.split("/"))
                os.close(_folder(self.place_of_all, parts, create=modes[name] | 0o700))

    @contextlib.contextmanager
    def writing(
        self,
        name: str,
        item: Item | None = None,
        *,
        replace: bool = True,
        in_place: bool = False,
    ) -> Iterator[Any]:
        """A writer of the object, which appears when the block ends. item: whose time and
        permissions a local file gets. in_place: it keeps owner and permissions of the file that it
        replaces. Raises OSError."""
        place = self.place(name)
        if stores.is_url(place):
            store, path = stores.store_of(place)  # which takes names that end in a slash
            with store.writing(path, replace=replace, size=None) as writer:
                yield writer
            return
        *above, last = name.split("/")
        if any(part in ("", ".", "..") for part in (*above, last)):
            raise OSError(errno.EINVAL, "this name of an object can be no name of a file", place)
        folder = _folder(self.place_of_all, tuple(above), create=0o777)
        with NewFile(folder, last, place, 0o666) as new:
            mode = stat.S_IMODE(os.fstat(new.fileno()).st_mode)  # less the umask's part
            os.fchmod(new.fileno(), 0o600)
            with open(new.fileno(), "wb", buffering=0, closefd=False) as file:
                yield file
            if item is not None and item.mode is not None:
                mode = item.mode
            if in_place and (old := require_replaceable(folder, last, place)) is not None:
                mode = new.take_over(old)
            os.fchmod(new.fileno(), mode)
            if item is not None:
                os.utime(new.fileno(), ns=(item.modified, item.modified))
            new.give_name(replace=replace)

    def write_short(
        self, name: str, data: memoryview, item: Item | None = None, *, replace: bool = True
    ) -> None:
        """A short object, whole. As `writing`."""
        if stores.is_url(self.place_of_all):
            store, path = self._stores.find(self.place_of_all, name)
            store.write_short(path, data, replace=replace)
            return
        with self.writing(name, item, replace=replace) as file:
            write_whole(file, data)

    def opened(self, name: str) -> Any:
        """An object that is there, to be read. Raises OSError."""
        return Items({"": self.place_of_all}, frozenset({""})).opened(name)

    def listed(self) -> Iterator[Item]:
        """All objects that are there, except for what jobs and trees leave for themselves."""
        return (item for item in self.all() if not is_of_a_job(item.name) and not is_own(item.name))

    def all(self) -> Iterator[Item]:
        """All objects that are there."""
        if not stores.is_url(self.place_of_all) and not os.path.isdir(self.place_of_all):
            return
        for item in _below(self.place_of_all):
            if isinstance(item, Item):
                yield item

    def remove(self, name: str) -> None:
        """Removes an object, if it is there. Raises OSError."""
        place = self.place(name)
        with contextlib.suppress(FileNotFoundError):
            if stores.is_url(place):
                stores.remove(place)
            else:
                os.unlink(place)
