"""Converts explanations to JSON values.

Always true: with ``are_hosts_named``, the result contains names and numbers of hosts. Without
``are_hosts_named``, the result contains no names of hosts, and no numbers of hosts if any host is
dedicated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from innkeeper.domain.explaining import (
    Chosen,
    Deciders,
    Explanation,
    HostAnswer,
    NearMiss,
    Objection,
    Ranked,
    Refused,
    Tally,
    Verdict,
)
from innkeeper.scheduling.filters import dedication

COUNTS = ("hosts", "candidates")
TALLY_COUNTS = ("removed", "refused", "alone")
"""The keys of a tally whose values are numbers of hosts. ``COUNTS`` has those of an explanation."""


def explanation(value: Explanation, *, are_hosts_named: bool) -> dict[str, Any]:
    """Convert an explanation to a JSON object."""
    plain: dict[str, Any] = {
        "hosts": value.hosts,
        "candidates": value.candidates,
        "removed": tallies(value.tallies, is_counted=are_hosts_named),
        "nearest": near_misses(value.nearest, are_hosts_named=are_hosts_named),
        "wanted": value.wanted,
        "room": value.placed,
        "servers": 0 if value.fault is not None else value.placed,
        "fault": value.counted_fault if are_hosts_named else value.fault,
        "then": None
        if value.then is None
        else refused(value.then, are_hosts_named=are_hosts_named, is_counted=are_hosts_named),
        "chosen": [_chosen(each, are_hosts_named=are_hosts_named) for each in value.chosen],
        "best": ranked(value.best, are_hosts_named=are_hosts_named),
        "unread_hints": unread_hints(value.unread),
        "decided_by": deciders(value.deciders),
    }
    if value.host is not None and are_hosts_named:
        plain["host"] = _host(value.host)
    return uncounted(plain) if value.has_dedicated and not are_hosts_named else plain


def uncounted(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Remove all numbers of hosts from an explanation, because some hosts are dedicated.

    Any remaining number would reveal the others, because each filter counts only the hosts that
    passed the previous filters. Only the first dedicated host stays in ``nearest``, so that a
    reader cannot count the dedicated hosts.
    """
    then = plain.get("then")
    shown = {**plain, **_refused_uncounted(plain), **dict.fromkeys(COUNTS)}
    if then is not None:
        shown["then"] = {**then, **_refused_uncounted(then)}
    return shown


def _refused_uncounted(plain: Mapping[str, Any]) -> dict[str, Any]:
    removed = [
        {name: None if name in TALLY_COUNTS else value for name, value in each.items()}
        for each in plain.get("removed", [])
    ]
    if "nearest" not in plain:
        return {"removed": removed}
    nearest: list[Mapping[str, Any]] = []
    has_dedicated = False
    for each in plain["nearest"]:
        filters = {objection["filter"] for objection in each["refused_by"]}
        is_dedicated = not dedication.NAMES.isdisjoint(filters)
        if not (is_dedicated and has_dedicated):
            nearest.append(each)
        has_dedicated |= is_dedicated
    return {"removed": removed, "nearest": nearest}


def unread_hints(unread: Mapping[str, str]) -> list[dict[str, str]]:
    """Convert the ignored hints, each with the reason why the hint was ignored."""
    return [{"hint": name, "reason": reason} for name, reason in unread.items()]


def deciders(value: Deciders) -> dict[str, Any]:
    """Convert the configuration and seed of a decision."""
    return {
        "driver": value.driver,
        "filters": list(value.filters),
        "weighers": dict(value.weighers),
        "subset_size": value.subset_size,
        "seed": value.seed,
    }


def refused(value: Refused, *, are_hosts_named: bool, is_counted: bool) -> dict[str, Any]:
    """Convert the reasons why no host was found for a server."""
    return {
        "removed": tallies(value.tallies, is_counted=is_counted),
        "nearest": near_misses(value.nearest, are_hosts_named=are_hosts_named),
    }


def tallies(values: Iterable[Tally], *, is_counted: bool) -> list[dict[str, Any]]:
    """Convert tallies. With ``is_counted``, the texts in ``missing`` contain numbers of hosts."""
    return [
        {
            "filter": each.filter_name,
            "removed": each.removed,
            "refused": each.refused,
            "alone": each.alone,
            "reason": each.reason,
            "missing": each.counted if is_counted else each.missing,
        }
        for each in values
    ]


def near_misses(values: Iterable[NearMiss], *, are_hosts_named: bool) -> list[dict[str, Any]]:
    """Convert near misses. With ``are_hosts_named``, the result contains names of hosts."""
    return [
        {
            **({"host": each.host} if are_hosts_named else {}),
            "refused_by": [_objection(one) for one in each.objections],
            "shortage": each.shortage,
        }
        for each in values
    ]


def ranked(values: Iterable[Ranked], *, are_hosts_named: bool) -> list[dict[str, Any]]:
    """Convert ranked hosts with the total weight and the parts by weigher."""
    return [
        {
            **({"host": each.host} if are_hosts_named else {}),
            "weight": each.weight,
            "parts": dict(each.parts),
        }
        for each in values
    ]


def _objection(each: Objection) -> dict[str, Any]:
    return {"filter": each.filter_name, "reason": each.reason, "lacks": list(each.lacks)}


def _chosen(each: Chosen, *, are_hosts_named: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {"weight": each.weight, "parts": dict(each.parts)}
    if are_hosts_named:
        plain = {"host": each.host, **plain, "alternates": list(each.alternates)}
        if each.pools:
            plain["pools"] = dict(each.pools)
    return plain


def _host(value: HostAnswer) -> dict[str, Any]:
    return {
        "host": value.host,
        "verdicts": [_verdict(each) for each in value.verdicts],
        "rank": value.rank,
        "weight": value.weight,
        "parts": None if value.parts is None else dict(value.parts),
    }


def _verdict(each: Verdict) -> Mapping[str, Any]:
    if each.objection is None:
        verdict = "passes" if each.is_requested else "is not asked"
        return {"filter": each.filter_name, "verdict": verdict, "reason": None, "lacks": []}
    return {**_objection(each.objection), "verdict": "refuses"}
