# SPDX-License-Identifier: Apache-2.0
"""A run of `rekey` or `rewrap` over objects at URLs: a job as for `encrypt`, with two keys."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from warpcipher import stores
from warpcipher._tree_names import NAME
from warpcipher.fleet.places import Items, is_prefix, item_of, join, split
from warpcipher.fleet.work import Work
from warpcipher.formats.rewrap import require_no_tree_at
from warpcipher.formats.sealed import Sealed

from .errors import shown, usage
from .new_keys import RekeySettings
from .object_run import JOURNAL, ObjectRun, Plan, portable


class ObjectKeys(ObjectRun):
    """One run. keep, copy: as of `Work`."""

    def __init__(
        self,
        settings: RekeySettings,
        task: Literal["rekey", "rewrap"],
        *,
        keep: bool = False,
        copy: bool = False,
    ) -> None:
        super().__init__(settings, "decrypt")
        self._how, self._task = settings, task
        self._keep, self._copy = keep, copy
        if task == "rewrap":  # which changes no format
            settings.new_format = self._format.name
        self._new = self._sealed.new = settings.new_sealed(self._sealed.options.context)

    def _close(self) -> None:
        super()._close()
        self._new.wipe()

    def _new_source(self, sealed: Sealed) -> Any:
        key = portable(self._new, self._how.new.people, self._how.new.choice)
        return key, self._new.format.name, self._new.options

    def _work_of(self, plan: Plan) -> Work:
        work = super()._work_of(plan)
        return replace(
            work,
            task=self._task,
            new_extension=self._new.format.extension,
            in_place=self._how.in_place,
            replace=self._how.in_place or work.replace,
            keep=self._keep,
            copy=self._copy,
        )

    def _named(self, path: str, name: str) -> str:
        return super()._named(path, name) + self._new.format.extension

    def _planned(
        self, items: Items, target: str | None, output: str = "", *, tree: bool = False
    ) -> Plan:
        plan = super()._planned(items, target, output, tree=tree)
        if plan.tree:
            self._require_bound(self._new)
        if output or not stores.is_url(target):
            require_no_tree_at(join(str(target), output) if output else str(target).rstrip("/"))
        self._refuse_keep(plan)
        return plan

    def _refuse_keep(self, plan: Plan) -> None:
        if self._keep and plan.tree:
            raise usage(
                "--keep is for files: a tree's manifest is encrypted again, to the new keys only; "
                "name all who are to open the tree, or take --no-manifest"
            )

    def _plans(self) -> Iterator[Plan]:
        if not self._how.in_place:
            yield from super()._plans()
            return
        if self._new.format.extension != self._format.extension:
            raise usage(
                f"objects in place keep the suffix of {self._format.name}, and would be of "
                f"{self._new.format.name}: name the new ones with -o"
            )
        for path in self._how.paths:
            is_many = is_prefix(path)
            if not (is_many or stores.is_url(path) or self._how.cluster):
                raise usage(f"{shown(path)} is a file: give URLs and folders only, or none")
            if is_many:
                require_no_tree_at(path.removesuffix("/"))  # the job itself looks below it
                journal = self._how.journal or join(path, f"{JOURNAL}-{self._task}")
                plan = Plan(Items({"": path}, frozenset({""})), path, journal=journal)
                with contextlib.suppress(FileNotFoundError):
                    item_of(join(path, NAME), NAME)
                    # After a kill of `rekey` only a secret key shows that an object is this job's.
                    has_key = self._task == "rewrap" or self._new.format.takes_context
                    plan.tree = has_key and not self._how.no_manifest
                self._refuse_keep(plan)
                if plan.tree and self._how.filters:
                    raise usage("a tree is changed in place as a whole: leave out the filters")
                yield plan
                continue
            require_no_tree_at(path)
            folder, name = split(path)
            items = Items({name: path}, frozenset())
            yield Plan(items, folder, name, journal=self._how.journal)
