"""Describe simulated trees of zones, and distribute the hosts of a fleet to the zones.

Always true: every host belongs to exactly one zone. Zones are numbered in preorder: a zone comes
before its child zones, and the root has the number 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.scheduling.simulation.fleets import HostGroup
from innkeeper.scheduling.simulation.workload import Codes

ROUND_ROBIN, CONTIGUOUS, BY_SHAPE = "round-robin", "contiguous", "by-shape"
DEALS = (ROUND_ROBIN, CONTIGUOUS, BY_SHAPE)
"""The ways to distribute hosts to zones: in turn, in the order of the fleet, or hosts of equal
totals together."""
ZONES_MAX = 5000
DEPTH_MAX = 8


@dataclass(frozen=True, slots=True)
class SimulatedZone:
    """A zone and its child zones.

    A zone gets hosts in proportion to its ``share``. The parent applies ``weight_offset`` and
    ``weight_scale`` to the weights of the zone. A higher weight is better. ``changes`` has the
    parts of the policy in which the zone differs: ``driver``, ``filters`` and ``weighers`` as text.
    """

    name: str
    share: float = 1.0
    weight_offset: float = 0.0
    weight_scale: float = 1.0
    zones: tuple[SimulatedZone, ...] = ()
    changes: Mapping[str, str] = field(default_factory=dict)

    def preorder(self) -> Iterator[SimulatedZone]:
        """Iterate over this zone and all zones below it."""
        yield self
        for each in self.zones:
            yield from each.preorder()

    def depth(self) -> int:
        """Return the number of levels below this zone."""
        return 1 + max(each.depth() for each in self.zones) if self.zones else 0


@dataclass(frozen=True, slots=True)
class SimulatedTree:
    """A tree, with its name in results and the way to distribute hosts to its zones."""

    name: str
    root: SimulatedZone
    deal: str = ROUND_ROBIN

    def __post_init__(self) -> None:
        names = [zone.name for zone in self.root.preorder()]
        if len(names) > ZONES_MAX or self.root.depth() > DEPTH_MAX:
            raise Invalid(
                f"The tree {self.name} must have at most {ZONES_MAX} zones on at most {DEPTH_MAX} "
                "levels below its root."
            )
        if len(set(names)) < len(names):
            raise Invalid(f"Two zones of the tree {self.name} have the same name.")
        if not any(zone.share for zone in self.root.preorder()):
            raise Invalid(f"No zone of the tree {self.name} has a share of the hosts.")

    @property
    def is_alone(self) -> bool:
        """Whether the tree has only one zone."""
        return not self.root.zones

    def description(self) -> str:
        """Return the size of the tree, in one line."""
        zones = list(self.root.preorder())
        owners = sum(zone.share > 0 for zone in zones)
        return (
            f"{len(zones)} zones, {owners} of them with hosts, {self.root.depth()} levels below "
            f"the root; hosts dealt {self.deal}"
        )


def uniform(name: str, widths: Sequence[int], deal: str = ROUND_ROBIN) -> SimulatedTree:
    """Return a tree in which all zones of a level have the same number of child zones.

    ``widths`` has the number of child zones of one zone for each level, beginning with the root.
    Only the zones of the last level have hosts. Without ``widths``, the root has all hosts.
    """
    count = 1
    for width in widths:
        count *= width
        if width < 1 or count > ZONES_MAX:
            raise Invalid(f"A tree has at most {ZONES_MAX} zones, so {name!r} is too wide.")
    return SimulatedTree(name, _uniform("root", tuple(widths), ""), deal)


def _uniform(name: str, widths: tuple[int, ...], path: str) -> SimulatedZone:
    if not widths:
        return SimulatedZone(name)
    paths = [f"{path}{number}" for number in range(1, widths[0] + 1)]
    below = tuple(_uniform(f"zone-{each}", widths[1:], f"{each}.") for each in paths)
    return SimulatedZone(name, share=0.0, zones=below)


def owners_of(tree: SimulatedTree, groups: Sequence[HostGroup]) -> Codes:
    """For each row of the fleet's table, return the number of the zone that gets the host."""
    codes = group_codes(groups)
    shares = np.array([zone.share for zone in tree.root.preorder()])
    bounds = np.rint(np.cumsum(shares) / shares.sum() * codes.shape[0]).astype(np.int64)
    counts = np.diff(bounds, prepend=0)
    in_order: Codes = np.repeat(np.arange(shares.shape[0]), counts)
    if tree.deal == ROUND_ROBIN:
        # The hosts of each zone are spread evenly over the fleet, even with unequal shares.
        steps = [(np.arange(count) + 0.5) / count for count in counts.tolist() if count]
        return in_order[np.argsort(np.concatenate(steps), kind="stable")]
    if tree.deal == BY_SHAPE:
        owners = np.empty_like(in_order)
        owners[np.argsort(_shape_codes(groups)[codes], kind="stable")] = in_order
        return owners
    return in_order


def group_codes(groups: Sequence[HostGroup]) -> Codes:
    """Return the number of the group of each host."""
    return np.repeat(np.arange(len(groups)), [group.count or 0 for group in groups])


def _shape_codes(groups: Sequence[HostGroup]) -> Codes:
    """Number the groups by totals, in order of first appearance."""
    numbers: dict[object, int] = {}
    keys = [tuple(sorted(group.shape.totals.items())) for group in groups]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def groups_at(groups: Sequence[HostGroup], rows: Codes) -> tuple[HostGroup, ...]:
    """Return the groups of the hosts in these rows, in the order of rows."""
    codes = group_codes(groups)[rows]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    sizes = np.diff(starts, append=codes.shape[0])
    return tuple(
        HostGroup(groups[code].shape, size)
        for code, size in zip(codes[starts].tolist(), sizes.tolist(), strict=True)
    )
