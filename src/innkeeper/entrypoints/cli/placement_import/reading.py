"""Reads the whole content of a Placement service over the service's API.

Always true: the number of concurrent requests is limited, and nothing is written.

The result may be inconsistent, because the service may be in use. Consumers are read after
providers. Providers of allocations that were missing or incomplete are read again. After
``ROUNDS_MAX`` rounds, some inconsistencies may remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar
from urllib.parse import quote

import msgspec

from innkeeper.clients.placement import PlacementApi
from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.cli.placement_import import answers
from innkeeper.entrypoints.cli.placement_import.answers import Form, decoded, uuid_in
from innkeeper.entrypoints.cli.placement_import.pictures import (
    Amounts,
    ConsumerPicture,
    Picture,
    ProviderPicture,
)
from innkeeper.terminal.progress import StepProgress

ROUNDS_MAX = 4
"""The maximum number of rounds. Each round reads what was new or missing in the round before."""
BATCH = 1000
"""The number of requests that are queued for the threads at a time, to limit the memory."""
KINDS_SINCE = Version(1, 38)
BEFORE_KINDS = Version(1, 37)
UNTYPED = "unknown"
"""The API's name for the missing type of a consumer."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Reader:
    """Reads a Placement service with at most ``jobs`` concurrent requests."""

    def __init__(self, api: PlacementApi, jobs: int, progress: StepProgress) -> None:
        self._api = api
        self._jobs = jobs
        self._progress = progress

    def read(self, *, with_usages: bool) -> Picture:
        """Read the content of the service. Usages are read only if ``with_usages`` is true."""
        classes = self._ask("/resource_classes", answers.Classes).resource_classes
        traits = self._ask("/traits", answers.TraitsAnswer).traits
        providers: dict[str, ProviderPicture] = {}
        consumers: dict[str, ConsumerPicture] = {}
        seen: set[str] = set()
        rows = self._ask("/resource_providers", answers.ProvidersAnswer).resource_providers
        dangling: list[str] = []
        for _ in range(ROUNDS_MAX):
            fresh = self._read_providers(rows, providers, with_usages=with_usages) - seen
            seen |= fresh
            self._read_consumers([*dangling, *sorted(fresh)], consumers)
            dangling = [c.spelling for c in consumers.values() if _unmatched(providers, c)]
            rows = self._rows_of(_missing(providers, consumers))
            if not rows and not dangling:
                break
        return Picture(
            providers=providers,
            consumers=consumers,
            classes=frozenset(each.name for each in classes),
            traits=frozenset(traits),
            has_kinds=self._api.version >= KINDS_SINCE,
            totals=self._read_totals(consumers) if with_usages else None,
        )

    def _ask(self, path: str, form: type[Form]) -> Form:
        return decoded(self._api.name, path, self._api.ask(path), form)

    def _rows_of(self, uuids: Iterable[str]) -> list[answers.ProviderAnswer]:
        found: list[answers.ProviderAnswer] = []
        for uuid in uuids:
            try:
                found.append(self._ask(f"/resource_providers/{uuid}", answers.ProviderAnswer))
            except NotFound:
                continue
        return found

    def _read_providers(
        self,
        rows: list[answers.ProviderAnswer],
        providers: dict[str, ProviderPicture],
        *,
        with_usages: bool,
    ) -> set[str]:
        """Read providers into ``providers``. Returns the consumers with allocations from them."""

        def read(row: answers.ProviderAnswer) -> tuple[ProviderPicture, list[str]] | None:
            return self._provider(row, with_usages=with_usages)

        holders: set[str] = set()
        for found in self.each("reading providers", rows, read):
            if found is None:
                continue
            provider, spellings = found
            before = providers.get(provider.uuid)
            if before is not None and before.spelling != provider.spelling:
                raise Invalid(
                    f"{self._api.name}: two providers have the same uuid, spelled "
                    f"{before.spelling} and {provider.spelling}."
                )
            providers[provider.uuid] = provider
            holders.update(spellings)
        return holders

    def _provider(
        self, row: answers.ProviderAnswer, *, with_usages: bool
    ) -> tuple[ProviderPicture, list[str]] | None:
        uuid = self._uuid("/resource_providers", row.uuid)
        path = f"/resource_providers/{quote(row.uuid, safe='')}"
        try:
            inventories = self._ask(f"{path}/inventories", answers.InventoriesAnswer)
            traits = self._ask(f"{path}/traits", answers.TraitsAnswer).traits
            aggregates = self._ask(f"{path}/aggregates", answers.Aggregates).aggregates
            usages = self._ask(f"{path}/usages", answers.Usages).usages if with_usages else None
            holders = list(self._ask(f"{path}/allocations", answers.Holders).allocations)
        except NotFound:
            # The provider was deleted after it was listed.
            return None
        parent = row.parent_provider_uuid
        provider = ProviderPicture(
            uuid=uuid,
            name=row.name,
            parent=None if parent is None else self._uuid("/resource_providers", parent),
            generation=inventories.resource_provider_generation,
            inventories={
                name: Inventory(**msgspec.structs.asdict(each))
                for name, each in inventories.inventories.items()
            },
            traits=frozenset(traits),
            aggregates=frozenset(self._uuid(f"{path}/aggregates", each) for each in aggregates),
            usages=usages,
            spelling=row.uuid,
        )
        for holder in holders:
            self._uuid(f"{path}/allocations", holder)
        return provider, holders

    def _uuid(self, path: str, spelling: str) -> str:
        return uuid_in(self._api.name, path, spelling)

    def _read_consumers(self, spellings: list[str], consumers: dict[str, ConsumerPicture]) -> None:
        """Read consumers into ``consumers``, and remove consumers without allocations."""
        found = self.each("reading consumers", spellings, self.consumer)
        for spelling, consumer in zip(spellings, found, strict=True):
            if consumer is None:
                consumers.pop(self._uuid("/allocations", spelling), None)
            else:
                consumers[consumer.uuid] = consumer

    def consumer(self, spelling: str) -> ConsumerPicture | None:
        """Read a consumer. Returns ``None`` if the consumer has no allocations."""
        path = f"/allocations/{quote(spelling, safe='')}"
        body = self._api.ask(path)
        if not decoded(self._api.name, path, body, answers.Holders).allocations:
            return None
        holding = decoded(self._api.name, path, body, answers.Holding)
        kind = holding.consumer_type
        return ConsumerPicture(
            uuid=self._uuid(path, spelling),
            project=holding.project_id,
            user=holding.user_id,
            kind=None if kind == UNTYPED else kind,
            generation=holding.consumer_generation,
            holds={
                self._uuid(path, provider): line.resources
                for provider, line in holding.allocations.items()
            },
            spelling=spelling,
        )

    def _read_totals(self, consumers: Mapping[str, ConsumerPicture]) -> dict[str, Amounts]:
        projects = sorted({each.project for each in consumers.values()})
        version = min(self._api.version, BEFORE_KINDS)

        def read(project: str) -> tuple[str, Amounts]:
            answer = self._api.get("/usages", version=version, project_id=project)
            return project, decoded(self._api.name, "/usages", answer, answers.Usages).usages

        return dict(self.each("reading projects", projects, read))

    def each(
        self, title: str, items: Sequence[Item], act: Callable[[Item], Answer]
    ) -> list[Answer]:
        """Apply ``act`` to all items in parallel. Returns the results in the order of the items.

        Raises the first error.
        """
        found: list[Answer] = []
        if not items:
            return found
        pool = ThreadPoolExecutor(self._jobs)
        try:
            with self._progress.step(f"{self._api.name}: {title}", len(items)) as advance:
                waiting = iter(items)
                while batch := list(islice(waiting, BATCH)):
                    for answer in pool.map(act, batch):
                        found.append(answer)
                        advance(1)
        finally:
            pool.shutdown(cancel_futures=True)
        return found


def _unmatched(providers: Mapping[str, ProviderPicture], consumer: ConsumerPicture) -> set[str]:
    """Return the providers that lack an inventory for an allocation of the consumer."""
    return {
        uuid
        for (uuid, name), _ in consumer.amounts()
        if uuid not in providers or name not in providers[uuid].inventories
    }


def _missing(
    providers: Mapping[str, ProviderPicture], consumers: Mapping[str, ConsumerPicture]
) -> set[str]:
    """Return the providers that are missing or incomplete, although others refer to them."""
    parents = {each.parent for each in providers.values() if each.parent is not None}
    missing = {uuid for uuid in parents if uuid not in providers}
    for consumer in consumers.values():
        missing |= _unmatched(providers, consumer)
    return missing
