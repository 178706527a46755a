"""Evaluates the JSON filter's queries for one host in plain Python, as a reference."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from innkeeper.domain.placing import RequestSpec
from tests.support.plain_hosts import PlainCloud, PlainHost, fact, is_number


def satisfies(host: PlainHost, spec: RequestSpec, cloud: PlainCloud) -> bool:
    return not spec.query or decide(spec.query, host, spec) is True


def decide(part: Any, host: PlainHost, spec: RequestSpec) -> bool | None:
    """Evaluate a query for one host; ``None`` means unknown."""
    if isinstance(part, bool | str):
        value = variable(part, host, spec)
        return value if isinstance(value, bool) else None
    if not part:
        return True
    sign, *arguments = part
    if sign == "not":
        known = decide(arguments[0], host, spec)
        return None if known is None else not known
    if sign in ("and", "or"):
        return gather([decide(each, host, spec) for each in arguments], any_will_do=sign == "or")
    first, *rest = [variable(each, host, spec) for each in arguments]
    if sign == "in":
        return gather([is_in(first, each) for each in rest], any_will_do=True)
    return gather([relate(sign, first, each) for each in rest], any_will_do=False)


def gather(known: Sequence[bool | None], *, any_will_do: bool) -> bool | None:
    """Combine several results with "or" or "and"; a result that decides outweighs an unknown."""
    if any_will_do in known:
        return any_will_do
    return None if None in known else not any_will_do


def is_in(one: Any, other: Any) -> bool | None:
    if isinstance(other, list) and one is not None:
        return any(relate("=", one, each) for each in other)
    return relate("=", one, other)


def relate(sign: str, one: Any, other: Any) -> bool | None:
    if one is None or other is None:
        return None
    alike = (is_number(one) and is_number(other)) or (
        type(one) is type(other) and isinstance(one, str | bool)
    )
    if sign in ("=", "!="):
        return (alike and one == other) == (sign == "=")
    if not alike or isinstance(one, bool):
        return None
    orders = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    return bool(orders[sign](one, other))


def variable(part: Any, host: PlainHost, spec: RequestSpec) -> Any:
    """Return the value of an argument; supports only the variables that the tests draw."""
    if not isinstance(part, str) or not part.startswith("$"):
        return part
    word = part.removeprefix("$")
    if word.startswith("capabilities."):
        return fact(host, spec, word.removeprefix("capabilities."))
    if word.startswith("traits."):
        return word.removeprefix("traits.") in host.sketch.traits
    free, used = host.sketch.free, host.sketch.used
    known = {
        "free_memory_mb": free.get("MEMORY_MB", 0),
        "free_disk_mb": free.get("DISK_GB", 0) * 1024,
        "total_vcpus": free.get("VCPU", 0) + used.get("VCPU", 0),
        "servers": sum(host.servers.values()),
        "busy_servers": host.busy,
        "availability_zone": host.sketch.zone,
        "host": host.sketch.name,
    }
    return known.get(word)
