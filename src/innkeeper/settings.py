"""Reads the typed settings, once at the start. Each part of the program gets a slice of them.

The sources are a TOML file of plain keys, ``INNKEEPER_<KEY>`` environment variables and the command
line. A later source overrides an earlier source. An unknown name is an error, because a typo would
otherwise leave the default in place. The message suggests the nearest known name.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from innkeeper.domain.converters import converter_to
from innkeeper.domain.slices import SLICES, Serving, Settings
from innkeeper.domain.zones import plan_key
from innkeeper.terminal.arguments import is_http, names

ENV_PREFIX = "INNKEEPER_"
PREFIX = "_prefix"
"""The ending of the names of settings that have an API's path."""
PREFIX_PATTERN = re.compile(r"(/[A-Za-z0-9._~-]+)*")
HOST_PATTERN = re.compile(
    r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*\.?", re.ASCII
)
ORIGIN_PATTERN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]+", re.ASCII)
"""An origin, which is a scheme, a host and an optional port, without a trailing slash."""
TOKEN_PATTERN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The name of an HTTP method or header."""
ZONE_PATTERN = re.compile(r"[^:\s\x00-\x1f]{1,255}")
SECRETS = frozenset(
    {"keystone_password", "build_plan_encryption_key", "lease_webhook_secret", "lease_check_token"}
)
"""Settings whose values never appear in messages."""
ONE_OR_SEVERAL = frozenset({"build_plan_encryption_key"})
"""Lists that may also be given as a single text."""
OWN_PATHS = ("/healthz", "/readyz", "/metrics", "/openapi.json")
"""Paths of the service itself, outside of its APIs."""


class SettingsError(Exception):
    """Raised if the settings are wrong. The message names the setting and the error."""


def _keys() -> dict[str, str]:
    owner: dict[str, str] = {}
    for name, kind in SLICES.items():
        for field in kind.__struct_fields__:
            assert field not in owner, f"{field} belongs to two slices"
            owner[field] = name
    return owner


KEYS = _keys()
"""Maps every key to the name of its slice."""
READERS = {name: converter_to(kind, strict=False) for name, kind in SLICES.items()}
"""The function that reads each slice from a mapping."""


def load(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Load the settings from the file, the environment and the overrides.

    Raises :class:`SettingsError` for an unreadable file, an unknown name, a value of the wrong
    type, or a missing value that another setting requires.
    """
    values: dict[str, Any] = {}
    if path is not None:
        values.update(_from_file(path))
    values.update(_from_environment(os.environ if environ is None else environ))
    values.update({k: v for k, v in (overrides or {}).items() if v is not None})
    _refuse_unknown(values, KEYS, "setting")
    alone = {key for key in ONE_OR_SEVERAL & values.keys() if isinstance(values[key], str)}
    values |= {key: [values[key]] for key in alone}
    slices: dict[str, Any] = {}
    for name in SLICES:
        mine = {key: value for key, value in values.items() if KEYS[key] == name}
        try:
            slices[name] = READERS[name](mine)
        except msgspec.ValidationError as error:
            raise SettingsError(_conversion_error(READERS[name], mine, error)) from error
        _check_texts(slices[name])
    settings = Settings(**slices)
    _check_serving(settings)
    _check_names(settings)
    _check_keystone(settings)
    _check_plans(settings)
    _check_peering(settings)
    _check_leasing(settings)
    return settings


def environment_of(settings: Settings) -> dict[str, str]:
    """Return environment variables from which :func:`load` reads the same settings."""
    environ: dict[str, str] = {}
    for key, slice_name in KEYS.items():
        value = getattr(getattr(settings, slice_name), key)
        if value == getattr(SLICES[slice_name](), key):
            continue
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        environ[ENV_PREFIX + key.upper()] = text
    return environ


def _check_texts(slice_: Any) -> None:
    for key in slice_.__struct_fields__:
        value = getattr(slice_, key)
        is_list = isinstance(value, tuple | Mapping)
        texts = tuple(value) if is_list else (value,)
        shown = "" if key in SECRETS else f": {value!r}"
        # The operating system would cut a path, a name or an address at its first NUL.
        if any(isinstance(each, str) and "\0" in each for each in texts):
            raise SettingsError(f"The setting {key!r} contains a NUL character{shown}.")
        if is_list and any(not each.strip() for each in texts):
            raise SettingsError(f"The setting {key!r} contains an empty name{shown}.")


def _conversion_error(
    read: Callable[[object], object], given: Mapping[str, Any], error: msgspec.ValidationError
) -> str:
    """Return the message for a value of the wrong type, or for a map with such a value."""
    for key, value in given.items():
        is_shown = isinstance(value, Mapping) and key not in SECRETS
        for name, each in value.items() if is_shown else ():
            try:
                read({key: {name: each}})
            except msgspec.ValidationError as inner:
                what, _, _ = str(inner).partition(" - at ")
                return f"The setting {key!r} is wrong for {name!r}: {what}."
    return f"A setting is wrong: {error}."


def _check_serving(settings: Settings) -> None:
    serving = settings.serving
    known = [key.removesuffix(PREFIX) for key in KEYS if key.endswith(PREFIX)]
    _refuse_unknown(serving.apis, known, "API")
    if not serving.apis:
        raise SettingsError("The setting 'apis' is empty. Name at least one API.")
    if not serving.host.strip():
        raise SettingsError(
            "The setting 'host' is empty. To listen on all addresses, use '0.0.0.0' or '::'."
        )
    if serving.public_url is not None and not is_http(serving.public_url):
        raise SettingsError(
            f"The setting 'public_url' is not an http or https URL: {serving.public_url!r}."
        )
    _check_tls(serving)
    _check_prefixes(serving)
    _check_origins(serving)


def _check_peering(settings: Settings) -> None:
    host = settings.peering.peer_host
    if host is None:
        return
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        is_usable = HOST_PATTERN.fullmatch(host) is not None
    else:
        is_usable = not address.is_unspecified and not address.is_multicast
    if not is_usable:
        raise SettingsError(
            "The setting 'peer_host' must be a name or an address at which other machines reach "
            f"this one, without a port: {host!r}."
        )


def _check_tls(serving: Serving) -> None:
    if (serving.tls_cert is None) != (serving.tls_key is None):
        raise SettingsError("Set both 'tls_cert' and 'tls_key', or neither.")
    if serving.tls_client_ca is not None and serving.tls_cert is None:
        raise SettingsError("The setting 'tls_client_ca' needs 'tls_cert' and 'tls_key'.")
    for text in serving.trusted_proxies:
        try:
            ipaddress.ip_network(text)
        except ValueError as error:
            raise SettingsError(
                f"The setting 'trusted_proxies' contains an invalid network address: {text!r}."
            ) from error


def _check_prefixes(serving: Serving) -> None:
    prefixes = [getattr(serving, name + PREFIX) for name in serving.apis]
    for prefix in prefixes:
        if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
            raise SettingsError(
                f"A prefix must begin with a slash, and must not end with one: {prefix!r}."
            )
        if not PREFIX_PATTERN.fullmatch(prefix):
            raise SettingsError(
                f"A prefix must consist of letters, digits, dots, dashes, tildes and underscores "
                f"between single slashes: {prefix!r}."
            )
        if prefix in OWN_PATHS:
            raise SettingsError(
                f"No API can have the prefix {prefix!r}: the service itself uses it."
            )
    if len(set(prefixes)) < len(prefixes):
        raise SettingsError("Two APIs have the same prefix. Give each API a prefix of its own.")


def _check_origins(serving: Serving) -> None:
    for origin in serving.cors_allowed_origins:
        if origin != "*" and not ORIGIN_PATTERN.fullmatch(origin):
            raise SettingsError(
                "The setting 'cors_allowed_origins' must list '*' or origins such as "
                f"'https://console.example.org', not {origin!r}."
            )
    for key in ("cors_expose_headers", "cors_allow_methods", "cors_allow_headers"):
        for name in getattr(serving, key):
            if not TOKEN_PATTERN.fullmatch(name):
                raise SettingsError(f"The setting {key!r} contains an invalid name: {name!r}.")


def _check_names(settings: Settings) -> None:
    if not settings.storing.data_dir:
        raise SettingsError("The setting 'data_dir' is empty. For the current folder, use '.'.")
    zone = settings.scheduling.default_availability_zone
    if not ZONE_PATTERN.fullmatch(zone):
        raise SettingsError(
            "The setting 'default_availability_zone' must be a name without colons and spaces: "
            f"{zone!r}."
        )
    if not settings.authenticating.region_name.strip():
        raise SettingsError("The setting 'region_name' is empty.")


def _check_keystone(settings: Settings) -> None:
    if settings.authenticating.auth == "keystone":
        for key in ("keystone_url", "keystone_user", "keystone_password"):
            if not getattr(settings.authenticating, key):
                raise SettingsError(f"With auth = 'keystone', the setting {key!r} is required.")


def _check_plans(settings: Settings) -> None:
    name = settings.zoning.zone_name
    if not name.strip() or not name.isprintable():
        raise SettingsError(
            f"The setting 'zone_name' must be printable text that is not blank: {name!r}."
        )
    for place, text in enumerate(settings.zoning.build_plan_encryption_key, start=1):
        try:
            plan_key(text)
        except ValueError as error:
            raise SettingsError(
                f"The setting 'build_plan_encryption_key' has an invalid key at number {place}: "
                f"{error}. 'openssl rand -hex 32' creates a valid one."
            ) from error


def _check_leasing(settings: Settings) -> None:
    for key in ("lease_webhook_url", "lease_check_url"):
        url = getattr(settings.leasing, key)
        if url is not None and not is_http(url):
            raise SettingsError(f"The setting {key!r} is not an http or https address: {url!r}.")
    if settings.leasing.lease_webhook_secret == "":
        raise SettingsError("The setting 'lease_webhook_secret' is empty.")


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
        default = getattr(SLICES[KEYS[key]](), key) if key in KEYS else None
        # Lists and maps are written as JSON, or as comma-separated values.
        if isinstance(default, tuple):
            values[key] = _list_of(variable, text)
        elif isinstance(default, Mapping):
            values[key] = _map_of(variable, text)
        else:
            values[key] = text
    return values


def _list_of(variable: str, text: str) -> list[str]:
    if not text.lstrip().startswith("["):
        return list(names(text))
    try:
        parts = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"{variable} is not a JSON list: {error}.") from error
    return [str(part) for part in parts]


def _map_of(variable: str, text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise SettingsError(f"{variable} is not a JSON object: {error}.") from error
        return found
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    for name, sign, _ in pairs:
        if not sign:
            raise SettingsError(f"{variable} has no '=' after {name.strip()!r}.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _refuse_unknown(given: Iterable[str], known: Iterable[str], noun: str) -> None:
    known = sorted(known)
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
            raise SettingsError(f"There is no {noun} {key!r}. Did you mean {near[0]!r}?")
