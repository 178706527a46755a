"""Converts bodies of the Reservation API to domain objects, with Blazar's error messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.leases import HOSTS_MAX, NAME_MAX, HostReservationRequest, Window

FORMAT = "%Y-%m-%d %H:%M"
NOW = "now"
WHOLE_HOSTS = "physical:host"
SHOWN_MAX = 60
"""Maximum number of characters of a client's text that an error quotes."""
NEEDED = ("name", "start_date", "end_date", "reservations")
HOST_WORDS = frozenset(
    {"resource_type", "min", "max", "hypervisor_properties", "resource_properties", "before_end"}
)
PROPERTIES = ("hypervisor_properties", "resource_properties", "before_end")


def demand_all(body: Mapping[str, Any]) -> None:
    """Reject a new lease that lacks a required parameter or has an unsupported one."""
    _demand(body, NEEDED)
    if body.get("before_end_date"):
        raise Invalid("The parameter before_end_date is not supported yet.")
    if body.get("events"):
        raise Invalid("The parameter events is not supported yet.")


def _demand(given: Mapping[str, Any], names: Sequence[str]) -> None:
    missing = [name for name in names if name not in given]
    if missing:
        raise Invalid(f"Missing parameter {','.join(missing)}")


def name_of(given: Any) -> str:
    """Return a lease's name."""
    if not isinstance(given, str) or not 0 < len(given) <= NAME_MAX:
        raise Invalid(f"Malformed parameter name: a text of 1 to {NAME_MAX} characters")
    return given


def new_name(body: Mapping[str, Any]) -> str:
    """Return the new name of a lease. Nothing else of a lease can be changed yet."""
    unknown = sorted(body.keys() - {"name"})
    if unknown:
        raise Invalid(
            f"Changing {unknown[0][:SHOWN_MAX]} of a lease is not supported yet; only its name "
            "can be changed."
        )
    _demand(body, ["name"])
    return name_of(body["name"])


def window_of(body: Mapping[str, Any], now: datetime) -> Window:
    """Return the window of a lease. A start within the current minute counts as now."""
    start, end = _moment(body["start_date"], now), _moment(body["end_date"], now)
    if start < now.replace(second=0, microsecond=0):
        raise Invalid("Start date must be later than current date")
    start = max(start, now)
    if end <= start:
        raise Invalid("End date must be later than start date.")
    return Window(start, end)


def _moment(text: str, now: datetime) -> datetime:
    if text == NOW:
        return now
    try:
        # Naive and in UTC, like all times of the core.
        return datetime.strptime(text, FORMAT)  # noqa: DTZ007
    except ValueError as error:
        raise Invalid(
            f"{text[:SHOWN_MAX]} is an invalid date. Required format: {FORMAT}"
        ) from error


def hosts_of(
    reservations: Sequence[Mapping[str, Any]], ids: Sequence[str]
) -> list[HostReservationRequest]:
    """Return the reservations of a lease, with these ids."""
    found = [_hosts(each, uuid) for each, uuid in zip(reservations, ids, strict=True)]
    if sum(each.hosts_max for each in found) > HOSTS_MAX:
        raise Invalid(f"Malformed parameter max (a lease has at most {HOSTS_MAX} hosts)")
    return found


def _hosts(given: Mapping[str, Any], uuid: str) -> HostReservationRequest:
    _demand(given, ["resource_type"])
    kind = given["resource_type"]
    if kind != WHOLE_HOSTS:
        raise Invalid(
            f"The {str(kind)[:SHOWN_MAX]} resource type is not supported; only {WHOLE_HOSTS} is."
        )
    unknown = sorted(given.keys() - HOST_WORDS)
    if unknown:
        raise Invalid(f"Malformed parameter {unknown[0][:SHOWN_MAX]}: there is no such parameter")
    for name in PROPERTIES:
        if given.get(name) not in (None, ""):
            raise Invalid(f"The parameter {name} is not supported yet.")
    _demand(given, ["min", "max"])
    least, most = (_number(name, given[name]) for name in ("min", "max"))
    if least < 1 or most < 1:
        raise Invalid("Malformed parameter min and max (must be greater than or equal to 1)")
    if most < least:
        raise Invalid(
            "Invalid values for min/max of hosts. Max must be equal to or larger than min."
        )
    return HostReservationRequest(uuid, least, most)


def _number(name: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise Invalid(f"Malformed parameter {name}")
    return given
