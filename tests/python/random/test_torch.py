# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch, and Opacus' secure mode: on demand, where they are installed."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from warpcipher.random import Generator  # noqa: E402

KEY = bytes(range(32))

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")


@pytest.fixture
def secure() -> Iterator[Any]:
    """Opacus, with its secure mode by a `Generator`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opacus = pytest.importorskip("opacus")
    import warpcipher.random.opacus as of_opacus

    of_opacus.enable()
    yield opacus, of_opacus
    of_opacus.disable()


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]
)
def test_tensors_hold_what_numpy_does(dtype: str) -> None:
    tensor = torch.empty((5, 7), dtype=getattr(torch, dtype))
    expected = np.empty((5, 7), dtype)
    assert Generator(KEY).bernoulli_(tensor, 0.5) is tensor
    assert (tensor.numpy() == Generator(KEY).bernoulli_(expected, 0.5)).all()
    if "float" in dtype:
        assert (Generator(KEY).normal_(tensor).numpy() == Generator(KEY).normal_(expected)).all()
    else:
        assert (Generator(KEY).random_(tensor).numpy() == Generator(KEY).random_(expected)).all()


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"device is 99, and PyTorch has \d+ GPUs here"):
        Generator(device=99, library="torch").uniform(3)


def test_new_tensors() -> None:
    generator = Generator(KEY, library="torch")
    made = generator.uniform((2, 3), dtype="bfloat16")
    assert (made.dtype, tuple(made.shape)) == (torch.bfloat16, (2, 3))
    assert generator.permutation(10).sort().values.tolist() == list(range(10))
    mean = torch.arange(3.0)
    assert generator.normal((2, 3), mean, 0.0).tolist() == [[0.0, 1.0, 2.0]] * 2
    assert generator.discrete_gaussian(5, 2).dtype == torch.int64


def test_arguments_of_pytorch() -> None:
    generator = Generator(KEY, library="torch")
    assert generator.normal(3, dtype=torch.bfloat16).dtype == torch.bfloat16
    assert generator.randint(9, shape=3, dtype=torch.int16).dtype == torch.int16
    mean = torch.arange(3, dtype=torch.float64)
    half = Generator(KEY, library="torch").normal((2, 3), mean, 2, dtype=torch.float16)
    assert half.dtype == torch.float16
    expected = Generator(KEY).normal((2, 3), mean.numpy(), 2, dtype="float16")
    assert (half.numpy() == expected).all()
    with pytest.raises(ValueError, match="mean has the shape"):
        generator.normal(3, torch.zeros(2, 3))
    p = torch.tensor([0.0, 0.5, 1.0])
    ones = Generator(KEY, library="torch").bernoulli((50, 3), p, dtype="float32")
    assert ones.dtype == torch.float32
    expected = Generator(KEY).bernoulli((50, 3), p.numpy(), dtype="float32")
    assert (ones.numpy() == expected).all()


def test_parts_of_a_tensor() -> None:
    rows = torch.arange(12).reshape(4, 3)
    order = Generator(KEY).permutation(4)
    mixed = Generator(KEY).permutation(rows)
    assert (mixed.numpy() == rows.numpy()[order]).all()
    shuffled = rows.clone()
    Generator(KEY).shuffle(shuffled)
    assert (shuffled == mixed).all()
    for options in ({}, {"replace": False}, {"p": torch.tensor([0.5, 0.25, 0.25, 0])}):
        chosen = Generator(KEY).choice(rows, 2, **options)
        assert (chosen.numpy() == Generator(KEY).choice(rows.numpy(), 2, **options)).all()
    assert Generator(KEY, library="torch").choice(9, 4).dtype == torch.int64


def test_discrete_gaussian_fills_a_tensor() -> None:
    tensor = torch.empty((10, 10), dtype=torch.int32)
    Generator(KEY).discrete_gaussian_(tensor, 3)
    assert tensor.reshape(-1).tolist() == Generator(KEY).discrete_gaussian(100, 3).tolist()


@pytest.mark.parametrize("functions", [True, False], ids=["functions", "attributes"])
def test_tensors_of_any_place_and_shape(functions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the C functions of PyTorch's tensors, and as without them."""
    if not functions:
        monkeypatch.setattr(torch.Tensor, "__dlpack_c_exchange_api__", None, raising=False)
    expected = Generator(KEY).normal(6)
    whole = torch.zeros(12)
    for part in (
        whole[3:9],
        whole[3:9].view(3, 1, 2),
        whole.view(2, 6).t()[:1].expand(1, 2).new_zeros(2, 3),
        torch.nn.Parameter(torch.zeros(6), requires_grad=False),
    ):
        Generator(KEY).normal_(part)
        assert part.detach().reshape(-1).tolist() == expected.tolist()
    assert whole[:3].tolist() == whole[9:].tolist() == [0.0] * 3
    one = torch.zeros(())
    Generator(KEY).normal_(one)
    assert one.item() == expected[0]
    generator = Generator(KEY)
    generator.normal_(torch.zeros(0, 3))
    assert generator.state["position"] == 0
    with torch.inference_mode():
        kept = torch.zeros(6)
        assert Generator(KEY).normal_(kept).tolist() == expected.tolist()
    negated = torch.zeros(1, dtype=torch.complex64).conj().imag
    assert negated.is_neg()
    with pytest.raises(BufferError, match="lazily conjugated or negated"):
        Generator().normal_(negated)


def test_gradients_notice() -> None:
    leaf = torch.zeros(3, requires_grad=True)
    with pytest.raises(ValueError, match="requires grad: fill it within"):
        Generator().normal_(leaf)
    with torch.no_grad():
        assert Generator().normal_(leaf) is leaf
    saved = leaf.exp()
    loss = saved.sum()
    Generator().uniform_(saved.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: torch.empty(8)[::2], BufferError, "not C-contiguous"),
        (lambda: torch.empty(8, device="meta"), BufferError, "lies on meta"),
        (lambda: torch.empty(8, dtype=torch.complex64), TypeError, "complex64"),
        (lambda: torch.eye(3).to_sparse(), BufferError, "not C-contiguous"),
    ],
)
def test_tensors_that_cannot_be_filled(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Generator().bytes_(make())


# ---- Opacus


def train(opacus: Any, poisson: bool, clipping: str = "flat") -> tuple[list[Any], Any, Any]:
    """Two epochs of a small convolutional network in secure mode."""
    x = torch.arange(64 * 36, dtype=torch.float32).reshape(64, 1, 6, 6).sin()
    y = (x.mean((1, 2, 3)) > 0).long()
    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    model: Any = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.Flatten(), torch.nn.Linear(48, 2)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine = opacus.PrivacyEngine(secure_mode=True)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=[1.0] * 4 if clipping == "per_layer" else 1.0,
        poisson_sampling=poisson,
        clipping=clipping,
    )
    seen = []
    for _ in range(2):
        for images, labels in loader:
            seen.append(images)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    assert engine.get_epsilon(1e-5) > 0
    return seen, model, engine


@pytest.mark.parametrize("clipping", ["flat", "per_layer"])
@pytest.mark.parametrize("poisson", [True, False])
def test_a_training_in_secure_mode(secure: Any, poisson: bool, clipping: str) -> None:
    opacus, _ = secure
    torch.manual_seed(0)
    first, model, _ = train(opacus, poisson, clipping)
    torch.manual_seed(0)
    second, other, _ = train(opacus, poisson, clipping)
    # The weights begin alike; samples and noise do not come of PyTorch's generator.
    pairs = zip(first, second, strict=False)
    assert not all(len(a) == len(b) and torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(next(model.parameters()), next(other.parameters()))
    assert all(torch.isfinite(p).all() for p in model.parameters())
    if not poisson:
        epoch = torch.cat(first[:4]).reshape(64, -1)
        assert len(torch.unique(epoch, dim=0)) == 64


def test_every_optimizer_draws_from_it(secure: Any) -> None:
    """The one of each layer over several GPUs passes no generator: its noise is ours too."""
    import importlib

    _, of_opacus = secure
    names = [name for name in of_opacus.MODULES if name in sys.modules]
    assert len(names) >= 4
    functions = {importlib.import_module(name)._generate_noise for name in names}
    assert len(functions) == 1
    noise = functions.pop()
    torch.manual_seed(0)
    first = noise(1.0, torch.zeros(4), generator=None, secure_mode=True)
    torch.manual_seed(0)
    assert not torch.equal(first, noise(1.0, torch.zeros(4), generator=None, secure_mode=True))
    torch.manual_seed(0)
    plain = noise(1.0, torch.zeros(4))
    torch.manual_seed(0)
    assert torch.equal(plain, torch.normal(0.0, 1.0, (4,)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_noise_has_its_deviation(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import warpcipher.random.opacus as of_opacus

    like = torch.zeros((100, 300), dtype=getattr(torch, dtype))
    for small in (1 << 22, 0):
        monkeypatch.setattr(of_opacus, "SMALL", small)
        noise = of_opacus.secure_noise(3.0, like, Generator(KEY))
        assert (noise.dtype, noise.shape) == (like.dtype, like.shape)
        values = noise.double() / 3
        count = values.numel()
        assert abs(values.mean()) < 6.1 / count**0.5
        assert abs(values.var() - 1) < 6.1 * (2 / count) ** 0.5 + 0.01 * (dtype == "bfloat16")
    assert not of_opacus.secure_noise(0.0, like, Generator(KEY)).any()


def test_a_keyed_generator_makes_a_training_repeatable(secure: Any) -> None:
    opacus, of_opacus = secure
    models = []
    for _ in range(2):
        of_opacus.enable(Generator(KEY))
        torch.manual_seed(0)
        models.append(train(opacus, True)[1])
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_samples_have_the_rate(secure: Any) -> None:
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    opacus, _ = secure
    handle = opacus.PrivacyEngine(secure_mode=True).secure_rng
    assert isinstance(handle, torch.Generator)
    sampler = UniformWithReplacementSampler(
        num_samples=1000, sample_rate=0.05, generator=handle, steps=200
    )
    batches = list(sampler)
    assert len(batches) == len(sampler) == 200
    count = sum(len(batch) for batch in batches)
    assert abs(count - 10_000) < 6.1 * (200_000 * 0.05 * 0.95) ** 0.5
    assert all(batch == sorted(set(batch)) for batch in batches)


def test_disable_takes_all_back(secure: Any) -> None:
    opacus, of_opacus = secure
    assert of_opacus.is_enabled()
    handle = opacus.PrivacyEngine(secure_mode=True).secure_rng
    of_opacus.enable()  # again: another generator, nothing replaced twice
    of_opacus.disable()
    assert not of_opacus.is_enabled()
    with pytest.raises(ImportError, match="torchcsprng"):
        opacus.PrivacyEngine(secure_mode=True)
    assert isinstance(handle, torch.Generator)


def test_without_opacus_it_says_so() -> None:
    code = (
        "import sys; sys.modules['opacus'] = None\n"
        "import warpcipher.random.opacus as o\n"
        "try: o.enable()\n"
        "except ImportError as e: print(e, o.is_enabled())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Opacus 1.5 or 1.6 is needed")
    assert done.stdout.endswith("False\n")
