"""Keep only hosts that support the image's properties.

An image may require an architecture, a virtualization type, a mode and a version. A host reports
its version as ``hypervisor_version``. It reports the other values either as
``supported_instances``, a list of triples (architecture, type, mode), or as the single capabilities
``cpu_arch``, ``hypervisor_type`` and ``vm_mode``. A host that does not report a required value is
removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import HostIndex
from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts import freshness, versions
from innkeeper.scheduling.reading import Reads
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.capabilities import CapabilityColumn
from innkeeper.snapshot.columns import HostTable

NAME = "ImagePropertiesFilter"
REASON = "the host does not support the image's properties"
READS: Reads = ("image_properties", "rules")

ALL = slice(None)
TRIPLES, VERSION = "supported_instances", "hypervisor_version"


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of requirement. ``properties`` has all names of the image property, newest first.

    ``capability`` is the host's single capability, and ``place`` is the index of the value in a
    triple.
    """

    properties: tuple[str, str]
    capability: str
    place: int


PARTS = (
    Part(("hw_architecture", "architecture"), "cpu_arch", 0),
    Part(("img_hv_type", "hypervisor_type"), "hypervisor_type", 1),
    Part(("hw_vm_mode", "vm_mode"), "vm_mode", 2),
)
VERSIONS = ("img_hv_requested_version", "hypervisor_version_requires")
SPELLINGS: Mapping[str, str] = {
    "amd64": "x86_64",
    "x86-64": "x86_64",
    "x64": "x86_64",
    "i386": "i686",
    "i486": "i686",
    "i586": "i686",
    "x86": "i686",
    "arm64": "aarch64",
    "arm": "armv7l",
    "powerpc": "ppc",
    "powerpc64": "ppc64",
    "powerpc64le": "ppc64le",
    # Virtualization types and modes.
    "vmware esx": "vmware",
    "xapi": "xen",
    "pv": "xen",
    "hv": "hvm",
    "baremetal": "ironic",
}
"""Maps alternative spellings of architectures, virtualization types and modes to canonical ones."""

Required = tuple[tuple[Part, str], ...]


def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
    """Return True where one triple or the single capabilities meet all requirements.

    The version must be within the required bounds.
    """
    required, version = _required(spec)
    if not required and version is None:
        return None
    demands: list[Mask] = []
    if required:
        demands.append(_runs(hosts, required, rows))
    if version is not None:
        demands.append(_has_version(hosts, version, rows))
    if (fresh := freshness.fresh(hosts, spec, rows)) is not None:
        demands.append(fresh)
    return reduce(np.logical_and, demands)


def stamp(hosts: HostTable, spec: RequestSpec) -> object:
    """Return a cache key that changes if the set of hosts with known capabilities changes."""
    return freshness.stamp(hosts, spec) if _required(spec) != ((), None) else None


def _required(spec: RequestSpec) -> tuple[Required, str | None]:
    properties = dict(spec.image_properties)
    values = [(part, _first(properties, part.properties)) for part in PARTS]
    required = tuple((part, _canonical(text)) for part, text in values if text)
    return required, _first(properties, VERSIONS)


def _first(properties: dict[str, str], names: tuple[str, str]) -> str | None:
    return properties.get(names[0]) or properties.get(names[1]) or None


def _runs(hosts: HostTable, required: Required, rows: Rows) -> Mask:
    triples = hosts.capability(TRIPLES)
    by_triples = _judge(triples, lambda reported: _is_among(reported, required), rows)
    # Only triples show which values belong together. Single capabilities therefore count only for
    # hosts without triples.
    single = [
        _judge(hosts.capability(part.capability), _same(name), rows) for part, name in required
    ]
    has_no_triples: Mask = triples.codes[rows] < 0
    return by_triples | (has_no_triples & reduce(np.logical_and, single))


def _same(name: str) -> Any:
    return lambda reported: isinstance(reported, str) and _canonical(reported) == name


def _is_among(reported: Any, required: Required) -> bool:
    return isinstance(reported, list) and any(_has_all(each, required) for each in reported)


def _has_all(triple: Any, required: Required) -> bool:
    if not isinstance(triple, list) or len(triple) != len(PARTS):
        return False
    return all(_canonical(str(triple[part.place])) == name for part, name in required)


def _has_version(hosts: HostTable, version: str, rows: Rows) -> Mask:
    try:
        bounds = versions.parse(version)
    except Invalid:
        # No host meets bounds that cannot be parsed; ``missing`` shows the error.
        return _judge(hosts.capability(VERSION), lambda reported: False, rows)
    return _judge(
        hosts.capability(VERSION), lambda reported: versions.meets(reported, bounds), rows
    )


def _canonical(name: str) -> str:
    lower = name.strip().lower()
    return SPELLINGS.get(lower, lower)


def _judge(column: CapabilityColumn, verdict: Any, rows: Rows) -> Mask:
    # The last element is for hosts without a value, whose code is -1.
    by_code = np.array([*map(verdict, column.values), False], dtype=np.bool_)
    judged: Mask = by_code[column.codes[rows]]
    return judged


def missing(hosts: HostTable, spec: RequestSpec) -> str:
    """Describe each requirement, with the number of hosts that meet it."""
    required, version = _required(spec)
    lines = [f"{each[0].properties[0]} {each[1]!r}: {_on(hosts, each)}" for each in required]
    if version is not None:
        found = int(_has_version(hosts, version, ALL).sum())
        lines.append(f"{VERSIONS[0]} {version!r}: on {found} hosts{_syntax_error(version)}")
    return "; ".join(lines) or "the image has no requirements"


def lacks(hosts: HostTable, spec: RequestSpec, index: HostIndex) -> list[str]:
    """List the values that the host reports for all requirements."""
    fresh = freshness.fresh(hosts, spec, slice(index, index + 1))
    if fresh is not None and not fresh[0]:
        return ["its capabilities were not reported recently"]
    required, version = _required(spec)
    names = [part.capability for part, _ in required]
    if required and hosts.capability(TRIPLES).codes[index] >= 0:
        names = [TRIPLES]
    if version is not None:
        names.append(VERSION)
    return [f"{name} is {_value(hosts, name, index)}" for name in names]


def _value(hosts: HostTable, name: str, index: HostIndex) -> str:
    column = hosts.capability(name)
    code = int(column.codes[index])
    return "not reported" if code < 0 else f"{column.values[code]!a:.120}"


def _on(hosts: HostTable, requirement: tuple[Part, str]) -> str:
    return f"on {int(_runs(hosts, (requirement,), ALL).sum())} hosts"


def _syntax_error(version: str) -> str:
    try:
        versions.parse(version)
    except Invalid as error:
        return f" ({error})"
    return ""
