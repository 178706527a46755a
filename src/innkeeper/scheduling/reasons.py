"""Why there was no valid host, in words: for everybody, and for administrators.

Always true: :func:`sentence` names no host. Where some hosts are dedicated, it has no numbers
of hosts: they would tell how many are dedicated, or how many a pcloud has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from innkeeper.domain.explaining import NearMiss, Objection, Refused
from innkeeper.domain.placing import BuildPlan

NO_VALID_HOST = "No valid host was found. "
"""Clients match on this beginning."""
NO_FILTER = "none"
"""Who removed the last host where there was none."""


def sentence(
    plan: BuildPlan, wanted: int, nearest: Sequence[NearMiss] = (), *, has_dedicated: bool
) -> str:
    """Say what became of all hosts, filter by filter, what was missing, and how near it was.

    ``has_dedicated`` says that there are hosts which are kept for somebody. Then there are no
    numbers: whichever filter removed those, they are among the hosts that were removed.
    """
    if plan.hosts == 0:
        return NO_VALID_HOST + "There are no hosts yet."
    is_counted = not has_dedicated
    told = _passed(plan, is_counted=is_counted)
    if plan.candidates:
        told += f", with room for {len(plan.entries)} of {wanted} servers"
    parts = [
        f"{each.filter_name} removed {each.removed if is_counted else 'some'} "
        f"({each.reason}; {each.counted if is_counted else each.missing})"
        for each in plan.removals
    ]
    if parts:
        told += ": " + ", ".join(parts)
    told += "."
    if nearest:
        told += f" The nearest host is rejected by {_objections(nearest[0].objections)}."
    return NO_VALID_HOST + told


def counted(plan: BuildPlan, wanted: int, nearest: Sequence[NearMiss] = ()) -> str:
    """The same sentence with numbers of hosts, dedicated or not; for administrators."""
    return sentence(plan, wanted, nearest, has_dedicated=False)


def _passed(plan: BuildPlan, *, is_counted: bool) -> str:
    if is_counted:
        return f"Of {plan.hosts} hosts, {plan.candidates} passed all filters"
    return f"{'Some' if plan.candidates else 'None'} of the hosts passed all filters"


def culprit(plan: BuildPlan, refused: Refused) -> str:
    """The filter that removed the last hosts, those before it having removed the others."""
    removing = [each.filter_name for each in refused.tallies if each.removed]
    removing = removing or [each.filter_name for each in plan.removals]
    return removing[-1] if removing else NO_FILTER


def details(refused: Refused) -> str:
    """The nearest misses by name, and what each filter keeps away alone; a line for each."""
    lines = [
        f"Without {each.filter_name}, {each.alone} more of {each.refused} hosts would pass."
        for each in refused.tallies
        if each.alone
    ]
    if refused.nearest:
        lines += ["The nearest hosts:", *near_misses(refused)]
    return "\n".join(lines)


def near_misses(refused: Refused) -> list[str]:
    """The hosts that come nearest, by name, each with what it lacks."""
    return [f"{each.host}: {_objections(each.objections)}" for each in refused.nearest]


def _objections(objections: Iterable[Objection]) -> str:
    return " and ".join(
        f"{each.filter_name} ({', '.join(each.lacks) or each.reason})" for each in objections
    )
