"""Finds reasons not to start an import, before anything is written.

Always true: each objection is one line that tells the operator what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import islice

from innkeeper.entrypoints.cli.placement_import.pictures import CUSTOM, Picture

EXAMPLES_MAX = 3


class Others(Enum):
    """The ways to treat providers and consumers that only the target has."""

    REFUSE = "refuse"
    KEEP = "keep"
    REMOVE = "remove"


def find(source: Picture, target: Picture, others: Others) -> Iterator[str]:
    """Yield each objection as a line."""
    yield from _unexpected(source, target, others)
    providers = source.providers.values()
    traits = {each.uuid: each.traits for each in providers}
    yield from _unknown_names("trait", traits, target.traits)
    classes = {each.uuid: each.inventories for each in providers}
    yield from _unknown_names("resource class", classes, target.classes)
    yield from _inconsistent(source)
    if others is Others.KEEP:
        yield from _taken_names(source, target)


def _some(uuids: Iterable[str], count: int) -> str:
    shown = ", ".join(islice(uuids, EXAMPLES_MAX))
    return f"{count} ({shown}{', ...' if count > EXAMPLES_MAX else ''})"


def _unexpected(source: Picture, target: Picture, others: Others) -> Iterator[str]:
    if others is not Others.REFUSE:
        return
    for noun, ours, theirs in (
        ("providers", target.providers, source.providers),
        ("consumers", target.consumers, source.consumers),
    ):
        only = sorted(ours.keys() - theirs.keys())
        if only:
            yield (
                f"The target has {noun} that the source lacks: {_some(only, len(only))}. "
                "Use --others keep to keep them, or --others remove to make both sides equal."
            )


def _unknown_names(
    noun: str, names_by_provider: Mapping[str, Iterable[str]], known: frozenset[str]
) -> Iterator[str]:
    users: dict[str, list[str]] = {}
    for uuid, names in names_by_provider.items():
        for name in names:
            users.setdefault(name, []).append(uuid)
    for name in sorted(users.keys() - known):
        if not name.startswith(CUSTOM):
            yield (
                f"The target does not know the {noun} {name}, which these providers of the "
                f"source have: {_some(sorted(users[name]), len(users[name]))}. Upgrade the "
                f"target to a release that knows the {noun}, or remove it at the source."
            )


def _inconsistent(source: Picture) -> Iterator[str]:
    reached = {each.uuid for level in source.levels() for each in level}
    for uuid in sorted(source.providers.keys() - reached):
        yield f"The source's provider {uuid} is its own ancestor. Repair the source."
    for provider in source.providers.values():
        if provider.parent is not None and provider.parent not in source.providers:
            yield (
                f"The source's provider {provider.uuid} has the parent {provider.parent}, which "
                "does not exist. If the source is in use, run the import again."
            )
    for consumer in source.consumers.values():
        for (uuid, name), _ in consumer.amounts():
            if uuid not in source.providers or name not in source.providers[uuid].inventories:
                yield (
                    f"The source's consumer {consumer.uuid} has an allocation of {name} on "
                    f"provider {uuid}, which has no inventory of it. If the source is in use, "
                    "run the import again; otherwise repair the source."
                )


def _taken_names(source: Picture, target: Picture) -> Iterator[str]:
    wanted = {each.name: each.uuid for each in source.providers.values()}
    for uuid, other in target.providers.items():
        if uuid not in source.providers and other.name in wanted:
            yield (
                f"The target's provider {uuid} has the name {other.name!r}, which in the source "
                f"belongs to provider {wanted[other.name]}. Rename one of them."
            )
