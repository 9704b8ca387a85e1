# SPDX-License-Identifier: Apache-2.0
"""Private information retrieval: two servers, a process each, have the same table. A client asks
both for records, and neither learns which.

    python examples/private_retrieval.py --records 1048576 --size 256 --queries 4
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import time
from typing import TYPE_CHECKING

import numpy as np
from warpcipher.prg import dpf

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def make_table(records: int, size: int) -> np.ndarray:
    """The public table of both servers: record i is a function of i."""
    return np.random.default_rng(2024).integers(0, 256, (records, size), dtype=np.uint8)


def serve(channel: Connection, records: int, size: int) -> None:
    table = make_table(records, size)
    channel.send_bytes(b"ready")
    while (request := channel.recv_bytes()) != b"":
        with dpf.Keys.from_bytes(request) as keys:
            channel.send_bytes(dpf.answer(keys, table).tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1 << 10)
    parser.add_argument("--size", type=int, default=256, help="bytes of a record")
    parser.add_argument("--queries", type=int, default=4)
    arguments = parser.parse_args()
    bits = max(1, (arguments.records - 1).bit_length())

    context = multiprocessing.get_context("spawn")
    channels, servers = [], []
    for _ in range(2):
        ours, theirs = context.Pipe()
        place = (theirs, arguments.records, arguments.size)
        servers.append(context.Process(target=serve, args=place, daemon=True))
        servers[-1].start()
        channels.append(ours)
    for channel in channels:
        channel.recv_bytes()

    wanted = [secrets.randbelow(arguments.records) for _ in range(arguments.queries)]
    begin = time.perf_counter()
    for channel, keys in zip(channels, dpf.generate(wanted, bits=bits), strict=True):
        channel.send_bytes(keys.to_bytes())
    shares = [np.frombuffer(channel.recv_bytes(), np.uint8) for channel in channels]
    seconds = time.perf_counter() - begin
    found = (shares[0] ^ shares[1]).reshape(arguments.queries, arguments.size)

    for channel, server in zip(channels, servers, strict=True):
        channel.send_bytes(b"")
        server.join()
    if not (found == make_table(arguments.records, arguments.size)[wanted]).all():
        raise SystemExit("the records are not those of the table")
    each = seconds / arguments.queries
    print(f"{arguments.queries} records of {arguments.records}, each in {each:.4f} s")


if __name__ == "__main__":
    main()
