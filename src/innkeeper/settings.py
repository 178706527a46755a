"""Typed settings, read once at the start and handed down in slices.

One TOML file of plain keys, then ``INNKEEPER_<KEY>`` environment variables, then the command
line; the later wins. An unknown name stops the start and is answered with the nearest known
one, because a typo must not be a silent default.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from innkeeper.domain.slices import SLICES, Settings

ENV_PREFIX = "INNKEEPER_"
PREFIX = "_prefix"
"""How the settings end that say under which path an API is."""


class SettingsError(Exception):
    """The settings are wrong; the message says which one, and how."""


def _keys() -> dict[str, str]:
    owner: dict[str, str] = {}
    for name, kind in SLICES.items():
        for field in kind.__struct_fields__:
            assert field not in owner, f"{field} belongs to two slices"
            owner[field] = name
    return owner


KEYS = _keys()
"""Every key, and the slice it belongs to."""


def load(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Read the file, the environment and the overrides.

    Raises :class:`SettingsError` for a file that cannot be read, an unknown name, a value of
    the wrong kind, or one that is missing where another asks for it.
    """
    values: dict[str, Any] = {}
    if path is not None:
        values.update(_from_file(path))
    values.update(_from_environment(os.environ if environ is None else environ))
    values.update({k: v for k, v in (overrides or {}).items() if v is not None})
    _refuse_unknown(values, KEYS, "setting")
    slices: dict[str, Any] = {}
    for name, kind in SLICES.items():
        mine = {key: value for key, value in values.items() if KEYS[key] == name}
        try:
            slices[name] = msgspec.convert(mine, kind, strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(f"A setting is wrong: {error}.") from error
        _refuse_no_numbers(slices[name])
    settings = Settings(**slices)
    _check_serving(settings)
    _check_keystone(settings)
    return settings


def _refuse_no_numbers(slice_: Any) -> None:
    # "nan" is neither above nor below any bound.
    for key in slice_.__struct_fields__:
        value = getattr(slice_, key)
        if isinstance(value, float) and not math.isfinite(value):
            raise SettingsError(
                f"The setting {key!r} must be a number that is finite: {value}."
            )


def _check_serving(settings: Settings) -> None:
    serving = settings.serving
    known = [key.removesuffix(PREFIX) for key in KEYS if key.endswith(PREFIX)]
    _refuse_unknown(serving.apis, known, "API")
    if not serving.apis:
        raise SettingsError("The setting 'apis' names none.")
    prefixes = [getattr(serving, name + PREFIX) for name in serving.apis]
    for prefix in prefixes:
        if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
            raise SettingsError(
                f"A prefix begins with a slash and does not end with one: {prefix!r}."
            )
    if len(set(prefixes)) < len(prefixes):
        raise SettingsError("Two APIs have the same prefix.")


def _check_keystone(settings: Settings) -> None:
    if settings.authenticating.auth == "keystone":
        for key in ("keystone_url", "keystone_user", "keystone_password"):
            if not getattr(settings.authenticating, key):
                raise SettingsError(f"With auth = 'keystone', the setting {key!r} is needed.")


def _from_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"Cannot read {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}.") from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for variable, text in environ.items():
        if not variable.startswith(ENV_PREFIX):
            continue
        key = variable.removeprefix(ENV_PREFIX).lower()
        # Lists are written as JSON, or simply with commas.
        is_list = key in KEYS and _is_list(key)
        values[key] = _list_of(variable, text) if is_list else text
    return values


def _is_list(key: str) -> bool:
    default = getattr(SLICES[KEYS[key]](), key)
    return isinstance(default, tuple)


def _list_of(variable: str, text: str) -> list[str]:
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        parts = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"{variable} is not a JSON list: {error}.") from error
    return [str(part) for part in parts]


def _refuse_unknown(given: Iterable[str], known: Iterable[str], noun: str) -> None:
    names = sorted(known)
    for key in given:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1, cutoff=0.0)
            raise SettingsError(f"There is no {noun} {key!r}. Did you mean {near[0]!r}?")
