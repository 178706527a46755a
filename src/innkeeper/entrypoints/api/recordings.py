"""The files of recorded decisions, which a dedicated thread writes.

Always true: a decision does not wait for its file. The settings limit the number of files. Every
listed file is complete. Only this service's user can read the files, because they name hosts and
projects.

The files may lack some decisions. If the thread cannot write as fast as decisions are made, some
decisions are skipped. The log has the number of skipped decisions.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog

from innkeeper.domain.errors import NotFound, Unavailable
from innkeeper.scheduling import recordings
from innkeeper.scheduling.recordings import Recording

LOG = structlog.get_logger("innkeeper.recordings")
WAITING_MAX = 8
"""The maximum number of recordings that wait for the thread. Each recording contains a copy of the
host table."""
NAME = re.compile(r"[0-9]{8}T[0-9]{12}-[A-Za-z0-9-]{1,64}\.zip")
"""The pattern of a file's name, which begins with the time so that names sort by age."""
OWN_MODE, OWN_FOLDER_MODE = 0o600, 0o700


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """A recording on the disk."""

    name: str
    size_bytes: int


class RecordingFiles:
    """The files of one process, and the thread that writes them."""

    def __init__(self, folder: Path, files_max: int) -> None:
        self._folder = folder
        self._files_max = files_max
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recording")
        self._places = threading.BoundedSemaphore(WAITING_MAX)
        self._left_out = 0
        self._counting = threading.Lock()
        self._is_stopping = False

    def stop(self) -> None:
        """Write the waiting recordings, and accept no new ones."""
        self._is_stopping = True
        self._thread.shutdown()

    def keep(self, recording: Recording) -> None:
        """Queue a recording, or skip it if too many are waiting.

        The thread that makes decisions calls this method.
        """
        if self._is_stopping or not self._places.acquire(blocking=False):
            with self._counting:
                self._left_out += 1
            return
        self._thread.submit(self._write, recording).add_done_callback(_log_error)

    async def save(self, recording: Recording) -> str:
        """Write a recording, and return the name of the file.

        Raises :class:`Unavailable` if too many recordings wait, or if the file cannot be written.
        """
        if self._is_stopping or not self._places.acquire(blocking=False):
            raise Unavailable("Too many recordings are waiting. Please try again later.")
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._write, recording
            )
        except OSError as error:
            LOG.error("recording_failed", exc_info=error)
            raise Unavailable("The recording could not be written.") from error

    async def index(self) -> list[RecordingFile]:
        """Return the files, newest first."""
        return await asyncio.to_thread(lambda: sorted(self._found(), key=_newest_first))

    async def read(self, name: str) -> bytes:
        """Return the content of a file. Raises :class:`NotFound` for an unknown name."""
        if NAME.fullmatch(name) is None:
            raise _unknown(name)
        try:
            return await asyncio.to_thread((self._folder / name).read_bytes)
        except FileNotFoundError as error:
            raise _unknown(name) from error

    def _write(self, recording: Recording) -> str:
        with self._counting:
            left_out, self._left_out = self._left_out, 0
        if left_out:
            LOG.warning("recordings_left_out", count=left_out)
        try:
            name = _name_of(recording)
            self._folder.mkdir(mode=OWN_FOLDER_MODE, parents=True, exist_ok=True)
            _write_whole(self._folder / name, recordings.write(recording))
            self._remove_oldest()
            return name
        finally:
            self._places.release()

    def _remove_oldest(self) -> None:
        names = sorted(each.name for each in self._found())
        for name in names[: -self._files_max]:
            (self._folder / name).unlink(missing_ok=True)

    def _found(self) -> Iterator[RecordingFile]:
        if not self._folder.is_dir():
            return
        for each in os.scandir(self._folder):
            if NAME.fullmatch(each.name):
                yield RecordingFile(each.name, each.stat().st_size)


def _name_of(recording: Recording) -> str:
    moment = datetime.fromisoformat(recording.recorded_at)
    label = re.sub(r"[^A-Za-z0-9-]", "-", recording.label)[:64] or "decision"
    return f"{moment:%Y%m%dT%H%M%S%f}-{label}.zip"


def _write_whole(path: Path, content: bytes) -> None:
    # Write the file under another name first, so that an incomplete file is never listed.
    unfinished = path.with_name(f".{path.name}.part")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(unfinished, flags, OWN_MODE), "wb") as file:
            file.write(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _log_error(done: Future[str]) -> None:
    error = done.exception()
    if error is not None:
        # Decisions continue without being recorded, for example while the disk is full.
        LOG.error("recording_failed", exc_info=error)


def _newest_first(each: RecordingFile) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in each.name)


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no recording {name!r}.")
