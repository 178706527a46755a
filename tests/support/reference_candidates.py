"""Finds allocation candidates in a slow and obvious way, as a reference for the real search.

Each rule of the Placement API reference is one function here. All combinations are tried, without
indexes. Only the arithmetic of a single inventory is shared with the real search.

An *anchor* is the root provider of a candidate. All amounts of a candidate come from the anchor's
tree and from providers that share with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from innkeeper.domain.candidates import (
    UNSUFFIXED,
    Candidate,
    CandidateQuery,
    ClassSummary,
    ProviderSummary,
    RequestGroup,
)
from innkeeper.domain.ids import ProviderUuid
from tests.support.forests import SHARES, Forest, PlainProvider


class Found(NamedTuple):
    """A candidate as a hashable value."""

    allocations: frozenset[tuple[ProviderUuid, str, int]]
    mappings: frozenset[tuple[str, frozenset[ProviderUuid]]]

    @property
    def takes_from(self) -> frozenset[ProviderUuid]:
        """The providers of its amounts."""
        return frozenset(uuid for uuid, _, _ in self.allocations)


Taken = dict[str, int]
"""The numbers of providers, by the class that each provides for one group."""


@dataclass(frozen=True)
class Serving:
    """One way to serve a request group: the provider to which the group is mapped, and amounts."""

    group: RequestGroup
    providers: frozenset[int]
    taken: Taken


def candidates(forest: Forest, query: CandidateQuery) -> set[Found]:
    """Return all candidates, as if the query had no limit."""
    look = Look(forest)
    return {
        _found(look, servings)
        for anchor in look.roots
        if _is_root_right(look.at(anchor), query)
        for servings in product(*(list(look.servings(group, anchor)) for group in query.groups))
        if _is_together_right(look, query, servings)
    }


def canonical(candidate: Candidate) -> Found:
    """Convert a candidate of the real search to compare it with the reference."""
    for named in candidate.mappings.values():
        assert len(set(named)) == len(named), "a group names a provider twice"
    return Found(
        frozenset(
            (uuid, name, amount)
            for uuid, amounts in candidate.allocations.items()
            for name, amount in amounts.items()
        ),
        frozenset((suffix, frozenset(named)) for suffix, named in candidate.mappings.items()),
    )


def summaries(forest: Forest, found: Iterable[Found]) -> dict[ProviderUuid, ProviderSummary]:
    """Return the summaries of all providers of every tree that amounts come from."""
    look = Look(forest)
    numbers = {each.uuid: each.number for each in forest}
    roots = {look.root(numbers[uuid]) for each in found for uuid in each.takes_from}
    return {
        each.uuid: ProviderSummary(
            {
                name: ClassSummary(inventory.capacity_units, each.used.get(name, 0))
                for name, inventory in each.inventories.items()
            },
            tuple(sorted(each.traits)),
            None if each.parent is None else look.at(each.parent).uuid,
            look.at(look.root(each.number)).uuid,
        )
        for each in forest
        if look.root(each.number) in roots
    }


class Look:
    """A forest, and the rules applied to it."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self._by_number = {each.number: each for each in forest}

    def at(self, number: int) -> PlainProvider:
        """Return the provider with this number."""
        return self._by_number[number]

    @property
    def roots(self) -> list[int]:
        """Providers without a parent; each may be an anchor."""
        return [each.number for each in self.forest if each.parent is None]

    def path(self, number: int) -> list[int]:
        """Return a provider and its ancestors; the root is last."""
        parent = self.at(number).parent
        return [number] if parent is None else [number, *self.path(parent)]

    def root(self, number: int) -> int:
        """Return the root of a provider's tree."""
        return self.path(number)[-1]

    def tree(self, root: int) -> list[PlainProvider]:
        """Return all providers of a root's tree, the root included."""
        return [each for each in self.forest if self.root(each.number) == root]

    def is_lent(self, one: PlainProvider, anchor: int) -> bool:
        """Whether a provider of another tree shares with a provider of the anchor's tree."""
        if SHARES not in one.traits or self.root(one.number) == anchor:
            return False
        return any(one.aggregates & each.aggregates for each in self.tree(anchor))

    def servings(self, group: RequestGroup, anchor: int) -> Iterator[Serving]:
        """Yield all ways to serve a group on an anchor."""
        near = self.tree(anchor)
        near += [each for each in self.forest if self.is_lent(each, anchor)]
        if group.suffix == UNSUFFIXED:
            yield from self._of_several(group, anchor, near)
        else:
            yield from self._of_one(group, near)

    def _of_several(
        self, group: RequestGroup, anchor: int, near: list[PlainProvider]
    ) -> Iterator[Serving]:
        """Yield ways with one provider for each class, and possibly several for all classes."""
        allowed = [
            each
            for each in near
            if self._is_in_tree(each, group)
            # The named tree is the only one, so no provider outside shares with it.
            and (group.in_tree is None or not self.is_lent(each, anchor))
            and self._is_member_or_its_root(each, group, anchor)
            and self._is_outside_with_its_root(each, group, anchor)
            and not each.traits & group.forbidden
        ]
        names = list(group.resources)
        ways = [
            [each for each in allowed if _gives(each, name, group.resources[name])]
            for name in names
        ]
        for givers in product(*ways):
            traits = frozenset().union(*(each.traits for each in givers))
            if all(wanted & traits for wanted in group.required):
                numbers = [each.number for each in givers]
                yield Serving(group, frozenset(numbers), dict(zip(names, numbers, strict=True)))

    def _of_one(self, group: RequestGroup, near: list[PlainProvider]) -> Iterator[Serving]:
        """Yield ways with one provider for all amounts of the group."""
        for each in near:
            if (
                self._is_in_tree(each, group)
                and _is_member(each, group)
                and not each.aggregates & group.not_member_of
                and all(wanted & each.traits for wanted in group.required)
                and not each.traits & group.forbidden
                and all(_gives(each, name, n) for name, n in group.resources.items())
            ):
                taken = dict.fromkeys(group.resources, each.number)
                yield Serving(group, frozenset([each.number]), taken)

    def _is_in_tree(self, one: PlainProvider, group: RequestGroup) -> bool:
        """Whether a provider is in the tree that the group names by any of its providers."""
        if group.in_tree is None:
            return True
        tree = self.tree(self.root(one.number))
        return group.in_tree in {each.uuid for each in tree}

    def _is_member_or_its_root(self, one: PlainProvider, group: RequestGroup, anchor: int) -> bool:
        """Whether the provider matches all conditions on aggregates.

        A provider in the anchor's tree also matches if the anchor alone matches all of them.
        """
        if _is_member(one, group):
            return True
        return not self.is_lent(one, anchor) and _is_member(self.at(anchor), group)

    def _is_outside_with_its_root(
        self, one: PlainProvider, group: RequestGroup, anchor: int
    ) -> bool:
        """Whether neither the provider nor the anchor is in a forbidden aggregate."""
        inside = one.aggregates | self.at(anchor).aggregates
        return not inside & group.not_member_of


def _gives(one: PlainProvider, name: str, amount: int) -> bool:
    """Whether a provider has so much left, and allows that amount in one allocation."""
    inventory = one.inventories.get(name)
    if inventory is None:
        return False
    is_room = one.used.get(name, 0) + amount <= inventory.capacity
    return is_room and inventory.gives(amount)


def _is_member(one: PlainProvider, group: RequestGroup) -> bool:
    return all(one.aggregates & wanted for wanted in group.member_of)


def _is_root_right(root: PlainProvider, query: CandidateQuery) -> bool:
    """Whether the anchor has the traits required of roots, even if it provides nothing."""
    return query.root_required <= root.traits and not query.root_forbidden & root.traits


def _is_together_right(look: Look, query: CandidateQuery, servings: tuple[Serving, ...]) -> bool:
    return (
        (not query.is_isolated or _are_apart(servings))
        and all(_is_subtree(look, servings, suffixes) for suffixes in query.same_subtrees)
        and _is_room_for_all(look, servings)
        and (not query.takes_one_of_a_tree or _is_one_of_a_tree(look, servings))
    )


def _are_apart(servings: tuple[Serving, ...]) -> bool:
    """Whether no provider serves two groups that have a suffix."""
    named = [each.providers for each in servings if each.group.suffix != UNSUFFIXED]
    return len(frozenset().union(*named)) == len(named)


def _is_subtree(look: Look, servings: tuple[Serving, ...], suffixes: frozenset[str]) -> bool:
    """Whether one provider of these groups is the ancestor of all the others, or the only one."""
    named = {
        number for each in servings if each.group.suffix in suffixes for number in each.providers
    }
    return any(all(top in look.path(number) for number in named) for top in named)


def _sums(servings: tuple[Serving, ...]) -> dict[tuple[int, str], int]:
    sums: dict[tuple[int, str], int] = {}
    for each in servings:
        for name, number in each.taken.items():
            sums[number, name] = sums.get((number, name), 0) + each.group.resources[name]
    return sums


def _is_room_for_all(look: Look, servings: tuple[Serving, ...]) -> bool:
    """Whether the sum of all groups' amounts from each provider fits as one allocation.

    The API reference requires less: with a minimum of 1 and a step of 2, groups of 1 and 2 are
    each valid, but their sum of 3 is not.
    """
    return all(_gives(look.at(number), name, n) for (number, name), n in _sums(servings).items())


def _is_one_of_a_tree(look: Look, servings: tuple[Serving, ...]) -> bool:
    numbers = {number for number, _ in _sums(servings)}
    return len({look.root(number) for number in numbers}) == len(numbers)


def _found(look: Look, servings: tuple[Serving, ...]) -> Found:
    return Found(
        frozenset(
            (look.at(number).uuid, name, amount)
            for (number, name), amount in _sums(servings).items()
        ),
        frozenset(
            (each.group.suffix, frozenset(look.at(number).uuid for number in each.providers))
            for each in servings
        ),
    )
