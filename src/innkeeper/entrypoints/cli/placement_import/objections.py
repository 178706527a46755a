"""Why an import must not begin: all of it is found out before anything is written.

Always true: each objection is one line that says what an operator can do about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import islice

from innkeeper.entrypoints.cli.placement_import.pictures import CUSTOM, Picture

EXAMPLES_MAX = 3


class Others(Enum):
    """What is done about providers and consumers that only the target has."""

    REFUSE = "refuse"
    KEEP = "keep"
    REMOVE = "remove"


def find(source: Picture, target: Picture, others: Others) -> Iterator[str]:
    """Give each objection as a line."""
    yield from _strangers(source, target, others)
    yield from _unknown_names("trait", _users_of_traits(source), target.traits)
    yield from _unknown_names("resource class", _users_of_classes(source), target.classes)
    yield from _groundless(source)
    if others is Others.KEEP:
        yield from _taken_names(source, target)


def _some(uuids: Iterable[str], count: int) -> str:
    shown = ", ".join(islice(uuids, EXAMPLES_MAX))
    return f"{count} ({shown}{', ...' if count > EXAMPLES_MAX else ''})"


def _strangers(source: Picture, target: Picture, others: Others) -> Iterator[str]:
    if others is not Others.REFUSE:
        return
    for noun, ours, theirs in (
        ("providers", target.providers, source.providers),
        ("consumers", target.consumers, source.consumers),
    ):
        only = sorted(ours.keys() - theirs.keys())
        if only:
            yield (
                f"The target has {noun} that the source has not: {_some(only, len(only))}. "
                "Say --others keep to leave them alone, or --others remove to make both sides "
                "equal."
            )


def _users_of_traits(source: Picture) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for provider in source.providers.values():
        for name in provider.traits:
            users.setdefault(name, []).append(provider.uuid)
    return users


def _users_of_classes(source: Picture) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for provider in source.providers.values():
        for name in provider.inventories:
            users.setdefault(name, []).append(provider.uuid)
    return users


def _unknown_names(
    noun: str, users: Mapping[str, list[str]], known: frozenset[str]
) -> Iterator[str]:
    for name in sorted(users):
        if name not in known and not name.startswith(CUSTOM):
            yield (
                f"The target does not know the {noun} {name}, and these providers of the "
                f"source have it: {_some(sorted(users[name]), len(users[name]))}. Bring the "
                "target to a release that knows it, or take it away at the source."
            )


def _groundless(source: Picture) -> Iterator[str]:
    reached = {each.uuid for level in source.levels() for each in level}
    for uuid in sorted(source.providers.keys() - reached):
        yield (
            f"The source's provider {uuid} hangs on itself, by way of its parents. Mend it there."
        )
    for provider in source.providers.values():
        if provider.parent is not None and provider.parent not in source.providers:
            yield (
                f"The source's provider {provider.uuid} hangs on {provider.parent}, which is "
                "not there. If the source is in use, run again."
            )
    for consumer in source.consumers.values():
        for (uuid, name), _ in consumer.amounts():
            if uuid not in source.providers or name not in source.providers[uuid].inventories:
                yield (
                    f"The source's consumer {consumer.uuid} holds {name} of {uuid}, which has "
                    "no inventory of it. If the source is in use, run again; otherwise mend it "
                    "there."
                )


def _taken_names(source: Picture, target: Picture) -> Iterator[str]:
    wanted = {each.name: each.uuid for each in source.providers.values()}
    for uuid, other in target.providers.items():
        if uuid not in source.providers and other.name in wanted:
            yield (
                f"The target's provider {uuid}, which the source has not, has the name "
                f"{other.name!r} of the source's {wanted[other.name]}. Rename one of them."
            )
