# SPDX-License-Identifier: Apache-2.0
"""A step of training with Opacus, secure mode on (by `warpcipher.random.opacus`) against off: a
small convolutional network on images of 3 x 32 x 32."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import opacus
import torch
import warpcipher.random.opacus
from warpcipher_measure.program import Row, parser, report


def network() -> torch.nn.Module:
    """The network of Opacus' CIFAR-10 example, with fewer channels: about 0.1 million weights."""
    layers: list[torch.nn.Module] = []
    channels = 3
    for width in (32, 64, 64):
        layers += [
            torch.nn.Conv2d(channels, width, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.AvgPool2d(2),
        ]
        channels = width
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(64 * 16, 10))


def steps(secure: bool, device: str, batch: int) -> Iterator[float]:
    """Wall-clock seconds of each step: sampling, gradients, noise, update."""
    count = 64 * batch
    data = torch.utils.data.TensorDataset(
        torch.randn(count, 3, 32, 32), torch.randint(10, (count,))
    )
    loader: Any = torch.utils.data.DataLoader(data, batch_size=batch)
    model: Any = network().to(device)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = opacus.PrivacyEngine(secure_mode=secure)
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
    while True:
        batches = iter(loader)
        while True:
            start = time.perf_counter()
            found = next(batches, None)
            if found is None:
                break
            images, labels = (part.to(device) for part in found)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            if device != "cpu":
                torch.cuda.synchronize(device)
            yield time.perf_counter() - start


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--device", default="cpu", help="cpu or cuda:0")
    arguments.add_argument("--batch", type=int, default=256)
    arguments.set_defaults(repetitions=60)
    options = arguments.parse_args()
    warnings.filterwarnings("ignore", message="Full backward hook")
    warpcipher.random.opacus.enable()
    by_turns = {
        "secure mode": steps(True, options.device, options.batch),
        "plain": steps(False, options.device, options.batch),
    }
    taken: dict[str, list[float]] = {name: [] for name in by_turns}
    for repetition in range(options.repetitions + 5):
        for name, one in by_turns.items():
            value = next(one) * 1e3
            if repetition >= 5:
                taken[name].append(value)
    rows = [Row(f"a step, {name}", "ms", values) for name, values in taken.items()]
    ratio = rows[0].median / rows[1].median
    report(rows, options, batch=options.batch, opacus=opacus.__version__, ratio=f"{ratio:.3f}")


if __name__ == "__main__":
    main()
