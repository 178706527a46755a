"""The agent validates its options at the start, before the service sees them."""

from __future__ import annotations

import argparse

import pytest

from innkeeper.entrypoints.agent import options


def parsed(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    options.add(parser)
    return parser.parse_args(["--driver", "fake", *given])


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--url", "garbage", "http or https address"),
        ("--url", "", "http or https address"),
        ("--url", "ftp://cloud/compute", "http or https address"),
        ("--url", "http://", "http or https address"),
        ("--url", "http://[::1/compute", "http or https address"),
        ("--url", "http://cloud:many/compute", "http or https address"),
        ("--url", "http://my cloud/compute", "http or https address"),
        ("--name", "my agent", "begin with a letter or digit"),
        ("--name", "", "begin with a letter or digit"),
        ("--name", "a" * 201, "at most 200"),
        ("--host-prefix", "host ", "begin with a letter or digit"),
        ("--host-prefix", "a" * 200, "at most 200"),
        ("--az", "one,two:three", "'two:three' is not a valid name of an availability zone"),
        ("--traits", "HW_CPU,my trait", "'my trait' is not a valid trait"),
        ("--build-time-s", "-1", "between 0 and"),
        ("--build-time-s", "nan", "between 0 and"),
        ("--build-time-s", "inf", "between 0 and"),
        ("--build-time-s", "soon", "between 0 and"),
        ("--memory-mb", "0", "between 1 and"),
        ("--memory-mb", "2147483648", "between 1 and"),
        ("--disk-gb", "-1", "between 0 and"),
        ("--disk-gb", "much", "between 0 and"),
        ("--hosts", "many", "between 1 and"),
        ("--with-parent", "0", "between 1 and"),
        ("--with-parent", "me", "between 1 and"),
    ],
)
def test_invalid_values_are_rejected(
    option: str, value: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(f"{option}={value}")
    assert ended.value.code == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert f"argument {option}: " in line
    assert words in line


def test_valid_values_are_accepted() -> None:
    taken = parsed(
        "--url=https://[2001:db8::1]:8443/compute",
        "--name=rack_1.example.org",
        "--host-prefix=",
        "--az=one, zwei-straße",
        "--memory-mb=67108864",
        "--disk-gb=0",
        "--build-time-s=0.5",
        "--with-parent=4711",
    )
    assert taken.url == "https://[2001:db8::1]:8443/compute"
    assert taken.name == "rack_1.example.org"
    assert taken.az == ("one", "zwei-straße")
    assert taken.memory_mb == 64 * 1024 * 1024
    assert taken.disk_gb == 0
    assert taken.build_time_s == 0.5
    assert taken.with_parent == 4711


def test_defaults_of_omitted_options() -> None:
    taken = parsed("--name=rack")
    assert taken.url is None
    assert taken.with_parent is None
