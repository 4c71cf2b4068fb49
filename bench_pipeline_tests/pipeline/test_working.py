"""Running items side by side."""

import threading

import pytest

from bench_pipeline.pipeline.bench import Stop
from bench_pipeline.pipeline.working import work


def test_every_item_is_run_once_and_yielded_once() -> None:
    assert sorted(work(range(20), lambda n: n * n, workers=4, stop=Stop.fresh())) == [
        n * n for n in range(20)
    ]


def test_no_more_than_the_given_number_run_at_once() -> None:
    inside, most, lock = 0, 0, threading.Lock()
    gate = threading.Barrier(3, timeout=30)

    def run(_: int) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        gate.wait()
        with lock:
            inside -= 1

    list(work(range(9), run, workers=3, stop=Stop.fresh()))
    assert most == 3


def test_a_stop_lets_running_items_finish_and_starts_no_more() -> None:
    stop = Stop.fresh()

    def run(n: int) -> int:
        if n == 2:
            stop.ask()
        return n

    assert list(work(range(100), run, workers=1, stop=stop)) == [0, 1, 2]


def test_an_error_is_raised_only_after_what_was_running_has_been_yielded() -> None:
    both = threading.Barrier(2, timeout=30)

    def run(n: int) -> int:
        if n < 2:
            both.wait()
        if n == 0:
            raise OSError("disk full")
        return n

    seen: list[int] = []

    def consume() -> None:
        seen.extend(work(range(1000), run, workers=2, stop=Stop.fresh()))

    with pytest.raises(OSError, match="disk full"):
        consume()
    assert 1 in seen
    assert len(seen) < 999, "nothing more is started after an error"
