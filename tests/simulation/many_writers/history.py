"""The requests of many clients and their answers: the checker's only evidence.

Always true: an operation is recorded once, after its end, with times of one monotonic clock.
A write stores its operation's name as the user of the consumer, so a read shows whose write it
has seen.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

Amounts = Mapping[str, int]
"""Amounts of :data:`UNIT`, by provider."""
UNIT = "VCPU"


class Outcome(StrEnum):
    """What a client knows about the result of its operation."""

    DONE = "done"
    REFUSED = "refused"
    """It was not carried out."""
    UNKNOWN = "unknown"
    """There was no clear answer: it was carried out once, may still be, or never will be."""


class Kind(StrEnum):
    """The kind of request."""

    CLAIM = "claim"
    """Set the allocations of one or several consumers."""
    RELEASE = "release"
    RESIZE = "resize"
    BOOT = "boot"
    DELETE = "delete"
    READ_CONSUMER = "read consumer"
    READ_USAGES = "read usages"
    READ_INVENTORY = "read inventory"
    READ_GIVEN = "read given"
    """The allocations of a provider."""
    READ_PROJECT = "read project"
    READ_SERVERS = "read servers"


@dataclass(frozen=True, slots=True)
class ConsumerUpdate:
    """The requested allocations of one consumer; without amounts they are to be deleted.

    ``seen`` is the expected generation, ``None`` if the consumer must not exist.
    """

    consumer: str
    seen: int | None
    amounts: Amounts

    @property
    def generation(self) -> int:
        """The consumer's generation after this write."""
        return 1 if self.seen is None else self.seen + 1


@dataclass(frozen=True, slots=True)
class Operation:
    """One request of one client, and its result.

    ``subject`` is the consumer, provider, project or server of the request. A resize has ``seen``
    and ``total``; ``found`` is the result of a read.
    """

    name: str
    client: str
    entrance: str
    kind: Kind
    begun_s: float
    ended_s: float
    outcome: Outcome
    status: int = 0
    """The answer's status; 0 if there was no answer."""
    subject: str = ""
    updates: tuple[ConsumerUpdate, ...] = ()
    project: str = ""
    seen: int | None = None
    total: int = 0
    found: Mapping[str, Any] = field(default_factory=dict)


class History:
    """The recorded operations of all clients; safe to use from their threads."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._notes: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def add(self, operation: Operation) -> None:
        """Record an operation."""
        with self._lock:
            self._operations.append(operation)

    def note(self, at_s: float, text: str) -> None:
        """Record what was done to the servers, for the reader of a failing history."""
        with self._lock:
            self._notes.append({"at_s": at_s, "note": text})

    def noted(self, text: str) -> list[float]:
        """Return when this was noted."""
        with self._lock:
            return [each["at_s"] for each in self._notes if each["note"] == text]

    def operations(self) -> list[Operation]:
        """All operations, in the order in which they began."""
        with self._lock:
            return sorted(self._operations, key=lambda each: each.begun_s)

    def write(self, path: Path, first: Iterable[str] = ()) -> None:
        """Write them to a file of one JSON object per line, in the order of time."""
        lines: list[tuple[float, dict[str, Any]]] = [
            (each.begun_s, asdict(each)) for each in self.operations()
        ]
        lines += [(each["at_s"], each) for each in self._notes]
        lines.sort(key=lambda line: line[0])
        with path.open("w", encoding="utf-8") as file:
            for text in first:
                file.write(json.dumps({"note": text}) + "\n")
            for _, line in lines:
                file.write(json.dumps(line) + "\n")


def read(path: Path) -> list[Operation]:
    """Read the operations of a file that :meth:`History.write` wrote."""
    found: list[Operation] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if "kind" not in line:
            continue
        line["kind"], line["outcome"] = Kind(line["kind"]), Outcome(line["outcome"])
        line["updates"] = tuple(ConsumerUpdate(**each) for each in line["updates"])
        found.append(Operation(**line))
    return found
