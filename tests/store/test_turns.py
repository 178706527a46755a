"""The queue of processes that write one SQLite file: a waiting process comes next."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from innkeeper.domain.errors import Busy
from innkeeper.store import schema
from innkeeper.store.backends.sqlite import Sqlite
from innkeeper.store.backends.turns import NEXT, FileTurns
from innkeeper.store.guards import NO_GUARDS
from innkeeper.store.transactions import Store, ping
from tests.support.databases import open_store
from tests.support.stores import NOW

WITHIN_S = 20.0
HOLD = """
import sys, time
from pathlib import Path
from innkeeper.store.backends.turns import FileTurns
turns = FileTurns(Path(sys.argv[1]), 5.0)
turns.take()
print("taken", flush=True)
time.sleep(600)
"""


def is_next_waited_for(database: Path) -> bool:
    """Whether a process is next in line."""
    with database.with_name(database.name + NEXT).open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def test_a_process_that_releases_its_turn_queues_behind_waiters(tmp_path: Path) -> None:
    database = tmp_path / "x"
    database.touch()
    near, far = FileTurns(database, WITHIN_S), FileTurns(database, WITHIN_S)
    order: list[str] = []

    def wait_and_write() -> None:
        far.take()
        order.append("far")
        far.give_back()

    near.take()
    waiting = threading.Thread(target=wait_and_write)
    waiting.start()
    until(lambda: is_next_waited_for(database))
    near.give_back()
    near.take()
    order.append("near")
    waiting.join()
    assert order == ["far", "near"]
    near.close()
    far.close()


def test_a_waiter_that_times_out_gets_busy_and_blocks_no_other(tmp_path: Path) -> None:
    database = tmp_path / "x"
    database.touch()
    near, far = FileTurns(database, WITHIN_S), FileTurns(database, 0.01)
    near.take()
    with pytest.raises(Busy):
        far.take()
    near.give_back()
    far.take()
    far.take()
    far.close()
    near.take()
    near.close()


def test_a_process_that_is_killed_has_no_turn(tmp_path: Path) -> None:
    database = tmp_path / "x"
    database.touch()
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(database)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"taken\n"
    turns = FileTurns(database, 0.01)
    with pytest.raises(Busy):
        turns.take()
    holder.send_signal(signal.SIGKILL)
    holder.wait(WITHIN_S)
    holder.stdout.close()
    turns.take()
    turns.close()


def test_a_read_only_folder_needs_no_turn(tmp_path: Path) -> None:
    turns = FileTurns(tmp_path / "nowhere" / "x", WITHIN_S)
    turns.take()
    turns.give_back()


def test_a_transaction_keeps_its_turn_until_its_end(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    schema.upgrade(store, NOW)
    backend = Sqlite()
    url = str(store.engines.writing.url)
    other = Store(backend, backend.engines(url, readers_max=1, busy_timeout_s=0.01))
    with store.write() as tx:
        ping(tx)
        with pytest.raises(Busy), other.write():
            pass
        # A store without guards does not wait for its turn, and fails at the write lock.
        with Store(backend, other.engines, NO_GUARDS).write() as careless:
            ping(careless)
    with pytest.raises(ZeroDivisionError), store.write():
        raise ZeroDivisionError
    with other.write() as tx:
        ping(tx)
    store.dispose()
    other.dispose()
