# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster for any kind of work: its nodes, parts of about equal size, and keys that do not
travel."""

from __future__ import annotations

import importlib
import logging
import pickle
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import warpcipher as wc

from .._errors import EngineError
from ..formats.registry import of_people
from ..keys import KeySource

MOST_DEVICES = 64  # of a node


class Fleet:
    """A Ray cluster. address: as ray.init takes it; "auto": the one of this machine; None: that
    of the environment, or else a new one on this machine. A connection that is there is used.

    Raises ImportError without Ray, and the error of ray.init without a cluster.
    """

    def __init__(self, address: str | None = None, **options: Any) -> None:
        self.ray: Any = importlib.import_module("ray")
        self._connected = not self.ray.is_initialized()
        if self._connected:
            self.ray.init(address=address, logging_level=logging.ERROR, **options)

    def nodes(self) -> dict[str, dict[str, float]]:
        """The nodes that are alive, and the resources of each."""
        return {
            node["NodeID"]: node.get("Resources", {}) for node in self.ray.nodes() if node["Alive"]
        }

    def has_gpu(self) -> bool:
        """Whether some node has one."""
        return bool(self.ray.cluster_resources().get("GPU", 0))

    def start(self, kind: type, node: str, cpus: float, gpus: float, *arguments: Any) -> Any:
        """An actor on one node, which takes these resources of it."""
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        return (
            self.ray.remote(kind)
            .options(
                num_gpus=gpus,
                num_cpus=cpus,
                max_concurrency=MOST_DEVICES + 1,
                scheduling_strategy=strategy(node, soft=False),
            )
            .remote(*arguments)
        )

    def close(self) -> None:
        """Ends the connection, if it was made here."""
        if self._connected:
            self.ray.shutdown()


def connect(address: str) -> Fleet:
    """The cluster at an address. Raises EngineError without Ray or without a cluster."""
    try:
        return Fleet(address, log_to_driver=False)
    except ImportError:
        raise EngineError("a cluster needs Ray: pip install 'warpcipher[cluster]'") from None
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise EngineError(f"no Ray cluster at {address!r}: {error}") from None


def check_version(version: str) -> None:
    """Called on a node. version: of the driver's warpcipher. Raises EngineError where the node has
    another."""
    if wc.__version__ != version:
        raise EngineError(f"a node has warpcipher {wc.__version__}, and the driver {version}")


def balanced(sizes: Sequence[int | None], most: int) -> list[range]:
    """Items cut into `most` runs of about equal bytes, or into one each if they are fewer.

    sizes: None where one is not known: such an item counts as one of mean size.
    """
    count = max(1, min(most, len(sizes)))
    known = [size for size in sizes if size is not None]
    mean = sum(known) // max(len(known), 1)
    # An item without bytes is work, too.
    ends = list(accumulate((1 + (mean if s is None else s) for s in sizes), initial=0))
    edges = [0]
    for number in range(1, count):
        start = ends[edges[-1]]
        wanted = start + (ends[-1] - start) / (count - number + 1)  # an equal part of the rest
        edge = bisect_left(ends, wanted)
        if wanted - ends[edge - 1] < ends[edge] - wanted:
            edge -= 1
        edges.append(min(max(edge, edges[-1] + 1), len(sizes) - count + number))
    return [range(*edge) for edge in pairwise([*edges, len(sizes)]) if edge[0] < edge[1]]


@dataclass(frozen=True)
class _Imported:
    """A function by its name: the values in it stay where they are."""

    module: str
    name: str


def portable_keys(keys: object) -> Any:
    """Keys as tasks may carry them: sources, the names of functions, and public keys of people.

    Raises TypeError for keys themselves, and for objects that may hold some.
    """
    if keys is None:
        return None
    if isinstance(keys, (list, tuple)):
        return [portable_keys(key) for key in keys]
    is_text = isinstance(keys, (str, bytes, bytearray, memoryview))
    if not is_text and any(of.knows(keys) and of.opening(keys) == [] for of in of_people()):
        return keys
    if isinstance(keys, Mapping):
        return {name: portable_keys(key) for name, key in keys.items()}
    if isinstance(keys, KeySource):
        try:
            pickle.dumps(keys)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise TypeError(f"{keys!r} cannot be sent to other nodes: {error}") from None
        return keys
    name = getattr(keys, "__qualname__", "")
    module = getattr(keys, "__module__", None) or "__main__"
    may_be_imported = callable(keys) and name.isidentifier() and module != "__main__"
    if may_be_imported and getattr(importlib.import_module(module), name, None) is keys:
        return _Imported(module, name)
    raise TypeError(
        f"keys hold {type(keys).__name__}: tasks carry no keys; give sources of warpcipher.keys, "
        "such as from_file(path), or functions of a module that the nodes import"
    )


def found_keys(keys: Any) -> Any:
    """Portable keys as a caller gave them; called on a node."""
    if isinstance(keys, Mapping):
        return {name: found_keys(key) for name, key in keys.items()}
    if isinstance(keys, list):
        return [found_keys(key) for key in keys]
    if isinstance(keys, _Imported):
        return getattr(importlib.import_module(keys.module), keys.name)
    return keys
