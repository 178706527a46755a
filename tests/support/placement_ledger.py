"""Simulates a Placement without a network: rows in dictionaries, and rules that reject writes.

It replaces a client of a Placement API, and is as strict as OpenStack's service. It rejects writes
that come too early, or without the current generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from innkeeper.domain.errors import (
    AlreadyExists,
    CapacityExceeded,
    ConcurrentUpdate,
    Conflict,
    InUse,
    Invalid,
    NotFound,
)
from innkeeper.domain.versions import Version

NEWEST = Version(1, 39)
TYPED_SINCE = Version(1, 38)


class PowerCut(Exception):
    """The writing program was killed."""


@dataclass
class Row:
    """One provider."""

    name: str
    parent: str | None
    inventories: dict[str, dict[str, Any]] = field(default_factory=dict)
    traits: list[str] = field(default_factory=list)
    aggregates: list[str] = field(default_factory=list)
    generation: int = 0


@dataclass
class Holder:
    """One consumer."""

    project: str
    user: str
    kind: str | None
    holds: dict[str, dict[str, int]]
    generation: int = 1


@dataclass
class Ledger:
    """One service. After ``writes_left`` writes, it raises :class:`PowerCut`."""

    name: str
    rows: dict[str, Row] = field(default_factory=dict)
    holders: dict[str, Holder] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    traits: set[str] = field(default_factory=set)
    version: Version = NEWEST
    writes_left: int | None = None
    writes: int = 0

    # -- reading ---------------------------------------------------------------------------

    def ask(self, path: str) -> dict[str, Any]:
        """Answer a GET, at the newest version."""
        return self.get(path, version=self.version)

    def get(self, path: str, *, version: Version, **query: str) -> dict[str, Any]:
        """Answer a GET."""
        assert version <= self.version
        _, noun, *rest = (unquote(part) for part in path.split("/"))
        if noun == "resource_classes":
            return {"resource_classes": [{"name": name} for name in self.classes]}
        if noun == "traits":
            return {"traits": sorted(self.traits)}
        if noun == "usages":
            return {"usages": self._used(project=query["project_id"])}
        if noun == "allocations":
            return self._holder(rest[0])
        if not rest:
            return {"resource_providers": [self._row(uuid) for uuid in self.rows]}
        if rest[0] not in self.rows:
            raise NotFound(path)
        return self._row(rest[0]) if len(rest) == 1 else self._belonging(*rest)

    def _row(self, uuid: str) -> dict[str, Any]:
        row = self.rows[uuid]
        return {
            "uuid": uuid,
            "name": row.name,
            "generation": row.generation,
            "parent_provider_uuid": row.parent,
        }

    def _belonging(self, uuid: str, noun: str) -> dict[str, Any]:
        row = self.rows[uuid]
        shown: Any
        if noun == "usages":
            shown = {**dict.fromkeys(row.inventories, 0), **self._used(provider=uuid)}
        elif noun == "allocations":
            holding = {who: held for who, held in self.holders.items() if uuid in held.holds}
            shown = {who: {"resources": held.holds[uuid]} for who, held in holding.items()}
        else:
            shown = getattr(row, noun)
        return {noun: shown, "resource_provider_generation": row.generation}

    def _holder(self, uuid: str) -> dict[str, Any]:
        holder = self.holders.get(uuid)
        if holder is None:
            return {"allocations": {}}
        shown = {
            "allocations": {p: {"resources": each} for p, each in holder.holds.items()},
            "project_id": holder.project,
            "user_id": holder.user,
            "consumer_generation": holder.generation,
        }
        if self.version >= TYPED_SINCE:
            shown["consumer_type"] = holder.kind or "unknown"
        return shown

    def _amounts(self) -> Iterator[tuple[Holder, str, str, int]]:
        for holder in self.holders.values():
            for provider, amounts in holder.holds.items():
                for name, amount in amounts.items():
                    yield holder, provider, name, amount

    def _used(self, provider: str | None = None, project: str | None = None) -> dict[str, int]:
        sums: dict[str, int] = {}
        for holder, of, name, amount in self._amounts():
            if provider in (None, of) and project in (None, holder.project):
                sums[name] = sums.get(name, 0) + amount
        return sums

    # -- writing ---------------------------------------------------------------------------

    def send(
        self, method: str, path: str, body: Any = None, *, version: Version = NEWEST
    ) -> dict[str, Any]:
        """Carry out a write, or reject it."""
        if self.writes == self.writes_left:
            raise PowerCut
        self.writes += 1
        assert version <= self.version
        _, noun, *rest = (unquote(part) for part in path.split("/"))
        match (method, noun, *rest):
            case ("PUT", "resource_classes" | "traits", name):
                (self.classes if noun == "resource_classes" else self.traits).add(name)
                return {}
            case ("POST", "allocations"):
                self._allocate(body, is_typed=version >= TYPED_SINCE)
                return {}
            case ("POST", "resource_providers"):
                if body["uuid"] in self.rows:
                    raise AlreadyExists(body["uuid"])
                self._settle(body["uuid"], body)
                return self._row(body["uuid"])
            case ("PUT", "resource_providers", uuid):
                self._settle(uuid, body)
                return self._row(uuid)
            case ("DELETE", "resource_providers", uuid):
                self._delete(uuid)
                return {}
            case ("PUT", "resource_providers", uuid, belonging):
                return self._furnish(uuid, belonging, body)
        raise AssertionError(f"{method} {path}")

    def _settle(self, uuid: str, body: Mapping[str, Any]) -> None:
        if any(row.name == body["name"] for each, row in self.rows.items() if each != uuid):
            raise AlreadyExists(body["name"])
        there = self.rows.get(uuid)
        parent = body.get("parent_provider_uuid", there.parent if there else None)
        above = parent
        while above is not None:
            if above == uuid or above not in self.rows:
                raise Invalid(f"{uuid} cannot hang on {parent}")
            above = self.rows[above].parent
        if there is None:
            self.rows[uuid] = Row(body["name"], parent)
        else:
            there.name, there.parent = body["name"], parent

    def _delete(self, uuid: str) -> None:
        is_parent = any(row.parent == uuid for row in self.rows.values())
        if is_parent or self._used(provider=uuid):
            raise InUse(uuid)
        del self.rows[uuid]

    def _furnish(self, uuid: str, noun: str, body: Mapping[str, Any]) -> dict[str, Any]:
        row = self.rows[uuid]
        if body["resource_provider_generation"] != row.generation:
            raise ConcurrentUpdate(uuid)
        if noun == "inventories" and self._used(provider=uuid).keys() - body[noun].keys():
            raise InUse(uuid)
        known = {"inventories": self.classes, "traits": self.traits}.get(noun)
        if known is not None and not set(body[noun]) <= known:
            raise Invalid(f"{sorted(body[noun])} are not all known")
        setattr(row, noun, body[noun])
        row.generation += 1
        return self._belonging(uuid, noun)

    def _allocate(self, body: Mapping[str, Any], *, is_typed: bool) -> None:
        before = {(of, name): 0 for _, of, name, _ in self._amounts()}
        for _, of, name, amount in self._amounts():
            before[of, name] += amount
        saved = dict(self.holders)
        try:
            for uuid, wanted in body.items():
                self._hold(uuid, wanted, is_typed=is_typed)
            self._must_fit(before)
        except Conflict:
            self.holders = saved
            raise
        for wanted in body.values():
            for provider in wanted["allocations"]:
                self.rows[provider].generation += 1

    def _hold(self, uuid: str, wanted: Mapping[str, Any], *, is_typed: bool) -> None:
        assert ("consumer_type" in wanted) == is_typed
        there = self.holders.pop(uuid, None)
        if wanted["consumer_generation"] != (there.generation if there else None):
            raise ConcurrentUpdate(uuid)
        holds = {p: line["resources"] for p, line in wanted["allocations"].items()}
        for provider, amounts in holds.items():
            for name, amount in amounts.items():
                inventory = self.rows[provider].inventories.get(name)
                if inventory is None or not gives(inventory, amount):
                    raise CapacityExceeded(f"{amount} of {name} of {provider}")
        if holds:
            kind = wanted["consumer_type"] if is_typed else there.kind if there else None
            generation = there.generation + 1 if there else 1
            self.holders[uuid] = Holder(
                wanted["project_id"], wanted["user_id"], kind, holds, generation
            )

    def _must_fit(self, before: Mapping[tuple[str, str], int]) -> None:
        for _, provider, name, _ in self._amounts():
            inventory = self.rows[provider].inventories[name]
            capacity = inventory["total"] - inventory["reserved"]
            used = self._used(provider=provider)[name]
            was = before.get((provider, name), 0)
            if used > capacity * inventory["allocation_ratio"] and used > was:
                raise CapacityExceeded(f"{used} of {name} of {provider}")


def gives(inventory: Mapping[str, Any], amount: int) -> bool:
    """Whether OpenStack's rule of units, which is stricter than ours, allows the amount."""
    is_within: bool = inventory["min_unit"] <= amount <= inventory["max_unit"]
    return is_within and bool(amount % inventory["step_size"] == 0)
