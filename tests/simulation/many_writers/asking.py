"""The requests of the simulation: each is sent once, and recorded as an operation."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from tests.simulation.many_writers.doors import LOST, NOT_SENT, Answer, Door
from tests.simulation.many_writers.history import (
    UNIT,
    ConsumerUpdate,
    History,
    Kind,
    Operation,
    Outcome,
)
from tests.simulation.many_writers.registers import ABSENT

FLAVOR = "tiny"
PER_SERVER = {"VCPU": 1, "MEMORY_MB": 64}
PROVIDERS = "/placement/resource_providers"
SERVERS = "/compute/v2.1/servers"
SAID_NO = range(400, 500)


def outcome_of(answer: Answer) -> Outcome:
    """What a client knows from an answer, or from a missing one."""
    if HTTPStatus(200) <= answer.status < HTTPStatus(300):
        return Outcome.DONE
    if answer.status in SAID_NO or answer.status == NOT_SENT:
        return Outcome.REFUSED
    # A service or a proxy may have become unavailable after the commit.
    return Outcome.UNKNOWN


class Asking:
    """One client's requests; used by one thread."""

    def __init__(self, client: str, door: Door, history: History) -> None:
        self.client = client
        self.door = door
        self._history = history
        self._numbers = itertools.count(1)

    def claim(self, updates: Sequence[ConsumerUpdate], project: str = "") -> Operation:
        """Set the allocations of consumers: one with PUT, several with POST."""
        name = self._name()
        bodies = {each.consumer: _claim_body(each, name, project) for each in updates}
        if len(updates) == 1:
            request = ("PUT", f"/placement/allocations/{updates[0].consumer}")
            sent: Any = bodies[updates[0].consumer]
        else:
            request = ("POST", "/placement/allocations")
            sent = bodies
        return self._write(name, Kind.CLAIM, request, sent, updates=tuple(updates), project=project)

    def release(self, consumer: str) -> Operation:
        """Release all allocations of a consumer."""
        request = ("DELETE", f"/placement/allocations/{consumer}")
        return self._write(self._name(), Kind.RELEASE, request, subject=consumer)

    def resize(self, provider: str, seen: int, total: int) -> Operation:
        """Set a provider's total."""
        body = {"resource_provider_generation": seen, "total": total}
        request = ("PUT", f"{PROVIDERS}/{provider}/inventories/{UNIT}")
        more: dict[str, Any] = {"subject": provider, "seen": seen, "total": total}
        return self._write(self._name(), Kind.RESIZE, request, body, **more)

    def boot(self) -> Operation:
        """Boot a server with the operation's name."""
        name = self._name()
        body = {"name": name, "flavorRef": FLAVOR, "imageRef": "", "networks": "none"}
        return self._write(name, Kind.BOOT, ("POST", SERVERS), {"server": body})

    def delete(self, server: str) -> Operation:
        """Delete a server."""
        return self._write(
            self._name(), Kind.DELETE, ("DELETE", f"{SERVERS}/{server}"), subject=server
        )

    def consumer(self, uuid: str) -> Operation:
        """Read a consumer's allocations, and which operation wrote them."""
        return self._read(Kind.READ_CONSUMER, uuid, f"/placement/allocations/{uuid}")

    def usages(self, provider: str) -> Operation:
        """Read a provider's usages."""
        return self._read(Kind.READ_USAGES, provider, f"{PROVIDERS}/{provider}/usages")

    def inventory(self, provider: str) -> Operation:
        """Read a provider's inventory."""
        return self._read(Kind.READ_INVENTORY, provider, f"{PROVIDERS}/{provider}/inventories")

    def given(self, provider: str) -> Operation:
        """Read a provider's allocations."""
        return self._read(Kind.READ_GIVEN, provider, f"{PROVIDERS}/{provider}/allocations")

    def project(self, name: str) -> Operation:
        """Read a project's usage of all providers."""
        return self._read(
            Kind.READ_PROJECT, name, f"/placement/usages?project_id={name}&consumer_type=all"
        )

    def servers(self, found: Mapping[str, Any]) -> None:
        """Record the list of all servers."""
        now_s = time.monotonic()
        self._history.add(
            Operation(
                self._name(),
                self.client,
                "",
                Kind.READ_SERVERS,
                now_s,
                now_s,
                Outcome.DONE,
                found={"servers": found},
            )
        )

    def _name(self) -> str:
        return f"{self.client}.{next(self._numbers)}"

    def _write(
        self, name: str, kind: Kind, request: tuple[str, str], body: Any = None, **more: Any
    ) -> Operation:
        begun_s = time.monotonic()
        answer = self.door.call(*request, body)
        found: Mapping[str, Any] = {}
        if kind is Kind.BOOT and outcome_of(answer) is Outcome.DONE:
            found = {"server": answer.body["server"]["id"]}
        elif answer.status in SAID_NO and answer.body:
            found = {"refusal": answer.body}
        return self._done(name, kind, begun_s, answer, found=found, **more)

    def _read(self, kind: Kind, subject: str, path: str) -> Operation:
        begun_s = time.monotonic()
        answer = self.door.call("GET", path)
        found = READ[kind](answer.body) if answer.status == HTTPStatus.OK else {}
        return self._done(self._name(), kind, begun_s, answer, subject=subject, found=found)

    def _done(
        self, name: str, kind: Kind, begun_s: float, answer: Answer, **more: Any
    ) -> Operation:
        operation = Operation(
            name,
            self.client,
            answer.entrance,
            kind,
            begun_s,
            time.monotonic(),
            outcome_of(answer),
            max(answer.status, LOST),
            **more,
        )
        self._history.add(operation)
        return operation


def _claim_body(update: ConsumerUpdate, name: str, project: str) -> dict[str, Any]:
    lines = {each: {"resources": {UNIT: units}} for each, units in update.amounts.items()}
    return {
        "allocations": lines,
        "project_id": project or "simulation",
        "user_id": name,
        "consumer_generation": update.seen,
        "consumer_type": "INSTANCE",
    }


def _consumer(body: Any) -> Mapping[str, Any]:
    amounts = {each: line["resources"].get(UNIT, 0) for each, line in body["allocations"].items()}
    return {
        "writer": body["user_id"] if amounts else ABSENT,
        "generation": body["consumer_generation"] if amounts else None,
        "amounts": amounts,
    }


def _usages(body: Any) -> Mapping[str, Any]:
    return {"generation": body["resource_provider_generation"], "used": body["usages"].get(UNIT, 0)}


def _inventory(body: Any) -> Mapping[str, Any]:
    has = body["inventories"][UNIT]
    return {
        "generation": body["resource_provider_generation"],
        "total": int((has["total"] - has["reserved"]) * has["allocation_ratio"]),
    }


def _given(body: Any) -> Mapping[str, Any]:
    held = {
        consumer: (line["consumer_generation"], line["resources"].get(UNIT, 0))
        for consumer, line in body["allocations"].items()
    }
    return {
        "generation": body["resource_provider_generation"],
        "held": held,
        "used": sum(units for _, units in held.values()),
    }


def _project(body: Any) -> Mapping[str, Any]:
    return {"used": sum(each.get(UNIT, 0) for each in body["usages"].values())}


READ = {
    Kind.READ_CONSUMER: _consumer,
    Kind.READ_USAGES: _usages,
    Kind.READ_INVENTORY: _inventory,
    Kind.READ_GIVEN: _given,
    Kind.READ_PROJECT: _project,
}
