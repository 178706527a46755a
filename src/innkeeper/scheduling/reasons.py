"""Write the fault "No valid host was found" for users and for administrators.

Always true: the text of :func:`sentence` has no names of hosts. With ``has_dedicated``, the text
also has no numbers of hosts, because these could reveal the number of dedicated hosts or the size
of a pcloud.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from innkeeper.domain.explaining import NearMiss, Objection, Refused
from innkeeper.domain.placing import BuildPlan

NO_VALID_HOST = "No valid host was found. "
"""The prefix of the fault. Clients look for this prefix."""
NO_FILTER = "none"
"""The result of :func:`culprit` if no filter removed a host, because there are no hosts."""


def sentence(
    plan: BuildPlan, wanted: int, nearest: Sequence[NearMiss] = (), *, has_dedicated: bool
) -> str:
    """Return the fault, with the removals of each filter, what was missing, and the nearest miss.

    With ``has_dedicated``, the text has no numbers of hosts, because the numbers may include
    dedicated hosts.
    """
    if plan.hosts == 0:
        return NO_VALID_HOST + "There are no hosts yet."
    is_counted = not has_dedicated
    if is_counted:
        text = f"Of {plan.hosts} hosts, {plan.candidates} passed all filters"
    else:
        text = f"{'Some' if plan.candidates else 'None'} of the hosts passed all filters"
    if plan.candidates:
        text += f", with room for {len(plan.entries)} of {wanted} servers"
    parts = [
        f"{each.filter_name} removed {each.removed if is_counted else 'some'} "
        f"({each.reason}; {each.counted if is_counted else each.missing})"
        for each in plan.removals
    ]
    if parts:
        text += ": " + ", ".join(parts)
    text += "."
    if nearest:
        text += f" The nearest host is rejected by {_objections(nearest[0].objections)}."
    return NO_VALID_HOST + text


def counted(plan: BuildPlan, wanted: int, nearest: Sequence[NearMiss] = ()) -> str:
    """Return :func:`sentence` with all numbers of hosts, for administrators."""
    return sentence(plan, wanted, nearest, has_dedicated=False)


def culprit(plan: BuildPlan, refused: Refused) -> str:
    """Return the name of the last filter that removed hosts, or :data:`NO_FILTER`."""
    removing = [each.filter_name for each in refused.tallies if each.removed]
    removing = removing or [each.filter_name for each in plan.removals]
    return removing[-1] if removing else NO_FILTER


def details(refused: Refused) -> str:
    """State how many hosts each filter alone rejects, and list the nearest misses by host name."""
    lines = [
        f"Without {each.filter_name}, {each.alone} of the {each.refused} hosts that it rejects "
        "would pass."
        for each in refused.tallies
        if each.alone
    ]
    if refused.nearest:
        lines += ["The nearest hosts:", *near_misses(refused)]
    return "\n".join(lines)


def near_misses(refused: Refused) -> list[str]:
    """Return a line for each of the nearest misses, with the host and what it lacks."""
    return [f"{each.host}: {_objections(each.objections)}" for each in refused.nearest]


def _objections(objections: Iterable[Objection]) -> str:
    return " and ".join(
        f"{each.filter_name} ({', '.join(each.lacks) or each.reason})" for each in objections
    )
