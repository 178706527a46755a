"""Checks a history for violations: no acknowledged write is lost, no capacity is sold twice.

Checked:

* each acknowledged claim exists as a whole, until an operation that may have happened replaces or
  releases it. A claim without an answer exists once or not at all. A rejected claim does not exist
  (:mod:`registers` checks each consumer separately);
* a claim for two consumers is atomic: a read that sees it at one consumer finds it at the other. In
one read of a project's usage, moved units are neither missing nor counted twice;
* no provider is over capacity. Its generation never goes back, even between reads of different
clients. Each write advances it once (:mod:`providers`);
* each acknowledged server exists once, and holds what its flavor says. A server without an answer
exists once or not at all; an acknowledged deletion removed all of it;
* at the end, the usage of a provider is the sum of its consumers' allocations;
* no request was answered with an internal error (500).

Not checked: whether a rejection was right: a rejected request could perhaps have been granted.
Whether one order of operations explains all consumers: only single consumers, and pairs that were
written together, are checked. States that no client read: if a state was wrong only between two
reads, at most the generations show it. Progress: the caller counts what was acknowledged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.simulation.many_writers.history import Amounts, Kind, Operation, Outcome
from tests.simulation.many_writers.providers import gather
from tests.simulation.many_writers.registers import ABSENT, NEVER, Act, Story

ACCIDENT = 500
GONE = 404


@dataclass(frozen=True, slots=True)
class World:
    """The initial state: the providers' sizes, and which of them clients resize.

    ``per_server`` are a server's allocations on its host, by class.
    """

    sizes: Mapping[str, int]
    resized: frozenset[str]
    per_server: Mapping[str, int]


def check(operations: Sequence[Operation], world: World) -> list[str]:
    """All violations, in words; an empty list for a possible history."""
    return [
        *_accidents(operations),
        *_consumers(operations),
        *_projects(operations),
        *(
            f"provider {each.uuid}: {problem}"
            for each in gather(operations, world.sizes, world.resized)
            for problem in each.problems()
        ),
        *_servers(operations, world),
        *_sums(operations),
    ]


def _accidents(operations: Iterable[Operation]) -> Iterator[str]:
    for each in operations:
        if each.status == ACCIDENT:
            yield f"{each.name} ({each.kind}) was answered with an accident"


def _consumers(operations: Sequence[Operation]) -> Iterator[str]:
    witnessed = _witnessed(operations)
    for consumer, acts in _acts(operations, witnessed).items():
        known = {each.name: each for each in acts}
        for each in acts:
            problem = _unexplained(each, known)
            if problem is not None:
                yield f"consumer {consumer}: {problem}"
                break
        else:
            try:
                impossible = Story(acts).first_impossible()
            except OverflowError as error:
                yield f"consumer {consumer}: {error}"
                continue
            if impossible is not None:
                yield f"consumer {consumer}: nothing explains {impossible}"


def _unexplained(act: Act, known: Mapping[str, Act]) -> str | None:
    """Check a read's content, independent of the order of operations."""
    if act.kind != "read" or act.writer == ABSENT:
        return None
    writer = known.get(act.writer)
    if writer is None or writer.kind != "write":
        return f"{act.name} found {act.writer}, which was refused or never asked for"
    if act.amounts != writer.amounts:
        return f"{act.name} found {act.amounts} where {act.writer} wrote {writer.amounts}"
    return None


def _witnessed(operations: Iterable[Operation]) -> Mapping[str, float]:
    """For each write, when a read first saw it, whatever answer the writer got."""
    found: dict[str, float] = {}
    for each in operations:
        if each.kind is Kind.READ_CONSUMER and each.outcome is Outcome.DONE:
            writer = each.found["writer"]
            found[writer] = min(each.ended_s, found.get(writer, NEVER))
    return found


def _acts(operations: Sequence[Operation], witnessed: Mapping[str, float]) -> dict[str, list[Act]]:
    """Sort a history by consumer, for those that the clients created."""
    found: dict[str, list[Act]] = {}
    where: dict[str, set[str]] = {}
    for each in operations:
        for update in each.updates:
            found.setdefault(update.consumer, [])
            for provider in update.amounts:
                where.setdefault(provider, set()).add(update.consumer)
    for each in operations:
        if each.kind is Kind.READ_GIVEN and each.outcome is Outcome.DONE:
            for consumer in where.get(each.subject, ()):
                found[consumer].append(_glimpse(each, each.found["held"].get(consumer)))
        elif each.kind is Kind.CLAIM and each.outcome is not Outcome.REFUSED:
            for act, update in zip(_writes(each, witnessed), each.updates, strict=True):
                found[update.consumer].append(act)
        elif each.subject in found:
            found[each.subject] += _alone(each)
    return found


def _writes(each: Operation, witnessed: Mapping[str, float]) -> Iterator[Act]:
    is_done = each.outcome is Outcome.DONE
    end_s = each.ended_s if is_done else witnessed.get(each.name, NEVER)
    for update in each.updates:
        yield Act(each.name, "write", each.begun_s, end_s, seen=update.seen, amounts=update.amounts)


def _alone(each: Operation) -> list[Act]:
    """The part of an operation that concerns this consumer alone."""
    if each.kind is Kind.RELEASE:
        return _release(each)
    if each.kind is Kind.READ_CONSUMER and each.outcome is Outcome.DONE:
        return [_read(each)]
    return []


def _release(each: Operation) -> list[Act]:
    if each.outcome is Outcome.REFUSED:
        # An answer of "not found" is a read.
        is_read = each.status == GONE
        return [Act(each.name, "read", each.begun_s, each.ended_s)] if is_read else []
    end_s = each.ended_s if each.outcome is Outcome.DONE else NEVER
    return [Act(each.name, "release", each.begun_s, end_s)]


def _read(each: Operation) -> Act:
    return Act(
        each.name,
        "read",
        each.begun_s,
        each.ended_s,
        writer=each.found["writer"],
        generation=each.found["generation"],
        amounts=each.found["amounts"],
    )


def _glimpse(each: Operation, held: Sequence[int] | None) -> Act:
    generation, units = held or (None, 0)
    return Act(
        each.name,
        "glimpse",
        each.begun_s,
        each.ended_s,
        provider=each.subject,
        generation=generation,
        units=units,
    )


def _projects(operations: Sequence[Operation]) -> Iterator[str]:
    """A project's units are only moved: a read finds all units, or none before the first write."""
    sums: dict[str, set[int]] = {}
    there_s: dict[str, float] = {}
    for each in operations:
        if each.kind is Kind.CLAIM and each.project:
            sums.setdefault(each.project, set()).add(
                _sum(update.amounts for update in each.updates)
            )
            if each.outcome is Outcome.DONE:
                known_s = there_s.get(each.project, NEVER)
                there_s[each.project] = min(each.ended_s, known_s)
    for each in operations:
        if each.kind is Kind.READ_PROJECT and each.outcome is Outcome.DONE:
            used = each.found["used"]
            is_early = used == 0 and each.begun_s < there_s.get(each.subject, NEVER)
            if used not in sums.get(each.subject, set()) and not is_early:
                yield f"project {each.subject}: {each.name} found {used} units"


def _sum(many: Iterable[Amounts]) -> int:
    return sum(units for amounts in many for units in amounts.values())


def _servers(operations: Sequence[Operation], world: World) -> Iterator[str]:
    """The last list of servers has all acknowledged servers, and no others."""
    lists = [
        each
        for each in operations
        if each.kind is Kind.READ_SERVERS and each.outcome is Outcome.DONE
    ]
    if not lists:
        return
    there: Mapping[str, Any] = lists[-1].found["servers"]
    boots = {each.name: each for each in operations if each.kind is Kind.BOOT}
    deletes = [each for each in operations if each.kind is Kind.DELETE]
    deleted = {each.subject for each in deletes if each.outcome is Outcome.DONE}
    maybe_deleted = {each.subject for each in deletes if each.outcome is not Outcome.REFUSED}
    for name, count in Counter(each["name"] for each in there.values()).items():
        if count > 1:
            yield f"{count} servers {name}"
        if name not in boots or boots[name].outcome is Outcome.REFUSED:
            yield f"server {name} was refused or never asked for"
    for each in boots.values():
        uuid = each.found.get("server", "")
        is_kept = each.outcome is Outcome.DONE and uuid not in maybe_deleted
        if is_kept and there.get(uuid, {}).get("name") != each.name:
            yield f"server {uuid} of {each.name} is not there"
    for uuid, each in there.items():
        if uuid in deleted:
            yield f"server {uuid} was deleted and is there"
        expected = [] if each["status"] == "ERROR" else [world.per_server]
        if list(each["held"].values()) != expected:
            yield f"server {uuid} ({each['status']}) holds {each['held']}"


def _sums(operations: Sequence[Operation]) -> Iterator[str]:
    """In the last reads of each provider, the usage is the sum of the allocations."""
    last: dict[tuple[Kind, str], Operation] = {}
    for each in operations:
        if each.outcome is Outcome.DONE:
            last[each.kind, each.subject] = each
    for (kind, uuid), each in last.items():
        given = last.get((Kind.READ_GIVEN, uuid))
        if kind is not Kind.READ_USAGES or given is None:
            continue
        if each.found["generation"] != given.found["generation"]:
            continue
        if each.found["used"] != given.found["used"]:
            yield (
                f"provider {uuid}: {each.found['used']} units are used "
                f"and {given.found['used']} are held"
            )
