"""Whether one provider's history is possible: its generations, inventories and allocations.

Every write except a release advances the provider's generation by one. So the generation
orders the writes, and reads at different generations can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.simulation.many_writers.history import ConsumerUpdate, Kind, Operation, Outcome

FIRST = 1
"""The generation of a provider whose inventory was set once, without further writes."""


@dataclass(frozen=True, slots=True)
class Look:
    """One read of a provider."""

    name: str
    begun_s: float
    ended_s: float
    generation: int
    used: int | None = None
    total: int | None = None


@dataclass(slots=True)
class Provider:
    """Everything in a history about one provider."""

    uuid: str
    size: int
    """Its initial total."""
    is_resized: bool
    """Whether only the clients write it, so that its generations can be counted."""
    looks: list[Look] = field(default_factory=list)
    resizes: list[Operation] = field(default_factory=list)
    claims: list[Operation] = field(default_factory=list)
    """The writes that name the provider."""
    passers: list[Operation] = field(default_factory=list)
    """Claims that do not name the provider, but whose consumers may have held some of it before."""

    def problems(self) -> Iterator[str]:
        """The violations, in words."""
        yield from self._going_back()
        yield from self._lost_resizes()
        yield from self._wrong_totals()
        yield from self._over_capacity()
        yield from self._growth_without_generation()
        if self.is_resized:
            yield from self._moves()

    def _going_back(self) -> Iterator[str]:
        """A read is at or after every generation that was read or acknowledged before it began.

        A claim advances each provider that it names. So its generation is at least one more than
        the highest that any client knew when the claim began.
        """
        done = [each for each in (*self.resizes, *self.claims) if each.outcome is Outcome.DONE]
        seen: list[Look | Operation] = [*self.looks, *done]
        begins = [(each.begun_s, 0, number) for number, each in enumerate(seen)]
        ends = [(each.ended_s, 1, number) for number, each in enumerate(seen)]
        known, by_whom = 0, "nobody"
        least: dict[int, int] = {}
        for _, is_end, number in sorted(begins + ends):
            each = seen[number]
            if not is_end:
                least[number] = known
                continue
            reached = _reached(each, least[number])
            # A write's generation is higher than all that were known before; a read's may be equal.
            needed = least[number] + isinstance(each, Operation)
            if reached < needed:
                yield f"{each.name} came to generation {reached} after {by_whom}: {needed}"
            if reached > known:
                known, by_whom = reached, each.name

    def _lost_resizes(self) -> Iterator[str]:
        done: dict[int | None, str] = {}
        for each in self.resizes:
            if each.outcome is Outcome.DONE:
                if each.seen in done:
                    yield f"{done[each.seen]} and {each.name} both moved generation {each.seen}"
                done[each.seen] = each.name

    def totals(self) -> Sequence[set[int]]:
        """The totals that the provider can have had, by generation."""
        written: dict[int, list[Operation]] = {}
        for each in self.resizes:
            assert each.seen is not None
            if each.outcome is not Outcome.REFUSED:
                written.setdefault(each.seen + 1, []).append(each)
        read = [each.generation for each in self.looks]
        found: list[set[int]] = [{self.size}] * (FIRST + 1)
        for at in range(FIRST + 1, max([FIRST, *written, *read]) + 1):
            here = written.get(at, [])
            sure = {each.total for each in here if each.outcome is Outcome.DONE}
            found.append(sure or found[-1] | {each.total for each in here})
        return found

    def _wrong_totals(self) -> Iterator[str]:
        by_generation: dict[int, tuple[int, str]] = {}
        totals = self.totals()
        for each in self.looks:
            if each.total is None:
                continue
            if each.total not in totals[each.generation]:
                yield f"{each.name} read a total of {each.total}, which nobody wrote there"
            other, name = by_generation.setdefault(each.generation, (each.total, each.name))
            if other != each.total:
                yield f"{name} and {each.name} read other totals at {each.generation}"

    def _over_capacity(self) -> Iterator[str]:
        """Usage stays within capacity; after a shrink below the usage, it does not grow.

        Between two reads, the usage never exceeds the larger of the usage at the first read, and
        the largest total that the provider had in between.
        """
        used: dict[int, list[tuple[int, str]]] = {}
        for each in self.looks:
            if each.used is not None:
                used.setdefault(each.generation, []).append((each.used, each.name))
        totals = [max(each) for each in self.totals()]
        before, left = FIRST, 0
        for at, looks in sorted(used.items()):
            most, name = max(looks)
            roof = max(left, *totals[min(before, at) : at + 1])
            if most > roof:
                yield f"{name} read {most} of {roof} in use at generation {at}"
            before, (left, _) = at, min(looks)

    def _growth_without_generation(self) -> Iterator[str]:
        """Within a generation, usage can only shrink."""
        by_generation: dict[int, list[Look]] = {}
        for each in self.looks:
            if each.used is not None:
                by_generation.setdefault(each.generation, []).append(each)
        for at, looks in by_generation.items():
            looks.sort(key=lambda look: look.ended_s)
            for first, second in pairwise(looks):
                assert first.used is not None and second.used is not None
                if first.ended_s < second.begun_s and first.used < second.used:
                    yield (
                        f"{first.name} and {second.name} read {first.used} and then "
                        f"{second.used} in use at the same generation {at}"
                    )

    def _moves(self) -> Iterator[str]:
        """Each write advances the generation once: a lost write leaves it too low."""
        if not self.looks:
            return
        last = max(self.looks, key=lambda look: look.begun_s)
        writes = [each for each in self.resizes + self.claims if each.ended_s < last.begun_s]
        sure = sum(each.outcome is Outcome.DONE for each in writes)
        if last.generation < FIRST + sure:
            yield f"{last.name} read generation {last.generation} after {sure} writes"
        others = [*self.resizes, *self.claims, *self.passers]
        possible = sum(each.outcome is not Outcome.REFUSED for each in others)
        if last.generation > FIRST + possible:
            yield f"{last.name} read generation {last.generation} of {possible} writes"


def _reached(each: Look | Operation, least: int) -> int:
    """The generation that this read returned, or the least one that this write reached."""
    if isinstance(each, Look):
        return each.generation
    return least + 1 if each.seen is None else each.seen + 1


def gather(
    operations: Sequence[Operation], sizes: Mapping[str, int], resized: Iterable[str]
) -> list[Provider]:
    """Sort a history by provider."""
    made = {uuid: Provider(uuid, size, uuid in set(resized)) for uuid, size in sizes.items()}
    held_once = _held_once(operations)
    for each in operations:
        if each.kind is Kind.CLAIM:
            named = {uuid for update in each.updates for uuid in update.amounts}
            was = {uuid for update in each.updates for uuid in _held_before(held_once, update)}
            for uuid in named:
                made[uuid].claims.append(each)
            for uuid in was - named:
                made[uuid].passers.append(each)
        elif each.kind is Kind.RESIZE:
            made[each.subject].resizes.append(each)
        elif each.outcome is Outcome.DONE and each.subject in made:
            made[each.subject].looks.append(_look(each))
    return list(made.values())


def _look(each: Operation) -> Look:
    found = each.found
    return Look(
        each.name,
        each.begun_s,
        each.ended_s,
        found["generation"],
        found.get("used"),
        found.get("total"),
    )


HeldOnce = Mapping[tuple[str, int], set[str]]


def _held_once(operations: Iterable[Operation]) -> HeldOnce:
    """The providers that a consumer can have held at a generation."""
    found: dict[tuple[str, int], set[str]] = {}
    for each in operations:
        if each.kind is Kind.CLAIM and each.outcome is not Outcome.REFUSED:
            for update in each.updates:
                key = (update.consumer, update.generation)
                found.setdefault(key, set()).update(update.amounts)
    return found


def _held_before(held_once: HeldOnce, update: ConsumerUpdate) -> set[str]:
    return set() if update.seen is None else held_once.get((update.consumer, update.seen), set())
