"""The password options of the commands of several rooms."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from osc_lib.exceptions import CommandError

from innkeeper.entrypoints.cli.passwords import add_password, given_password
from innkeeper.entrypoints.cli.pods.pods import CreatePod, SetPod
from innkeeper.entrypoints.cli.zones.children import CreateZone, SetZone


def given(*words: str) -> str | None:
    """Return the password that a command line gives."""
    parser = argparse.ArgumentParser()
    add_password(parser, "of somebody")
    return given_password(parser.parse_args(words))


def test_a_password_is_a_text_or_the_first_line_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("first line\nsecond line\n", encoding="utf-8")
    assert given() is None
    assert given("--password", "a b") == "a b"
    assert given("--password-file", str(file)) == "first line"


@pytest.mark.parametrize("content", [b"", b"\nlater\n", b"\xff\n"])
def test_a_file_without_a_password_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    for path in (file, tmp_path / "missing"):
        with pytest.raises(CommandError):
            given("--password-file", str(path))


def test_the_help_says_whose_password_is_meant() -> None:
    app: Any = SimpleNamespace(command_manager=None)
    for command, whose in (
        (CreatePod, "of this user in the pod"),
        (SetPod, "of this user in the pod"),
        (CreateZone, "that the child made for this zone"),
        (SetZone, "that the child made for this zone"),
    ):
        shown = " ".join(command(app, None).get_parser("it").format_help().split())
        assert f"password {whose}" in shown
