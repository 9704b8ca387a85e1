# SPDX-License-Identifier: Apache-2.0
"""A job over many objects: the listing streams, a window of objects is worked on, each that is done
goes into the journal and the report; memory does not grow with the job.

    listing thread --queue--> what the filter takes and no run did before --> runner --> journal

A runner does the work: `runner.Threads`, or nodes of a cluster in `warpcipher.cluster`.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import warpcipher as wc

from .._tree_names import NAME, is_own, is_part
from ..formats import FormatError
from ..formats.sealed import Sealed
from ..formats.tree_parts import Listed, order, write
from ..formats.trees import Entry, ManifestError, foreign_manifest
from ..formats.whole import Digested, read_all
from .filters import Filter
from .journal import Done, Journal
from .places import PRIVATE, Item, Skipped, Target, is_of_a_job, is_unfinished, item_of
from .runner import Runner, Todo
from .work import NO_MODE, Outcome, Work

NEW_KEY = "new key"
"""The name of a note in the journal: the mark of the new key."""
AHEAD = 20_000
"""Objects that are listed before their turn: so far the total is known."""
SHOWN = 5
"""Names of each kind that an error shows."""
TOGETHER = 100
"""Objects that the listing hands over at a time, unless they are waited for."""


Known = Literal["journal", "existing", "newer"]


class Problems(wc.InvalidTag):
    """A tree that does not match its manifest. faults: names of each kind, the first of them, and
    their number."""

    def __init__(self, faults: dict[str, tuple[list[str], int]]) -> None:
        super().__init__("the tree does not match its manifest")
        self.faults = faults


@dataclass
class Counts:
    """Objects and bytes of a job. listed: what is known so far; done_bytes: of all that were looked
    at; refused: of those that failed, the ones that are not authentic."""

    listed: int = 0
    listed_bytes: int = 0
    done_bytes: int = 0
    failed: int = 0
    refused: int = 0


class _Listing:
    """The objects that the filter takes, listed by a thread of its own that counts ahead."""

    def __init__(self, source: Iterable[Item | Skipped], takes: Callable[..., bool]) -> None:
        self._queue: queue.Queue[list[Item | Skipped] | BaseException | None]
        self._queue = queue.Queue(AHEAD // TOGETHER)
        self._ended = threading.Event()
        self.counts = Counts()
        self._thread = threading.Thread(
            target=self._list, args=(source, takes), name="warpcipher-listing", daemon=True
        )
        self._thread.start()

    def _list(self, source: Iterable[Item | Skipped], takes: Callable[..., bool]) -> None:
        end: BaseException | None = None
        held: list[Item | Skipped] = []
        try:
            for item in source:
                if isinstance(item, Item):
                    if not takes(item):
                        continue
                    self.counts.listed += 1
                    self.counts.listed_bytes += item.size
                held.append(item)
                if len(held) == TOGETHER or self._queue.empty():
                    self._put(held)
                    held = []
                if self._ended.is_set():
                    return
        except BaseException as error:
            end = error
        self._put(held)
        self._put(end)

    def _put(self, items: list[Item | Skipped] | BaseException | None) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(items, timeout=0.2)
                return

    def __iter__(self) -> Iterator[Item | Skipped]:
        while (items := self._queue.get()) is not None:
            if isinstance(items, BaseException):
                raise items
            yield from items

    def close(self) -> None:
        self._ended.set()


def _joined(
    objects: Iterable[Item | Skipped], entries: Iterable[Any], extension: str
) -> Iterator[tuple[Any, Any]]:
    """Objects, and entries of a manifest or of a journal, that belong together, as both come in
    order; None: there is none."""
    objects, entries = iter(objects), iter(entries)
    item, entry = next(objects, None), next(entries, None)
    while item is not None or entry is not None:
        here = None if item is None else order(item.name, "")
        there = None if entry is None else order(entry.name, extension)
        if there is None or (here is not None and here < there):
            yield item, None
            item = next(objects, None)
        elif here is None or there < here:
            yield None, entry
            entry = next(entries, None)
        else:
            yield item, entry if isinstance(item, Item) else None
            item, entry = next(objects, None), next(entries, None)


@dataclass
class Job:
    """A job over many objects.

    tree:    the objects belong to a tree with a manifest.
    secrets: device and inode of the files of keys, which are not encrypted.
    known:   what an earlier run has done: what its journal says; or, without one, each output that
             is there ("existing"), or that is of its source as it is now ("newer").
    deletes: outputs whose sources are gone are removed from the tree.
    said:    called with the state of each object: "done", "complete" (by an earlier run),
             "failed" or "skipped", and an Outcome or a Skipped; with "strange", of an object that
             the tree will not list, and its Item.
    """

    work: Work
    sealed: Sealed
    journal: Journal
    filter: Filter
    tree: bool
    said: Callable[[str, Any], None]
    known: Known = "journal"
    deletes: bool = False
    _others: list[Entry] = field(default_factory=list)
    _preparing: bool = False

    @property
    def _extension(self) -> str:
        """Of encrypted outputs; where they are decrypted, of the inputs."""
        return self.work.new_extension if self.work.changes_keys else self.work.extension

    def listed(self) -> Iterator[Item | Skipped]:
        """The objects that may be done, without those that jobs and trees leave for themselves."""
        extension, encrypts = self.work.extension, self.work.task == "encrypt"
        for item in self.work.items:
            if is_of_a_job(item.name) or (not encrypts and is_own(item.name)):
                continue
            foreign = not encrypts and not self.work.output
            if encrypts and item.name.rpartition("/")[2].startswith(PRIVATE):
                yield Skipped(item.name, "a name that warpcipher keeps for itself")
            elif isinstance(item, Item) and foreign and not item.name.endswith(extension):
                yield Skipped(item.name, f"its name does not end in {extension}")
            else:
                yield item

    def manifest(self) -> Listed:
        """The manifest of the tree that is decrypted or checked. Raises as `Listed`."""
        try:
            return Listed(self.sealed, self.work.items.opened)
        except (wc.InvalidTag, FormatError) as error:
            if isinstance(error, ManifestError):
                raise
            if not (self.work.in_place and self.journal.found and self.sealed.new):
                raise wc.InvalidTag(foreign_manifest(self.work.items.place(NAME))) from None
            # A run that was killed at its end has written the new one.
            return Listed(self.sealed.new, self.work.items.opened)

    def _is_at_its_end(self) -> bool:
        """Whether a run that was killed has written the manifest for keys that only encrypt."""
        noted = self.journal.notes.get(NAME)
        if noted is None:
            return False
        with self.work.items.opened(NAME) as file:
            read_all(hashed := Digested(file))
        return noted == hashed.digest.hex()

    def compare(self, manifest: Listed) -> None:
        """Compares names and sizes with the manifest. Raises Problems."""
        faults: dict[str, tuple[list[str], int]] = {}

        def note(what: str, name: str) -> None:
            names, count = faults.get(what, ([], 0))
            faults[what] = ([*names, name] if count < SHOWN else names, count + 1)

        for item, entry in _joined(self.listed(), manifest.files(), self.work.extension):
            if entry is None:
                note("added", item.name.removesuffix(self.work.extension))
            elif item is None:
                note("missing", entry.name)
            elif item.size != entry.sealed and not self.work.in_place:  # each is compared later
                note("cut or added to", entry.name)
        if faults:
            raise Problems(faults)

    def todo(self, listing: _Listing, manifest: Listed | None) -> Iterator[Todo | None]:
        """The objects that no earlier run has done; None now and then, where nothing is to do."""
        entries = () if manifest is None else manifest.files()
        extension, goes_on = self.work.extension, bool(len(self.journal))
        for item, entry in _joined(listing, entries, extension):
            if item is None:
                continue
            if isinstance(item, Skipped):
                if not self._preparing:
                    self.said("skipped", item)
                continue
            if manifest is not None and entry is None:
                raise Problems({"added": ([item.name.removesuffix(extension)], 1)})
            before = self.journal.get(self.work.name_of(item.name)) if goes_on else None
            if self._preparing:
                yield None if before else Todo(item, entry)
                continue
            if before is not None and self._is_done(before, item, entry):
                listing.counts.done_bytes += item.size
                self.said("complete", Outcome(item, before, None, 0, 0.0))
                yield None
                continue
            if self.work.prepares and before is None:
                raise Problems({"added": ([item.name.removesuffix(extension)], 1)})
            yield Todo(item, entry, before if self.work.prepares else None)

    def _is_done(self, before: Done, item: Item, entry: Entry | None) -> bool:
        """Whether an earlier run has done this version of an object; see `_adopt`."""
        if self.known == "existing" or before.state == item.state:
            return True
        if before.state:
            of = entry if self.work.changes_keys and entry else None  # a tree's new entry has its
            now = f"{of.size} {of.mtime}" if of else f"{item.size} {item.modified}"
            return self.known == "newer" and before.state == now
        target = self.work.target
        keeps = entry is not None and self.work.preserves and target and target.keeps_times
        return self.known == "newer" and before.modified >= (
            entry.mtime if keeps and entry else item.modified
        )

    def _adopt(self, target: Target) -> None:
        """Takes into the journal what an earlier run has left: the manifest has size and time of
        each source; an output by itself only its own time."""
        if self.tree and self.work.makes_trees:
            with contextlib.suppress(FileNotFoundError):
                for entry in Listed(self.sealed.new or self.sealed, target.opened).files():
                    state, sizes = f"{entry.size} {entry.mtime}", (entry.size, entry.sealed)
                    more = entry.mode, entry.mtime, *sizes, entry.head, entry.holes
                    self.journal.add(Done(entry.name, state, *more))
            return

        def add(name: str, item: Item) -> None:
            self.journal.add(Done(name, "", NO_MODE, item.modified, item.size, item.size, ""))

        if self.work.output:
            with contextlib.suppress(FileNotFoundError):
                there = item_of(target.place(self.work.output), "")
                for item in self.work.items:
                    add(self.work.name_of(item.name), there)
            return
        extension = self._extension
        for item in target.listed():
            plain = item.name.removesuffix(extension)
            add(plain if self.work.makes_trees else item.name + extension, item)

    def run(self, runner: Runner, watch: Callable[[Counts], None]) -> Counts:
        """Does all of it, and closes the runner; `watch` sees the counts now and then. Raises
        OSError of the listing, the journal or the manifest; Problems."""
        with contextlib.closing(runner):
            return self._run(runner, watch)

    def _run(self, runner: Runner, watch: Callable[[Counts], None]) -> Counts:
        manifest, is_written = None, self.work.prepares and self._is_at_its_end()
        if self.tree and self.work.task != "encrypt" and not is_written:
            manifest = self.manifest()
            self.compare(manifest)
            if self.work.changes_keys:
                self._others = manifest.others()
        if self.work.in_place and self.work.target is not None:
            self._look_for_trees(self.work.target)
        if self.work.target is not None:
            self.work.target.prepare(
                {entry.name: entry.mode for entry in self._others if entry.kind == "folder"}
            )
        self._note_new_key()
        self.journal.begin()  # a key that opens no manifest leaves no journal that it opens
        if self.work.target is not None:
            if self.known != "journal" and not self.journal.found:
                self._adopt(self.work.target)
                self.journal.save()
            if (self.journal.found or len(self.journal)) and not self.work.in_place:
                self._look_for_outputs(self.work.target)
        if self.work.prepares and "prepared" not in self.journal.notes:
            self._preparing = True
            if (counts := self._do_all(runner, watch, manifest)).failed:
                self.journal.remove()
                return counts
            self._preparing = False
            self.journal.note("prepared", "")
            self.journal.save()
        counts = self._do_all(runner, watch, manifest)
        self.journal.save()
        nothing = counts.failed and not len(self.journal)
        if self.deletes and self.work.target and not counts.failed:
            names = (item.name for item in self.listed() if isinstance(item, Item))
            if (first := next(names, None)) is None:  # as of a prefix that is misspelt
                raise ValueError("the source has no objects: --delete would empty the tree")
            for name in self.journal.keep_named(itertools.chain([first], names)):
                self.work.target.remove(self.work.output_of(name))
        is_mixed = self.work.in_place and counts.failed  # those that failed stay in the manifest
        makes_tree = self.tree and self.work.makes_trees and not (nothing or is_mixed or is_written)
        if makes_tree and self.work.target:
            self._write_manifest(self.work.target)
        is_wrong_key = nothing and not self.journal.found and counts.refused == counts.failed
        if is_wrong_key or (self.work.in_place and not counts.failed):
            self.journal.remove()  # of no use to the right key, or to another change of keys
        return counts

    def _note_new_key(self) -> None:
        """Raises ValueError where an earlier run took another new key: the tree would have both."""
        if self.sealed.new is None:
            return
        mark = self.journal.notes.get(NEW_KEY)
        if mark is None and not len(self.journal):
            self.journal.note(NEW_KEY, self.sealed.new.mark())
        elif mark and not self.sealed.new.made(mark):
            raise ValueError(
                "an earlier run of this job took another new key, which some objects have now: "
                "give that one, or another output"
            )

    def _do_all(
        self, runner: Runner, watch: Callable[[Counts], None], manifest: Listed | None
    ) -> Counts:
        """Works on each object that is left. While `_preparing`, it makes only the new headers."""
        listing = _Listing(self.listed(), self.takes)
        counts = listing.counts
        try:
            for todo in self.todo(listing, manifest):
                if todo is not None:
                    while not runner.has_room():
                        self._note(runner.collect(wait=True), counts, watch)
                    runner.submit(todo)
                if outcomes := runner.collect(wait=False):
                    self._note(outcomes, counts, watch)
            runner.flush()
            while outcomes := runner.collect(wait=True):
                self._note(outcomes, counts, watch)
        finally:
            listing.close()
        return counts

    def _look_for_trees(self, target: Target) -> None:
        """Raises ValueError before objects are replaced which a manifest lists. Removes what a run
        that was killed left."""
        for item in self.work.items:
            if item.name.rpartition("/")[2] == NAME and not (self.tree and item.name == NAME):
                tree = self.work.items.place(item.name.rpartition("/")[0]).rstrip("/")
                raise ValueError(
                    f"{tree} is a tree, whose manifest lists its objects as they are: name the new "
                    "tree with -o, and remove the old one when it is there"
                )
            if self.journal.found and is_unfinished(item.name):
                target.remove(item.name)

    def _look_for_outputs(self, target: Target) -> None:
        """Makes the journal forget objects whose outputs are gone or of another size. Removes what
        a run that was killed left."""
        extension, encrypts = self._extension, self.work.makes_trees
        unfinished: list[str] = []

        def there() -> Iterator[tuple[str, int]]:
            if self.work.output:
                with contextlib.suppress(FileNotFoundError):
                    size = item_of(target.place(self.work.output), "").size
                    yield from ((done.name, size) for done in list(self.journal.rows()))
                return
            for item in target.all():
                if is_unfinished(item.name):
                    unfinished.append(item.name)
                elif not encrypts:
                    yield item.name + extension, item.size
                elif item.name.endswith(extension):
                    yield item.name.removesuffix(extension), item.size

        self.journal.keep(there(), sealed=encrypts)
        for name in unfinished:
            target.remove(name)

    def takes(self, item: Item) -> bool:
        """Whether the filter takes an object, by its name before encryption."""
        name = item.name
        if self.work.task != "encrypt":
            name = name.removesuffix(self.work.extension)
        return self.filter.takes(item._replace(name=name))

    def _note(
        self, outcomes: list[Outcome], counts: Counts, watch: Callable[[Counts], None]
    ) -> None:
        for outcome in outcomes:
            if outcome.done is not None:
                self.journal.add(outcome.done)
                if self._preparing:
                    continue
            else:
                counts.failed += 1
                counts.refused += isinstance(outcome.error, (wc.InvalidTag, FormatError))
            counts.done_bytes += outcome.item.size
            self.said("failed" if outcome.done is None else "done", outcome)
        if not self._preparing:
            watch(counts)

    def _write_manifest(self, target: Target) -> None:
        """Gives the tree its manifest, of all that the journal has; removes parts of others."""
        sealed = self.sealed.new or self.sealed
        with contextlib.suppress(FileNotFoundError, wc.InvalidTag, ValueError):
            if self._is_listed(Listed(sealed, target.opened)):
                return
        parts = self._look_for_strangers(target)
        entries = (
            Entry(done.name, "file", *done[2:7], holes=bool(done.holes))
            for done in self.journal.rows(self._extension)
        )

        @contextlib.contextmanager
        def writing(name: str) -> Iterator[Any]:
            with target.writing(name, in_place=self.work.in_place) as file:
                yield (hashed := Digested(file))
                if name == NAME and self.work.prepares:  # before it appears
                    self.journal.note(NAME, hashed.digest.hex())
                    self.journal.save()

        write(sealed, entries, writing, self._others)
        for name in parts:
            target.remove(name)

    def _look_for_strangers(self, target: Target) -> list[str]:
        """Says which objects of the target the manifest will not list; returns the parts of
        manifests."""
        parts, extension = [], self._extension
        for item, done in _joined(target.all(), self.journal.rows(extension), extension):
            if item is not None and is_part(item.name):
                parts.append(item.name)
            if item is not None and not (done or is_of_a_job(item.name) or is_own(item.name)):
                self.said("strange", item)
        return parts

    def _is_listed(self, old: Listed) -> bool:
        """Whether a manifest has just the entries of the journal."""
        rows = self.journal.rows(self._extension)
        return all(
            entry is not None
            and done is not None
            and (entry.name, entry.sealed, entry.head) == (done.name, done.sealed, done.head)
            for entry, done in itertools.zip_longest(old.files(), rows)
        )
