"""Log lines that cannot be written are dropped without an error."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from typing import Any, TextIO

import pytest
import structlog

from innkeeper.domain.slices import Serving
from innkeeper.entrypoints.api.logs import set_up_logs


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Restore the configuration of the log."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def unread() -> TextIO:
    """A pipe whose reader has closed it."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w", buffering=1)


def closed() -> TextIO:
    stream = io.StringIO()
    stream.close()
    return stream


def missing() -> None:
    """The stream of a process that was started without one."""


@pytest.mark.parametrize("stream", [unread, closed, missing])
@pytest.mark.parametrize("form", ["console", "json"])
def test_an_unwritable_log_raises_no_error(stream: Any, form: Any) -> None:
    broken = stream()
    set_up_logs(Serving(log_format=form), broken)
    log = structlog.get_logger("test")
    log.error("first", exc_info=RuntimeError("boom"))
    log.error("second")
    if stream is unread:
        with pytest.raises(BrokenPipeError):
            broken.close()


def test_lone_surrogates_are_escaped_in_json() -> None:
    stream = io.StringIO()
    set_up_logs(Serving(log_format="json"), stream)
    structlog.get_logger("test").error("odd", text="a\ud800", thing=object)
    assert json.loads(stream.getvalue())["text"] == "a\ud800"


def test_a_line_is_an_event() -> None:
    stream = io.StringIO()
    set_up_logs(Serving(), stream)
    structlog.get_logger("test").error("first", steps=3)
    assert "event=first" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_hidden_characters_are_escaped() -> None:
    stream = io.StringIO()
    set_up_logs(Serving(log_format="console"), stream)
    log = structlog.get_logger("test")
    log.info("request", path="/a\x1b[2J\rb\nc\x9b\u2028d\u202ee\x00")
    line = stream.getvalue()
    assert r"/a\x1b[2J\rb\nc\x9b\u2028d\u202ee\x00" in line
    assert line.count("\n") == 1
    assert line.rstrip("\n").isprintable()
