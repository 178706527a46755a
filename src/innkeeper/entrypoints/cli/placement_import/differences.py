"""Lists the differences between the contents of two Placement services, one per line.

Always true: everything that API clients see is compared, except generations, times, and names of
resource classes and traits that only the target knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from innkeeper.domain.amounts import Inventory
from innkeeper.entrypoints.cli.placement_import.pictures import (
    CUSTOM,
    Amounts,
    ConsumerPicture,
    Picture,
    ProviderPicture,
    Tally,
    held,
    unlike,
)

ONLY_SOURCE = "only in the source"
ONLY_TARGET = "only in the target"


def find(source: Picture, target: Picture, *, keeps_others: bool = False) -> Iterator[str]:
    """Yield each difference as a line.

    If ``keeps_others`` is true, providers and consumers that only the target has are no difference.
    Their usages are subtracted before the usages of both sides are compared.
    """
    yield from _names("resource class", source.classes, target.classes)
    yield from _names("trait", source.traits, target.traits)
    others = []
    if keeps_others:
        others = [c for uuid, c in target.consumers.items() if uuid not in source.consumers]
    spared = held(others)
    providers = source.providers.keys() | (() if keeps_others else target.providers.keys())
    for uuid in sorted(providers):
        yield from _provider(uuid, source.providers.get(uuid), target.providers.get(uuid), spared)
    with_kinds = source.has_kinds and target.has_kinds
    consumers = source.consumers.keys() | (() if keeps_others else target.consumers.keys())
    for uuid in sorted(consumers):
        yield from _consumer(
            uuid, source.consumers.get(uuid), target.consumers.get(uuid), with_kinds
        )
    yield from _totals(source, target, others)


def _names(noun: str, source: Iterable[str], target: frozenset[str]) -> Iterator[str]:
    # Standard names depend on the service's release. The module ``objections`` checks the names in
    # use.
    for name in sorted(source):
        if name.startswith(CUSTOM) and name not in target:
            yield f"{noun} {name}: {ONLY_SOURCE}"


def _quoted(text: str | None) -> str:
    """Quote a name from a service, without line breaks and terminal escapes."""
    if text is None:
        return "none"
    if text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    return json.dumps(text)


def _provider(
    uuid: str, source: ProviderPicture | None, target: ProviderPicture | None, spared: Tally
) -> Iterator[str]:
    if source is None or target is None:
        there = source or target
        assert there is not None
        where = ONLY_TARGET if source is None else ONLY_SOURCE
        yield f"provider {uuid} {_quoted(there.name)}: {where}"
        return
    whose = f"provider {uuid}"
    yield from _plain(f"{whose}: name", _quoted(source.name), _quoted(target.name))
    yield from _plain(f"{whose}: parent", source.parent or "none", target.parent or "none")
    for name in sorted(source.inventories.keys() | target.inventories.keys()):
        yield from _inventory(
            f"{whose}: inventory of {name}",
            source.inventories.get(name),
            target.inventories.get(name),
        )
    yield from _set(f"{whose}: trait", source.traits, target.traits)
    yield from _set(f"{whose}: aggregate", source.aggregates, target.aggregates)
    if source.usages is not None and target.usages is not None:
        own = {name: amount for (of, name), amount in spared.items() if of == uuid}
        yield from _amounts(f"{whose}: usage of", source.usages, _without(target.usages, own))


def _plain(what: str, source: object, target: object) -> Iterator[str]:
    if source != target:
        yield f"{what}: {source} in the source, {target} in the target"


def _set(what: str, source: frozenset[str], target: frozenset[str]) -> Iterator[str]:
    for each in sorted(source ^ target):
        yield f"{what} {each}: {ONLY_SOURCE if each in source else ONLY_TARGET}"


def _inventory(what: str, source: Inventory | None, target: Inventory | None) -> Iterator[str]:
    if source is None or target is None:
        yield f"{what}: {ONLY_TARGET if source is None else ONLY_SOURCE}"
        return
    for name in unlike(source, target):
        yield from _plain(f"{what}: {name}", getattr(source, name), getattr(target, name))


def _amounts(what: str, source: Amounts, target: Amounts) -> Iterator[str]:
    """Yield the differences of amounts by class. A missing amount counts as 0."""
    for name in sorted(source.keys() | target.keys()):
        yield from _plain(f"{what} {name}", source.get(name, 0), target.get(name, 0))


def _without(amounts: Amounts, spared: Amounts) -> Amounts:
    return {name: amount - spared.get(name, 0) for name, amount in amounts.items()}


def _consumer(
    uuid: str, source: ConsumerPicture | None, target: ConsumerPicture | None, with_kinds: bool
) -> Iterator[str]:
    whose = f"consumer {uuid}"
    if source is None or target is None:
        yield f"{whose}: {ONLY_TARGET if source is None else ONLY_SOURCE}"
        return
    yield from _plain(f"{whose}: project", _quoted(source.project), _quoted(target.project))
    yield from _plain(f"{whose}: user", _quoted(source.user), _quoted(target.user))
    if with_kinds:
        yield from _plain(f"{whose}: type", source.kind or "none", target.kind or "none")
    for provider in sorted(source.holds.keys() | target.holds.keys()):
        yield from _amounts(
            f"{whose}: allocation of provider {provider}",
            source.holds.get(provider, {}),
            target.holds.get(provider, {}),
        )


def _totals(source: Picture, target: Picture, others: list[ConsumerPicture]) -> Iterator[str]:
    if source.totals is None or target.totals is None:
        return
    spared: dict[str, dict[str, int]] = {}
    for consumer in others:
        sums = spared.setdefault(consumer.project, {})
        for (_, name), amount in consumer.amounts():
            sums[name] = sums.get(name, 0) + amount
    for project in sorted(source.totals.keys() | target.totals.keys()):
        yield from _amounts(
            f"project {_quoted(project)}: usage of",
            source.totals.get(project, {}),
            _without(target.totals.get(project, {}), spared.get(project, {})),
        )
