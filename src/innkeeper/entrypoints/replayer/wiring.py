"""What ``innkeeper replay`` does with its options; gives its exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.replayer import printing
from innkeeper.entrypoints.replayer.replaying import Changes, replay
from innkeeper.scheduling import recordings

SAME, DIFFERENT, FAILED = 0, 1, 2


def run(options: Mapping[str, Any]) -> int:
    """Replay one file."""
    for stream in (sys.stdout, sys.stderr):
        # Names may hold what a terminal's encoding cannot show.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        found = recordings.read(_packed(options["file"]))
        done = replay(
            found,
            Changes(
                driver=options["driver"],
                filters=options["filters"],
                weighers=options["weighers"],
                subset_size=options["subset_size"],
                seed=options["seed"],
                host=options["host"],
            ),
        )
    except Invalid as refusal:
        return _failed(refusal.message)
    except OSError as error:
        return _failed(f"{options['file']}: {error.strerror or error}.")
    try:
        told = printing.as_json(done) if options["json"] else printing.as_text(done)
        sys.stdout.write(told + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough.
        _leave_out()
    except OSError as error:
        _leave_out()
        return _failed(f"the answer cannot be written: {error.strerror or error}.")
    return DIFFERENT if done.differences else SAME


def _packed(path: Path) -> bytes:
    """What is in a file; a device that never ends is none, nor is more than can be unpacked."""
    if path.exists() and not path.is_file():
        raise Invalid(f"{path} is no file.")
    recordings.check_file_size(path.stat().st_size)
    return path.read_bytes()


def _leave_out() -> None:
    """Let what is not written yet go nowhere, so that the end of the program is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(why: str) -> int:
    sys.stderr.write(f"innkeeper replay: {why}\n")
    return FAILED
