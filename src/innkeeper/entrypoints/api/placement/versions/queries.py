"""The changes that microversions made to the queries for providers and candidates."""

from __future__ import annotations

from innkeeper.domain.errors import Invalid
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.edges import Up
from innkeeper.entrypoints.api.microversions import Edge, Step
from innkeeper.entrypoints.api.placement.paths import CANDIDATES, PROVIDERS
from innkeeper.entrypoints.api.placement.queries import (
    ANY_OF,
    NOT,
    WRONG,
    by_suffix,
    no_choice,
    no_trait,
    parse_member_of,
)
from innkeeper.entrypoints.api.routing import Call


def found_by(up: Up) -> tuple[Edge, ...]:
    """Return the same upgrade for the routes that list providers and allocation candidates."""
    return (Edge("GET", PROVIDERS, up=up), Edge("GET", CANDIDATES, up=up))


FORM = "HW_CPU_X86_VMX,CUSTOM_MAGIC"


def _refuse_forbidden_traits(call: Call) -> None:
    value = call.last("required")
    if value is None or value.startswith(ANY_OF):
        # A later version added ``in:``. The step of the later version rejects it.
        return
    names = [name.strip() for name in value.split(",")]
    if not all(name.lstrip(NOT) for name in names):
        raise no_trait(FORM, value)
    if any(name.startswith(NOT) for name in names):
        raise Invalid(
            f"{WRONG}Expected 'required' parameter value of the form: {FORM}. Got: {value}"
        )


def _refuse_repeated_member_of(call: Call) -> None:
    if len(call.query.get("member_of", ())) > 1:
        raise Invalid("Multiple member_of parameters are not supported")


def _refuse_forbidden_aggregates(call: Call) -> None:
    for suffix, values in by_suffix(call.query, "member_of"):
        # Parse first, so that a malformed value has the same error at every version.
        _, forbidden = parse_member_of(values)
        if forbidden:
            raise Invalid(
                f"Forbidden member_of{suffix} parameters are not supported in the specified "
                "microversion"
            )


def _keep_last_required(call: Call) -> None:
    for _, values in by_suffix(call.query, "required"):
        del values[:-1]
        if values[0].startswith(ANY_OF):
            raise no_choice(values[0])


STEPS = (
    Step(
        Version(1, 22),
        "In `required`, `!` before a trait forbids the trait.",
        found_by(_refuse_forbidden_traits),
    ),
    Step(
        Version(1, 24),
        "`member_of` can be repeated; a provider must match every value.",
        found_by(_refuse_repeated_member_of),
    ),
    Step(
        Version(1, 32),
        "In `member_of`, `!` before an aggregate forbids the aggregate. `!` before `in:` forbids "
        "all listed aggregates.",
        found_by(_refuse_forbidden_aggregates),
    ),
    Step(
        Version(1, 39),
        "In `required`, `in:` before a list of traits requires at least one of the traits. "
        "`required` can be repeated.",
        found_by(_keep_last_required),
    ),
)
