"""Carries a plan out on the target, over its API.

Always true: whatever is written names the generation it was planned on, or may be written
twice. After a conflict one looks again: of consumers only what still differs is written, and
what belongs to providers is written over whatever was put there. So an import can be cut off
anywhere and begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from innkeeper.clients.placement import PlacementApi
from innkeeper.domain.errors import ConcurrentUpdate, Conflict, NotFound
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.cli.placement_import import answers
from innkeeper.entrypoints.cli.placement_import.answers import understood
from innkeeper.entrypoints.cli.placement_import.pictures import (
    ConsumerPicture,
    Picture,
    ProviderPicture,
    hold_same,
)
from innkeeper.entrypoints.cli.placement_import.plan import Furnishing, ImportPlan
from innkeeper.entrypoints.cli.placement_import.progress import ImportProgress
from innkeeper.entrypoints.cli.placement_import.reading import BEFORE_KINDS, Reader

LOOKS_MAX = 8
"""How often one looks again at what somebody else is writing as well."""
FIRST_WAIT_S = 0.05
PARENT = "parent_provider_uuid"
CONSUMERS_MAX = 100
LINES_MAX = 500
"""Of one request: far below any service's limit on bodies, and much less waiting than one by
one. A line is one consumer's amounts of one provider."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Intent:
    """What one consumer shall be and hold from now on; nothing, if it ``lets_go``."""

    consumer: ConsumerPicture
    lets_go: bool = False

    @property
    def needs_type(self) -> bool:
        """Whether this must be written at a version that asks for a type.

        A consumer without one can only be written at a version from before there were types.
        """
        return self.consumer.kind is not None and not self.lets_go

    def is_fulfilled(self, there: ConsumerPicture | None) -> bool:
        """Whether there is nothing left to write, if this is what the target has."""
        if self.lets_go:
            return there is None
        return there is not None and hold_same(self.consumer, there, with_kinds=self.needs_type)


def chunks(intents: Iterable[Intent], consumers_max: int) -> Iterator[list[Intent]]:
    """Divide intents into what is sent in one request each."""
    chunk: list[Intent] = []
    lines = 0
    for intent in intents:
        more = 0 if intent.lets_go else len(intent.consumer.holds)
        if chunk and (len(chunk) >= consumers_max or lines + more > LINES_MAX):
            yield chunk
            chunk, lines = [], 0
        chunk.append(intent)
        lines += more
    if chunk:
        yield chunk


class PlanWriter:
    """Carries out one plan. ``target`` is the picture on which it was made.

    ``consumers_max`` is how many consumers one request may name.
    """

    def __init__(
        self,
        api: PlacementApi,
        target: Picture,
        jobs: int,
        steps: ImportProgress,
        wait: Callable[[float], object],
        consumers_max: int = CONSUMERS_MAX,
    ) -> None:
        self._api = api
        self._target = target
        self._jobs = jobs
        self._steps = steps
        self._wait = wait
        self._consumers_max = consumers_max
        self._reader = Reader(api, jobs, steps)
        self._consumers = dict(target.consumers)
        self._generations = {
            uuid: provider.generation for uuid, provider in target.providers.items()
        }

    def carry_out(self, plan: ImportPlan) -> None:
        """Write everything. Raises what the target refuses, and leaves what was written."""
        self._each("resource classes", plan.classes, self._make_class)
        self._each("traits", plan.traits, self._make_trait)
        self._each("names to let go", plan.parked, self._park)
        for level in plan.levels:
            self._each("providers", level, self._make_or_change)
        self._each("inventories, traits and aggregates", plan.furnished, self._furnish)
        self._write("consumers to let go", [Intent(each, lets_go=True) for each in plan.dropped])
        self._write("consumers", [Intent(each) for each in plan.written])
        self._each("final inventories", plan.closed, self._furnish)
        for level in plan.removed_levels:
            self._each("providers to remove", level, self._remove)

    def _each(self, noun: str, items: Sequence[Item], write: Callable[[Item], None]) -> None:
        if not items:
            return
        pool = ThreadPoolExecutor(self._jobs)
        try:
            with self._steps.step(f"{self._api.name}: writing {noun}", len(items)) as advance:
                for _ in pool.map(write, items):
                    advance(1)
        finally:
            pool.shutdown(cancel_futures=True)

    # -- names -----------------------------------------------------------------------------

    def _make_class(self, name: str) -> None:
        self._api.send("PUT", f"/resource_classes/{name}")

    def _make_trait(self, name: str) -> None:
        self._api.send("PUT", f"/traits/{name}")

    # -- providers -------------------------------------------------------------------------

    def _spelling_of(self, uuid: str) -> str:
        """How the target spells a provider's uuid; what it gets from us it spells as we do."""
        there = self._target.providers.get(uuid)
        return uuid if there is None else there.spelling

    def _path(self, uuid: str) -> str:
        return f"/resource_providers/{quote(self._spelling_of(uuid), safe='')}"

    def _park(self, provider: ProviderPicture) -> None:
        self._api.send("PUT", self._path(provider.uuid), {"name": provider.uuid})

    def _make_or_change(self, provider: ProviderPicture) -> None:
        parent = None if provider.parent is None else self._spelling_of(provider.parent)
        body = {"name": provider.name, PARENT: parent}
        if provider.uuid in self._target.providers:
            self._api.send("PUT", self._path(provider.uuid), body)
        else:
            self._make(provider, {"uuid": provider.uuid, **body})

    def _make(self, provider: ProviderPicture, body: Mapping[str, Any]) -> None:
        path = "/resource_providers"
        try:
            answer: Mapping[str, Any] = self._api.send("POST", path, body)
        except Conflict:
            # It may be ours already, if the first answer was lost on the way.
            answer = self._there(provider)
            if any(answer.get(name) != body[name] for name in ("name", PARENT)):
                raise
        made = understood(self._api.name, path, answer, answers.Made)
        self._generations[provider.uuid] = made.generation

    def _there(self, provider: ProviderPicture) -> Mapping[str, Any]:
        try:
            return self._api.ask(f"/resource_providers/{provider.uuid}")
        except NotFound:
            return {}

    def _remove(self, provider: ProviderPicture) -> None:
        try:
            self._api.send("DELETE", self._path(provider.uuid))
        except NotFound:
            # Gone is what was wanted, whoever did it.
            return

    # -- what belongs to providers ---------------------------------------------------------

    def _furnish(self, furnishing: Furnishing) -> None:
        """Set what differs, one thing after the other: each moves the generation on."""
        uuid = furnishing.provider
        if furnishing.inventories is not None:
            wanted = {name: asdict(each) for name, each in furnishing.inventories.items()}
            self._set(uuid, "inventories", wanted)
        if furnishing.traits is not None:
            self._set(uuid, "traits", sorted(furnishing.traits))
        if furnishing.aggregates is not None:
            self._set(uuid, "aggregates", sorted(furnishing.aggregates))

    def _set(self, uuid: str, noun: str, wanted: Any) -> None:
        path = f"{self._path(uuid)}/{noun}"

        def take(answer: Mapping[str, Any]) -> None:
            told = understood(self._api.name, path, answer, answers.GenerationAnswer)
            self._generations[uuid] = told.resource_provider_generation

        def look() -> None:
            take(self._api.ask(path))

        def put() -> None:
            if uuid not in self._generations:
                look()
            body = {"resource_provider_generation": self._generations[uuid], noun: wanted}
            take(self._api.send("PUT", path, body))

        self._persist(put, look)

    def _persist(self, write: Callable[[], None], look: Callable[[], None]) -> None:
        """Write, and look again for as long as somebody else, or an earlier try, was faster."""
        pause_s = FIRST_WAIT_S
        for looks_left in reversed(range(LOOKS_MAX)):
            try:
                write()
                return
            except ConcurrentUpdate:
                if not looks_left:
                    raise
            self._wait(pause_s)
            pause_s *= 2
            look()

    # -- consumers -------------------------------------------------------------------------

    def _write(self, noun: str, intents: Sequence[Intent]) -> None:
        # One request after the other: at once, those about the same provider (a pool that all
        # servers hold of) would make each other look again until one of them gives up.
        if not intents:
            return
        with self._steps.step(f"{self._api.name}: writing {noun}", len(intents)) as advance:
            for needs_type in (True, False):
                version = self._api.version if needs_type else BEFORE_KINDS
                asked = [intent for intent in intents if intent.needs_type == needs_type]
                for chunk in chunks(asked, self._consumers_max):
                    self._write_chunk(chunk, version)
                    advance(len(chunk))
        # Every write of allocations moved the generations of its providers.
        self._generations.clear()

    def _write_chunk(self, chunk: Sequence[Intent], version: Version) -> None:
        left = {intent.consumer.uuid: intent for intent in chunk}

        def post() -> None:
            if left:
                self._api.send(
                    "POST",
                    "/allocations",
                    {self._spelling(intent): self._body(intent) for intent in left.values()},
                    version=version,
                )

        def look() -> None:
            for uuid, intent in list(left.items()):
                there = self._reader.consumer(self._spelling(intent))
                if there is None:
                    self._consumers.pop(uuid, None)
                else:
                    self._consumers[uuid] = there
                if intent.is_fulfilled(there):
                    del left[uuid]

        self._persist(post, look)
        for intent in chunk:
            if intent.lets_go:
                self._consumers.pop(intent.consumer.uuid, None)

    def _spelling(self, intent: Intent) -> str:
        there = self._consumers.get(intent.consumer.uuid)
        return intent.consumer.uuid if there is None else there.spelling

    def _body(self, intent: Intent) -> dict[str, Any]:
        consumer = intent.consumer
        there = self._consumers.get(consumer.uuid)
        body: dict[str, Any] = {
            "project_id": consumer.project,
            "user_id": consumer.user,
            "consumer_generation": None if there is None else there.generation,
            "allocations": {}
            if intent.lets_go
            else {
                self._spelling_of(uuid): {"resources": dict(amounts)}
                for uuid, amounts in consumer.holds.items()
            },
        }
        if intent.needs_type:
            body["consumer_type"] = consumer.kind
        return body
