"""``innkeeper replay``: its output and exit statuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.domain.slices import Scheduling
from innkeeper.main import main
from innkeeper.scheduling import depletion, recordings
from innkeeper.scheduling.recordings import Recipe, Recording
from innkeeper.scheduling.weighers.catalogue import WEIGHER_SETS
from innkeeper.snapshot import recording
from innkeeper.snapshot.columns import HostTable
from innkeeper.systems.compute.boot import drivers
from tests.support.tables import asking, host, table_of

SAME, DIFFERENT, FAILED = 0, 1, 2
SPREADING = Scheduling(default_host_weighers=("FreeMemoryWeigher",))
STAIRS = [host(f"h{number}", memory_mb=4096 * (number + 1)) for number in range(4)]


def recorded(
    table: HostTable, spec: RequestSpec, settings: Scheduling = SPREADING, **otherwise: Any
) -> bytes:
    """The file of a decision; ``otherwise`` replaces fields of its recorded settings."""
    moment = recording.copy_of(table)
    made: BuildPlan = drivers.scheduler_of(settings).plan(table, spec)
    depletion.undo(table, spec, made)
    recipe = {
        "driver": settings.scheduler_driver,
        "filters": settings.default_host_filters,
        "weighers": tuple(drivers.multipliers_of(settings).items()),
        "subset_size": settings.host_subset_size,
        "attempts_max": settings.build_attempts_max,
        **otherwise,
    }
    when = "2026-11-20T20:00:00.000000Z"
    return recordings.write(Recording(moment, spec, Recipe(**recipe), made, when, "r-1"))


@pytest.fixture(name="file")
def a_file(tmp_path: Path) -> Path:
    """Two servers on four hosts; the host with the most memory is first."""
    path = tmp_path / "decision.zip"
    path.write_bytes(recorded(table_of(*STAIRS), asking(count=2)))
    return path


def test_a_recorded_decision_is_reproduced(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(file)]) == SAME
    told = capsys.readouterr().out
    assert "Recorded 2026-11-20T20:00:00.000000Z, r-1: 2 servers of VCPU 1" in told
    assert "Decided by all_at_once, subset 1, seed 1" in told
    assert "1. h3 1.0000 (FreeMemoryWeigher 1.0000)" in told
    assert told.endswith("The same hosts in the same order as recorded.\n")


def test_other_weighers_are_tried_on_the_same_moment(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(file), "--weighers", "FreeMemoryWeigher=-1"]) == DIFFERENT
    told = capsys.readouterr().out
    assert "weighers: FreeMemoryWeigher -1\n" in told
    assert "Not as recorded:\n  server 1: recorded h3, now h0\n" in told


def test_sets_of_weighers_have_their_names(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(file), "--weighers", "spread"]) == SAME
    capsys.readouterr()
    main(["replay", str(file), "--weighers", "pack", "--json"])
    decided_by = json.loads(capsys.readouterr().out)["explanation"]["decided_by"]
    wanted = {name: factor for name, factor in WEIGHER_SETS["pack"].items() if factor}
    assert decided_by["weighers"] == wanted


def test_other_drivers_filters_sizes_and_seeds_are_tried(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(file), "--filters", "AllHostsFilter"]) == SAME
    outcomes = {
        main(["replay", str(file), "--driver", "chance", "--seed", str(seed)]) for seed in range(20)
    }
    assert outcomes == {SAME, DIFFERENT}
    capsys.readouterr()
    main(["replay", str(file), "--subset-size", "4", "--seed", "3"])
    assert "subset 4, seed 3" in capsys.readouterr().out


def test_all_of_it_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(file), "--json", "--host", "h0"]) == SAME
    told = json.loads(capsys.readouterr().out)
    assert told["is_same"] is True
    assert told["differences"] == []
    assert [each["host"] for each in told["recorded"]] == ["h3", "h3"]
    assert told["recorded"] == told["decided"]
    assert told["explanation"]["host"]["rank"] == 4
    assert [each["host"] for each in told["explanation"]["best"]] == ["h3", "h2", "h1", "h0"]


def test_a_decision_that_failed_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "failed.zip"
    path.write_bytes(recorded(table_of(*STAIRS), asking(memory_mb=20_000)))
    assert main(["replay", str(path), "--host", "h1"]) == SAME
    told = capsys.readouterr().out
    assert "CapacityFilter removed 4" in told
    assert "h3: CapacityFilter: MEMORY_MB: 3616 of 20000 missing" in told
    assert "No valid host was found." in told
    assert "Host h1\n" in told
    assert "CapacityFilter refuses: MEMORY_MB: 11808 of 20000 missing" in told
    assert "ForcedHostFilter is not asked" in told


def test_servers_without_a_place_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "short.zip"
    table = table_of(host("a", vcpus=2), host("b", vcpus=1))
    path.write_bytes(recorded(table, asking(count=5)))
    assert main(["replay", str(path)]) == SAME
    told = capsys.readouterr().out
    assert "Placed 3 of 5" in told
    assert "Server 4 found no host once" in told
    assert main(["replay", str(path), "--filters", "IoOpsFilter"]) == FAILED
    assert "One of the filters or weighers needs the servers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--driver", "dice"], "There is no driver 'dice'."),
        (["--filters", "NoFilter"], "There is no host filter 'NoFilter'."),
        (["--weighers", "NoWeigher"], "There is no weigher 'NoWeigher'."),
        (["--host", "h9"], "The recording has no host 'h9'."),
        (["--weighers", "FreeMemoryWeigher=1e300"], "The settings are invalid"),
    ],
)
def test_unknown_names_are_rejected(
    file: Path, options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(file), *options]) == FAILED
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--seed", "-1"],
        ["--seed", "one"],
        ["--subset-size", "0"],
        ["--weighers", "FreeMemoryWeigher=much"],
        ["--weighers", "FreeMemoryWeigher=nan"],
    ],
)
def test_invalid_numbers_are_usage_errors(file: Path, options: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(file), *options])
    assert ended.value.code == FAILED


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "none.zip")]) == FAILED
    assert "none.zip: No such file or directory." in capsys.readouterr().err
    assert main(["replay", str(tmp_path)]) == FAILED


def test_a_file_that_is_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.zip"
    path.write_bytes(b"PK or not")
    assert main(["replay", str(path)]) == FAILED
    assert "This is not a recording of a decision" in capsys.readouterr().err


def test_a_recording_with_unknown_filters_needs_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.zip"
    path.write_bytes(recorded(table_of(*STAIRS), asking(), filters=("OwnFilter",)))
    assert main(["replay", str(path)]) == FAILED
    assert "There is no host filter 'OwnFilter'." in capsys.readouterr().err
    # With filters that exist here, the recording can be replayed nevertheless.
    assert main(["replay", str(path), "--filters", "ComputeFilter"]) == SAME


def test_an_invalid_query_is_reported_as_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "query.zip"
    path.write_bytes(recorded(table_of(*STAIRS), replace(asking(), query=(None,))))
    assert main(["replay", str(path)]) == FAILED
    assert "The recording is damaged: The query for hosts" in capsys.readouterr().err


def test_a_write_error_is_reported_in_one_line(file: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "innkeeper.main", "replay", str(file)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == FAILED
    assert done.stderr.startswith("innkeeper replay: the result cannot be written: No space")
    assert done.stderr.count("\n") == 1


def test_a_device_is_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "/dev/zero"]) == FAILED
    assert capsys.readouterr().err == "innkeeper replay: /dev/zero is not a regular file.\n"
