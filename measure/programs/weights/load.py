# SPDX-License-Identifier: Apache-2.0
"""A model on a tmpfs to tensors, and tensors to a file: warpcipher.weights against safetensors,
cryptotensors and, on a GPU, fastsafetensors. The loaders take turns, so that all see the same
machine.

A model of 8 GiB to a GPU takes about a minute; `taskset -c 0-7` gives it 8 cores. Slow loaders
there are measured with a smaller model, and the row says so."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from warpcipher import weights
from warpcipher.weights import ed25519
from warpcipher_measure.program import Program, Times, by_turns, named

TENSOR = 32 << 20
ONE = "layer0"
MOST_SAVED = 1 << 30
"""Bytes of the model that is saved, and that cryptotensors' own loader reads."""

PARTS = (("one tensor", False), ("its columns", True))

Action = Callable[[], Any]


class Model(NamedTuple):
    """The same tensors in three files."""

    size: int
    plain: Path
    sealed: Path
    signed: Path


def main() -> None:
    program = Program(__doc__)
    program.option("--mib", type=int, default=1024, help="size of the model")
    program.option("--folder", type=Path, required=True, help="on a tmpfs")
    program.option("--device", default="cpu", help="cpu (NumPy), or cuda:0 (PyTorch)")
    program.option("--beside", nargs="*", default=[], help="GPUs that load at once: cuda:1")
    options = program.parse()
    count = max(1, (options.mib << 20) // TENSOR)
    with program.folder() as folder:
        Bench(program, options.device).run(folder, count, options.beside)
    residence = f"{options.folder} to {options.device}"
    program.finish(size=f"{count} tensors of {TENSOR >> 20} MiB", residence=residence)


class Bench:
    def __init__(self, program: Program, device: str) -> None:
        self._program = program
        self._device = device
        self._on_host = device == "cpu"
        self._framework = "np" if self._on_host else "pt"
        self._peer = "numpy" if self._on_host else "torch"
        self._key, self._seed = os.urandom(32), os.urandom(32)
        ids = {"key_id": "enc", "sign_key_id": "sign"}
        self._pair = weights.CryptotensorsKey(self._key, sign=self._seed, **ids)
        self._keys = {"plain": None, "cobblestone-256": self._key, "cryptotensors": self._pair}
        # Equal tensors, in memory of their own in every file: making them takes no minute.
        rng = np.random.default_rng(0)
        self._tensor = rng.integers(0, 256, (1024, TENSOR >> 10), dtype=np.uint8)

    def run(self, folder: Path, count: int, beside: list[str]) -> None:
        few = min(count, MOST_SAVED // TENSOR)
        small = self._model(folder / "small", few)
        self._rates(self._savers(folder / "saved", few), small.size)
        with named("cryptotensors"):
            self._rates({"load cryptotensors, cryptotensors": self._crypto(small)}, small.size)
        if count != few:
            for path in small[1:]:
                path.unlink()
        model = small if count == few else self._model(folder / "whole", count)
        self._rates(self._loaders(model), model.size)
        if beside:
            devices = [self._device, *beside]
            what = f"to {len(devices)} GPUs at once"
            both: dict[str, Action] = {
                f"load plain {what}": partial(self._at_once, model.plain, None, devices),
                f"load cobblestone-256 {what}": partial(
                    self._at_once, model.sealed, self._key, devices
                ),
            }
            self._rates(both, model.size * len(devices))
        self._program.times(self._turns(self._parts(model)))

    def _model(self, folder: Path, count: int) -> Model:
        folder.mkdir()
        tensors = dict.fromkeys((f"layer{i}" for i in range(count)), self._there(self._tensor))
        model = Model(count * TENSOR, folder / "plain", folder / "sealed", folder / "signed")
        for path, key in zip(model[1:], self._keys.values(), strict=True):
            weights.save_file(tensors, path, key)
        return model

    def _there(self, tensor: Any) -> Any:
        """A tensor on the device."""
        if self._on_host:
            return tensor
        return import_module("torch").from_numpy(tensor).to(self._device)

    def _rates(self, actions: dict[str, Action], size: int) -> None:
        """GB/s of each; those that return tensors must return the right ones."""
        for action in actions.values():
            found = action()
            if found is not None:
                one = found[ONE] if self._on_host else found[ONE].cpu().numpy()
                if not np.array_equal(one, self._tensor):
                    raise SystemExit("other values were loaded")
        whole = {f"{name}, {size >> 20} MiB": action for name, action in actions.items()}
        self._program.rates(self._turns(whole), size / 1e9)

    def _turns(self, actions: dict[str, Action]) -> dict[str, Times]:
        return by_turns(actions, self._program.options.repetitions, wait=wait, warm=0.5)

    def _at_once(self, path: Path, key: object, devices: list[str]) -> None:
        with ThreadPoolExecutor(len(devices)) as pool:
            list(
                pool.map(lambda each: weights.load_file(path, key, each, self._framework), devices)
            )

    def _loaders(self, model: Model) -> dict[str, Action]:
        files = zip(self._keys.items(), model[1:], strict=True)
        load = partial(weights.load_file, device=self._device, framework=self._framework)
        found = {
            f"load {name}, warpcipher": partial(load, path, key) for (name, key), path in files
        }
        if not self._on_host:
            with named("fastsafetensors"):
                found["load plain, fastsafetensors"] = fast(model.plain, self._device)
        with named("safetensors"):
            load = import_module(f"safetensors.{self._peer}").load_file
            found["load plain, safetensors"] = self._peers(load, model.plain)
        return found

    def _peers(self, load: Callable[..., Any], path: Path) -> Action:
        return partial(load, path, **({} if self._on_host else {"device": self._device}))

    def _crypto(self, model: Model) -> Action:
        """cryptotensors' own loader."""
        import cryptotensors

        public = ed25519.public_key_of(self._seed)
        text = [base64.b64encode(key).decode() for key in (self._key, public)]
        pair = [
            {"kty": "oct", "alg": "aes256gcm", "kid": "enc", "k": text[0]},
            {"kty": "okp", "alg": "ed25519", "kid": "sign", "x": text[1]},
        ]
        cryptotensors.register_direct_key_provider(keys=pair)
        load = import_module(f"cryptotensors.{self._peer}").load_file
        return self._peers(load, model.signed)

    def _savers(self, path: Path, count: int) -> dict[str, Action]:
        # Of memory of their own: shared memory stays in the processor's caches.
        tensors = {f"layer{i}": self._there(self._tensor.copy()) for i in range(count)}
        found: dict[str, Action] = {
            f"save {name}, warpcipher": partial(weights.save_file, tensors, path, key)
            for name, key in self._keys.items()
        }
        with named("safetensors"):
            save = import_module(f"safetensors.{self._peer}").save_file
            found["save plain, safetensors"] = partial(save, tensors, path)
        return found

    def _parts(self, model: Model) -> dict[str, Action]:
        """One tensor of 32 MiB, and the columns of one of four ranks, with opening the file."""

        def read(path: Path, key: Any, columns: bool) -> Any:
            with weights.safe_open(path, self._framework, self._device, key=key) as opened:
                part = opened.get_slice(ONE)
                return part[:, : part.get_shape()[1] // 4] if columns else part[...]

        files = zip(self._keys, model[1:], self._keys.values(), strict=True)
        return {
            f"{what}, {name}": partial(read, path, key, columns)
            for (what, columns), (name, path, key) in product(PARTS, files)
        }


def wait() -> None:
    """For what is enqueued on a GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()


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
