# SPDX-License-Identifier: Apache-2.0
"""`secure_mode` of Opacus (1.5 and later) on today's PyTorch, without torchcsprng.

    import warpcipher.random.opacus

    warpcipher.random.opacus.enable()
    engine = opacus.PrivacyEngine(secure_mode=True)

Opacus has no hook for another generator: `enable` replaces functions of its modules, and only what
they do in secure mode changes.

| Opacus | with `enable()`, in secure mode |
|---|---|
| `PrivacyEngine.__init__` | takes a `Generator`, not torchcsprng's |
| `_generate_noise` of every optimizer | the noise of `secure_noise` |
| the Poisson samplers | each example by an exact Bernoulli decision of 64 bits |
| `switch_generator` of a shuffled loader | uniform permutations |

A sampler of your own that asks its `generator` for numbers gets a `torch.Generator` of PyTorch,
whose seed is secret and has 64 bits: that is all which PyTorch lets a generator be.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .generator import Generator

MODULES = (
    "opacus.optimizers.optimizer",
    "opacus.optimizers.optimizer_fast_gradient_clipping",
    "opacus.optimizers.adaclipoptimizer",
    "opacus.optimizers.ddp_perlayeroptimizer",
    "opacus.optimizers.fsdpoptimizer_fast_gradient_clipping",
)
"""Where `_generate_noise` is named. Not each version of Opacus has all of them."""

SMALL = 1 << 22
"""Elements up to which the four summands of the noise are drawn at once."""

_undo: list[tuple[Any, str, Any]] = []
_source: Generator | None = None


def secure_noise(std: float, reference: Any, source: Generator) -> Any:
    """Gaussian noise of a tensor's shape, dtype and device, as Opacus makes it in secure mode: half
    the sum of four normals, which closes the attack on the floats of one (Holohan and Braghin,
    arXiv 2107.10138, section 5.1)."""
    torch: Any = importlib.import_module("torch")
    options = {"dtype": reference.dtype, "device": reference.device}
    if std == 0:
        return torch.zeros(reference.shape, **options)
    with torch.no_grad():
        if reference.numel() <= SMALL:
            parts = torch.empty((4, *reference.shape), **options)
            return source.normal_(parts, 0.0, std).sum(0).div_(2)
        total = torch.zeros(reference.shape, **options)
        part = torch.empty(reference.shape, **options)
        for _ in range(4):
            total += source.normal_(part, 0.0, std)
        return total.div_(2)


def enable(generator: Generator | None = None) -> None:
    """Makes secure mode of Opacus draw from `generator`; None: a new one without a key.

    Engines made before keep their generators. Called again it replaces the generator. ImportError:
    Opacus is missing, or its functions have other places than in 1.5 and 1.6.
    """
    global _source
    if not (generator is None or isinstance(generator, Generator)):
        raise TypeError(f"generator is {type(generator).__name__}: expected a Generator or None")
    found = Generator() if generator is None else generator
    if not _undo:
        try:
            _replace_all()
        except (AttributeError, ImportError) as error:
            disable()
            raise ImportError(f"Opacus 1.5 or 1.6 is needed: {error}") from error
    _source = found


def disable() -> None:
    """Restores the functions that `enable` replaced."""
    global _source
    while _undo:
        owner, name, before = _undo.pop()
        setattr(owner, name, before)
    _source = None


def is_enabled() -> bool:
    """Whether secure mode of Opacus draws from a `Generator`."""
    return bool(_undo)


def _drawn_from() -> Generator:
    if _source is None:
        raise RuntimeError("warpcipher.random.opacus was disabled: call enable() again")
    return _source


def _replace(owner: Any, name: str, new: Callable[..., Any]) -> None:
    before = getattr(owner, name)
    _undo.append((owner, name, before))
    setattr(owner, name, functools.wraps(before)(new))


def _replace_all() -> None:
    engine: Any = importlib.import_module("opacus.privacy_engine")
    loader: Any = importlib.import_module("opacus.data_loader")
    sampler: Any = importlib.import_module("opacus.utils.uniform_sampler")
    types = _torch_types()

    init = engine.PrivacyEngine.__init__

    def make_engine(self: Any, *, accountant: str = "prv", secure_mode: bool = False) -> None:
        if not secure_mode:
            init(self, accountant=accountant, secure_mode=False)
            return
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Secure RNG turned off")
            init(self, accountant=accountant, secure_mode=False)
        self.secure_mode = True
        self.secure_rng = types.handle()

    _replace(engine.PrivacyEngine, "__init__", make_engine)
    first = importlib.import_module(MODULES[0])._generate_noise

    def generate_noise(
        std: float, reference: Any, generator: Any = None, secure_mode: bool = False
    ) -> Any:
        # Not by the generator: one optimizer (ddp_perlayeroptimizer) forgets to pass it on.
        if not secure_mode:
            return first(std, reference, generator, secure_mode)
        return secure_noise(std, reference, _drawn_from())

    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        if hasattr(module, "_generate_noise"):
            _replace(module, "_generate_noise", generate_noise)

    for cls in (
        sampler.UniformWithReplacementSampler,
        sampler.DistributedUniformWithReplacementSampler,
    ):
        _replace(cls, "__iter__", _poisson(cls.__iter__, types, sampler.torch))

    switch = loader.switch_generator

    def switch_generator(*, data_loader: Any, generator: Any) -> Any:
        found = switch(data_loader=data_loader, generator=generator)
        if isinstance(generator, types.generator):
            batches = found.batch_sampler
            if type(getattr(batches, "sampler", None)) is types.random_sampler:
                batches.sampler = types.secure_sampler(batches.sampler)
        return found

    _replace(loader, "switch_generator", switch_generator)
    _replace(engine, "switch_generator", switch_generator)


def _poisson(before: Callable[[Any], Iterator[Any]], types: Any, torch: Any) -> Callable[..., Any]:
    """The iteration of a Poisson sampler. It asks `torch.rand(n, generator=)` whether it is below
    the rate; in secure mode only that call is replaced, by values that say so exactly."""

    def iterate(self: Any) -> Iterator[Any]:
        if not isinstance(self.generator, types.generator):
            yield from before(self)
            return
        if not hasattr(self, "total_size"):
            for _ in range(self.steps):
                yield _chosen(torch, self.num_samples, self.sample_rate).tolist()
            return
        # The shuffle over the replicas is not a secret: all of them compute it alike.
        indices = torch.arange(self.total_size)
        if self.shuffle:
            same = torch.Generator()
            same.manual_seed(self.shuffle_seed + self.epoch)
            indices = torch.randperm(self.total_size, generator=same)
        indices = indices[self.rank : self.total_size : self.num_replicas]
        for _ in range(self.num_batches):
            chosen = _chosen(torch, self.num_samples, self.sample_rate)
            if len(chosen) > 0:
                yield indices[chosen]

    return iterate


def _chosen(torch: Any, count: int, rate: float) -> Any:
    """The indices of the examples of a batch: each is in it with probability `rate`."""
    mask = _drawn_from().bernoulli_(torch.empty(count, dtype=torch.bool), rate)
    return mask.nonzero().reshape(-1)


class _Types:
    """Classes over PyTorch's, made when it is there."""

    def __init__(self) -> None:
        torch: Any = importlib.import_module("torch")
        data: Any = importlib.import_module("torch.utils.data")

        class SecureGenerator(torch.Generator):  # type: ignore[misc]
            """The object that Opacus passes on as `generator` in secure mode."""

        class SecureRandomSampler(data.Sampler):  # type: ignore[misc]
            """A `RandomSampler` that draws from the `Generator` of `enable`."""

            def __init__(self, like: Any) -> None:
                self.like = like
                self.generator = like.generator

            def __len__(self) -> int:
                return len(self.like)

            def __iter__(self) -> Iterator[int]:
                count, wanted = len(self.like.data_source), self.like.num_samples
                source = _drawn_from()
                if self.like.replacement:
                    yield from source.random_(
                        torch.empty(wanted, dtype=torch.int64), 0, count
                    ).tolist()
                    return
                while wanted > 0:
                    order = source.permutation_(torch.empty(count, dtype=torch.int64))
                    yield from order[:wanted].tolist()
                    wanted -= count

        self.generator = SecureGenerator
        self.secure_sampler = SecureRandomSampler
        self.random_sampler = data.RandomSampler

    def handle(self) -> Any:
        """A `torch.Generator` that stands for the `Generator`; its own seed is random too."""
        found = self.generator()
        found.manual_seed(int.from_bytes(_drawn_from().bytes(8), "little"))
        return found


@functools.cache
def _torch_types() -> _Types:
    return _Types()
