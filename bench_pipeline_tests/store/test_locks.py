"""One process at a time, on a local disk and on an object store; a killed holder holds nothing."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_pipeline.errors import StoreError
from bench_pipeline.store import LockHeldError, Store, locks
from bench_pipeline.store.locks import Lease, Locks

IDENTITY = "ab" * 32


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store" if request.param == "local" else f"memory://locks-{tmp_path.name}")


def test_a_held_lock_is_refused_to_another_and_free_afterwards(store: Store) -> None:
    other = Store.open(store.location)
    with store.cell_lock(IDENTITY):
        with pytest.raises(LockHeldError), other.cell_lock(IDENTITY, wait_s=0):
            pass
        with other.cell_lock("cd" * 32, wait_s=0):
            pass
    with other.cell_lock(IDENTITY, wait_s=0):
        pass


def test_a_lock_is_free_after_an_error_in_the_block(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.lock("tables"):
        raise ZeroDivisionError
    with store.lock("tables", wait_s=0):
        pass


def test_threads_that_wait_take_turns(store: Store) -> None:
    inside: list[int] = []
    most = []

    def work(number: int) -> None:
        with store.cell_lock(IDENTITY):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.005)
            inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


@pytest.mark.parametrize("identity", ["../../etc/passwd", "AB" * 32, "ab" * 31, "", "a/b"])
def test_only_an_identity_names_a_cell_lock(store: Store, identity: str) -> None:
    with pytest.raises(ValueError, match="hex"), store.cell_lock(identity):
        pass


@pytest.mark.parametrize("name", ["", "../x", "a/../b", "/abs", "a\x00b", ".hidden"])
def test_a_name_that_is_a_path_of_its_own_is_refused(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a lock"), store.lock(name):
        pass


def test_local_locks_leave_no_files_behind(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    with store.cell_lock(IDENTITY):
        assert len(list(tmp_path.rglob("*.lock"))) == 1
    assert list(tmp_path.rglob("*.lock")) == []


HOLD = (
    "import sys, time\n"
    "from bench_pipeline.store import Store\n"
    "with Store.open(sys.argv[1]).cell_lock(sys.argv[2]):\n"
    "    print('held', flush=True)\n"
    "    time.sleep(600)\n"
)


def test_another_process_is_kept_out_and_its_kill_frees_the_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), IDENTITY], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        store = Store.open(tmp_path)
        with pytest.raises(LockHeldError), store.cell_lock(IDENTITY, wait_s=0.1):
            pass
        holder.kill()
        with store.cell_lock(IDENTITY, wait_s=30):
            pass
    finally:
        holder.kill()
        holder.communicate()


def test_a_lease_whose_owner_died_is_taken_over_after_its_term(tmp_path: Path) -> None:
    store = Store.open(f"memory://lease-{tmp_path.name}", lease_term_s=0.2)
    dead = Lease(store.files, "work", 0.2)
    dead._acquire(None)
    with pytest.raises(LockHeldError), store.lock("work", wait_s=0.02):
        pass
    with store.lock("work", wait_s=30):
        pass


class Clock:
    """Time that passes only when somebody sleeps; ``on_sleep`` is what happens meanwhile."""

    def __init__(self, on_sleep: Callable[[], None]) -> None:
        self.now = 0.0
        self.on_sleep = on_sleep

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()


def test_a_lease_that_beats_is_never_taken_over_and_one_that_stopped_is_after_its_term(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(f"memory://beat-{tmp_path.name}")
    owner = Lease(store.files, "work", 60.0)
    owner._acquire(None)
    clock = Clock(lambda: owner._write(released=False))
    monkeypatch.setattr(locks, "time", clock)
    with pytest.raises(LockHeldError):
        Lease(store.files, "work", 60.0)._acquire(600.0)
    assert clock.now == pytest.approx(600.0)
    clock.on_sleep = lambda: None
    Lease(store.files, "work", 60.0)._acquire(None)
    assert 660.0 <= clock.now < 670.0


def test_an_owner_beats_while_it_works(tmp_path: Path) -> None:
    store = Store.open(f"memory://beats-{tmp_path.name}", lease_term_s=0.1)
    with store.lock("work"):
        [info] = store.files.list("locks")
        first = store.files.read(info.path)
        deadline = time.monotonic() + 30
        while store.files.read(info.path) == first:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_of_many_that_see_a_dead_lease_one_takes_it_over(tmp_path: Path) -> None:
    store = Store.open(f"memory://many-{tmp_path.name}", lease_term_s=0.2)
    Lease(store.files, "work", 0.2)._acquire(None)
    inside: list[int] = []
    most = []

    def work(number: int) -> None:
        with Locks(store.files, lease_term_s=0.2).hold("work"):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.01)
            inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 6


def test_an_owner_that_lost_its_lease_learns_of_it(tmp_path: Path) -> None:
    store = Store.open(f"memory://lost-{tmp_path.name}", lease_term_s=0.2)

    def be_robbed() -> None:
        thief = Lease(store.files, "work", 0.2)
        number, _ = thief._newest()
        assert thief._take(number + 1)
        deadline = time.monotonic() + 30
        while any(thread.name == "lease-work" for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    with pytest.raises(StoreError, match="took it over"), store.lock("work"):
        be_robbed()
    with pytest.raises(LockHeldError), store.lock("work", wait_s=0):
        pass


def test_a_number_that_was_used_and_cleared_away_is_not_a_lease(tmp_path: Path) -> None:
    store = Store.open(f"memory://late-{tmp_path.name}")
    with store.lock("work"):
        pass
    with store.lock("work"):
        late = Lease(store.files, "work", 60.0)
        assert not late._take(1)
        assert late._numbers() == [2]
