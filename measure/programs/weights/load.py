# SPDX-License-Identifier: Apache-2.0
"""A model on a tmpfs to tensors, and tensors to a file: warpcipher.weights against safetensors,
cryptotensors and, on a GPU, fastsafetensors. Each row is printed when it is measured. The loaders
take turns, so that all see the same machine.

A model of 8 GiB to a GPU takes about a minute. Slow loaders there are measured with a smaller
model, and the row says so."""

from __future__ import annotations

import base64
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from warpcipher import weights
from warpcipher.weights import ed25519
from warpcipher_measure.program import Row, Times, by_turns, named, parser, report, show

TENSOR = 32 << 20
ONE = "layer0"
MOST_SAVED = 1 << 30
"""Bytes of the model that is saved, and that cryptotensors' own loader reads."""

Action = Callable[[], Any]


class Model(NamedTuple):
    """The same tensors in three files."""

    size: int
    plain: Path
    sealed: Path
    signed: Path


class Keys(NamedTuple):
    key: bytes
    seed: bytes
    pair: weights.CryptotensorsKey


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--mib", type=int, default=1024, help="size of the model")
    arguments.add_argument("--folder", type=Path, required=True, help="on a tmpfs")
    arguments.add_argument("--device", default="cpu", help="cpu (NumPy), or cuda:0 (PyTorch)")
    arguments.add_argument(
        "--sealed", type=Path, help="print seconds of loading this file only; its key on stdin"
    )
    options = arguments.parse_args()
    if options.sealed:
        key, framework = sys.stdin.buffer.read(), "np" if options.device == "cpu" else "pt"
        load = {"load": lambda: weights.load_file(options.sealed, key, options.device, framework)}
        print(*by_turns(load, options.repetitions, wait=wait)["load"].wall, sep="\n")
        return
    count = max(1, (options.mib << 20) // TENSOR)
    key, seed = os.urandom(32), os.urandom(32)
    pair = weights.CryptotensorsKey(key, sign=seed, key_id="enc", sign_key_id="sign")
    bench = Bench(options.device, Keys(key, seed, pair), options.repetitions, not options.json)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench.run(Path(folder), count)
    report(
        bench.rows,
        options,
        size=f"{count} tensors of {TENSOR >> 20} MiB",
        residence=f"{options.folder} to {options.device}",
        shown=True,
    )


class Bench:
    """rows: the figures. shows: prints them as they come."""

    def __init__(self, device: str, keys: Keys, repetitions: int, shows: bool) -> None:
        self.rows: list[Row] = []
        self._device = device
        self._framework = "np" if device == "cpu" else "pt"
        self._keys = keys
        self._repetitions = repetitions
        self._shows = shows
        # Equal tensors, in memory of their own in every file: making them takes no minute.
        rng = np.random.default_rng(0)
        self._tensor = rng.integers(0, 256, (1024, TENSOR >> 10), dtype=np.uint8)

    def run(self, folder: Path, count: int) -> None:
        few = min(count, MOST_SAVED // TENSOR)
        small = self._model(folder / "small", few)
        self._rates(self._savers(folder, few), small.size)
        self._rates(self._slow_loaders(small), small.size)
        if count != few:
            for path in small[1:]:
                path.unlink()
        model = small if count == few else self._model(folder / "whole", count)
        self._rates(self._loaders(model), model.size)
        self._parts(model)
        if self._device != "cpu":
            for cores in (8, 4):
                self._fewer_cores(model, cores)

    def _model(self, folder: Path, count: int) -> Model:
        folder.mkdir()
        tensor = self._tensor if self._device == "cpu" else to_device(self._tensor, self._device)
        tensors = dict.fromkeys((f"layer{i}" for i in range(count)), tensor)
        model = Model(count * TENSOR, folder / "plain", folder / "sealed", folder / "signed")
        for path, key in zip(model[1:], (None, self._keys.key, self._keys.pair), strict=True):
            weights.save_file(tensors, path, key)
        return model

    def _rates(self, actions: dict[str, Action], size: int) -> None:
        """GB/s of each; those that return tensors must return the right ones."""
        for action in actions.values():
            found = action()
            if found is not None and not np.array_equal(on_host(found[ONE]), self._tensor):
                raise SystemExit("other values were loaded")
        for name, times in self._times(actions).items():
            gigabytes = size / 1e9
            used = gigabytes / statistics.median(times.cpu)
            self._add(
                f"{name}, {size >> 20} MiB",
                "GB/s",
                [gigabytes / taken for taken in times.wall],
                f"{used:.3g} GB a second of CPU time",
            )

    def _times(self, actions: dict[str, Action]) -> dict[str, Times]:
        return by_turns(actions, self._repetitions, wait=wait, warm=0.5)

    def _add(self, *columns: Any) -> None:
        row = Row(*columns)
        self.rows.append(row)
        if self._shows:
            show(row, 50)

    def _loaders(self, model: Model) -> dict[str, Action]:
        def load(path: Path, key: object) -> Action:
            return lambda: weights.load_file(path, key, self._device, self._framework)

        found = {
            "load plain, warpcipher": load(model.plain, None),
            "load cobblestone-256, warpcipher": load(model.sealed, self._keys.key),
            "load cryptotensors, warpcipher": load(model.signed, self._keys.pair),
        }
        if self._framework == "pt":
            with named("fastsafetensors"):
                found["load plain, fastsafetensors"] = fast(model.plain, self._device)
        with named("safetensors"):
            found["load plain, safetensors"] = peer(model.plain, self._device)
        return found

    def _slow_loaders(self, model: Model) -> dict[str, Action]:
        found: dict[str, Action] = {}
        with named("cryptotensors"):
            found["load cryptotensors, cryptotensors"] = crypto(
                model.signed, self._device, self._keys
            )
        return found

    def _savers(self, folder: Path, count: int) -> dict[str, Action]:
        path = folder / "saved"
        # Of memory of their own: shared memory stays in the processor's caches.
        tensors: dict[str, Any] = {f"layer{i}": self._tensor.copy() for i in range(count)}
        if self._device != "cpu":
            tensors = {n: to_device(t, self._device) for n, t in tensors.items()}

        def save(key: object) -> Action:
            return lambda: weights.save_file(tensors, path, key)

        found = {
            "save plain, warpcipher": save(None),
            "save cobblestone-256, warpcipher": save(self._keys.key),
            "save cryptotensors, warpcipher": save(self._keys.pair),
        }
        with named("safetensors"):
            found["save plain, safetensors"] = peer_save(tensors, path, self._device)
        return found

    def _parts(self, model: Model) -> None:
        """One tensor of 32 MiB, and the columns of one of four ranks, with opening the file."""

        def read(path: Path, key: object, columns: bool) -> Action:
            def action() -> Any:
                with weights.safe_open(path, self._framework, self._device, key=key) as opened:
                    part = opened.get_slice(ONE)
                    width = part.get_shape()[1]
                    return part[:, : width // 4] if columns else part[...]

            return action

        actions = {
            f"{what}, {name}": read(path, key, columns)
            for what, columns in (("one tensor", False), ("its columns", True))
            for name, path, key in (
                ("plain", model.plain, None),
                ("cobblestone-256", model.sealed, self._keys.key),
                ("cryptotensors", model.signed, self._keys.pair),
            )
        }
        for name, times in self._times(actions).items():
            used = f"{1e3 * statistics.median(times.cpu):.3g} ms of CPU time"
            self._add(name, "ms", [1e3 * taken for taken in times.wall], used)

    def _fewer_cores(self, model: Model, cores: int) -> None:
        """The encrypted file in a process that has fewer cores."""
        few = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:cores])
        options = ["--sealed", model.sealed, "--device", self._device]
        options += ["--folder", model.sealed.parent, "--repetitions", str(self._repetitions)]
        done = subprocess.run(
            ["taskset", "-c", few, sys.executable, __file__, *options],
            input=self._keys.key,
            capture_output=True,
            check=True,
        )
        seconds = [float(text) for text in done.stdout.split()]
        rates = [model.size / 1e9 / taken for taken in seconds]
        self._add(f"load cobblestone-256, {cores} cores, {model.size >> 20} MiB", "GB/s", rates)


def to_device(tensor: Any, device: str) -> Any:
    import torch

    return torch.from_numpy(tensor).to(device)


def on_host(tensor: Any) -> Any:
    return tensor if isinstance(tensor, np.ndarray) else tensor.cpu().numpy()


def wait() -> None:
    """For what is enqueued on a GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()


def peer(path: Path, device: str) -> Action:
    if device == "cpu":
        from safetensors.numpy import load_file

        return lambda: load_file(path)
    from safetensors.torch import load_file as load_torch

    return lambda: load_torch(path, device)


def peer_save(tensors: dict[str, Any], path: Path, device: str) -> Action:
    if device == "cpu":
        from safetensors.numpy import save_file

        return lambda: save_file(tensors, path)
    from safetensors.torch import save_file as save_torch

    return lambda: save_torch(tensors, path)


def crypto(path: Path, device: str, keys: Keys) -> Action:
    import cryptotensors

    text = [base64.b64encode(k).decode() for k in (keys.key, ed25519.public_key_of(keys.seed))]
    pair = [
        {"kty": "oct", "alg": "aes256gcm", "kid": "enc", "k": text[0]},
        {"kty": "okp", "alg": "ed25519", "kid": "sign", "x": text[1]},
    ]
    cryptotensors.register_direct_key_provider(keys=pair)
    if device == "cpu":
        from cryptotensors.numpy import load_file

        return lambda: load_file(path)
    from cryptotensors.torch import load_file as load_torch

    return lambda: load_torch(path, device)


def fast(path: Path, device: str) -> Action:
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup

    def load() -> dict[str, Any]:
        loader = SafeTensorsFileLoader(SingleGroup(), device, nogds=True)
        loader.add_filenames({0: [str(path)]})
        files = loader.copy_files_to_device()
        return {name: files.get_tensor(name) for name in loader.get_keys()}

    return load


if __name__ == "__main__":
    main()
