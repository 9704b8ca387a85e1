# SPDX-License-Identifier: Apache-2.0
"""A file on a tmpfs to another: the command against `cp`, `openssl enc` and `age`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from warpcipher_measure.program import Program, Times, by_turns, ratio

Command = list[Any]


def main() -> None:
    program = Program(__doc__)
    program.option("--mib", type=int, default=1024, help="size of the file")
    program.option("--folder", type=Path, required=True, help="on a tmpfs")
    options = program.parse()
    with program.folder() as folder:
        taken = measure(folder, options.mib, options.repetitions)
    program.rates(taken, options.mib / 1024, "GiB/s")
    program.finish(size=f"{options.mib} MiB", residence="tmpfs to tmpfs")


def measure(folder: Path, mib: int, repetitions: int) -> dict[str, Times]:
    plain = folder / "plain"
    with plain.open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))
    warpcipher = shutil.which("warpcipher") or sys.exit("warpcipher is not on PATH: make build")
    key, kept, made = (folder / name for name in ("key", "kept", "made"))
    run([warpcipher, "keygen", key])
    encrypt = [warpcipher, "encrypt", "--key", key, "-o"]
    decrypt = [warpcipher, "decrypt", "--key", key, "-o", made, kept]
    run([*encrypt, kept, plain])
    comes_back(decrypt, made, plain)
    commands = {
        "cp": ["cp", plain, made],
        "warpcipher encrypt": [*encrypt, made, plain],
        "warpcipher decrypt": decrypt,
    }
    if shutil.which("openssl"):
        secret = ["-K", os.urandom(32).hex(), "-iv", os.urandom(16).hex()]
        enc = ["openssl", "enc", "-aes-256-ctr", *secret, "-in", plain, "-out", made]
        commands["openssl enc -aes-256-ctr"] = enc
    taken = turns(commands, made, repetitions)
    kept.unlink()
    for name in taken:
        ratio(taken, name, "cp")
    if shutil.which("age"):
        commands = age_commands(warpcipher, folder, plain, made)
        taken |= turns(commands, made, repetitions)
        ratio(taken, "warpcipher encrypt, age", "age")
        ratio(taken, "warpcipher decrypt, age", "age -d")
    else:
        print("age is not installed: left out", file=sys.stderr)
    return taken


def turns(commands: dict[str, Command], made: Path, repetitions: int) -> dict[str, Times]:
    """The file that a command makes was not there, and goes at once, as new memory may be slow."""
    actions = {name: partial(run, command) for name, command in commands.items()}
    return by_turns(actions, repetitions, after=lambda _: made.unlink())


def age_commands(warpcipher: str, folder: Path, plain: Path, made: Path) -> dict[str, Command]:
    """Format age, by this command and by age itself."""
    identity, kept = folder / "id", folder / "kept"
    run([warpcipher, "keygen", "--format", "age", identity])
    public = identity.read_text().split("# public key: ")[1].split()[0]
    decrypt = ["-i", identity, "-o", made, kept]
    run([warpcipher, "encrypt", "-r", public, "-o", kept, plain])
    comes_back(["age", "-d", *decrypt], made, plain)
    run(["age", "-r", public, "-o", made, plain])
    made.replace(kept)
    return {
        "warpcipher encrypt, age": [warpcipher, "encrypt", "-r", public, "-o", made, plain],
        "age": ["age", "-r", public, "-o", made, plain],
        "warpcipher decrypt, age": [warpcipher, "decrypt", *decrypt],
        "age -d": ["age", "-d", *decrypt],
    }


def comes_back(decrypt: Command, made: Path, plain: Path) -> None:
    run(decrypt)
    run(["cmp", plain, made])
    made.unlink()


def run(command: Command) -> None:
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
