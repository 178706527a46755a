"""The progress and the options of an import."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from innkeeper.clients import logins
from innkeeper.entrypoints.cli.placement_import.wiring import progress_on
from innkeeper.main import main
from innkeeper.terminal.progress import Bars, Lines


def test_a_file_gets_lines() -> None:
    stream = io.StringIO()
    steps = progress_on(stream)
    assert isinstance(steps, Lines)
    with steps.step("source: reading", 1000) as advance:
        for _ in range(1000):
            advance(1)
    assert stream.getvalue().splitlines() == [
        f"source: reading: {done} of 1000" for done in range(0, 1001, 100)
    ]
    with steps.step("few", 3) as advance:
        advance(2)
        advance(1)
    assert stream.getvalue().splitlines()[-2:] == ["few: 0 of 3", "few: 3 of 3"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar() -> None:
    stream = Terminal()
    steps = progress_on(stream)
    assert isinstance(steps, Bars)
    with steps.step("source: reading", 4) as advance:
        advance(4)
    assert "source: reading" in stream.getvalue()
    assert "4/4" in stream.getvalue()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--from-url", "placement"),
        ("--from-url", "http://"),
        ("--to-url", "http://a b"),
        ("--to-url", "http://host/?a=b"),
        ("--to-url", "http://me:secret@host"),
        ("--jobs", "0"),
        ("--jobs", "65"),
        ("--jobs", "many"),
        ("--timeout", "nan"),
        ("--timeout", "0"),
        ("--timeout", "1e9"),
        ("--others", "shoot"),
    ],
)
def test_wrong_options_are_refused(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["placement-import", option, value])
    assert ended.value.code == 2
    assert f"argument {option}: " in capsys.readouterr().err


def test_two_acts_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["placement-import", "--dry-run", "--verify-only"])
    assert "not allowed with" in capsys.readouterr().err


def test_a_cloud_may_say_where_its_placement_is(tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(
        "clouds:\n"
        "  trusting: {auth_type: admin_token, auth: {endpoint: 'http://a:1', token: admin}}\n"
        "  elsewhere:\n"
        "    auth_type: admin_token\n"
        "    auth: {endpoint: 'http://a:1', token: admin}\n"
        "    placement_endpoint_override: http://b:2/placement\n"
    )
    trusting = logins.from_clouds_file("trusting", [str(path)])
    assert (trusting.token(), trusting.service_url("placement")) == ("admin", "http://a:1")
    elsewhere = logins.from_clouds_file("elsewhere", [str(path)])
    assert elsewhere.service_url("placement") == "http://b:2/placement"
