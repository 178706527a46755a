"""Runs ``innkeeper replay``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.replayer import printing
from innkeeper.entrypoints.replayer.replaying import Changes, Replayed, replay
from innkeeper.scheduling import recordings
from innkeeper.terminal.ending import discard_output, run_command

SAME, DIFFERENT = 0, 1


def run(options: Mapping[str, Any]) -> int:
    """Replay one recording, and return the exit status."""
    return run_command(
        "replay",
        lambda: _run(options),
        closed=SAME,
        memory="there is not enough memory for the recording.",
        interrupted="interrupted.",
    )


def _run(options: Mapping[str, Any]) -> int:
    changes = ("driver", "filters", "weighers", "subset_size", "seed", "host")
    try:
        recorded = recordings.read(_content(options["file"]))
    except OSError as error:
        raise Invalid(f"{options['file']}: {error.strerror or error}.") from error
    replayed = replay(recorded, Changes(**{name: options[name] for name in changes}))
    _print(replayed, is_json=options["json"])
    return DIFFERENT if replayed.differences else SAME


def _print(replayed: Replayed, *, is_json: bool) -> None:
    text = printing.as_json(replayed) if is_json else printing.as_text(replayed)
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the output, but the status of the comparison is still valid.
        discard_output()
    except OSError as error:
        discard_output()
        raise Invalid(f"the result cannot be written: {error.strerror or error}.") from error


def _content(path: Path) -> bytes:
    # Reject devices, which may be endless. Do not unpack a file that is too large.
    if path.exists() and not path.is_file():
        raise Invalid(f"{path} is not a regular file.")
    recordings.check_file_size(path.stat().st_size)
    return path.read_bytes()
