"""The files of recorded decisions: complete, limited in number, and private."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.errors import NotFound, Unavailable
from innkeeper.domain.placing import BuildPlan
from innkeeper.entrypoints.api.recordings import WAITING_MAX, RecordingFiles
from innkeeper.scheduling import recordings
from innkeeper.scheduling.recordings import Recipe, Recording
from innkeeper.snapshot import recording
from innkeeper.snapshot.recording import Moment
from tests.support.tables import asking, host, table_of

NOTHING = BuildPlan((), {}, 1, 0, ())
MOMENT = recording.copy_of(table_of(host("a")))


def made(second: int, label: str = "r-1", moment: Moment = MOMENT) -> Recording:
    recipe = Recipe("all_at_once", (), (), 1, 1)
    when = f"2026-11-20T20:00:{second:02}.000000Z"
    return Recording(moment, asking(), recipe, NOTHING, when, label)


@pytest.fixture(name="files")
def some_files(tmp_path: Path) -> Iterator[RecordingFiles]:
    files = RecordingFiles(tmp_path / "recordings", files_max=3)
    yield files
    files.stop()


def test_a_saved_recording_can_be_read_and_is_private(
    files: RecordingFiles, tmp_path: Path
) -> None:
    name = asyncio.run(files.save(made(1)))
    assert name == "20261120T200001000000-r-1.zip"
    found = recordings.read(asyncio.run(files.read(name)))
    assert found.table.names == ["a"]
    folder = tmp_path / "recordings"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / name).stat().st_mode & 0o777 == 0o600
    assert [each.name for each in folder.iterdir()] == [name]


def test_the_newest_files_are_kept(files: RecordingFiles) -> None:
    names = [asyncio.run(files.save(made(second))) for second in (1, 5, 2, 4, 3)]
    there = asyncio.run(files.index())
    # The files are in the order of the decisions, whenever they were written.
    assert [each.name for each in there] == [names[1], names[3], names[4]]
    assert all(each.size_bytes > 0 for each in there)
    with pytest.raises(NotFound):
        asyncio.run(files.read(names[0]))


def test_other_files_are_left_alone(files: RecordingFiles, tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name in ("notes.txt", ".20261120T200001000000-r-1.zip.abcd", "2026.zip"):
        (folder / name).write_text("mine")
    for second in range(5):
        asyncio.run(files.save(made(second)))
    assert len(asyncio.run(files.index())) == 3
    assert len(list(folder.iterdir())) == 6
    with pytest.raises(NotFound):
        asyncio.run(files.read("notes.txt"))


@pytest.mark.parametrize("name", ["", "..", "../secret", "a/b", "\0", "x" * 300])
def test_names_outside_the_folder_are_rejected(files: RecordingFiles, name: str) -> None:
    with pytest.raises(NotFound):
        asyncio.run(files.read(name))


def test_labels_become_file_names(files: RecordingFiles) -> None:
    name = asyncio.run(files.save(made(1, label="../r 1\n" + "x" * 100)))
    assert name.startswith("20261120T200001000000----r-1-xxx")
    assert asyncio.run(files.read(name))


def test_without_a_recording_the_list_is_empty(files: RecordingFiles) -> None:
    assert asyncio.run(files.index()) == []


class Slow(dict[str, object]):
    """A state whose encoding blocks until the test releases it."""

    def __init__(self, gate: threading.Event) -> None:
        super().__init__(MOMENT.state)
        self._gate = gate

    def __getitem__(self, key: str) -> object:
        self._gate.wait(60.0)
        return super().__getitem__(key)


def test_a_decision_does_not_wait_for_its_file(files: RecordingFiles, tmp_path: Path) -> None:
    gate = threading.Event()
    slow = Moment(MOMENT.columns, Slow(gate))
    try:
        for _ in range(3 * WAITING_MAX):
            files.keep(made(1, moment=slow))
        with pytest.raises(Unavailable):
            asyncio.run(files.save(made(2)))
    finally:
        gate.set()
    files.stop()
    assert len(list((tmp_path / "recordings").iterdir())) == 1


def test_a_failing_disk_does_not_stop_decisions(tmp_path: Path) -> None:
    (tmp_path / "recordings").write_text("in the way")
    files = RecordingFiles(tmp_path / "recordings", files_max=3)
    files.keep(made(1))
    with pytest.raises(Unavailable, match="could not be written"):
        asyncio.run(files.save(made(2)))
    files.stop()
    files.keep(made(3))
    with pytest.raises(Unavailable, match="Too many"):
        asyncio.run(files.save(made(4)))
