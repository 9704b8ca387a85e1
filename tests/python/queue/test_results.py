# SPDX-License-Identifier: Apache-2.0
"""A future of a queue is done, whatever making its result or calling back raises."""

from __future__ import annotations

import asyncio
import threading
from concurrent import futures
from typing import Any

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from queue_support import HOUR, IV

np = pytest.importorskip("numpy", reason="NumPy is not installed")

MESSAGE = ("aes-128-ctr", "encrypt", bytes(16), bytes(8))
SEALED = oracle.encrypt("aes-128-ctr", bytes(16), bytes(8), IV)


class Out:
    """Memory of a library that is known only by DLPack."""

    def __init__(self, size: int = 16) -> None:
        self.array = np.zeros(size, "u1")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


def raising(error: BaseException) -> Out:
    """An out with a reshape, and a length, that raise."""

    def fail(self: Out, *_: Any) -> Any:
        raise error

    kind = type("Raising", (Out,), {"reshape": fail, "__len__": fail, "view": fail})
    out: Out = kind()
    return out


def outcome(out: Any) -> BaseException | None:
    with wc.Queue() as q:
        future = q.submit(*MESSAGE, iv=IV, out=out)
        other = q.submit(*MESSAGE, iv=IV)
        assert other.result(10) == SEALED
        return future.exception(10)


def test_an_out_that_has_dlpack_alone() -> None:
    out = Out()
    error = outcome(out)
    assert isinstance(error, ValueError)
    assert "8 bytes were written, and nothing can return a part of a Out" in str(error)
    assert out.array.tobytes() == SEALED + bytes(8)
    whole = Out(8)
    with wc.Queue() as q:
        assert q.submit(*MESSAGE, iv=IV, out=whole).result(10) is whole


def test_an_out_whose_length_lies() -> None:
    kind = type("Liar", (Out,), {"__len__": lambda self: -5})
    assert isinstance(outcome(kind()), ValueError)


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_the_out_raises_is_the_outcome(kind: type[BaseException]) -> None:
    error = kind("own")
    assert outcome(raising(error)) is error


def test_stop_iteration_is_told_in_other_words() -> None:
    """asyncio's futures refuse it, and would stay pending."""
    own = StopIteration("own")
    error = outcome(raising(own))
    assert isinstance(error, RuntimeError)
    assert error.__cause__ is own

    async def main() -> None:
        with wc.Queue() as q:
            future = q.submit(*MESSAGE, iv=IV, out=raising(StopIteration()))
            with pytest.raises(RuntimeError, match="StopIteration"):
                await asyncio.wait_for(asyncio.wrap_future(future), 10)

    asyncio.run(main())


def test_no_call_keeps_what_the_out_raised_from_others() -> None:
    """The same in `Cipher` and `Batch`: it is raised, and the text was written."""
    out = raising(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        wc.Cipher("aes-128-ctr", bytes(16)).encrypt(bytes(8), iv=IV, out=out)
    assert out.array.tobytes() == SEALED + bytes(8)
    batch = wc.Batch()
    handle, other = (batch.add(*MESSAGE, iv=IV, out=o) for o in (out, None))
    batch.run()
    with pytest.raises(ZeroDivisionError):
        handle.result()
    assert other.result() == SEALED


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("end", ["done", "cancelled by close", "cancelled"])
def test_a_callback_that_raises_keeps_no_other_from_being_called(
    kind: type[BaseException], end: str
) -> None:
    called: list[str] = []

    def raise_it(future: futures.Future[Any]) -> None:
        called.append("first")
        raise kind

    q = wc.Queue(max_delay_us=HOUR)
    future = q.submit(*MESSAGE, iv=IV)
    future.add_done_callback(raise_it)
    future.add_done_callback(lambda f: called.append("second"))
    later = q.submit(*MESSAGE, iv=IV)

    def finish() -> None:
        if end == "cancelled":
            future.cancel()
        q.close(cancel=end == "cancelled by close")

    closer = threading.Thread(target=finish)
    closer.start()
    closer.join(10)
    assert not closer.is_alive()
    assert called == ["first", "second"]
    assert futures.wait([future, later], timeout=10).not_done == set()


def test_in_the_main_thread_a_callback_may_end_the_program() -> None:
    def leave(future: futures.Future[Any]) -> None:
        raise SystemExit

    with wc.Queue(max_delay_us=HOUR) as q:
        future = q.submit(*MESSAGE, iv=IV)
        future.add_done_callback(leave)
        with pytest.raises(SystemExit):
            future.cancel()
        assert futures.wait([future], timeout=10).not_done == set()  # its waiters were told
        done = q.submit(*MESSAGE, iv=IV)
        q.flush()
        done.result(10)
        with pytest.raises(SystemExit):
            done.add_done_callback(leave)


def test_a_future_that_its_user_finished_disturbs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", lambda hook: unraisable.append(hook.exc_type))
    with wc.Queue(max_delay_us=HOUR) as q:
        mine, cancelled, other = (q.submit(*MESSAGE, iv=IV) for _ in range(3))
        mine.set_result("mine")
        futures.Future.cancel(cancelled)  # behind the queue's back
    assert (mine.result(), other.result(10)) == ("mine", SEALED)
    assert futures.wait([cancelled], timeout=10).not_done == set()
    assert cancelled.cancelled()
    assert unraisable == [futures.InvalidStateError] * 2
