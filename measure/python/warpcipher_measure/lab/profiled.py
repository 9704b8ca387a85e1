# SPDX-License-Identifier: Apache-2.0
"""What profiler.py lets the profiler run: each job of its argument, once."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .. import _native
from ..bench.memory import DeviceMemory, fill


def main(launches: list[dict[str, Any]]) -> None:
    for entry in launches:
        device, in_size, out_size = (entry[name] for name in ("device", "in_size", "out_size"))
        stream = _native.WorkStream(device)
        source, target = (DeviceMemory(size, stream) for size in (in_size, out_size))
        fill(source, stream)
        key, parameters = os.urandom(entry["key_size"]), entry["parameters"]
        job = _native.Job(entry["paper"], entry["variant"], key, b"", parameters, device)
        job.run(source.pointer, in_size, target.pointer, out_size, stream.pointer)
        stream.wait()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
