"""Settings: the example is complete, later sources win, and errors are reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.slices import SLICES, Settings
from innkeeper.settings import KEYS, SettingsError, environment_of, load

EXAMPLE = Path(__file__).parents[2] / "examples" / "settings.toml"
COMMENTED_OUT = re.compile(r"^# (?=[a-z_]+ = )", re.MULTILINE)


def written(folder: Path, text: str) -> Path:
    """A settings file with this text."""
    path = folder / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_example_is_valid() -> None:
    settings = load(EXAMPLE, environ={})
    assert settings.storing.data_dir == "/var/lib/innkeeper"
    assert settings.scheduling.weigher_multipliers == {"FreeDiskWeigher": 0.5}
    assert settings.computing.quota_cores == 200


def test_every_line_of_the_example_is_valid(tmp_path: Path) -> None:
    text = COMMENTED_OUT.sub("", EXAMPLE.read_text(encoding="utf-8"))
    settings = load(written(tmp_path, text), environ={})
    assert settings.authenticating.policy_file == "/etc/innkeeper/policy.yaml"
    assert settings.serving.public_url == "https://capacity.example.org"


def test_commented_lines_of_the_example_show_the_defaults(tmp_path: Path) -> None:
    examples = {  # These have no default to show.
        "public_url",
        "policy_file",
        "keystone_url",
        "keystone_user",
    }
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    shown = [line.removeprefix("# ") for line in lines if COMMENTED_OUT.match(line)]
    assert shown
    for line in shown:
        key = line.partition(" ")[0]
        if key in examples:
            continue
        settings = load(written(tmp_path, line), environ={})
        given = getattr(getattr(settings, KEYS[key]), key)
        assert given == getattr(SLICES[KEYS[key]](), key), line


def test_nothing_given_is_the_defaults() -> None:
    assert load(environ={"PATH": "/usr/bin", "HOME": "/"}) == Settings()


def test_the_environment_beats_the_file_and_options_beat_both(tmp_path: Path) -> None:
    lines = ("port = 1001", 'host = "192.0.2.1"', 'default_availability_zone = "here"', "")
    path = written(tmp_path, "\n".join(lines))
    environ = {"INNKEEPER_PORT": "1002", "INNKEEPER_HOST": "192.0.2.2"}
    settings = load(path, environ=environ, overrides={"port": 1003, "host": None})
    assert settings.serving.port == 1003
    assert settings.serving.host == "192.0.2.2"
    assert settings.scheduling.default_availability_zone == "here"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("placement", ("placement",)),
        ("placement, compute", ("placement", "compute")),
        ('["placement", "compute"]', ("placement", "compute")),
        ("placement,,", ("placement",)),
    ],
)
def test_lists_in_the_environment(text: str, expected: tuple[str, ...]) -> None:
    assert load(environ={"INNKEEPER_APIS": text}).serving.apis == expected


@pytest.mark.parametrize("text", ["", "[]"])
def test_an_empty_list_in_the_environment(text: str) -> None:
    environ = {"INNKEEPER_DEFAULT_HOST_WEIGHERS": text}
    assert load(environ=environ).scheduling.default_host_weighers == ()


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"apis": ["placment"]}, "There is no API 'placment'. Did you mean 'placement'?"),
        ({"apis": []}, "is empty"),
        ({"placement_prefix": "placement"}, "must begin with a slash"),
        ({"placement_prefix": "/placement/"}, "must not end with one"),
        ({"placement_prefix": "/compute"}, "the same prefix"),
        ({"placement_prefix": "/{id}"}, "must consist of letters"),
        ({"placement_prefix": "/a//b"}, "must consist of letters"),
        ({"placement_prefix": "/a b"}, "must consist of letters"),
        ({"placement_prefix": "/healthz"}, "No API can have the prefix '/healthz'"),
        ({"placement_prefix": "/readyz"}, "the service itself uses it"),
        ({"placement_prefix": "/metrics"}, "the service itself uses it"),
        ({"placement_prefix": "/openapi.json"}, "the service itself uses it"),
        ({"host": ""}, "'host' is empty"),
        ({"public_url": ""}, "'public_url' is not an http or https URL"),
        ({"public_url": "cloud.example.org"}, "'public_url' is not an http"),
        ({"public_url": "ftp://cloud.example.org"}, "'public_url' is not an http"),
        ({"public_url": "https://"}, "'public_url' is not an http"),
        ({"public_url": "https://[::1"}, "'public_url' is not an http"),
        ({"public_url": "https://cloud.example.org:many"}, "'public_url' is not an http"),
        ({"public_url": "https://cloud example"}, "'public_url' is not an http"),
    ],
)
def test_invalid_serving_settings_are_rejected(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        load(environ={}, overrides=overrides)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"data_dir": ""}, "'data_dir' is empty"),
        ({"data_dir": "a\0b"}, "'data_dir' contains a NUL character"),
        ({"host": "a\0b"}, "'host' contains a NUL character"),
        ({"apis": ["compute", "a\0"]}, "'apis' contains a NUL character"),
        ({"policy_file": "\0"}, "'policy_file' contains a NUL character"),
        ({"zone_name": ""}, "'zone_name' must be printable"),
        ({"peer_host": ""}, "'peer_host' must be a name or an address"),
        ({"peer_host": "0.0.0.0"}, "reach this one"),  # noqa: S104 - what must be refused
        ({"peer_host": "::"}, "reach this one"),
        ({"peer_host": "a..b"}, "reach this one"),
        ({"peer_host": "10.0.0.1:9000"}, "without a port: '10.0.0.1:9000'"),
        ({"zone_name": "a\nb"}, "'zone_name' must be printable"),
        ({"region_name": ""}, "'region_name' is empty"),
        ({"region_name": " "}, "'region_name' is empty"),
        ({"default_availability_zone": "a:b"}, "'default_availability_zone' must be a name"),
        ({"default_availability_zone": ""}, "'default_availability_zone' must be a name"),
        ({"default_availability_zone": "a b"}, "'default_availability_zone' must be a name"),
    ],
)
def test_invalid_names_are_rejected(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        load(environ={}, overrides=overrides)


@pytest.mark.parametrize("url", ["http://cloud", "https://[2001:db8::1]:8443/innkeeper/"])
def test_addresses_for_clients(url: str) -> None:
    assert load(environ={}, overrides={"public_url": url}).serving.public_url == url


def test_a_list_in_the_environment_that_is_no_json() -> None:
    with pytest.raises(SettingsError, match="INNKEEPER_APIS is not a JSON list"):
        load(environ={"INNKEEPER_APIS": '["placement"'})


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("prot", "port"),
        ("defualt_host_filters", "default_host_filters"),
        ("claim_attempts", "claim_attempts_max"),
        ("service_downtime_s", "service_down_time_s"),
    ],
)
def test_an_unknown_setting_names_the_nearest(tmp_path: Path, wrong: str, nearest: str) -> None:
    expected = re.escape(f"There is no setting {wrong!r}. Did you mean {nearest!r}?")
    with pytest.raises(SettingsError, match=expected):
        load(written(tmp_path, f"{wrong} = 1\n"), environ={})
    with pytest.raises(SettingsError, match=expected):
        load(environ={f"INNKEEPER_{wrong.upper()}": "1"})


def test_a_table_in_the_file_is_an_unknown_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="There is no setting 'serving'"):
        load(written(tmp_path, "[serving]\nport = 1\n"), environ={})


@pytest.mark.parametrize(
    "line",
    [
        'port = "many"',
        "port = 65536",
        "port = 1.5",
        "host = 4",
        "apis = 7",
        "apis = [7]",
        'log_level = "loud"',
        'auth = "nobody"',
        "claim_attempts_max = 0",
        "token_lifetime_s = -1",
        "token_lifetime_s = 0",
        "cpu_allocation_ratio = 0",
        "quota_cores = -2",
        'free_disk_multiplier = "heavy"',
    ],
)
def test_a_value_of_the_wrong_kind_names_its_setting(tmp_path: Path, line: str) -> None:
    with pytest.raises(SettingsError, match=line.partition(" ")[0]):
        load(written(tmp_path, line + "\n"), environ={})


NUMBERS = [key for key, name in KEYS.items() if type(getattr(SLICES[name](), key)) in (int, float)]


@pytest.mark.parametrize("key", NUMBERS)
def test_every_number_has_bounds(tmp_path: Path, key: str) -> None:
    for number in ("99999999999999999999", "9" * 30, "-99999999999999999999", "-2"):
        with pytest.raises(SettingsError, match=rf"at `\$\.{key}`"):
            load(written(tmp_path, f"{key} = {number}\n"), environ={})
        with pytest.raises(SettingsError, match=key):
            load(environ={f"INNKEEPER_{key.upper()}": number})


@pytest.mark.parametrize("key", ["weigher_multipliers", "capability_multipliers"])
@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ('"" = 1', "contains an empty name: {'': 1.0}"),
        ('" " = 1', "contains an empty name"),
        ('"a\\u0000" = 1', "contains a NUL character"),
        ("good = 1, heavy = 1e10", "is wrong for 'heavy': Expected `float` <= 1000000000.0."),
        ("good = 1, heavy = '\u0663'", "is wrong for 'heavy': Expected `float`, got `str`."),
        ("heavy = true", "is wrong for 'heavy': Expected `float`, got `bool`."),
        ("heavy = nan", "is wrong for 'heavy': Expected `float` >= -1000000000.0."),
        ("heavy = inf", "is wrong for 'heavy'"),
    ],
)
def test_an_error_in_a_map_names_its_entry(tmp_path: Path, key: str, entry: str, told: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(told)) as refused:
        load(written(tmp_path, f"{key} = {{ {entry} }}\n"), environ={})
    assert str(refused.value).startswith(f"The setting {key!r}")


@pytest.mark.parametrize("key", ["default_host_filters", "isolated_hosts", "isolated_images"])
def test_an_empty_name_in_a_list_is_rejected(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingsError, match=f"'{key}' contains an empty name"):
        load(written(tmp_path, f'{key} = ["x", ""]\n'), environ={})


FLOATS = [key for key, name in KEYS.items() if isinstance(getattr(SLICES[name](), key), float)]


@pytest.mark.parametrize("text", ["inf", "-inf", "nan", "1e300"])
@pytest.mark.parametrize("key", FLOATS)
def test_an_invalid_number_names_its_setting(tmp_path: Path, key: str, text: str) -> None:
    with pytest.raises(SettingsError, match=key):
        load(written(tmp_path, f"{key} = {text}\n"), environ={})
    with pytest.raises(SettingsError, match=key):
        load(environ={f"INNKEEPER_{key.upper()}": text})


@pytest.mark.parametrize("missing", ["keystone_url", "keystone_user", "keystone_password"])
def test_a_keystone_needs_an_address_and_a_login(missing: str) -> None:
    given = {
        "auth": "keystone",
        "keystone_url": "https://keystone.example.org/v3",
        "keystone_user": "innkeeper",
        "keystone_password": "secret",
    }
    assert load(environ={}, overrides=given).authenticating.auth == "keystone"
    given[missing] = ""
    with pytest.raises(SettingsError, match=missing):
        load(environ={}, overrides=given)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"Cannot read .*: No such file"):
        load(tmp_path / "none.toml", environ={})


def test_a_file_that_is_not_toml(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is not TOML"):
        load(written(tmp_path, "port: 8780\n"), environ={})


def test_settings_survive_the_environment_unchanged(tmp_path: Path) -> None:
    text = COMMENTED_OUT.sub("", EXAMPLE.read_text(encoding="utf-8"))
    for settings in (
        load(written(tmp_path, text), environ={}),
        load(
            environ={},
            overrides={
                "apis": ["compute", "identity"],
                "cors_allow_headers": [],
                "cors_allow_credentials": False,
                "keystone_password": "[a, b] = 'c'",
                "data_dir": "a folder",
                "weigher_multipliers": {"A": -1.5, "B=": 2.0},
                "isolated_hosts": ["with, comma"],
                "compute_prefix": "",
            },
        ),
    ):
        assert load(environ=environment_of(settings)) == settings
    assert environment_of(Settings()) == {}


@pytest.mark.parametrize(
    ("given", "is_one"),
    [
        ({}, False),
        ({"workers": 2}, True),
        ({"workers": 2, "database_is_shared": False}, True),
        ({"database_is_shared": True}, True),
        ({"database_url": "sqlite:///a"}, False),
        ({"database_url": "postgresql://a/b"}, True),
        ({"database_url": "postgresql://a/b", "database_is_shared": False}, False),
    ],
)
def test_whether_several_processes_write(given: dict[str, Any], is_one: bool) -> None:
    assert load(environ={}, overrides=given).is_one_of_several is is_one


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            ["c0ffee"],
            "invalid key at number 1: a key must have 32 or 64 hexadecimal digits, not 6.",
        ),
        (["c0ffee" * 8, "0" * 32], "at number 1: a key must have 32 or 64 hexadecimal digits, not"),
        (["0" * 64, "c0ffeeg " * 4], "number 2: a key must have 32 or 64 hexadecimal digits and"),
        (["c0ffee\0"], "contains a NUL character."),
        (["c0ffee", ""], "contains an empty name."),
    ],
)
def test_keys_for_plans_are_validated_and_never_shown(keys: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match="'build_plan_encryption_key'") as caught:
        load(environ={}, overrides={"build_plan_encryption_key": keys})
    assert words in str(caught.value)
    assert "c0ffee" not in str(caught.value)


@pytest.mark.parametrize("words", ["{key!r}", "[{key!r}]", "[{key!r}, {more!r}]"])
def test_a_single_key_may_be_written_as_a_text(tmp_path: Path, words: str) -> None:
    key, more = "c286696d887c9aa0611bbb3e2025a45b", "AB" * 32
    path = tmp_path / "settings.toml"
    text = words.format(key=key, more=more)
    path.write_text(f"build_plan_encryption_key = {text}\n", encoding="utf-8")
    settings = load(path, environ={})
    expected = (key, more) if "more" in words else (key,)
    assert settings.zoning.build_plan_encryption_key == expected
    assert load(environ=environment_of(settings)) == settings
    for text in (key, f'["{key}"]'):
        environ = {"INNKEEPER_BUILD_PLAN_ENCRYPTION_KEY": text}
        assert load(environ=environ).zoning.build_plan_encryption_key == (key,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("'c0ffee'", "at number 1: a key must have 32 or 64 hexadecimal digits, not 6."),
        ("''", "contains an empty name."),
        (f"'{'c0ffee' * 6}, {'c0ffee' * 6}'", "32 or 64 hexadecimal digits"),
        ("0xc0ffee", "Expected `array`"),
        ("{c0ffee = 'c0ffee'}", "Expected `array`"),
    ],
)
def test_a_single_key_is_validated_and_never_shown(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f"build_plan_encryption_key = {text}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="build_plan_encryption_key") as caught:
        load(path, environ={})
    assert words in str(caught.value)
    assert "c0ffee" not in str(caught.value)
    assert str(0xC0FFEE) not in str(caught.value)


def test_the_environment_may_hold_several_keys() -> None:
    keys = ("c286696d887c9aa0611bbb3e2025a45b", "AB" * 32)
    environ = {"INNKEEPER_BUILD_PLAN_ENCRYPTION_KEY": ", ".join(keys)}
    settings = load(environ=environ)
    assert settings.zoning.build_plan_encryption_key == keys
    assert load(environ=environment_of(settings)) == settings
