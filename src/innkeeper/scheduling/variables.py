"""Define the variables of queries. The name of a variable includes the unit.

Always true: queries can read only these variables of hosts. The numbers of servers may be unknown,
because they are maintained only if a configured filter or weigher needs them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from innkeeper.domain.placing import RequestSpec
from innkeeper.scheduling.facts import freshness
from innkeeper.scheduling.facts.masks import named, nowhere, row_count
from innkeeper.scheduling.operands import Operand, coded, name, number
from innkeeper.snapshot.amounts import Amount, Rows
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.vocabulary import NO_CODE

CAPABILITIES, TRAITS = "capabilities.", "traits."
MB_PER_GB = 1024

_Measure = Callable[[HostTable, Rows], Amount]


def _free(class_name: str, factor: int = 1) -> _Measure:
    return lambda hosts, rows: _of(hosts.free, class_name, hosts, rows) * factor


def _used(class_name: str) -> _Measure:
    return lambda hosts, rows: _of(hosts.used, class_name, hosts, rows)


def _total(class_name: str) -> _Measure:
    free, used = _free(class_name), _used(class_name)
    return lambda hosts, rows: free(hosts, rows) + used(hosts, rows)


def _of(columns: dict[str, Amount], class_name: str, hosts: HostTable, rows: Rows) -> Amount:
    if class_name not in columns:
        return np.zeros(row_count(hosts, rows))
    return columns[class_name][rows]


def _servers(hosts: HostTable, rows: Rows) -> Amount:
    return hosts.server_counts[rows].astype(np.float64)


def _busy(hosts: HostTable, rows: Rows) -> Amount:
    return hosts.busy_counts[rows].astype(np.float64)


NUMBERS: dict[str, _Measure] = {
    "free_memory_mb": _free("MEMORY_MB"),
    "free_disk_gb": _free("DISK_GB"),
    "free_vcpus": _free("VCPU"),
    "used_memory_mb": _used("MEMORY_MB"),
    "used_disk_gb": _used("DISK_GB"),
    "used_vcpus": _used("VCPU"),
    "total_memory_mb": _total("MEMORY_MB"),
    "total_disk_gb": _total("DISK_GB"),
    "total_vcpus": _total("VCPU"),
    # These are Nova's names for the same measures.
    "free_ram_mb": _free("MEMORY_MB"),
    "free_disk_mb": _free("DISK_GB", MB_PER_GB),
    "vcpus_used": _used("VCPU"),
    "vcpus_total": _total("VCPU"),
    "total_usable_ram_mb": _total("MEMORY_MB"),
    "total_usable_disk_gb": _total("DISK_GB"),
}
COUNTS: dict[str, _Measure] = {
    "servers": _servers,
    "busy_servers": _busy,
    "num_instances": _servers,
    "num_io_ops": _busy,
}
HOST_NAMES = frozenset({"host", "hypervisor_hostname"})
"""Variables that identify a host. Policy rules restrict their use."""
ZONE = "availability_zone"


def is_nameless(word: str) -> bool:
    """Return whether a variable is ``capabilities.`` or ``traits.`` without a name."""
    kind, _, rest = word.partition(".")
    return f"{kind}." in (CAPABILITIES, TRAITS) and not rest.strip(".")


def find(hosts: HostTable, spec: RequestSpec, rows: Rows, word: str) -> Operand | None:
    """Return a variable's values in these rows, or None if the variable is unknown.

    Also return None if the table does not maintain the values.
    """
    measure = NUMBERS.get(word) or (COUNTS.get(word) if hosts.knows_servers else None)
    if measure is not None:
        return number(measure(hosts, rows))
    if word in HOST_NAMES:
        return name(lambda host: named(hosts, (host,), rows))
    if word == ZONE:
        return coded(hosts.zone_codes[rows], list(hosts.zones))
    if word.startswith(CAPABILITIES):
        return _capability(hosts, spec, rows, word.removeprefix(CAPABILITIES))
    if word.startswith(TRAITS):
        return _trait(hosts, rows, word.removeprefix(TRAITS))
    return None


def _capability(hosts: HostTable, spec: RequestSpec, rows: Rows, word: str) -> Operand:
    column = hosts.capability(word)
    numbers, codes = column.numbers[rows], column.codes[rows]
    fresh = freshness.fresh(hosts, spec, rows)
    if fresh is not None:
        numbers = np.where(fresh, numbers, np.nan)
        codes = np.where(fresh, codes, np.int32(NO_CODE))
    return Operand(numbers, codes, column.vocabulary)


def _trait(hosts: HostTable, rows: Rows, word: str) -> Operand:
    column = hosts.traits.get(word)
    has = nowhere(hosts, rows) if column is None else column[rows]
    return coded(has.astype(np.int32), (False, True))
