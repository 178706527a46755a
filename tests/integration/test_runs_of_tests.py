"""Test runs with workers that die, that are killed, and that ignore signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import run_folders
from tests.support.servers import processes

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "pyproject.toml"
MINUTE_S = 60.0
READY_WITHIN_S = 120.0
LOOK_AGAIN_S = 0.05
PLUGINS = ("xdist.plugin", "pytest_timeout", "tests.conftest")
TWO_WORKERS = ("--numprocesses", "2", "--dist", "loadfile", "--no-loadscope-reorder")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]


def command(folder: Path, files: Mapping[str, str], *options: str) -> list[str]:
    """The command that runs these tests with the settings of all tests."""
    folder.mkdir()
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(dedent(text))
    plugins = [word for each in PLUGINS for word in ("-p", each)]
    wanted = ["-c", str(SETTINGS), "-p", "no:cacheprovider", *plugins, *options]
    return [sys.executable, "-m", "pytest", *wanted, str(folder)]


@contextmanager
def begun(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run in the background; kills it with all its children if it does not end."""
    kept = {name: value for name, value in os.environ.items() if name[:7] != "PYTEST_"}
    environ = {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    with log.open("wb") as output:
        run = subprocess.Popen(words, env=environ, cwd=ROOT, stdout=output, stderr=output)
        try:
            yield run
        finally:
            processes.send(processes.families([run.pid]), signal.SIGKILL)
            run.wait()
            run_folders.sweep([run_folders.place()])


def until(is_so: Callable[[], bool], log: Path) -> None:
    deadline_s = time.monotonic() + READY_WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline_s, log.read_text()
        time.sleep(LOOK_AGAIN_S)


def is_alive(pid: int) -> bool:
    """Whether a process exists, and is not a zombie."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


SHORT = """
    import pytest

    @pytest.mark.parametrize("number", range(6))
    def test_short(number):
        pass
"""
LONG = """
    import time

    def test_that_is_not_waited_for():
        time.sleep(600)
"""
DIES = """
    import os, pathlib, signal, subprocess

    def test_that_leaves_a_child(request):
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        pathlib.Path(request.path).with_name("child").write_text(str(child.pid))

    def test_that_kills_its_worker():
        os.kill(os.getpid(), signal.SIGKILL)

    def test_behind_it():
        pass
"""


@pytest.mark.parametrize(
    "files",
    [{"a": SHORT, "b": SHORT, "c": SHORT, "d": DIES}, {"a": LONG, "b": DIES, "c": SHORT}],
    ids=["the others are done", "another one is busy"],
)
def test_a_lost_worker_fails_the_run_within_a_minute(
    tmp_path: Path, files: Mapping[str, str]
) -> None:
    log, folder = tmp_path / "log", tmp_path / "few"
    with begun(command(folder, files, *TWO_WORKERS), log) as run:
        until((folder / "child").exists, log)
        try:
            status = run.wait(MINUTE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"it stands still: {log.read_text()}")
        child = int((folder / "child").read_text())
        assert not is_alive(child)
    reported = log.read_text()
    assert status == pytest.ExitCode.TESTS_FAILED, reported
    assert re.search(r"worker 'gw\d' crashed while running '.*::test_that_kills_its_wo", reported)
    assert "sleep" in reported.split("Tests had left running: ")[1]


DIES_EARLY = """
    import os, signal

    if os.environ["PYTEST_XDIST_WORKER"] == "gw1":
        os.kill(os.getpid(), signal.SIGKILL)

    def test_nothing():
        pass
"""


def test_a_worker_lost_before_the_first_test_fails_the_run(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with begun(command(tmp_path / "few", {"a": SHORT, "b": DIES_EARLY}, *TWO_WORKERS), log) as run:
        assert run.wait(MINUTE_S) == pytest.ExitCode.TESTS_FAILED, log.read_text()
    assert "worker gw1 crashed" in log.read_text()


IGNORING = """
import os, signal, sys
for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
    signal.signal(each, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
os.execv(sys.argv[1], sys.argv[1:])
"""
UNDISTURBED = """
    import os, signal, subprocess

    PROTECTED_FROM = [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM]

    def test_programs_get_defaults():
        told = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True)
        lines = dict(line.split(":") for line in told.stdout.splitlines())
        # Two more belong to the C library: programs cannot change how they are handled.
        ours = sum(1 << (each - 1) for each in signal.valid_signals())
        assert [int(lines[each], 16) & ours for each in ("SigIgn", "SigBlk")] == [0, 0]

    def test_a_program_can_be_interrupted():
        program = subprocess.Popen(["sleep", "600"])
        program.send_signal(signal.SIGINT)
        assert program.wait(60) == -signal.SIGINT

    def test_the_run_continues():
        for each in PROTECTED_FROM:
            os.kill(os.getpid(), each)

    def test_no_terminal_reaches_what_it_starts():
        assert os.getpgid(0) != os.getpgid(os.getppid())
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_that_ignores_signals_does_not_pass_that_on(tmp_path: Path, workers: str) -> None:
    log = tmp_path / "log"
    words = command(tmp_path / "few", {"a": UNDISTURBED}, "--numprocesses", workers)
    with begun([sys.executable, "-c", IGNORING, *words], log) as run:
        assert run.wait(READY_WITHIN_S) == pytest.ExitCode.OK, log.read_text()


BUSY = """
    import os, pathlib, signal, subprocess, time

    def test_that_is_busy(request):
        pathlib.Path(request.path).with_name("ready").touch()
        time.sleep(600)
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_is_ended_by_an_interrupt(tmp_path: Path, workers: str) -> None:
    log, folder = tmp_path / "log", tmp_path / "few"
    with begun(command(folder, {"a": BUSY}, "--numprocesses", workers), log) as run:
        until((folder / "ready").exists, log)
        run.send_signal(signal.SIGINT)
        assert run.wait(MINUTE_S) == pytest.ExitCode.INTERRUPTED, log.read_text()


STARTS_SERVERS = """
    import os, pathlib, signal, subprocess, time
    from tests.support.servers import postgresql
    from tests.support.service_processes import serve_all

    ORPHAN = "sleep 600 > /dev/null & echo $!"

    def test_that_starts_servers(request, tmp_path):
        server = postgresql.shared()
        orphan = int(subprocess.check_output(["sh", "-c", ORPHAN], cwd="/"))
        settings = {"auth": "none", "database_url": server.fresh()}
        with serve_all(tmp_path / "data", 1, settings) as (service,):
            pids = [server._process.pid, service.process.pid, orphan, os.getpid()]
            told = "\\n".join([os.environ["TEST_RUN_FOLDER"], *map(str, pids)])
            made = pathlib.Path(request.path).with_name("made")
            made.write_text(told)
            made.rename(made.with_name("ready"))
            time.sleep(600)
"""


def made_by(folder: Path) -> tuple[Path, list[int]]:
    """The folder of a run, and its programs."""
    run, *pids = (folder / "ready").read_text().splitlines()
    return Path(run), [int(each) for each in pids]


def test_the_next_run_removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    killed, living, following = (tmp_path / name for name in ("killed", "living", "following"))
    log = tmp_path / "log"
    with ExitStack() as stack:
        started = {}
        for folder in (killed, living):
            words = command(folder, {"a": STARTS_SERVERS}, *TWO_WORKERS)
            started[folder] = stack.enter_context(begun(words, log))
        for folder in (killed, living):
            until((folder / "ready").exists, log)
        dead_folder, dead = made_by(killed)
        # The worker is killed first. Otherwise it would stop the server and the service when its
        # run is gone.
        os.kill(dead[-1], signal.SIGKILL)
        started[killed].kill()
        started[killed].wait()
        assert all(map(is_alive, dead[:-1]))

        with begun(command(following, {"a": SHORT}), tmp_path / "next") as run:
            assert run.wait(READY_WITHIN_S) == pytest.ExitCode.OK
            assert not any(map(is_alive, dead))
            assert not dead_folder.exists()
        living_folder, alive = made_by(living)
        assert all(map(is_alive, alive))
        assert living_folder.is_dir()


def test_a_process_with_the_pid_of_an_older_one_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as meant, subprocess.Popen(["sleep", "600"]) as other:
        try:
            folder = tmp_path / f"{run_folders.PREFIX}dead"
            folder.mkdir()
            stat = Path(f"/proc/{meant.pid}/stat").read_text()
            started = int(stat.rpartition(")")[2].split()[run_folders.STARTED])
            listed = f"{meant.pid} {started}\n{other.pid} {started - 1}\n{other.pid}"
            (folder / run_folders.LISTED).write_text(listed)
            (reported,) = run_folders.sweep([tmp_path])
            assert meant.wait(0) == -signal.SIGTERM
            assert other.poll() is None
            assert f"sleep ({meant.pid})" in reported
            assert not folder.exists()
            assert run_folders.sweep([tmp_path]) == []
        finally:
            meant.kill()
            other.kill()
