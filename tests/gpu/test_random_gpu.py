# SPDX-License-Identifier: Apache-2.0
"""`warpcipher.random.Generator` on arrays of PyTorch, CuPy and JAX on a GPU: the numbers of the
CPU, on the caller's stream, in graphs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from array_libraries import CuPy, Jax, Torch
from warpcipher.random import Generator

KEY = bytes(range(32))
ALGORITHMS = ["chacha20", "aes-256-ctr"]

FILLS: dict[str, tuple[str, Callable[[Generator, Any], Any]]] = {
    "bytes": ("uint8", lambda g, x: g.bytes_(x)),
    "integers": ("int64", lambda g, x: g.random_(x, -5, 1 << 40)),
    "few": ("int16", lambda g, x: g.random_(x, 0, 1000)),
    "uniform": ("float32", lambda g, x: g.uniform_(x, -1.0, 3.0)),
    "half": ("float16", lambda g, x: g.uniform_(x)),
    "normal": ("float32", lambda g, x: g.normal_(x, 1.0, 2.0)),
    "double": ("float64", lambda g, x: g.normal_(x)),
    "exponential": ("float32", lambda g, x: g.exponential_(x, 0.5)),
    "laplace": ("float32", lambda g, x: g.laplace_(x, 1.0, 0.5)),
    "bernoulli": ("bool", lambda g, x: g.bernoulli_(x, 0.3)),
    "permutation": ("int64", lambda g, x: g.permutation_(x)),
    "discrete": ("int32", lambda g, x: g.discrete_gaussian_(x, 10)),
}


def keyed(algorithm: str = "chacha20", **options: Any) -> Generator:
    return Generator(KEY, algorithm=algorithm, stream=3, **options)  # type: ignore[arg-type]


def on_host(name: str, algorithm: str, count: int) -> Any:
    dtype, fill = FILLS[name]
    return fill(keyed(algorithm), np.empty(count, dtype))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [0, 1, 1001, 300_000])
@pytest.mark.parametrize("name", list(FILLS))
def test_torch_has_the_numbers_of_the_host(name: str, count: int, algorithm: str) -> None:
    torch = Torch().torch
    dtype, fill = FILLS[name]
    tensor = torch.empty(count, dtype=getattr(torch, dtype), device="cuda")
    assert fill(keyed(algorithm), tensor) is tensor
    assert (tensor.cpu().numpy() == on_host(name, algorithm, count)).all()


@pytest.mark.parametrize("name", list(FILLS))
def test_cupy_has_the_numbers_of_the_host(name: str) -> None:
    cupy = CuPy().cupy
    dtype, fill = FILLS[name]
    array = cupy.empty(5003, dtype)
    assert fill(keyed(), array) is array
    assert (array.get() == on_host(name, "chacha20", 5003)).all()


@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
def test_new_arrays(library: str) -> None:
    {"torch": Torch, "cupy": CuPy, "jax": Jax}[library]()
    made = keyed(device="cuda", library=library)
    expected = keyed()
    to_host: Callable[[Any], Any] = {
        "torch": lambda x: x.cpu().numpy(),
        "cupy": lambda x: x.get(),
        "jax": np.asarray,
    }[library]
    for dtype in ("float32", "float16"):
        got = made.normal((3, 1001), dtype=dtype)
        assert got.shape == (3, 1001)
        assert (to_host(got) == expected.normal((3, 1001), dtype=dtype)).all()
    assert (to_host(made.bernoulli(999)) == expected.bernoulli(999)).all()
    got = to_host(made.randint(0, 10, 999, dtype="int32"))
    assert (got == expected.randint(0, 10, 999, dtype="int32")).all()
    got = to_host(made.permutation(1000, dtype="int32"))
    assert (got == expected.permutation(1000, dtype="int32")).all()
    got = to_host(made.discrete_gaussian(100, 3, dtype="int32"))
    assert (got == expected.discrete_gaussian(100, 3)).all()


def test_parts_of_a_tensor_and_bfloat16() -> None:
    torch = Torch().torch
    whole = torch.empty(4096, dtype=torch.bfloat16, device="cuda")
    keyed().normal_(whole)
    parts = torch.empty_like(whole)
    for begin, end in ((0, 1024), (1024, 1040), (1040, 4096)):
        generator = keyed()
        generator.jump(4 * begin)  # a normal of 16 bits takes 4 bytes of the stream
        generator.normal_(parts[begin:end])
    assert torch.equal(whole, parts)


def test_mean_and_deviation_as_tensors() -> None:
    torch = Torch().torch
    mean, std = torch.arange(4.0, device="cuda"), torch.tensor(2.0, device="cuda")
    plain = keyed().normal_(torch.empty(100, 4, device="cuda"))
    got = keyed().normal_(torch.empty(100, 4, device="cuda"), mean, std)
    assert torch.allclose(got, plain * 2 + mean)


def test_layouts_are_refused() -> None:
    torch = Torch().torch
    tensor = torch.zeros(8, 8, device="cuda")
    for view in (tensor[:, ::2], tensor.T):
        with pytest.raises(BufferError, match="C-contiguous"):
            Generator().normal_(view)
    assert not tensor.any()


@pytest.mark.parametrize("form", ["argument", "current"])
def test_work_is_on_the_stream(form: str) -> None:
    """The stream's earlier work comes before, and its later work sees the numbers."""
    torch = Torch().torch
    side = torch.cuda.Stream()
    expected = keyed().uniform(1 << 20)
    for _ in range(5):
        tensor = torch.empty(1 << 20, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            tensor.zero_()
            if form == "current":
                keyed().uniform_(tensor)
        if form == "argument":
            keyed().uniform_(tensor, stream=side)
        with torch.cuda.stream(side):
            copied = tensor.clone()
        side.synchronize()
        assert (copied.cpu().numpy() == expected).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_graph_repeats_a_key_and_refuses_none(algorithm: str) -> None:
    torch = Torch().torch
    tensor = torch.zeros(1000, device="cuda")
    generator = keyed(algorithm)
    generator.normal_(tensor)  # loads the kernel
    generator = keyed(algorithm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        generator.normal_(tensor)
        with pytest.raises(RuntimeError, match="each replay would give the same numbers"):
            Generator().normal_(tensor)
    for _ in range(2):
        tensor.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert (tensor.cpu().numpy() == keyed(algorithm).normal(1000)).all()


def test_without_a_key_nothing_repeats() -> None:
    torch = Torch().torch
    generator = Generator(device="cuda", library="torch")
    drawn = torch.stack([generator.randint(0, 1 << 62, 1000) for _ in range(20)])
    assert len(torch.unique(drawn)) == drawn.numel()


def test_more_than_2_to_32_words_of_a_tensor() -> None:
    """4.1 GiB of bytes: the last ones are the stream's at their place."""
    torch = Torch().torch
    size = (1 << 32) + (1 << 27)
    if torch.cuda.mem_get_info()[0] < size + (1 << 30):
        pytest.skip("the GPU has not enough memory")
    tensor = keyed().bytes_(torch.empty(size, dtype=torch.uint8, device="cuda"))
    for begin in (0, (1 << 32) - 512, size - 1024):
        generator = keyed()
        generator.jump(begin)
        assert tensor[begin : begin + 1024].cpu().numpy().tobytes() == generator.bytes(1024)


def test_keys_of_jax_on_a_gpu() -> None:
    jax = Jax().jax
    of_jax = importlib.import_module("warpcipher.random.jax")
    bits = jax.jit(lambda key: jax.random.bits(key, (100_001,)))(of_jax.key(KEY))
    assert np.asarray(bits).tobytes() == Generator(KEY).bytes(400_004)
