# SPDX-License-Identifier: Apache-2.0
"""Published vectors and our own: every engine, algorithm, vector, placement and way of calling."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import conformance as c
import conformance_oracle as oracle
import conformance_pieces as pieces
import conformance_vectors as vectors
import pytest

every_target = pytest.mark.parametrize("target", c.TARGETS, ids=str)
every_engine = pytest.mark.parametrize("engine", c.ENGINES)
every_algorithm = pytest.mark.parametrize("algorithm", c.ALGORITHMS)
every_placement = pytest.mark.parametrize("placement", c.PLACEMENTS, ids=lambda p: p.name)
every_runner = pytest.mark.parametrize("runner", c.RUNNERS)


def vectors_of(algorithm: str) -> tuple[vectors.Vector, ...]:
    found = vectors.load().get(algorithm)
    assert found, f"{algorithm} has no vectors: add some to tests/vectors or to SOURCES"
    return found


@every_algorithm
def test_every_algorithm_has_vectors(algorithm: str) -> None:
    assert vectors_of(algorithm)


def test_every_vector_has_an_algorithm() -> None:
    assert set(vectors.load()) == set(c.ALGORITHMS)


@pytest.mark.skipif(not vectors.PUBLISHED, reason="cryptography-vectors is not installed")
def test_published_vectors_are_all_there() -> None:
    """So that a package that lost half of its files is noticed."""
    least = {"gcm": 15_750, "xts": 1200, "ctr": 3, "siv": 40, "chacha20": 4, "poly1305": 3}
    published = {source.algorithm.rpartition("-")[2] for source in vectors.SOURCES}
    for name, found in vectors.load().items():
        mode = name.rpartition("-")[2]
        assert mode not in published or len(found) >= least.get(mode, 270), name


@every_runner
@pytest.mark.parametrize(
    ("target", "placement"),
    [
        pytest.param(target, placement, id=f"{target}-{placement.name}")
        for target in c.TARGETS
        # The reference is slow, and has no code that looks at addresses.
        for placement in (c.PLACEMENTS[:4:3] if target.engine == "reference" else c.PLACEMENTS)
    ],
)
@every_algorithm
def test_vectors(target: c.Target, algorithm: str, placement: c.Placement, runner: str) -> None:
    found = vectors_of(algorithm)
    # One batch has every vector. A call costs a GPU 50 us and more: there, fewer have one each.
    if runner == "batch" and placement is c.PLACEMENTS[0]:
        most = len(found)
    elif runner == "each" and target.engine in c.DEVICE_ENGINES:
        most = 300
    else:
        most = 2300
    c.check(target, c.sample(found, most), placement, runner)


@every_placement
@every_target
def test_one_batch_of_all_algorithms(target: c.Target, placement: c.Placement) -> None:
    """Messages of every algorithm next to each other in one run."""
    lists = [found[-40:] for found in vectors.load().values()]
    mixed = [found[i] for i in range(40) for found in lists if i < len(found)]
    c.check(target, mixed, placement, "batch")


def piece_sizes(algorithm: str) -> list[int]:
    block = c.ALGORITHMS[algorithm].block_size
    if algorithm.endswith("-cfb8"):
        return [1, 3, block, block + 5]
    return [block, 2 * block, 3 * block]


@pytest.mark.parametrize("algorithm", pieces.CHAINED)
@every_engine
def test_vectors_in_chained_pieces(engine: str, algorithm: str) -> None:
    """The long vectors again, cut in pieces: what one piece leaves is what the next one takes."""
    sizes = piece_sizes(algorithm)
    plain = [v for v in vectors_of(algorithm) if len(v.text) > sizes[0] and v.padding is None]
    assert plain
    for v in c.sample(plain, 40 if engine in c.DEVICE_ENGINES else len(plain)):
        for size in sizes:
            pieces.check_pieces(engine, v, size)


@pytest.mark.parametrize("algorithm", pieces.CHAINED)
@every_engine
def test_long_message_in_chained_pieces(engine: str, algorithm: str) -> None:
    """Pieces around a tile of 256 blocks, and uneven ones."""
    block = c.ALGORITHMS[algorithm].block_size
    serial = not c.ALGORITHMS[algorithm].parallel_decrypt or algorithm.endswith("-cfb8")
    size = c.allowed_size(algorithm, (20_000 if engine == "reference" or serial else 200_000) + 13)
    v = c.make_vector(algorithm, "long", size)
    for piece in (255 * block, 256 * block, 257 * block, 7 * 256 * block):
        pieces.check_pieces(engine, v, piece)


# --- the vectors themselves ----------------------------------------------------------------------


@pytest.mark.skipif(not oracle.HAVE_PYCA, reason="cryptography is not installed")
def test_own_vectors_are_what_their_maker_writes() -> None:
    maker = Path(__file__).parents[2] / "vectors" / "make_own.py"
    done = subprocess.run([sys.executable, maker, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[ALGORITHM = aes-128-ecb]\n\nCOUNT = 1\nKEY = 00\nPLAINTEXT = 00\n",
            "no field CIPHERTEXT",
        ),
        (
            "[ALGORITHM = x]\n\nCOUNT = 1\nKEY =\nPLAINTEXT =\nCIPHERTEXT =\nNONCE = 00\n",
            "nothing uses NONCE",
        ),
        (
            "[ALGORITHM = x]\n[Keylen = 128]\n\nCOUNT = 1\nKEY =\nPLAINTEXT =\nCIPHERTEXT =\n",
            "nothing uses Keylen",
        ),
        ("[ALGORITHM = x]\n\nKEY = 00\nKEY = 01\n", "field KEY twice"),
    ],
)
def test_reader_refuses_what_it_does_not_understand(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "bad.rsp"
    path.write_text(text)
    with pytest.raises(vectors.VectorError, match=problem):
        list(vectors.own(tmp_path))


# --- the checker itself --------------------------------------------------------------------------


def flipped(data: bytes, index: int) -> bytes:
    return data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]


def test_checker_notices_a_wrong_answer() -> None:
    right = c.make_vector("aes-128-ctr", "checker", 50)
    c.check(c.TARGETS[0], [right])
    for name in ("text", "data"):
        wrong = replace(right, **{name: flipped(getattr(right, name), 49)})
        with pytest.raises(AssertionError, match="byte 49 is wrong"):
            c.check(c.TARGETS[0], [right, wrong])


def test_checker_notices_a_byte_too_far() -> None:
    image = c.Image([c.make_vector("aes-128-ctr", "checker", 50)], "encrypt", c.PLACEMENTS[0])
    image.slots[0].status = "ok"
    after = image.after(image.before)
    image.check(after)
    end = image.slots[0].out_start + image.slots[0].out_size
    with pytest.raises(AssertionError, match="is not output"):
        image.check(flipped(after, end))
    with pytest.raises(AssertionError, match="is not output"):
        image.check(flipped(after, image.slots[0].in_start))


def test_checker_notices_a_tag_that_was_taken() -> None:
    v = replace(c.make_vector("aes-128-gcm", "checker", 50), text=b"", valid=False)
    with pytest.raises(AssertionError, match="expected InvalidTag"):
        c.check(c.TARGETS[0], [v])
