"""Parsers of query parameters that search for providers by amounts, traits and aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ProviderUuid, canonical_uuid
from innkeeper.domain.placement import ProviderQuery
from innkeeper.entrypoints.api.routing import Call

ANY_OF = "in:"
NOT = "!"
DIGITS_MAX = len(str(UNIT_MAX))
CONDITIONS_MAX = 256
"""Maximum number of conditions in a query. Databases reject queries with too many conditions."""
WRONG = "Invalid query string parameters: "
TRAITS_FORM = "HW_CPU_X86_VMX,!CUSTOM_MAGIC"
ANY_TRAIT_FORM = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"


def provider_query(call: Call) -> ProviderQuery:
    """Parse the query of the provider list. Raises :class:`Invalid` if it is malformed."""
    member_of, not_member_of = parse_member_of(call.query.get("member_of", []))
    required, forbidden = parse_required(call.query.get("required", []))
    text = call.last("resources")
    resources = {} if text is None else parse_resources(text)
    if len(required) + len(member_of) + len(resources) > CONDITIONS_MAX:
        raise Invalid(f"{WRONG}More than {CONDITIONS_MAX} conditions in one query.")
    return ProviderQuery(
        name=call.last("name") or None,
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


def by_suffix(query: Mapping[str, list[str]], word: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the suffix and the values of each parameter that begins with ``word``."""
    for name, values in query.items():
        if name.startswith(word):
            yield name.removeprefix(word), values


def parse_resources(text: str) -> dict[str, int]:
    """Parse ``CLASS:AMOUNT,...``, and return the amounts by class."""
    if not text.strip():
        raise _bad_resources("empty string")
    found: dict[str, int] = {}
    for part in text.split(","):
        name, separator, amount = part.partition(":")
        if not separator or ":" in amount:
            raise _bad_resources(part)
        found[name] = _amount(name, amount.strip())
    return found


def _bad_resources(got: str) -> Invalid:
    return Invalid(
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        f"?resources=VCPU:2,MEMORY_MB:1024. Got: {got}."
    )


def _amount(name: str, text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise Invalid(f"Requested resource {name} expected positive integer amount. Got: {text}.")
    significant = digits.lstrip("0")
    if not significant or text.startswith("-"):
        got = f"-{significant}" if significant else "0"
        raise Invalid(f"Requested resource {name} requires amount >= 1. Got: {got}.")
    # Any larger amount exceeds every inventory, so it need not be exact.
    return int(significant) if len(significant) <= DIGITS_MAX else UNIT_MAX + 1


def parse_required(values: list[str]) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Parse all values of ``required``.

    Returns the sets of required traits, and the set of forbidden traits. A provider must have at
    least one trait of each required set.
    """
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        if value.startswith(ANY_OF):
            required.append(_any_of(value))
        else:
            names, unwanted = parse_traits(value)
            required += (frozenset({name}) for name in names)
            forbidden |= unwanted
    return tuple(required), frozenset(forbidden)


def _any_of(value: str) -> frozenset[str]:
    names = [name.strip() for name in value.removeprefix(ANY_OF).split(",")]
    if not all(names):
        raise no_trait(ANY_TRAIT_FORM, value)
    if any(name.startswith(NOT) for name in names):
        raise Invalid(
            f"{WRONG}The format '{ANY_TRAIT_FORM}' does not support forbidden traits. Got: {value}"
        )
    return frozenset(names)


def parse_traits(value: str) -> tuple[list[str], set[str]]:
    """Parse one value without ``in:`` into required and forbidden traits."""
    names = [name.strip() for name in value.split(",")]
    if not all(name.lstrip(NOT) for name in names):
        raise no_trait(TRAITS_FORM, value)
    forbidden = {name.lstrip(NOT) for name in names if name.startswith(NOT)}
    return [name for name in names if not name.startswith(NOT)], forbidden


def no_trait(form: str, value: str) -> Invalid:
    """Return the error for a value with an empty trait."""
    return Invalid(
        f"{WRONG}Expected 'required' parameter value of the form: {form}. "
        f"Got an empty trait in: {value}"
    )


def no_choice(value: str) -> Invalid:
    """Return the error for a value with ``in:``, in a place where ``in:`` is not supported."""
    return Invalid(
        f"{WRONG}The format '{ANY_TRAIT_FORM}' only supported since microversion 1.39. Got: {value}"
    )


def parse_member_of(values: list[str]) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Parse all values of ``member_of``.

    Returns the sets of required aggregates, and the set of forbidden aggregates. A provider must be
    in at least one aggregate of each required set.
    """
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        bare = value.removeprefix(NOT)
        is_any_of = bare.startswith(ANY_OF)
        if "," in value and not is_any_of:
            raise Invalid(
                "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' "
                f"keyword using the valid microversion. Got: {value}"
            )
        texts = bare.removeprefix(ANY_OF).split(",") if is_any_of else [bare]
        known = frozenset(_aggregate(text) for text in texts)
        if bare != value:
            forbidden |= known
        else:
            required.append(known)
    return tuple(required), frozenset(forbidden)


def _aggregate(text: str) -> str:
    canonical = canonical_uuid(text)
    if canonical is None:
        raise Invalid(
            f"{WRONG}Expected 'member_of' parameter to contain valid UUID(s). Got: {text}"
        )
    return canonical
