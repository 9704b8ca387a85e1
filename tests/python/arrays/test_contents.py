# SPDX-License-Identifier: Apache-2.0
"""Contents of arrays: numbers are taken as their bytes; Python objects, text and pointers are
refused, whatever they are given as. Their bytes are addresses, or this machine's way to store
text."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import warpcipher as wc

np = pytest.importorskip("numpy", reason="NumPy is not installed")

# Of array('u'), from Python 3.13 on.
pytestmark = pytest.mark.filterwarnings("ignore:The 'u' type code:DeprecationWarning")

KEY, IV = bytes(16), bytes(16)


class Interface:
    """Claims to lie on a GPU, only by the CUDA array interface. Refused before it is followed."""

    def __init__(self, kind: str) -> None:
        self.__cuda_array_interface__ = {
            "shape": (2,), "typestr": kind, "data": (0x1000, False), "version": 3,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def structure(fields: list[tuple[str, Any]]) -> Any:
    return type("Structure", (ctypes.Structure,), {"_fields_": fields})()


# 16 bytes each, so that only what they hold keeps them from being a key.
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "objects": (lambda: np.array([None, object()]), "Python objects"),
    "no objects": (lambda: np.empty(0, object), "Python objects"),
    "text": (lambda: np.array(["abcd"]), "text"),
    "a field of objects": (lambda: np.zeros(1, [("n", "u8"), ("o", "O")]), "Python objects"),
    "a field of text": (lambda: np.zeros(1, [("n", "u8"), ("t", "U2")]), "text"),
    "rows of text": (lambda: np.zeros(1, [("t", "U2", (2,))]), "text"),
    "objects beside a date": (lambda: np.zeros(1, [("d", "M8[s]"), ("o", "O")]), "Python objects"),
    "memoryview of objects": (lambda: memoryview(np.array([None, None])), "Python objects"),
    "array('u')": (lambda: array.array("u", "a" * (16 // array.array("u").itemsize)), "text"),
    "py_object": (lambda: (ctypes.py_object * 2)(), "Python objects"),
    "wchar": (lambda: (ctypes.c_wchar * 4)(), "text"),
    "void pointers": (lambda: (ctypes.c_void_p * 2)(), "pointers"),
    "char pointers": (lambda: (ctypes.c_char_p * 2)(), "pointers"),
    "wchar pointers": (lambda: (ctypes.c_wchar_p * 2)(), "pointers"),
    "typed pointers": (lambda: (ctypes.POINTER(ctypes.c_int) * 2)(), "pointers"),
    "functions": (lambda: (ctypes.CFUNCTYPE(None) * 2)(), "pointers"),
    "a structure": (
        lambda: structure([("n", ctypes.c_int64), ("p", ctypes.c_void_p)]),
        "pointers",
    ),
}
if hasattr(np.dtypes, "StringDType"):
    REFUSED["strings"] = lambda: np.array(["a"], np.dtypes.StringDType()), "text|Python objects"

# A name is not content: 'O', 'u' and 'P' are only letters there.
TAKEN: dict[str, Callable[[], Any]] = {
    **{
        kind: (lambda kind=kind: np.zeros(16 // np.dtype(kind).itemsize, kind))  # type: ignore[misc]
        for kind in ("?", "i1", "u2", ">i4", "<u8", "f2", "f8", "c8", "c16", "M8[s]", "m8[ns]",
                     "S4", "S16", "V16")
    },
    "fields": lambda: np.zeros(1, [("O", "u8"), ("uP", "u4"), ("w", "f4")]),
    "dates and numbers": lambda: np.zeros(1, [("O", "M8[s]"), ("u", "u8")]),
    "rows": lambda: np.zeros(1, [("O", "u4", (2, 2))]),
    "matrix": lambda: np.zeros((4, 4), "u1").view(np.matrix),
    "array('d')": lambda: array.array("d", [0, 0]),
    "chars": lambda: (ctypes.c_char * 16)(),
    "doubles": lambda: (ctypes.c_double * 2)(),
    "a structure": lambda: structure([("O", ctypes.c_int64), ("P", ctypes.c_double)]),
    "memoryview": lambda: memoryview(bytes(16)).cast("i"),
}  # fmt: skip

Use = Callable[[Any], Any]
CIPHER, BOX = wc.Cipher("aes-128-ctr", KEY), wc.aead.AESGCM(KEY)


def batched(**given: Any) -> Any:
    arguments = {"key": KEY, "data": bytes(16), "iv": IV, **given}
    batch = wc.Batch()
    handle = batch.add("aes-128-gcm", "encrypt", **arguments)
    batch.run()
    return handle.result()


def queued(**given: Any) -> Any:
    arguments = {"key": KEY, "data": bytes(16), "iv": IV, **given}
    with wc.Queue() as q:
        return q.submit("aes-128-gcm", "encrypt", **arguments).result(10)


def columns(**given: Any) -> Any:
    arguments = {"keys": KEY, "data": bytes(16), "ivs": IV, "lengths": [16], **given}
    return wc.run_columns("aes-128-gcm", "encrypt", **arguments)


USES: dict[str, Use] = {
    "Key": lambda x: wc.Key("aes-128-ctr", x),
    "Cipher key": lambda x: wc.Cipher("aes-128-ctr", x),
    "Cipher data": lambda x: CIPHER.encrypt(x, iv=IV),
    "Cipher iv": lambda x: CIPHER.encrypt(b"", iv=x),
    "Cipher out": lambda x: CIPHER.encrypt(bytes(16), iv=IV, out=x),
    "Cipher aad": lambda x: wc.Cipher("aes-128-gcm", KEY).encrypt(b"", iv=IV, aad=x),
    "AESGCM key": wc.aead.AESGCM,
    "AESGCM nonce": lambda x: BOX.encrypt(x, b"", None),
    "AESGCM data": lambda x: BOX.encrypt(IV, x, None),
    "AESGCM aad": lambda x: BOX.encrypt(IV, b"", x),
    "AESGCM buf": lambda x: BOX.encrypt_into(IV, b"", None, x),
    **{f"Batch {n}": (lambda x, n=n: batched(**{n: x})) for n in ("key", "data", "iv", "aad")},  # type: ignore[misc]
    **{f"Queue {n}": (lambda x, n=n: queued(**{n: x})) for n in ("key", "data", "iv", "aad")},  # type: ignore[misc]
    **{f"columns {n}": (lambda x, n=n: columns(**{n: x})) for n in ("keys", "data", "ivs", "aad")},  # type: ignore[misc]
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_is_no_number_is_refused(use: Use) -> None:
    for make, content in REFUSED.values():
        with pytest.raises(TypeError, match=rf"holds ({content}) \(.*\): expected bytes"):
            use(make())


@pytest.mark.parametrize("name", [n for n in USES if n.endswith((" data", " out"))])
def test_a_mask_is_not_lost(name: str) -> None:
    given = np.ma.array(np.zeros(16, "u1"), mask=True)
    with pytest.raises(BufferError, match="is a masked array, and bytes have no mask"):
        USES[name](given)


def is_read_only(given: Any) -> bool:
    return memoryview(given).readonly if isinstance(given, memoryview) else False


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_numbers_are_taken(use: Use) -> None:
    for make in TAKEN.values():
        given = make()
        if use in (USES["Cipher out"], USES["AESGCM buf"]) and is_read_only(given):
            continue
        use(given)


def test_numbers_are_their_bytes() -> None:
    for make in TAKEN.values():
        given = make()
        if not is_read_only(given):
            np.asarray(given).reshape(-1).view("u1")[:] = 0x5A
        same = bytes(given) if is_read_only(given) else bytes([0x5A]) * 16
        sealed = wc.Cipher("aes-128-ctr", given).encrypt(given, iv=given)
        assert bytes(sealed) == wc.Cipher("aes-128-ctr", same).encrypt(same, iv=same)


def test_numbers_without_a_format() -> None:
    """NumPy has no letter for bfloat16, and lends its memory all the same."""
    kinds = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    given = np.ones(8, kinds.bfloat16)
    sealed = wc.Cipher("aes-128-ctr", given).encrypt(given, iv=given)
    same = given.tobytes()
    assert bytes(sealed) == wc.Cipher("aes-128-ctr", same).encrypt(same, iv=same)


def test_file_formats() -> None:
    for key in (memoryview(np.array([None, None])), memoryview(np.array(["abcd"]))):
        with pytest.raises(TypeError, match=r"the key of cobblestone-128 holds (Python|text)"):
            wc.formats.get("cobblestone-128").encryptor(key, wc.formats.Options())


@pytest.mark.parametrize("kind", ["|O8", "<U4", ">U1"])
def test_the_cuda_array_interface(kind: str) -> None:
    for use in (
        lambda x: CIPHER.encrypt(x, iv=IV, out=x),
        lambda x: wc.run_columns("aes-128-ctr", "encrypt", KEY, x, lengths=x, ivs=IV, out=x),
    ):
        with pytest.raises(TypeError, match=r"(text|Python objects) \(Interface of type"):
            use(Interface(kind))


def test_dlpack_of_opaque_handles() -> None:
    """kDLOpaqueHandle: an array whose capsule says so, made by hand."""

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
            ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
            ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
            ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        ]  # fmt: skip

    shape, memory = (ctypes.c_int64 * 1)(2), (ctypes.c_char * 16)()
    tensor = Tensor(
        ctypes.addressof(memory), (1, 0), 1, 3, 64, 1, ctypes.addressof(shape), None, 0, None, None
    )
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )

    class Handles:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **_: Any) -> Any:
            return new(ctypes.addressof(tensor), b"dltensor", None)

    with pytest.raises(TypeError, match="opaque handles"):
        CIPHER.encrypt(Handles(), iv=IV, out=bytearray(16))
    tensor.code = 1
    assert CIPHER.encrypt(Handles(), iv=IV, out=bytearray(16)) == CIPHER.encrypt(bytes(16), iv=IV)
