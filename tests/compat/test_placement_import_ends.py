"""Imports that are interrupted and resumed, that lose their reader, or that cannot start."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from innkeeper.main import main
from tests.compat.moving import EVERYTHING, Run, at, begun, generations, of_original, of_ours, until
from tests.compat.openstack_command import environment
from tests.support.forked import SOURCE
from tests.support.original import Original
from tests.support.running import Running, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]
ENDS_WITHIN_S = 60.0


@pytest.mark.parametrize(
    "moment",
    [
        "target: writing providers: 0 of 3",
        "target: writing inventories, traits and aggregates: 0 of",
        "target: writing consumers: 0 of",
        "target: writing consumers: 19 of 19",
        "target: writing final inventories: 2 of 2",
    ],
)
def test_a_killed_import_continues(
    filled: Original, target: Running, bring: Run, moment: str
) -> None:
    with begun(filled.url, at(target)) as program:
        until(program, moment)
        program.send_signal(signal.SIGKILL)
        assert program.wait(ENDS_WITHIN_S) == -signal.SIGKILL

    status, told_at_last, warned = bring(filled.url, at(target))
    assert (status, told_at_last) == (0, EVERYTHING), warned


def test_it_can_be_interrupted(target: Running) -> None:
    # The import cannot finish before the signal, because the original never answers.
    with socket.create_server(("127.0.0.1", 0)) as original:
        from_url = "http://{}:{}".format(*original.getsockname())
        with begun(from_url, at(target)) as program:
            question, _ = original.accept()
            with question:
                assert question.recv(1)
                program.send_signal(signal.SIGINT)
                assert program.wait(ENDS_WITHIN_S) == 130
            assert program.stderr is not None
            *_, last = program.stderr
            assert (
                last
                == "innkeeper placement-import: interrupted; run the command again to continue.\n"
            )


def test_a_closed_pipe_is_not_an_error(filled: Original, target: Running) -> None:
    with begun(filled.url, at(target), "--verify-only") as program:
        assert program.stdout is not None
        program.stdout.close()
        assert program.wait(ENDS_WITHIN_S) == 1
        assert program.stderr is not None
        assert not any("rror" in line for line in program.stderr)


def test_unknown_names_are_reported_before_the_first_write(
    source: Original, target: Running, bring: Run, tmp_path: Path
) -> None:
    theirs = of_original(source)
    host = theirs.provider("host", {"VCPU": {"total": 1}})
    # This new trait takes the place of the original's next release.
    original = tmp_path / "original" / "placement.db"
    with closing(sqlite3.connect(original)) as database, database:
        for name in ("HW_OF_THE_FUTURE", "HW_OF_THE_FAR_FUTURE"):
            row = (name, "2030-01-01 00:00:00.000000")
            database.execute("insert into traits (name, created_at) values (?, ?)", row)
    theirs.set(host, "traits", ["HW_OF_THE_FUTURE"])
    status, reported, warned = bring(source.url, at(target))
    assert (status, reported) == (2, "")
    assert "does not know the trait HW_OF_THE_FUTURE" in warned
    assert host in warned
    assert "FAR_FUTURE" not in warned
    assert generations(of_ours(target)) == {}


def test_clouds_and_tokens_of_the_environment(
    filled: Original, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path / "closed", auth="builtin", apis=("identity", "placement")) as closed:
        clouds = tmp_path / "closed" / "clouds.yaml"
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "innkeeper.main", "placement-import"),
                *("--from-url", filled.url, "--to-cloud", "innkeeper"),
            ],
            env=environment(
                PYTHONPATH=str(SOURCE),
                OS_CLIENT_CONFIG_FILE=str(clouds),
                PLACEMENT_FROM_TOKEN="admin",
            ),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (ran.returncode, ran.stdout) == (0, EVERYTHING), ran.stderr
        for ours, theirs, token, status_told in (
            (filled.url, at(closed), "wrong", "401"),
            (at(closed), filled.url, "nobody", "403"),
        ):
            words_of_ours = ("--from-url", ours, "--from-token", "admin")
            words_of_theirs = ("--to-url", theirs, "--to-token", token)
            assert main(["placement-import", *words_of_ours, *words_of_theirs]) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert line.startswith(f"innkeeper placement-import: target ({theirs}): GET /")
            assert status_told in line


def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str], filled: Original) -> None:
    def refused(*more: str) -> str:
        assert main(["placement-import", *more]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "The source is not given" in refused()
    ours = ("--from-url", filled.url, "--from-token", "admin")
    assert "The target is not given" in refused(*ours)
    assert "are the same" in refused(*ours, "--to-url", f"{filled.url}/", "--to-token", "admin")
    nowhere = ("--to-url", f"{filled.url}/nowhere", "--to-token", "admin")
    assert "401 Unauthorized" in refused(*ours, *nowhere)
    assert "not both" in refused("--from-cloud", "a", "--from-token", "b")
