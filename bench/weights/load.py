# SPDX-License-Identifier: Apache-2.0
"""A model on a tmpfs to tensors, and tensors to a file: warpcipher.weights beside safetensors,
cryptotensors and, on a GPU, fastsafetensors. The loaders take turns, so that all see the same
machine."""

from __future__ import annotations

import base64
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from common import Row, parser, report
from warpcipher import weights
from warpcipher.weights import ed25519

TENSOR = 32 << 20
ONE = "layer0"
Action = Callable[[], Any]


class Times(NamedTuple):
    """Seconds of each call: on the clock, and of all cores."""

    wall: list[float]
    cpu: list[float]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--mib", type=int, default=1024, help="size of the model")
    arguments.add_argument("--folder", type=Path, required=True, help="on a tmpfs")
    arguments.add_argument("--device", default="cpu", help="cpu (NumPy), or cuda:0 (PyTorch)")
    options = arguments.parse_args()
    count = max(1, (options.mib << 20) // TENSOR)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = measure(Path(folder), count, options.device, options.repetitions)
    report(
        rows,
        options,
        size=f"{count} tensors of {TENSOR >> 20} MiB",
        residence=f"{options.folder} to {options.device}",
    )


def measure(folder: Path, count: int, device: str, repetitions: int) -> list[Row]:
    rng = np.random.default_rng(0)
    model: dict[str, Any] = {
        f"layer{i}": rng.integers(0, 256, (1024, TENSOR >> 10), dtype=np.uint8)
        for i in range(count)
    }
    key, seed = os.urandom(32), os.urandom(32)
    signed = weights.CryptotensorsKey(key, sign=seed, key_id="enc", sign_key_id="sign")
    paths = [folder / name for name in ("plain.safetensors", "sealed", "signed")]
    for path, one in zip(paths, (None, key, signed), strict=True):
        weights.save_file(model, path, one)
    framework = "np" if device == "cpu" else "pt"
    loads = loaders(paths, key, signed, framework, device)
    loads |= peers(paths, key, seed, framework, device)
    expected = model[ONE]
    for name, load in loads.items():
        found = load()[ONE]
        host = found if isinstance(found, np.ndarray) else found.cpu().numpy()
        if not np.array_equal(host, expected):
            raise SystemExit(f"{name} loaded other values")
    saves = savers(model, folder / "saved", key, signed, device)
    gigabytes = count * TENSOR / 1e9
    rows = [
        Row(
            name,
            "GB/s",
            [gigabytes / taken for taken in times.wall],
            f"{gigabytes / statistics.median(times.cpu):.3g} GB a second of CPU time",
        )
        for name, times in in_turns({**loads, **saves}, repetitions).items()
    ]
    parts = in_turns(parts_of(paths, key, signed, framework, device), repetitions)
    for name, times in parts.items():
        used = f"{1e3 * statistics.median(times.cpu):.3g} ms of CPU time"
        rows.append(Row(name, "ms", [1e3 * taken for taken in times.wall], used))
    return rows


def in_turns(actions: dict[str, Action], repetitions: int) -> dict[str, Times]:
    """Seconds of each action. Before each timed call the same is done once: what is measured is not
    what the one before left, such as memory in pages of another size."""
    taken = {name: Times([], []) for name in actions}
    for _ in range(repetitions):
        for name, action in actions.items():
            for timed in (False, True):
                wall, cpu = time.perf_counter(), time.process_time()
                result = action()
                wait()
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                del result
                if timed:
                    taken[name].wall.append(wall)
                    taken[name].cpu.append(cpu)
    return taken


def wait() -> None:
    """For what is enqueued on a GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()


def loaders(
    paths: list[Path], key: bytes, signed: object, framework: str, device: str
) -> dict[str, Action]:
    def load(path: Path, one: object) -> Action:
        return lambda: weights.load_file(path, one, device, framework)

    plain, sealed, crypto = paths
    return {
        "load plain, warpcipher": load(plain, None),
        "load cobblestone-256, warpcipher": load(sealed, key),
        "load cryptotensors, warpcipher": load(crypto, signed),
    }


def peers(
    paths: list[Path], key: bytes, seed: bytes, framework: str, device: str
) -> dict[str, Action]:
    """The loaders of others; those that are not installed are left out and named."""
    found: dict[str, Action] = {}
    try:
        if framework == "np":
            from safetensors.numpy import load_file

            found["load plain, safetensors"] = lambda: load_file(paths[0])
        else:
            from safetensors.torch import load_file as load_torch

            found["load plain, safetensors"] = lambda: load_torch(paths[0], device)
    except ImportError:
        print("safetensors is not installed: left out", file=sys.stderr)
    try:
        import cryptotensors

        text = [base64.b64encode(k).decode() for k in (key, ed25519.public_key_of(seed))]
        pair = [
            {"kty": "oct", "alg": "aes256gcm", "kid": "enc", "k": text[0]},
            {"kty": "okp", "alg": "ed25519", "kid": "sign", "x": text[1]},
        ]
        cryptotensors.register_direct_key_provider(keys=pair)
        if framework == "np":
            from cryptotensors.numpy import load_file as load_crypto

            found["load cryptotensors, cryptotensors"] = lambda: load_crypto(paths[2])
    except ImportError:
        print("cryptotensors is not installed: left out", file=sys.stderr)
    if framework == "pt":
        try:
            found["load plain, fastsafetensors"] = fast(paths[0], device)
        except ImportError:
            print("fastsafetensors is not installed: left out", file=sys.stderr)
    return found


def fast(path: Path, device: str) -> Action:
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup

    def load() -> dict[str, Any]:
        loader = SafeTensorsFileLoader(SingleGroup(), device, nogds=True)
        loader.add_filenames({0: [str(path)]})
        files = loader.copy_files_to_device()
        return {name: files.get_tensor(name) for name in loader.get_keys()}

    return load


def savers(
    model: dict[str, Any], path: Path, key: bytes, signed: object, device: str
) -> dict[str, Action]:
    if device != "cpu":
        import torch

        model = {name: torch.from_numpy(tensor).to(device) for name, tensor in model.items()}
    found: dict[str, Action] = {
        "save plain, warpcipher": lambda: weights.save_file(model, path),
        "save cobblestone-256, warpcipher": lambda: weights.save_file(model, path, key),
        "save cryptotensors, warpcipher": lambda: weights.save_file(model, path, signed),
    }
    try:
        if device == "cpu":
            from safetensors.numpy import save_file
        else:
            from safetensors.torch import save_file
        found["save plain, safetensors"] = lambda: save_file(model, path)
    except ImportError:
        pass
    return found


def parts_of(
    paths: list[Path], key: bytes, signed: object, framework: str, device: str
) -> dict[str, Action]:
    """One tensor of 32 MiB, and the columns of one of four ranks, with opening the file."""

    def read(path: Path, one: object, columns: bool) -> Action:
        def action() -> Any:
            with weights.safe_open(path, framework, device, key=one) as model:
                part = model.get_slice(ONE)
                width = part.get_shape()[1]
                return part[:, : width // 4] if columns else part[...]

        return action

    return {
        f"{what}, {name}": read(path, one, columns)
        for what, columns in (("one tensor", False), ("its columns", True))
        for name, path, one in (
            ("plain", paths[0], None),
            ("cobblestone-256", paths[1], key),
            ("cryptotensors", paths[2], signed),
        )
    }


if __name__ == "__main__":
    main()
