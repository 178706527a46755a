"""Typed settings, read once at the start and handed down in slices.

One TOML file of plain keys, then ``INNKEEPER_<KEY>`` environment variables, then the command
line; the later wins. An unknown name stops the start and is answered with the nearest known
one, because a typo must not be a silent default.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

ENV_PREFIX = "INNKEEPER_"

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class SettingsError(Exception):
    """The settings are wrong; the message says which one, and how."""


class Serving(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the service is reached, and what it accepts.

    ``apis`` names the APIs to serve; each has a prefix, which may be empty for one of them.
    ``public_url`` is the address that clients use, where it is not the one they called.
    """

    host: str = "127.0.0.1"
    port: Port = 8780
    public_url: str | None = None
    apis: tuple[str, ...] = ("identity", "placement", "compute", "image")
    identity_prefix: str = "/identity"
    placement_prefix: str = "/placement"
    compute_prefix: str = "/compute"
    image_prefix: str = "/image"
    body_bytes_max: Count = 1024 * 1024
    page_size_max: Count = 1000
    shutdown_grace_s: Seconds = 30.0
    reader_threads: Count = 8
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["console", "json"] = "console"


class Storing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the store is. Without ``database_url`` it is a SQLite file in ``data_dir``."""

    data_dir: str = "innkeeper-data"
    database_url: str | None = None
    busy_timeout_s: Seconds = 10.0


class Authenticating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who is believed.

    ``auth`` is ``none`` (the token itself names the caller), ``builtin`` (the Identity API of
    this service) or ``keystone`` (tokens are validated by a Keystone at ``keystone_url``,
    asked as ``keystone_user``).
    """

    auth: Literal["none", "builtin", "keystone"] = "builtin"
    policy_file: str | None = None
    token_lifetime_s: Seconds = 3600.0
    token_cache_s: Seconds = 10.0
    keystone_url: str | None = None
    keystone_user: str | None = None
    keystone_password: str | None = None
    keystone_project: str = "service"
    keystone_domain: str = "Default"
    region_name: str = "RegionOne"


class Scheduling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How hosts are chosen. Multipliers weigh the weighers; higher weights win."""

    zone_name: str = "nova"
    default_availability_zone: str = "nova"
    scheduler_driver: str = "filter_weigh"
    default_host_filters: tuple[str, ...] = (
        "ComputeFilter",
        "AvailabilityZoneFilter",
        "CapacityFilter",
        "ComputeCapabilitiesFilter",
    )
    default_host_weighers: tuple[str, ...] = (
        "FreeMemoryWeigher",
        "FreeVcpusWeigher",
        "FreeDiskWeigher",
    )
    free_memory_multiplier: float = 1.0
    free_vcpus_multiplier: float = 1.0
    free_disk_multiplier: float = 1.0
    host_subset_size: Count = 1
    claim_attempts_max: Count = 10
    servers_per_request_max: Count = 1000
    cpu_allocation_ratio: Annotated[float, msgspec.Meta(gt=0)] = 4.0
    ram_allocation_ratio: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    disk_allocation_ratio: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class Computing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Quotas' defaults (-1 is without limit), and how agents are listened to."""

    quota_instances: Annotated[int, msgspec.Meta(ge=-1)] = 10
    quota_cores: Annotated[int, msgspec.Meta(ge=-1)] = 20
    quota_ram: Annotated[int, msgspec.Meta(ge=-1)] = 51200
    quota_metadata_items: Annotated[int, msgspec.Meta(ge=-1)] = 128
    quota_key_pairs: Annotated[int, msgspec.Meta(ge=-1)] = 100
    quota_server_groups: Annotated[int, msgspec.Meta(ge=-1)] = 10
    quota_server_group_members: Annotated[int, msgspec.Meta(ge=-1)] = 10
    service_down_time_s: Seconds = 60.0
    work_poll_s: Seconds = 20.0
    order_timeout_s: Seconds = 600.0


class Settings(msgspec.Struct, frozen=True):
    """All settings, by slice. Each key belongs to exactly one slice."""

    serving: Serving = Serving()
    storing: Storing = Storing()
    authenticating: Authenticating = Authenticating()
    scheduling: Scheduling = Scheduling()
    computing: Computing = Computing()


SLICES: dict[str, type[msgspec.Struct]] = {
    "serving": Serving,
    "storing": Storing,
    "authenticating": Authenticating,
    "scheduling": Scheduling,
    "computing": Computing,
}


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

    Raises :class:`SettingsError` for a file that cannot be read, an unknown name, or a value
    of the wrong kind.
    """
    values: dict[str, Any] = {}
    if path is not None:
        values.update(_from_file(path))
    values.update(_from_environment(os.environ if environ is None else environ))
    values.update({k: v for k, v in (overrides or {}).items() if v is not None})
    _refuse_unknown(values, KEYS, "setting")
    slices = {}
    for name, kind in SLICES.items():
        mine = {key: value for key, value in values.items() if KEYS[key] == name}
        try:
            slices[name] = msgspec.convert(mine, kind, strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(f"A setting is wrong: {error}.") from error
    return Settings(**slices)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"Cannot read {path}: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
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
