"""Explanations in plain values, for JSON.

Always true: without ``are_hosts_named``, no host is named; nor are hosts counted where some are
kept for somebody, pclouds' or leases'. With it, hosts are named and counted in numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
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
"""What tells of numbers of hosts: of an explanation, and of what one filter did."""


def explanation(told: Explanation, *, are_hosts_named: bool) -> dict[str, Any]:
    """An explanation in plain values; without the names of hosts, unless they may be told."""
    plain: dict[str, Any] = {
        "hosts": told.hosts,
        "candidates": told.candidates,
        "removed": tallies(told.tallies, is_counted=are_hosts_named),
        "nearest": near_misses(told.nearest, are_hosts_named=are_hosts_named),
        "wanted": told.wanted,
        "room": told.placed,
        "servers": 0 if told.fault is not None else told.placed,
        "fault": told.counted_fault if are_hosts_named else told.fault,
        "then": None
        if told.then is None
        else refused(told.then, are_hosts_named=are_hosts_named, is_counted=are_hosts_named),
        "chosen": [_chosen(each, are_hosts_named=are_hosts_named) for each in told.chosen],
        "best": ranked(told.best, are_hosts_named=are_hosts_named),
        "unread_hints": unread_hints(told.unread),
        "decided_by": deciders(told.deciders),
    }
    if told.host is not None and are_hosts_named:
        plain["host"] = _host(told.host)
    return uncounted(plain) if told.has_dedicated and not are_hosts_named else plain


def uncounted(plain: Mapping[str, Any]) -> dict[str, Any]:
    """An explanation for those who may not know how many hosts are dedicated, as some are.

    No hosts are counted: what one filter left, the next one removed, so any number would give
    away the others, whichever filter it was that removed them. Nor can they be counted among
    the nearest: one stands there for all.
    """
    then = plain.get("then")
    shown = {**plain, **_refused_uncounted(plain), **dict.fromkeys(COUNTS)}
    if then is not None:
        shown["then"] = {**then, **_refused_uncounted(then)}
    return shown


def _refused_uncounted(plain: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"removed": _without_counts(plain.get("removed", []))}
    if "nearest" in plain:
        shown["nearest"] = _one_for_all(plain["nearest"])
    return shown


def _one_for_all(nearest: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The nearest hosts, with the first of the dedicated ones in place of all of these."""
    told: list[Mapping[str, Any]] = []
    is_told = False
    for each in nearest:
        is_dedicated = _names_one_of(dedication.NAMES, each["refused_by"])
        if not (is_dedicated and is_told):
            told.append(each)
        is_told |= is_dedicated
    return told


def _names_one_of(filters: Set[str], said: Iterable[Mapping[str, Any]]) -> bool:
    return not filters.isdisjoint(each["filter"] for each in said)


def _without_counts(removed: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: None if name in TALLY_COUNTS else thing for name, thing in each.items()}
        for each in removed
    ]


def unread_hints(told: Mapping[str, str]) -> list[dict[str, str]]:
    """Hints of which nothing is known."""
    return [{"hint": name, "reason": reason} for name, reason in told.items()]


def deciders(told: Deciders) -> dict[str, Any]:
    """Who decided."""
    return {
        "driver": told.driver,
        "filters": list(told.filters),
        "weighers": dict(told.weighers),
        "subset_size": told.subset_size,
        "seed": told.seed,
    }


def refused(told: Refused, *, are_hosts_named: bool, is_counted: bool) -> dict[str, Any]:
    """Why no host takes a server."""
    return {
        "removed": tallies(told.tallies, is_counted=is_counted),
        "nearest": near_misses(told.nearest, are_hosts_named=are_hosts_named),
    }


def tallies(told: Iterable[Tally], *, is_counted: bool) -> list[dict[str, Any]]:
    """What filters did; ``is_counted`` is for those who may know how many are dedicated."""
    return [
        {
            "filter": each.filter_name,
            "removed": each.removed,
            "refused": each.refused,
            "alone": each.alone,
            "reason": each.reason,
            "missing": each.counted if is_counted else each.missing,
        }
        for each in told
    ]


def near_misses(told: Iterable[NearMiss], *, are_hosts_named: bool) -> list[dict[str, Any]]:
    """The refused hosts that come nearest."""
    return [
        {
            **({"host": each.host} if are_hosts_named else {}),
            "refused_by": [_objection(one) for one in each.objections],
            "shortage": each.shortage,
        }
        for each in told
    ]


def ranked(told: Iterable[Ranked], *, are_hosts_named: bool) -> list[dict[str, Any]]:
    """Hosts with their weights, by weigher."""
    return [
        {
            **({"host": each.host} if are_hosts_named else {}),
            "weight": each.weight,
            "parts": dict(each.parts),
        }
        for each in told
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


def _host(told: HostAnswer) -> dict[str, Any]:
    return {
        "host": told.host,
        "verdicts": [_verdict(each) for each in told.verdicts],
        "rank": told.rank,
        "weight": told.weight,
        "parts": None if told.parts is None else dict(told.parts),
    }


def _verdict(each: Verdict) -> Mapping[str, Any]:
    said = "passes" if each.is_asked else "is not asked"
    if each.objection is None:
        return {"filter": each.filter_name, "verdict": said, "reason": None, "lacks": []}
    return {**_objection(each.objection), "verdict": "refuses"}
