# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors: they are what NumPy takes, and nothing is read that lies far from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warpcipher import InvalidTag, weights
from warpcipher.weights import boxes
from warpcipher.weights.images import FormatImage

np = pytest.importorskip("numpy", reason="NumPy is not installed")

KEY = bytes(range(32))
SHAPES = [(), (7,), (5, 3), (4, 1, 6), (3, 4, 2, 5), (2, 0, 3)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, dict[str, Any]]]:
    values = {
        str(shape): np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
        for shape in SHAPES
    }
    path = tmp_path_factory.mktemp("slices") / "x"
    weights.save_file(values, path, KEY)
    with weights.safe_open(path, "np", key=KEY) as opened:
        yield opened, values


def index_of(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    parts = [
        st.one_of(
            st.slices(length).filter(lambda entry: entry.step is None or entry.step > 0),
            *([st.integers(-length, length - 1)] if length else []),
        )
        for length in shape
    ]
    whole = st.tuples(*parts)
    return st.one_of(
        whole, st.integers(0, len(shape)).flatmap(lambda n: st.tuples(*parts[:n])),
        whole.map(lambda entry: (..., *entry[1:])),
        st.just(...),
    )  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.data())
@pytest.mark.parametrize("gap", [0, 1 << 16])
def test_a_part_is_what_numpy_takes(gap: int, model: Any, data: st.DataObject) -> None:
    opened, values = model
    shape = data.draw(st.sampled_from(SHAPES))
    index = data.draw(index_of(shape))
    expected = values[str(shape)][index]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opened._files[0], "unit", gap)
        patch.setattr(boxes, "GROUP", 64)
        found = opened.get_slice(str(shape))[index]
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("index", "kind", "message"),
    [
        (np.s_[5], IndexError, "index 5 for dimension 0, which has 5"),
        (np.s_[-6], IndexError, "index -6"),
        (np.s_[0, 0, 0], IndexError, "3 indices for a tensor of 2 dimensions"),
        (np.s_[..., ...], IndexError, "one ellipsis at most"),
        (np.s_[::-1], IndexError, "a step of -1"),
        (np.s_[None], TypeError, "an index of NoneType"),
        (np.s_[[1, 2]], TypeError, "an index of list"),
        (np.s_[True], TypeError, "an index of bool"),
        (np.s_[1.0], TypeError, "an index of float"),
        (np.s_["a"], TypeError, "an index of str"),
    ],
)
def test_other_indices_are_refused(
    index: Any, kind: type[Exception], message: str, model: Any
) -> None:
    with pytest.raises(kind, match=message):
        model[0].get_slice("(5, 3)")[index]


def test_parts_of_bytes_are_refused(tmp_path: Path) -> None:
    from warpcipher.weights.header import build

    made, placed = build([("x", "F4", (4, 2))], None)
    (tmp_path / "x").write_bytes(made + bytes(placed["x"].size))
    with (
        weights.safe_open(tmp_path / "x", "np") as opened,
        pytest.raises(TypeError, match="a multiple of 2 elements, or all"),
    ):
        opened.get_slice("x")[:, 1:]


def test_rows_of_packed_elements(tmp_path: Path) -> None:
    from warpcipher.weights.header import build

    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    made, placed = build([("x", "F4", (6, 4, 8))], None)
    data = np.random.default_rng(1).integers(0, 255, placed["x"].size).astype(np.uint8)
    (tmp_path / "x").write_bytes(made + data.tobytes())
    array = data.reshape(6, 4, 4)
    with weights.safe_open(tmp_path / "x", "pt") as opened:
        part = opened.get_slice("x")
        assert repr(part) == "<warpcipher.weights.TensorSlice 'x': F4 [6, 4, 8]>"
        for index, packed in (
            (np.s_[1], np.s_[1]),
            (np.s_[1:5, 2], np.s_[1:5, 2]),
            (np.s_[::2, :, :], np.s_[::2]),
            (np.s_[..., 2:6], np.s_[..., 1:3]),
            (np.s_[3:3], np.s_[3:3]),
        ):
            found = part[index].view(torch.uint8).numpy()
            assert (found.shape, found.tobytes()) == (array[packed].shape, array[packed].tobytes())


def test_a_part_reads_its_chunks_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of a model that is cut by rows and by columns read their share."""
    rows, columns = 64, 1 << 20
    weight = np.zeros((rows, columns), np.uint8)
    weight[:, ::4096] = np.arange(rows, dtype=np.uint8)[:, None]
    weights.save_file({"w": weight}, tmp_path / "x", KEY)
    asked: list[int] = []
    read = FormatImage.read

    def count(self: FormatImage, offset: int, out: Any) -> None:
        asked.append(len(out))
        read(self, offset, out)

    with weights.safe_open(tmp_path / "x", "np", key=KEY) as opened:
        monkeypatch.setattr(FormatImage, "read", count)
        part = opened.get_slice("w")
        assert np.array_equal(part[8:16], weight[8:16])
        assert asked == [8 * columns]
        asked.clear()
        assert np.array_equal(
            part[:, columns // 4 : columns // 2], weight[:, columns // 4 : columns // 2]
        )
        assert asked == [columns // 4] * rows
        asked.clear()
        assert part[33, 4096] == 33
        assert asked == [1]


def test_other_chunks_may_be_damaged(tmp_path: Path) -> None:
    """Bytes that a part does not need are not read, so they are not checked either."""
    path = tmp_path / "x"
    weight = np.arange(1 << 16, dtype=np.uint32).reshape(16, -1)
    weights.save_file({"w": weight}, path, KEY)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"damage")
    with weights.safe_open(path, "np", key=KEY) as opened:
        part = opened.get_slice("w")
        assert np.array_equal(part[:4], weight[:4])
        with pytest.raises(InvalidTag):
            part[...]
        with pytest.raises(InvalidTag):
            part[:, 100:101]
