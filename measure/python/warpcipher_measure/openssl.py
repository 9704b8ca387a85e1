# SPDX-License-Identifier: Apache-2.0
"""libcrypto by its own benchmark, `openssl speed -multi`: one process a core, each over and over
the same buffer, which therefore stays in its cache."""

from __future__ import annotations

import shlex
import shutil
import subprocess

from .machine import cores
from .results import PeerRow, Spread

LARGEST_MESSAGE = 1 << 20
SECONDS = 1


def program() -> str:
    """The openssl command. ValueError: there is none on PATH."""
    found = shutil.which("openssl")
    if found is None:
        raise ValueError("--against openssl runs `openssl speed`, but no openssl is on PATH")
    return found


def version(path: str) -> str:
    done = subprocess.run([path, "version"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def name_of(algorithm: str) -> str:
    """OpenSSL's name: it counts the keys of triple DES by -ede and -ede3."""
    if "chacha20" in algorithm:
        return algorithm
    cipher, _, mode = algorithm.rpartition("-")
    return f"{cipher.removesuffix('2') if cipher == 'des-ede2' else cipher}-{mode}"


def command(path: str, algorithm: str, direction: str, message: int, processes: int) -> list[str]:
    options = ["-aead"] if algorithm.endswith(("-ccm", "-gcm", "-gcm-siv", "-poly1305")) else []
    if direction == "decrypt":
        options.append("-decrypt")
    return [
        path,
        "speed",
        "-mr",
        "-elapsed",
        *("-multi", str(processes)),
        *("-seconds", str(SECONDS)),
        *("-bytes", str(message)),
        *options,
        *("-evp", name_of(algorithm)),
    ]


def measure(
    path: str, its_version: str, algorithm: str, direction: str, message: int, repetitions: int
) -> PeerRow | str:
    """The sum over all processes, or what openssl complained of."""
    processes = cores()
    arguments = command(path, algorithm, direction, message, processes)
    rates = []
    for _ in range(repetitions):
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        rate = parse(done.stdout)
        if done.returncode != 0 or rate is None:
            complaint = done.stderr.strip().splitlines() or ["no result"]
            return f"openssl speed: {complaint[0]}"
        rates.append(rate / 1e9)
    return PeerRow(
        "openssl",
        its_version,
        algorithm,
        direction,
        message,
        processes,
        Spread.of(rates),
        shlex.join(["openssl", *arguments[1:]]),
        message,
    )


def parse(output: str) -> float | None:
    """Bytes a second of all processes: the last line of `-mr`, +F:NUMBER:NAME:RATE."""
    for line in reversed(output.splitlines()):
        fields = line.split(":")
        if fields[0] == "+F" and len(fields) >= 4:
            return float(fields[-1])
    return None
