"""Extra capabilities of hosts in the freepool: facts that administrators add for requirements.

Always true: each capability of a host has a resource property of the same name. While a lease holds
a host, the capabilities that the lease requires do not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.scheduling import expressions
from innkeeper.scheduling.leases import requirements
from innkeeper.store.queries.leases import host_reservations, properties
from innkeeper.store.transactions import Tx

KEY_MAX = 64
"""Maximum number of characters of a name."""
VALUE_MAX = 1000
"""Maximum number of characters of a value."""
NUMBER_MAX = 2**53
"""The largest absolute value of a number. Doubles represent all whole numbers up to this value
exactly."""
CAPABILITIES_MAX = 100
"""The maximum number of capabilities of one host."""
NAME = re.compile(r"(?!\s)[^\x00-\x1f\x7f-\x9f\ud800-\udfff/$]+(?<!\s)")
"""The form of a capability's name. Names are used in URL paths, and follow a dollar sign in
requirements."""
JSON_SUFFIX = ".json"
"""A name must not end with this suffix, because clients may append it to a URL path."""
RESERVED = requirements.HOST_FACTS | {
    *("id", "name", "traits", "reservable", "status", "trust_id"),
    *("created_at", "updated_at", "leaves_at"),
}
"""Keys of a host that cannot be names of capabilities."""
REQUIREMENTS = ("hypervisor_properties", "resource_properties")
"""The parameters of a reservation that are texts in the requirement language."""
OF_FLAVORS = "requirements"
"""The parameter of a reservation that is a list of texts in the requirement language."""


def check(given: Mapping[str, Any]) -> None:
    """Raise :class:`Invalid` for a wrong name or value of a capability."""
    for name, value in given.items():
        if len(name) > KEY_MAX:
            raise Invalid("Extra capability key too long")
        if name in RESERVED:
            raise Invalid(f"Malformed parameter {name}: this name is reserved.")
        if NAME.fullmatch(name) is None or name.endswith(JSON_SUFFIX):
            raise Invalid(
                "Malformed parameter: the name of a capability consists of printable characters "
                f"without / and $, and does not end with {JSON_SUFFIX}."
            )
        if not _is_value(value):
            raise Invalid(
                f"Malformed parameter {name}: a capability is a text of at most {VALUE_MAX} "
                "characters, or a number."
            )


def _is_value(value: Any) -> bool:
    if isinstance(value, str):
        is_text = "\0" not in value and not any("\ud800" <= each <= "\udfff" for each in value)
        return is_text and len(value) <= VALUE_MAX
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # This comparison is also false for infinity and NaN.
    return abs(value) <= NUMBER_MAX


def check_count(capabilities: Mapping[str, Any]) -> None:
    """Raise :class:`Invalid` if a host would have too many capabilities."""
    if len(capabilities) > CAPABILITIES_MAX:
        raise Invalid(f"A host has at most {CAPABILITIES_MAX} capabilities.")


def register(tx: Tx, names: Iterable[str], now: datetime) -> None:
    """Create a public resource property for each name that has none."""
    wanted = sorted(set(names))
    known = properties.named(tx, wanted) if wanted else {}
    new = [(_uuid_of(each), each) for each in wanted if each not in known]
    properties.add(tx, new, now)


def _uuid_of(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"innkeeper:resource-property:{name}"))


def demand_unused(tx: Tx, host_id: int, names: Iterable[str]) -> None:
    """Raise :class:`Conflict` if a lease on the host requires one of these capabilities."""
    used: set[str] = set()
    for each in host_reservations.parameters(tx, host_id):
        used.update(named_in(texts(each)))
    taken = sorted(used & set(names))
    if taken:
        raise Conflict(f"Can't add extracapabilities {taken} to Host {host_id}")


def texts(parameters: Mapping[str, Any]) -> list[str]:
    """Return the requirements in the parameters of a reservation."""
    given = [parameters.get(name) or "" for name in REQUIREMENTS]
    return [*given, *parameters.get(OF_FLAVORS, ())]


def named_in(given: Iterable[str]) -> set[str]:
    """Return the names of all facts in these requirements. Raises :class:`Invalid`."""
    found: set[str] = set()
    for text in given:
        expression = requirements.parse(text)
        if expression is not None:
            found.update(expressions.variables(expression))
    return found
