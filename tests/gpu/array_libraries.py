# SPDX-License-Identifier: Apache-2.0
"""The array libraries that tests of arrays run with, and what they encrypt. A library that is not
installed, or sees no GPU, skips the test that asks for it."""

from __future__ import annotations

import importlib
from typing import Any

import conformance_oracle as oracle
import pytest
import warpcipher as wc

KEY, IV, NONCE = oracle.painted("key", 32), oracle.painted("iv", 16), oracle.painted("nonce", 12)
CTR, CBC, GCM = "aes-256-ctr", "aes-256-cbc", "aes-256-gcm"


class Torch:
    writable = True

    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        if not self.torch.cuda.is_available():
            pytest.skip("this PyTorch sees no GPU")

    def put(self, data: bytes) -> Any:
        return self.torch.frombuffer(bytearray(data) or bytearray(1), dtype=self.torch.uint8)[
            : len(data)
        ].cuda()

    def get(self, array: Any) -> bytes:
        assert isinstance(array, self.torch.Tensor)
        assert array.is_cuda
        return array.reshape(-1).view(self.torch.uint8).cpu().numpy().tobytes()


class CuPy:
    writable = True

    def __init__(self) -> None:
        self.cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

    def put(self, data: bytes) -> Any:
        return self.cupy.frombuffer(data, dtype="u1") if data else self.cupy.empty(0, "u1")

    def get(self, array: Any) -> bytes:
        assert isinstance(array, self.cupy.ndarray)
        return array.get().tobytes()


class Jax:
    writable = False

    def __init__(self) -> None:
        self.jax = pytest.importorskip("jax", reason="JAX is not installed")
        if self.jax.default_backend() != "gpu":
            pytest.skip("this JAX sees no GPU")

    def put(self, data: bytes) -> Any:
        numpy = importlib.import_module("numpy")
        return self.jax.numpy.asarray(numpy.frombuffer(data, "u1"))

    def get(self, array: Any) -> bytes:
        assert isinstance(array, self.jax.Array)
        assert next(iter(array.devices())).platform == "gpu"
        return importlib.import_module("numpy").asarray(array).tobytes()


class InterfaceOnly:
    """A library that is known by the CUDA array interface alone, as Numba's arrays are."""

    writable = True

    class Array:
        def __init__(self, array: Any) -> None:
            self.array = array

        @property
        def __cuda_array_interface__(self) -> Any:
            return self.array.__cuda_array_interface__

    def __init__(self) -> None:
        self.cupy = pytest.importorskip("cupy", reason="CuPy, to make the arrays, is not installed")

    def put(self, data: bytes) -> Any:
        return self.Array(
            self.cupy.frombuffer(data, dtype="u1") if data else self.cupy.empty(0, "u1")
        )

    def get(self, array: Any) -> bytes:
        assert isinstance(array, self.Array | wc.DeviceArray)
        return self.cupy.asarray(array).get().tobytes()


LIBRARIES = {"torch": Torch, "cupy": CuPy, "jax": Jax, "interface": InterfaceOnly}
