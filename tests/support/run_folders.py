"""Manages runs of the tests, and removes the remains of earlier runs that were killed.

Each run has a folder for all files of its tests: their temporary folders, and those of the servers
that they start. The main process of the run locks the folder while it lives. The kernel releases
the lock however the process ends.

Always true: a folder is removed, and processes are killed, only under the folder's lock, and
only in folders of this user. So a live run is never touched. A process belongs to a run if
one of these holds:

- the run has listed it with its start time;
- its environment names the folder;
- it works in the folder and has no terminal (a shell there is a developer's);
- it descends from such a process.

A process that reuses the pid of an older one matches none of them.

Some processes of a run may be missed. A process is not found if it has changed its environment and
its working directory, and has lost its parent.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.servers import processes

PREFIX = "innkeeper-run-"
VARIABLE = "TEST_RUN_FOLDER"
"""The environment variable with the run's folder, for all programs that the run starts."""
LISTED = "processes"
TESTS = "tests"
"""The temporary folders of the tests themselves; those of failed tests are kept."""
ENDED = "ended"
"""The file that distinguishes a run that ended by itself from one that was killed."""
LIKE_TMP = 0o1777
"""Some servers run as other users, and need temporary files as well."""
ENDS_WITHIN_S = 5.0
"""How long programs may take to stop. PostgreSQL frees its shared memory in that time."""
GONE_WITHIN_S = 30.0
LOOK_AGAIN_S = 0.05
BEGIN_ALL = (signal.SIGTERM, signal.SIGCONT)
"""A stopped program receives other signals only after it continues."""
STARTED = 19
TERMINAL = 4
"""The positions of these fields after the process's name in ``/proc/<pid>/stat``."""
NO_TERMINAL = "0"
GONE = "ZX"
"""The states of ended processes that no parent has waited for."""


class Process(NamedTuple):
    """A process, distinguished from later ones with the same pid."""

    pid: int
    started: int


def place() -> Path:
    """Return the folder of all runs' folders, and of the files that they share."""
    folder = os.environ.get(VARIABLE)
    return Path(tempfile.gettempdir()) if folder is None else Path(folder).parent


class Run:
    """One run of the tests, as its main process sees it."""

    def __init__(self) -> None:
        made = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=place()))
        lock = _lock(made)
        assert lock is not None, f"another process has locked {made}"
        self._lock = lock
        # A forked child that outlives this process must not keep the lock.
        os.register_at_fork(after_in_child=self._let_go)
        (made / LISTED).touch(mode=0o600)
        made.chmod(LIKE_TMP)
        # Other runs look for folders with this name, and must find only locked ones.
        self.folder = made.rename(made.with_name(made.name.removeprefix(".")))

    def _let_go(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._lock)

    def end(self, *, keeps_tests: bool) -> list[str]:
        """Stop leftover processes of tests, and remove the folder; returns the processes' names.

        With ``keeps_tests``, the folders of tests are kept until the next run, which also stops
        processes that do not stop now. A second call changes nothing.
        """
        if not self.folder.exists() or (self.folder / ENDED).exists():
            return []
        output, left = _end_processes(self.folder)
        if not left:
            (self.folder / ENDED).touch()
            kept = {TESTS, ENDED} if keeps_tests else set()
            _remove(each for each in self.folder.iterdir() if each.name not in kept)
            if not keeps_tests:
                self.folder.rmdir()
        return output


def enlist() -> None:
    """Add this process to the list of the run that its environment names.

    This is for processes that set their title: a title overwrites the environment that other
    processes see.
    """
    folder = os.environ.get(VARIABLE)
    started = _started(os.getpid())
    if folder is not None and started is not None:
        with (Path(folder) / LISTED).open("a") as file:
            file.write(f"{os.getpid()} {started}\n")


def sweep(places: Iterable[Path]) -> list[str]:
    """Remove the folders of ended runs, and stop all their processes.

    Returns a line for each run that was killed. Skips runs that are alive, and those that
    another run sweeps at this moment.
    """
    output = []
    for folder in (found for each in places for found in sorted(each.glob(f"{PREFIX}*"))):
        lock = _lock(folder)
        if lock is not None:
            try:
                output += _remove_run(folder)
            finally:
                os.close(lock)
    return output


def _lock(folder: Path) -> int | None:
    """Lock a folder of this user; ``None`` if it is another user's, locked or gone."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    if os.fstat(opened).st_uid == os.geteuid():
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return opened
    os.close(opened)
    return None


def _remove_run(folder: Path) -> list[str]:
    if (folder / ENDED).exists():
        _remove([folder])
        return []
    ended, left = _end_processes(folder)
    if not left:
        _remove([folder])
    programs = f"{len(ended)} programs: {', '.join(ended)}" if ended else "no programs"
    is_gone = f"these still run: {', '.join(left)}" if left else "all of it is gone now"
    return [f"A run that was killed had left {folder} and {programs}; {is_gone}."]


def _end_processes(folder: Path) -> tuple[list[str], list[str]]:
    """Stop all processes of a run; returns those found, and those that do not stop."""
    output: dict[Process, str] = {}
    begun_s = time.monotonic()
    asked: set[Process] = set()
    while found := _processes(folder):
        output |= {each: name for each, name in found.items() if each not in output}
        waited_s = time.monotonic() - begun_s
        if waited_s > GONE_WITHIN_S:
            break
        for each in found:
            if waited_s > ENDS_WITHIN_S:
                _send(each, [signal.SIGKILL])
            elif each not in asked:
                asked.add(each)
                _send(each, BEGIN_ALL)
        time.sleep(LOOK_AGAIN_S)
    return sorted(output.values()), sorted(found.values())


def _send(process: Process, numbers: Iterable[signal.Signals]) -> None:
    """Send signals to this very process, not to a later one with its pid."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(process.pid)
        try:
            if _started(process.pid) == process.started:
                for number in numbers:
                    signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def _processes(folder: Path) -> dict[Process, str]:
    """Return all live processes of a run except this one, with their names."""
    listed = set(_listed(folder))
    roots = [pid for pid in _pids() if _is_of(folder, pid, listed)]
    ours = {os.getpid(), *_ancestors(os.getpid())}
    found = {}
    for pid in processes.families(roots):
        state = _stat(pid)
        if pid not in ours and state is not None and state[0] not in GONE:
            found[Process(pid, int(state[STARTED]))] = f"{_name(pid)} ({pid})"
    return found


def _is_of(folder: Path, pid: int, listed: set[Process]) -> bool:
    found = _stat(pid)
    if found is None:
        return False
    if Process(pid, int(found[STARTED])) in listed:
        return True
    # Other users' processes cannot be read, and none of them is ours.
    with contextlib.suppress(OSError):
        if found[TERMINAL] == NO_TERMINAL:
            works_in = Path(os.readlink(f"/proc/{pid}/cwd"))
            if works_in == folder or folder in works_in.parents:
                return True
        for each in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = each.partition(b"=")
            if name == VARIABLE.encode():
                return Path(os.fsdecode(value)) == folder
    return False


def _listed(folder: Path) -> Iterator[Process]:
    with contextlib.suppress(OSError):
        for line in (folder / LISTED).read_text().splitlines():
            # The last line of a process that was killed may be cut short.
            numbers = line.split()
            if len(numbers) == len(Process._fields):
                yield Process(*map(int, numbers))


def _pids() -> list[int]:
    return [int(each.name) for each in Path("/proc").glob("[0-9]*")]


def _stat(pid: int) -> list[str] | None:
    """Return the kernel's fields of a process, beginning with its state."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _started(pid: int) -> int | None:
    found = _stat(pid)
    return None if found is None else int(found[STARTED])


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return "?"


def _ancestors(pid: int) -> Iterator[int]:
    while (found := _stat(pid)) is not None and (pid := int(found[processes.PARENT])) > 0:
        yield pid


def _remove(things: Iterable[Path]) -> None:
    for each in things:
        if stat.S_ISDIR(each.lstat().st_mode):
            _unmount(each)
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink()


def _unmount(folder: Path) -> None:
    """Unmount the small file systems that tests mount, in reverse order."""
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for each in reversed(mounted):
        if folder in Path(each).parents:
            subprocess.run(["umount", "--lazy", each], check=False, capture_output=True)
