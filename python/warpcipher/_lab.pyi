"""The papers' variants. Not a public interface."""

from collections.abc import Mapping
from typing import Any


class Job:
    """A variant made ready for one key."""

    def __init__(self, paper: str, variant: str, key: bytes, iv: bytes, parameters: Mapping[str, int], device: int) -> None: ...

    def run(self, source: int, source_size: int, target: int, target_size: int, stream: int) -> None:
        """Enqueues on a GPU; returns when done on a CPU."""

    def facts(self) -> list[tuple[str, int]]:
        """What the runtime tells of the kernel."""

def variants(paper: str) -> list[dict[str, Any]]: ...

def papers() -> list[str]: ...
