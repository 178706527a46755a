"""Only hosts that can run what the image is made for.

An image may ask for an architecture, a kind of virtualization, a mode of it and a version.
A host tells what it runs as capabilities: either ``supported_instances``, a list of triples
(architecture, kind, mode), or ``cpu_arch``, ``hypervisor_type`` and ``vm_mode`` by themselves;
and ``hypervisor_version``. What a host does not tell is not promised: an image that asks for it
does not go there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts import freshness, platforms, versions
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.capabilities import CapabilityColumn
from innkeeper.snapshot.columns import HostTable

NAME = "ImagePropertiesFilter"
REASON = "the host does not run what the image is made for"
READS: Reads = ("image_properties", "rules")

ALL = slice(None)
TRIPLES, VERSION = "supported_instances", "hypervisor_version"


@dataclass(frozen=True, slots=True)
class Part:
    """One thing to ask for: the image's names for it, the newest first, and the host's."""

    properties: tuple[str, str]
    capability: str
    place: int
    """Where it is in a triple."""


PARTS = (
    Part(("hw_architecture", "architecture"), "cpu_arch", 0),
    Part(("img_hv_type", "hypervisor_type"), "hypervisor_type", 1),
    Part(("hw_vm_mode", "vm_mode"), "vm_mode", 2),
)
VERSIONS = ("img_hv_requested_version", "hypervisor_version_requires")

Wanted = tuple[tuple[Part, str], ...]


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """True where one triple, or the host by itself, has all that the image asks for."""
    wanted, version = _wanted(spec)
    if not wanted and version is None:
        return None
    demands: list[Mask] = []
    if wanted:
        demands.append(_runs(hosts, wanted, rows))
    if version is not None:
        demands.append(_has_version(hosts, version, rows))
    if (fresh := freshness.fresh(hosts, spec, rows)) is not None:
        demands.append(fresh)
    return reduce(np.logical_and, demands)


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Which hosts' capabilities are known, if any are asked for."""
    return freshness.stamp(hosts, spec) if _wanted(spec) != ((), None) else None


def _wanted(spec: RequestSpec) -> tuple[Wanted, str | None]:
    said = dict(spec.image_properties)
    asked = [(part, _first(said, part.properties)) for part in PARTS]
    wanted = tuple((part, platforms.canonical(text)) for part, text in asked if text)
    return wanted, _first(said, VERSIONS)


def _first(said: dict[str, str], names: tuple[str, str]) -> str | None:
    return said.get(names[0]) or said.get(names[1]) or None


def _runs(hosts: HostTable, wanted: Wanted, rows: Rows) -> Mask:
    triples = hosts.capability(TRIPLES)
    by_triples = _judge(triples, lambda told: _is_among(told, wanted), rows)
    # Who tells triples is judged by them alone: they say what goes together.
    alone = [_judge(hosts.capability(part.capability), _same(name), rows) for part, name in wanted]
    untold: Mask = triples.codes[rows] < 0
    return by_triples | (untold & reduce(np.logical_and, alone))


def _same(name: str) -> Any:
    return lambda told: isinstance(told, str) and platforms.canonical(told) == name


def _is_among(told: Any, wanted: Wanted) -> bool:
    triples = told if isinstance(told, list) else []
    return any(_has_all(each, wanted) for each in triples)


def _has_all(triple: Any, wanted: Wanted) -> bool:
    if not isinstance(triple, list) or len(triple) != len(PARTS):
        return False
    return all(platforms.canonical(str(triple[part.place])) == name for part, name in wanted)


def _has_version(hosts: HostTable, asked: str, rows: Rows) -> Mask:
    try:
        bounds = versions.parse(asked)
    except Invalid:
        # Nobody knows what is asked for, so nobody has it; ``missing`` tells.
        return _judge(hosts.capability(VERSION), lambda told: False, rows)
    return _judge(hosts.capability(VERSION), lambda told: versions.meets(told, bounds), rows)


def _judge(column: CapabilityColumn, verdict: Any, rows: Rows) -> Mask:
    # One more at the end: a host that does not tell has the code -1, and picks it.
    by_code = np.array([*map(verdict, column.values), False], dtype=np.bool_)
    judged: Mask = by_code[column.codes[rows]]
    return judged


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """What is asked for, each with the number of hosts that have it."""
    wanted, version = _wanted(spec)
    told = [f"{part.properties[0]} {name!r}: {_hosts(hosts, part, name)}" for part, name in wanted]
    if version is not None:
        found = int(_has_version(hosts, version, ALL).sum())
        told.append(f"{VERSIONS[0]} {version!r}: on {found} hosts{_doubt(version)}")
    return "; ".join(told) or "the image asks for nothing"


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """What one host tells of all that the image asks for."""
    fresh = freshness.fresh(hosts, spec, slice(index, index + 1))
    if fresh is not None and not fresh[0]:
        return ["what it told is too old"]
    wanted, version = _wanted(spec)
    names = [part.capability for part, _ in wanted]
    if wanted and hosts.capability(TRIPLES).codes[index] >= 0:
        names = [TRIPLES]
    if version is not None:
        names.append(VERSION)
    return [f"{name} is {_value(hosts, name, index)}" for name in names]


def _value(hosts: HostTable, name: str, index: HostIndex) -> str:
    column = hosts.capability(name)
    code = int(column.codes[index])
    return "not told" if code < 0 else f"{column.values[code]!a:.120}"


def _hosts(hosts: HostTable, part: Part, name: str) -> str:
    return f"on {int(_runs(hosts, ((part, name),), ALL).sum())} hosts"


def _doubt(version: str) -> str:
    try:
        versions.parse(version)
    except Invalid as error:
        return f" ({error})"
    return ""
