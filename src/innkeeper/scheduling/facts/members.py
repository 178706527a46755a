"""Where the members of a server group are, as a column."""

from __future__ import annotations

import numpy as np

from innkeeper.domain.placing import GroupRule
from innkeeper.scheduling.pipeline import Weights
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable


def counts(hosts: HostTable, group: GroupRule | None, rows: Rows) -> Weights:
    """How many members each host has; members on hosts that are gone count nowhere."""
    column: Weights = np.zeros(hosts.host_count)
    for name, count in group.members.items() if group is not None else ():
        index = hosts.index_by_name.get(name)
        if index is not None:
            column[index] = count
    return column[rows]


def scale(group: GroupRule | None, policy: str) -> float:
    """One member weighs 1, however many there are: what is picked must not move the scale.

    0 for a group of another policy, and for none.
    """
    return 1.0 if group is not None and group.policy == policy else 0.0
