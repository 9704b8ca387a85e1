# SPDX-License-Identifier: Apache-2.0
"""Threads of a service seal records one by one; a queue makes batches of them."""

from __future__ import annotations

import os
import threading

import warpcipher as wc

THREADS, RECORDS = 4, 100


def serve(client: int, key: wc.Key, queue: wc.Queue, sealed: dict[bytes, bytes]) -> None:
    waiting = []
    for number in range(RECORDS):
        nonce = client.to_bytes(4, "big") + number.to_bytes(8, "big")  # never twice with one key
        record = f"record {number} of client {client}".encode()
        future = queue.submit("aes-256-gcm", "encrypt", key, record, iv=nonce, submitter=client)
        waiting.append((nonce, future))
    for nonce, future in waiting:
        sealed[nonce] = future.result()


def main() -> None:
    key = wc.Key("aes-256-gcm", os.urandom(32))
    sealed: dict[bytes, bytes] = {}
    with wc.Queue(max_delay_us=500) as queue:
        threads = [
            threading.Thread(target=serve, args=(client, key, queue, sealed))
            for client in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        # Back again, and one that was altered: only it fails.
        opened = {
            nonce: queue.submit("aes-256-gcm", "decrypt", key, data, iv=nonce)
            for nonce, data in sealed.items()
        }
        forged = queue.submit("aes-256-gcm", "decrypt", key, bytes(40), iv=bytes(12))
        texts = sorted(future.result() for future in opened.values())
        try:
            forged.result()
        except wc.InvalidTag as error:
            print(f"the altered one: {error}")
        counts = queue.statistics()
    print(f"{len(texts)} records sealed and opened again in {counts.payloads} payloads")


if __name__ == "__main__":
    main()
