"""Draws small forests of providers as plain data, and random searches in them.

Always true: a provider's parent comes before it, so a forest can be written in its order. The same
seed results in the same forest. Amounts are small and names few, so that most rules of a search
matter in most forests.

``dice`` is a ``random.Random``: with a seed, or controlled by Hypothesis, which can then shrink its
examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import strategies as st

from innkeeper.domain.amounts import UNIT_MAX, Inventory
from innkeeper.domain.candidates import UNSUFFIXED, CandidateQuery, RequestGroup
from innkeeper.domain.ids import ProviderUuid

SHARES = "MISC_SHARES_VIA_AGGREGATE"
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GOLD")
TRAITS = ("HW_CPU_X86_AVX", "STORAGE_DISK_SSD", "CUSTOM_RED")
AGGREGATES = tuple(f"a0000000-0000-4000-8000-00000000000{n}" for n in range(3))
UNKNOWN_AGGREGATE = "a0000000-0000-4000-8000-0000000000ff"
UNKNOWN_PROVIDER = ProviderUuid("b0000000-0000-4000-8000-0000000000ff")
SUFFIXES = ("1", "_A", "b-3", "C")
PROVIDERS_MAX = 8
DEPTH_MAX = 3
CHANGES_MAX = 6


@dataclass(frozen=True)
class PlainProvider:
    """One provider with all its fields; ``parent`` is the number of its parent in the forest.

    ``used`` are the amounts in use, only of classes in ``inventories``. They may exceed the
    capacity.
    """

    number: int
    parent: int | None = None
    inventories: dict[str, Inventory] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()

    @property
    def uuid(self) -> ProviderUuid:
        """The provider's uuid, the same in every forest."""
        return provider_uuid(self.number)


Forest = tuple[PlainProvider, ...]


def provider_uuid(number: int) -> ProviderUuid:
    """Return the uuid of the provider with this number."""
    return ProviderUuid(f"b0000000-0000-4000-8000-0000000000{number:02}")


def happens(dice: Random, percent: int) -> bool:
    """Return true with this probability, in percent."""
    # The rare case is the larger number: Hypothesis shrinks to small ones.
    return dice.randrange(100) >= 100 - percent


def some(dice: Random, names: tuple[str, ...], most: int) -> frozenset[str]:
    """Return a few different names, or none."""
    return frozenset(dice.sample(names, dice.randrange(most + 1)))


# Forests


def draw_forest(dice: Random) -> Forest:
    """Draw one to eight providers, some of them sharing, in trees of up to three levels."""
    forest: list[PlainProvider] = []
    depths: list[int] = []
    for number in range(dice.randrange(PROVIDERS_MAX) + 1):
        above = [each for each in range(number) if depths[each] < DEPTH_MAX - 1]
        parent = dice.choice(above) if above and happens(dice, 55) else None
        depths.append(0 if parent is None else depths[parent] + 1)
        forest.append(draw_provider(dice, number, parent))
    return tuple(forest)


def draw_provider(dice: Random, number: int, parent: int | None) -> PlainProvider:
    """Draw a provider with its inventories and their usage."""
    names = dice.sample(CLASSES, dice.choice((0, 1, 2, 2, 3, 3, 4)))
    has = {name: draw_inventory(dice) for name in sorted(names)}
    shares = {SHARES} if happens(dice, 25) else set()
    return PlainProvider(
        number,
        parent,
        has,
        {name: draw_used(dice, has[name]) for name in has if happens(dice, 20)},
        some(dice, TRAITS, 3) | shares,
        some(dice, AGGREGATES, 1 + len(shares)),
    )


def draw_inventory(dice: Random) -> Inventory:
    """Draw an inventory, mostly without special rules."""
    total = dice.randrange(8) + 1
    return Inventory(
        total=total,
        reserved=min(total, dice.randrange(3)) if happens(dice, 20) else 0,
        min_unit=2 if happens(dice, 12) else 1,
        max_unit=dice.choice((1, 2, 3)) if happens(dice, 20) else UNIT_MAX,
        step_size=dice.choice((2, 3)) if happens(dice, 15) else 1,
        allocation_ratio=dice.choice((0.5, 1.5, 2.0, 16.1)) if happens(dice, 25) else 1.0,
    )


def draw_used(dice: Random, inventory: Inventory) -> int:
    """Draw an amount in use: some, nearly all, or more than the capacity."""
    capacity = inventory.capacity_units
    return max(1, capacity - dice.choice((3, 2, 1, 0, -2)))


# Searches


def draw_query(dice: Random, forest: Forest, *, is_newest: bool = True) -> CandidateQuery:
    """Draw a search of the newest version or, without ``is_newest``, of an older version.

    Older versions are for clients that do not know trees of providers.
    """
    suffixed = dice.choice((0, 1, 1, 2, 2, 3)) if is_newest else dice.choice((0, 0, 1, 2))
    groups = [
        draw_group(dice, forest, suffix, is_newest=is_newest)
        for suffix in dice.sample(SUFFIXES if is_newest else ("1", "2", "31"), suffixed)
    ]
    if not any(group.resources for group in groups) or happens(dice, 60):
        group = draw_group(dice, forest, UNSUFFIXED, is_newest=is_newest)
        groups.append(group if group.resources else replace(group, resources={"VCPU": 1}))
    dice.shuffle(groups)
    query = CandidateQuery(
        tuple(groups),
        is_isolated=suffixed > 1 and happens(dice, 40),
        takes_one_of_a_tree=not is_newest,
        limit=dice.randrange(5) + 1 if happens(dice, 15) else None,
    )
    if not is_newest:
        return query
    root_required = some(dice, (*TRAITS, SHARES), 1) if happens(dice, 12) else frozenset()
    root_forbidden = some(dice, (*TRAITS, SHARES), 1) if happens(dice, 12) else frozenset()
    return replace(
        query,
        same_subtrees=draw_same_subtrees(dice, groups),
        root_required=root_required,
        root_forbidden=root_forbidden - root_required,
    )


def draw_group(dice: Random, forest: Forest, suffix: str, *, is_newest: bool) -> RequestGroup:
    """Draw the amounts and conditions of one request group."""
    wanted = dice.sample(
        CLASSES, dice.choice((1, 1, 2, 2, 3) if suffix == UNSUFFIXED else (1, 1, 2))
    )
    amounts = {name: dice.choice((1, 1, 1, 1, 2, 2, 3)) for name in sorted(wanted)}
    if is_newest and suffix != UNSUFFIXED and happens(dice, 15):
        amounts = {}
    group = RequestGroup(suffix, amounts)
    if happens(dice, 35):
        group = with_traits(dice, group, 2 if is_newest else 1)
    if happens(dice, 20):
        group = with_aggregates(dice, group, is_newest=is_newest)
    if is_newest and happens(dice, 10):
        everybody = [UNKNOWN_PROVIDER, *(each.uuid for each in forest)]
        group = replace(group, in_tree=dice.choice(everybody[::-1]))
    return group


def with_traits(dice: Random, group: RequestGroup, alternatives: int) -> RequestGroup:
    """Require traits, and forbid others that do not contradict them."""
    names = (*TRAITS, SHARES)
    required = tuple(
        frozenset(dice.sample(names, dice.randrange(alternatives) + 1))
        for _ in range(dice.choice((0, 1, 1, 2)))
    )
    forbidden = some(dice, names, 1)
    is_nonsense = any(names <= forbidden for names in required)
    return replace(group, required=required, forbidden=frozenset() if is_nonsense else forbidden)


def with_aggregates(dice: Random, group: RequestGroup, *, is_newest: bool) -> RequestGroup:
    """Require members of aggregates, and forbid members of others."""
    names = (*AGGREGATES, UNKNOWN_AGGREGATE) if happens(dice, 10) else AGGREGATES
    member_of = tuple(
        frozenset(dice.sample(names, dice.randrange(2) + 1))
        for _ in range(dice.choice((0, 1, 1, 2)))
    )
    return replace(
        group, member_of=member_of, not_member_of=some(dice, names, 2 if is_newest else 0)
    )


def draw_same_subtrees(dice: Random, groups: list[RequestGroup]) -> tuple[frozenset[str], ...]:
    """Draw sets of groups with a common subtree; groups without resources are always in one."""
    suffixes = tuple(sorted(group.suffix for group in groups if group.suffix != UNSUFFIXED))
    bare = frozenset(group.suffix for group in groups if not group.resources)
    found = []
    if bare:
        found.append(bare | some(dice, suffixes, len(suffixes)))
    if suffixes and happens(dice, 30):
        found.append(frozenset(dice.sample(suffixes, dice.randrange(len(suffixes)) + 1)))
    return tuple(found)


def draw_plain_query(dice: Random) -> CandidateQuery:
    """Draw a search with few conditions, so that many results reveal an error in any of them."""
    wanted = dice.sample(CLASSES, dice.choice((1, 2)))
    group = RequestGroup(dice.choice((UNSUFFIXED, "1")), dict.fromkeys(sorted(wanted), 1))
    condition = dice.choice(("none", "member_of", "not_member_of", "required"))
    if condition == "member_of":
        group = replace(group, member_of=(frozenset([dice.choice(AGGREGATES)]),))
    elif condition == "not_member_of":
        group = replace(group, not_member_of=frozenset([dice.choice(AGGREGATES)]))
    elif condition == "required":
        group = replace(group, required=(frozenset([dice.choice(TRAITS)]),))
    return CandidateQuery((group,))


# Wide trees


def draw_wide_tree(dice: Random) -> Forest:
    """Draw a host with several cards that each have little of a class; sometimes add a pool."""
    cards = [
        PlainProvider(
            number,
            0,
            {"CUSTOM_GOLD": Inventory(total=dice.choice((1, 1, 2, 3)))},
            {"CUSTOM_GOLD": 1} if happens(dice, 20) else {},
            some(dice, TRAITS, 2),
        )
        for number in range(1, dice.choice((4, 5, 6)))
    ]
    here = frozenset(AGGREGATES[:1])
    host = PlainProvider(0, None, {"VCPU": Inventory(total=4)}, aggregates=here)
    if happens(dice, 60):
        return (host, *cards)
    has = {"CUSTOM_GOLD": draw_inventory(dice)}
    pool = PlainProvider(len(cards) + 1, None, has, {}, frozenset([SHARES]), here)
    return (host, *cards, pool)


def draw_wide_query(dice: Random) -> CandidateQuery:
    """Draw a search with several groups that compete for the cards of a wide tree."""
    groups = [
        RequestGroup(
            suffix,
            {"CUSTOM_GOLD": dice.choice((1, 1, 1, 2))},
            (frozenset(dice.sample(TRAITS, 2)),) if happens(dice, 30) else (),
        )
        for suffix in dice.sample(SUFFIXES, dice.choice((2, 3, 4)))
    ]
    suffixes = tuple(sorted(group.suffix for group in groups))
    if happens(dice, 50):
        wanted = ("VCPU", "CUSTOM_GOLD") if happens(dice, 50) else ("VCPU",)
        groups.append(RequestGroup(UNSUFFIXED, dict.fromkeys(wanted, 1)))
    close = frozenset(dice.sample(suffixes, 2))
    return CandidateQuery(
        tuple(groups),
        is_isolated=happens(dice, 50),
        same_subtrees=(close,) if happens(dice, 15) else (),
    )


# Changes


def draw_changes(dice: Random, forest: Forest) -> list[Forest]:
    """Draw versions of a forest, each of which changes one thing."""
    found = [forest]
    for _ in range(dice.randrange(CHANGES_MAX) + 1):
        found.append(dice.choice(CHANGES)(dice, found[-1]))
    return found[1:]


def grow(dice: Random, forest: Forest) -> Forest:
    """Add a provider, perhaps with the uuid of a deleted one."""
    number = max((each.number for each in forest), default=-1) + 1
    parents = [each.number for each in forest]
    parent = dice.choice(parents) if parents and happens(dice, 60) else None
    return (*forest, draw_provider(dice, number, parent))


def fell(dice: Random, forest: Forest) -> Forest:
    """Delete a provider without children."""
    parents = {each.parent for each in forest}
    leaves = [each for each in forest if each.number not in parents]
    gone = dice.choice(leaves) if len(forest) > 1 else None
    return tuple(each for each in forest if each is not gone)


def move(dice: Random, forest: Forest) -> Forest:
    """Move a provider and its subtree below another one, or make it a root."""
    top = dice.choice(forest)
    others = [each.number for each in forest if each.number not in below(forest, top.number)]
    parent = dice.choice(others) if others and happens(dice, 70) else None
    return in_order(edited(forest, replace(top, parent=parent)))


def mark(dice: Random, forest: Forest) -> Forest:
    """Replace a provider's traits; the provider may begin or cease to share."""
    one = dice.choice(forest)
    return edited(forest, replace(one, traits=some(dice, (*TRAITS, SHARES), 3)))


def join(dice: Random, forest: Forest) -> Forest:
    """Replace a provider's aggregates."""
    one = dice.choice(forest)
    return edited(forest, replace(one, aggregates=some(dice, AGGREGATES, 2)))


def stock(dice: Random, forest: Forest) -> Forest:
    """Replace a provider's inventories, but keep the classes in use."""
    one = dice.choice(forest)
    names = sorted(some(dice, CLASSES, 3) | one.used.keys())
    return edited(forest, replace(one, inventories={name: draw_inventory(dice) for name in names}))


def hold(dice: Random, forest: Forest) -> Forest:
    """Change a provider's usage."""
    one = dice.choice(forest)
    used = {
        name: draw_used(dice, inventory)
        for name, inventory in one.inventories.items()
        if happens(dice, 50)
    }
    return edited(forest, replace(one, used=used))


CHANGES = (hold, mark, join, stock, move, grow, fell)


def edited(forest: Forest, new: PlainProvider) -> Forest:
    """Return the forest with one provider replaced."""
    return tuple(new if each.number == new.number else each for each in forest)


def below(forest: Forest, top: int) -> set[int]:
    """Return the numbers of a provider and of all its descendants."""
    found = {top}
    for each in forest:
        # Parents come before their children.
        if each.parent in found:
            found.add(each.number)
    return found


def in_order(forest: Forest) -> Forest:
    """Return the forest with every parent before its children."""
    found: list[PlainProvider] = []
    left = list(forest)
    while left:
        there = {each.number for each in found}
        ready = [each for each in left if each.parent is None or each.parent in there]
        assert ready, "the parents form a cycle"
        found += ready
        left = [each for each in left if each not in ready]
    return tuple(found)


# For Hypothesis


dice = st.randoms(use_true_random=False)
"""Dice that Hypothesis controls."""
forests = dice.map(draw_forest)
"""Any forest."""
