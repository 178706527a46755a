"""Programs that cannot start print the reason in one line. A stop signal stops a program."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.agents import WITHIN_S, eventually, start
from tests.support.forked import SOURCE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]
NOWHERE = "http://127.0.0.1:9"
NO_DATABASE = b"This is a letter, and no database at all, however long one looks at it. " * 100
FILE_BYTES_MAX = 40_000
BURSTS = 6


def ended(
    *options: str, before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """The output of a program that ended by itself."""
    return subprocess.run(
        [sys.executable, "-m", "innkeeper.main", *options],
        env={"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
        preexec_fn=before,
    )


def refused(program: subprocess.CompletedProcess[str]) -> str:
    """The one line of a program that refuses to start."""
    lines = program.stderr.splitlines()
    assert (program.returncode, len(lines)) == (2, 1), program.stderr
    return lines[0]


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        line = refused(ended("serve", "--data-dir", str(tmp_path), "--port", port))
    assert line == (
        f"innkeeper: Cannot listen on '127.0.0.1', port {port}: Address already in use."
    )


@pytest.mark.parametrize("host", ["192.0.2.77", "no.such.host.invalid", "a..b", "x" * 300])
def test_an_address_that_is_not_ours(tmp_path: Path, host: str) -> None:
    line = refused(ended("serve", "--data-dir", str(tmp_path), "--port", "0", "--host", host))
    assert line.startswith(f"innkeeper: Cannot listen on '{host}', port 0: ")


@pytest.mark.parametrize("command", ["serve", "audit", "db upgrade", "admin-password"])
def test_a_file_that_is_no_database(tmp_path: Path, command: str) -> None:
    file = tmp_path / "innkeeper.sqlite3"
    file.write_bytes(NO_DATABASE)
    line = refused(ended(*command.split(), "--data-dir", str(tmp_path)))
    assert line == "innkeeper: Cannot use the database: file is not a database."
    assert file.read_bytes() == NO_DATABASE


@pytest.mark.parametrize("command", ["serve", "audit"])
def test_a_database_that_is_spoilt(tmp_path: Path, command: str) -> None:
    assert ended("db", "upgrade", "--data-dir", str(tmp_path)).returncode == 0
    file = tmp_path / "innkeeper.sqlite3"
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + b"A" * (len(whole) - 4096))
    line = refused(ended(command, "--data-dir", str(tmp_path)))
    assert line == "innkeeper: Cannot use the database: database disk image is malformed."


def no_room() -> None:
    """Limit the files of this process to a few pages, like a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    line = refused(ended("serve", "--data-dir", str(tmp_path), "--port", "0", before=no_room))
    assert line.startswith("innkeeper: Cannot use the database: ")


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    line = refused(ended("serve", "--data-dir", str(file)))
    assert line.startswith("innkeeper: Cannot use the data directory: ")


def locked(state_dir: Path) -> bool:
    """Whether an agent has started in this folder."""
    return (state_dir / "fake.sqlite3").exists()


@pytest.mark.parametrize("number", range(BURSTS))
def test_an_agent_survives_repeated_stop_signals(tmp_path: Path, number: int) -> None:
    program = start(NOWHERE, tmp_path / "agent", "--name", f"agent-{number}")
    eventually(lambda: locked(tmp_path / "agent"), True)
    end_s = time.monotonic() + WITHIN_S
    while program.poll() is None:
        assert time.monotonic() < end_s, "It hangs."
        for each in (signal.SIGTERM, signal.SIGINT) * 50:
            program.send_signal(each)
        time.sleep(0.001)
    assert program.returncode == 0


def test_an_agent_without_its_parent_does_not_start(tmp_path: Path) -> None:
    other = os.getppid()
    program = start(NOWHERE, tmp_path / "agent", "--with-parent", str(other))
    assert program.wait(WITHIN_S) == 0
    assert not (tmp_path / "agent").exists()


PARENT = """
import os, subprocess, sys
command = [sys.executable, "-m", "innkeeper.main", "agent", *sys.argv[1:]]
subprocess.Popen([*command, "--with-parent", str(os.getpid())])
sys.stdin.read()
"""


@pytest.mark.parametrize("is_early", [True, False])
def test_an_agent_stops_with_its_parent(tmp_path: Path, is_early: bool) -> None:
    state_dir = tmp_path / "agent"
    command = ["--driver", "fake", "--url", f"{NOWHERE}/compute", "--state-dir", str(state_dir)]
    reading, writing = os.pipe()
    environ = {"PYTHONPATH": str(SOURCE), "OS_TOKEN": "admin", "PATH": os.environ["PATH"]}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *command],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    if is_early:
        time.sleep(0.1)
    else:
        eventually(lambda: locked(state_dir), True)
    parent.kill()
    parent.communicate()
    # The agent inherits the pipe from its parent. The pipe closes with the last process.
    with os.fdopen(reading, "rb") as output:
        assert output.read() == b""


def test_an_agent_continues_when_its_log_has_no_reader(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = ["--driver", "fake", "--url", f"{NOWHERE}/compute", "--name", "one"]
    program = subprocess.Popen(
        [sys.executable, "-m", "innkeeper.main", "agent", *command, "--state-dir", tmp_path],
        env={"PYTHONPATH": str(SOURCE), "OS_TOKEN": "admin", "PATH": os.environ["PATH"]},
        stderr=writing,
    )
    os.close(writing)
    eventually(lambda: locked(tmp_path), True)
    # The agent reports at once that there is no service.
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(1.0)
    program.send_signal(signal.SIGTERM)
    # With SIGPIPE ignored, the interpreter reports at its end that its output was not read.
    assert program.wait(WITHIN_S) in (0, 120)


@pytest.mark.parametrize(
    "words",
    [("admin-password",), ("encryption-key", "show"), ("agent-credential", "host-1"), ("audit",)],
)
def test_a_read_only_command_creates_no_files(words: tuple[str, ...], tmp_path: Path) -> None:
    there = tmp_path / "mistyped"
    reported = ended(*words, "--data-dir", str(there))
    assert reported.returncode == 2
    assert reported.stderr == f"innkeeper: There is no database at {there / 'innkeeper.sqlite3'}.\n"
    assert not there.exists()
