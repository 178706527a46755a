"""Carries out a plan in the target, over the target's API.

Always true: every write sends a generation, or is idempotent. After a conflict, the target is read
again. Consumers that already have their planned state are skipped. Inventories, traits and
aggregates are overwritten. Therefore, an import can be interrupted at any point, and repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from innkeeper.clients.placement import PlacementApi
from innkeeper.domain.errors import ConcurrentUpdate, Conflict, NotFound
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.cli.placement_import import answers
from innkeeper.entrypoints.cli.placement_import.answers import decoded
from innkeeper.entrypoints.cli.placement_import.pictures import (
    ConsumerPicture,
    Picture,
    ProviderPicture,
    hold_same,
)
from innkeeper.entrypoints.cli.placement_import.plan import ImportPlan, ProviderUpdate
from innkeeper.entrypoints.cli.placement_import.reading import BEFORE_KINDS, Item, Reader
from innkeeper.terminal.progress import StepProgress

TRIES_MAX = 8
"""The maximum number of attempts of a write that conflicts with writes of other clients."""
FIRST_WAIT_S = 0.05
PARENT = "parent_provider_uuid"
CONSUMERS_MAX = 100
LINES_MAX = 500
"""The maximum number of lines in one request, far below any service's limit on bodies. A line is
the allocation of one consumer on one provider."""


@dataclass(frozen=True, slots=True)
class ConsumerWrite:
    """The state to write for one consumer. If ``removes`` is true, the consumer is removed."""

    consumer: ConsumerPicture
    removes: bool = False

    @property
    def needs_type(self) -> bool:
        """Whether the write needs a microversion with consumer types.

        A consumer without a type can only be written at an older microversion.
        """
        return self.consumer.kind is not None and not self.removes

    def is_done(self, there: ConsumerPicture | None) -> bool:
        """Return whether the consumer in the target, ``there``, already has the state to write."""
        if self.removes:
            return there is None
        return there is not None and hold_same(self.consumer, there, with_kinds=self.needs_type)


def chunks(writes: Iterable[ConsumerWrite], consumers_max: int) -> Iterator[list[ConsumerWrite]]:
    """Split writes into chunks. Each chunk fits into one request."""
    chunk: list[ConsumerWrite] = []
    lines = 0
    for write in writes:
        more = 0 if write.removes else len(write.consumer.holds)
        if chunk and (len(chunk) >= consumers_max or lines + more > LINES_MAX):
            yield chunk
            chunk, lines = [], 0
        chunk.append(write)
        lines += more
    if chunk:
        yield chunk


class PlanWriter:
    """Carries out one plan. ``target`` is what the target contained when the plan was made.

    ``consumers_max`` is the maximum number of consumers in one request.
    """

    def __init__(
        self,
        api: PlacementApi,
        target: Picture,
        jobs: int,
        progress: StepProgress,
        wait: Callable[[float], object],
        consumers_max: int = CONSUMERS_MAX,
    ) -> None:
        self._api = api
        self._target = target
        self._progress = progress
        self._wait = wait
        self._consumers_max = consumers_max
        self._reader = Reader(api, jobs, progress)
        self._consumers = dict(target.consumers)
        self._generations = {
            uuid: provider.generation for uuid, provider in target.providers.items()
        }

    def carry_out(self, plan: ImportPlan) -> None:
        """Carry out the plan.

        If the target rejects a write, raises the error. Earlier writes stay.
        """
        api = self._api
        self._each(
            "resource classes", plan.classes, lambda n: api.send("PUT", f"/resource_classes/{n}")
        )
        self._each("traits", plan.traits, lambda n: api.send("PUT", f"/traits/{n}"))
        self._each("names to free", plan.parked, self._park)
        for level in plan.levels:
            self._each("providers", level, self._create_or_change)
        self._each("inventories, traits and aggregates", plan.updates, self._update)
        removals = [ConsumerWrite(each, removes=True) for each in plan.dropped]
        self._write("consumers to remove", removals)
        self._write("consumers", [ConsumerWrite(each) for each in plan.written])
        self._each("final inventories", plan.final_updates, self._update)
        for level in plan.removed_levels:
            self._each("providers to remove", level, self._remove)

    def _each(self, noun: str, items: Sequence[Item], write: Callable[[Item], object]) -> None:
        self._reader.each(f"writing {noun}", items, write)

    def _spelling_of(self, uuid: str) -> str:
        """Return the target's spelling of a uuid. New providers get the canonical form."""
        there = self._target.providers.get(uuid)
        return uuid if there is None else there.spelling

    def _path(self, uuid: str) -> str:
        return f"/resource_providers/{quote(self._spelling_of(uuid), safe='')}"

    def _park(self, provider: ProviderPicture) -> None:
        self._api.send("PUT", self._path(provider.uuid), {"name": provider.uuid})

    def _create_or_change(self, provider: ProviderPicture) -> None:
        parent = None if provider.parent is None else self._spelling_of(provider.parent)
        body = {"name": provider.name, PARENT: parent}
        if provider.uuid in self._target.providers:
            self._api.send("PUT", self._path(provider.uuid), body)
        else:
            self._create(provider, {"uuid": provider.uuid, **body})

    def _create(self, provider: ProviderPicture, body: Mapping[str, Any]) -> None:
        path = "/resource_providers"
        try:
            answer: Mapping[str, Any] = self._api.send("POST", path, body)
        except Conflict:
            # If the response to an earlier attempt was lost, the provider may already exist.
            answer = {}
            with suppress(NotFound):
                answer = self._api.ask(f"{path}/{provider.uuid}")
            if any(answer.get(name) != body[name] for name in ("name", PARENT)):
                raise
        created = decoded(self._api.name, path, answer, answers.Created)
        self._generations[provider.uuid] = created.generation

    def _remove(self, provider: ProviderPicture) -> None:
        # Another client may have already removed the provider.
        with suppress(NotFound):
            self._api.send("DELETE", self._path(provider.uuid))

    def _update(self, update: ProviderUpdate) -> None:
        """Write the changes of a provider in sequence. Each write advances the generation."""
        uuid = update.provider
        if update.inventories is not None:
            inventories = {name: asdict(each) for name, each in update.inventories.items()}
            self._set(uuid, "inventories", inventories)
        if update.traits is not None:
            self._set(uuid, "traits", sorted(update.traits))
        if update.aggregates is not None:
            self._set(uuid, "aggregates", sorted(update.aggregates))

    def _set(self, uuid: str, noun: str, value: Any) -> None:
        path = f"{self._path(uuid)}/{noun}"

        def keep_generation(answer: Mapping[str, Any]) -> None:
            form = decoded(self._api.name, path, answer, answers.GenerationAnswer)
            self._generations[uuid] = form.resource_provider_generation

        def refresh() -> None:
            keep_generation(self._api.ask(path))

        def put() -> None:
            if uuid not in self._generations:
                refresh()
            body = {"resource_provider_generation": self._generations[uuid], noun: value}
            keep_generation(self._api.send("PUT", path, body))

        self._retry(put, refresh)

    def _retry(self, write: Callable[[], None], refresh: Callable[[], None]) -> None:
        """Call ``write``. After a conflict, call ``refresh``, and then ``write`` again.

        The conflict may be with another client, or with an earlier attempt that succeeded.
        """
        pause_s = FIRST_WAIT_S
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                write()
                return
            except ConcurrentUpdate:
                if not tries_left:
                    raise
            self._wait(pause_s)
            pause_s *= 2
            refresh()

    def _write(self, noun: str, writes: Sequence[ConsumerWrite]) -> None:
        # Send the requests in sequence. Parallel requests for the same provider, such as a pool
        # that all servers use, would conflict with each other until one of them gives up.
        if not writes:
            return
        with self._progress.step(f"{self._api.name}: writing {noun}", len(writes)) as advance:
            for needs_type in (True, False):
                version = self._api.version if needs_type else BEFORE_KINDS
                same = [write for write in writes if write.needs_type == needs_type]
                for chunk in chunks(same, self._consumers_max):
                    self._write_chunk(chunk, version)
                    advance(len(chunk))
        # The writes have advanced generations, so the known generations are outdated.
        self._generations.clear()

    def _write_chunk(self, chunk: Sequence[ConsumerWrite], version: Version) -> None:
        remaining = {write.consumer.uuid: write for write in chunk}

        def post() -> None:
            if remaining:
                body = {self._spelling(each): self._body(each) for each in remaining.values()}
                self._api.send("POST", "/allocations", body, version=version)

        def refresh() -> None:
            for uuid, write in list(remaining.items()):
                there = self._reader.consumer(self._spelling(write))
                if there is None:
                    self._consumers.pop(uuid, None)
                else:
                    self._consumers[uuid] = there
                if write.is_done(there):
                    del remaining[uuid]

        self._retry(post, refresh)
        for write in chunk:
            if write.removes:
                self._consumers.pop(write.consumer.uuid, None)

    def _spelling(self, write: ConsumerWrite) -> str:
        there = self._consumers.get(write.consumer.uuid)
        return write.consumer.uuid if there is None else there.spelling

    def _body(self, write: ConsumerWrite) -> dict[str, Any]:
        consumer = write.consumer
        there = self._consumers.get(consumer.uuid)
        holds = {} if write.removes else consumer.holds
        body: dict[str, Any] = {
            "project_id": consumer.project,
            "user_id": consumer.user,
            "consumer_generation": None if there is None else there.generation,
            "allocations": {
                self._spelling_of(uuid): {"resources": dict(amounts)}
                for uuid, amounts in holds.items()
            },
        }
        if write.needs_type:
            body["consumer_type"] = consumer.kind
        return body
