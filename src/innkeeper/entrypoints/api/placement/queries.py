"""The query parameters of the provider list, read."""

from __future__ import annotations

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ProviderUuid, canonical_uuid
from innkeeper.domain.placement import ProviderQuery
from innkeeper.entrypoints.api.routing import Call

ANY_OF = "in:"
NOT = "!"
DIGITS_MAX = len(str(UNIT_MAX))
CONDITIONS_MAX = 256
"""That all must hold. Databases refuse questions that are made of too many."""
WRONG = "Invalid query string parameters: "


def provider_query(call: Call) -> ProviderQuery:
    """What a call of the list asks for. Raises :class:`Invalid` for malformed parameters."""
    member_of, not_member_of = parse_member_of(call.query.get("member_of", []))
    required, forbidden = parse_required(call.query.get("required", []))
    text = call.last("resources")
    resources = {} if text is None else parse_resources(text)
    if len(required) + len(member_of) + len(resources) > CONDITIONS_MAX:
        raise Invalid(f"{WRONG}More than {CONDITIONS_MAX} conditions in one query.")
    return ProviderQuery(
        name=call.last("name"),
        uuid=_uuid(call.last("uuid")),
        in_tree=_uuid(call.last("in_tree")),
        member_of=member_of,
        not_member_of=not_member_of,
        resources=resources,
        required=required,
        forbidden=forbidden,
    )


def _uuid(text: str | None) -> ProviderUuid | None:
    canonical = None if text is None else canonical_uuid(text)
    return None if canonical is None else ProviderUuid(canonical)


def parse_resources(text: str) -> dict[str, int]:
    """Read ``CLASS:AMOUNT,...``."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, separator, amount = part.partition(":")
        digits = amount.removeprefix("-")
        if not (name and separator and digits.isascii() and digits.isdigit()):
            raise Invalid(
                f"{WRONG}Badly formed resources parameter. Expected resources query string "
                f"parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: {text}."
            )
        if amount != digits or not digits.strip("0"):
            raise Invalid(f"{WRONG}Requested resource {name} requires amount > 0.")
        # What no unit rule can allow need not be told apart any further.
        significant = digits.lstrip("0")
        is_small = len(significant) <= DIGITS_MAX
        found[name] = int(significant) if is_small else UNIT_MAX + 1
    return found


def parse_required(
    values: list[str],
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Read all values of ``required``: sets of which one trait must be there, and traits that
    must not be there."""
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        if value.startswith(ANY_OF):
            names = value.removeprefix(ANY_OF).split(",")
            if not all(names) or any(name.startswith(NOT) for name in names):
                raise _bad_required(value)
            required.append(frozenset(names))
            continue
        for name in value.split(","):
            bare = name.lstrip(NOT)
            if not bare or bare.startswith(ANY_OF):
                raise _bad_required(value)
            if name != bare:
                forbidden.add(bare)
            else:
                required.append(frozenset({bare}))
    return tuple(required), frozenset(forbidden)


def _bad_required(value: str) -> Invalid:
    return Invalid(
        f"{WRONG}Expected 'required' parameter value of the form: "
        "HW_CPU_X86_VMX,!CUSTOM_MAGIC. or in:HW_CPU_X86_VMX,CUSTOM_MAGIC. "
        f"Got: {value}"
    )


def parse_member_of(values: list[str]) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Read all values of ``member_of``: sets of which one aggregate must be there, and
    aggregates that must not be there."""
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        bare = value.removeprefix(NOT)
        is_any_of = bare.startswith(ANY_OF)
        texts = bare.removeprefix(ANY_OF).split(",") if is_any_of else [bare]
        uuids = [canonical_uuid(text) for text in texts]
        known = frozenset(uuid for uuid in uuids if uuid is not None)
        if None in uuids:
            raise Invalid(
                f"{WRONG}Expected 'member_of' parameter to contain valid UUID(s). Got: {value}"
            )
        if bare != value:
            forbidden |= known
        else:
            required.append(known)
    return tuple(required), frozenset(forbidden)
