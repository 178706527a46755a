"""What many clients asked for and were told, as it happened: the checker's only evidence.

Always true: an operation is written down once, after its end, with moments of one clock that
never goes back; a write leaves its operation's name behind as the user of what it wrote, so a
read tells whose write it has seen.
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
"""Units of :data:`UNIT`, by provider."""
UNIT = "VCPU"


class Outcome(StrEnum):
    """What a client knows of its operation."""

    DONE = "done"
    REFUSED = "refused"
    """It did not happen."""
    UNKNOWN = "unknown"
    """No answer, or one that leaves it open: it happened once, may still happen, or never."""


class Kind(StrEnum):
    """What was asked."""

    CLAIM = "claim"
    """Let one consumer hold something, or several of them at once."""
    RELEASE = "release"
    RESIZE = "resize"
    BOOT = "boot"
    DELETE = "delete"
    READ_CONSUMER = "read consumer"
    READ_USAGES = "read usages"
    READ_INVENTORY = "read inventory"
    READ_GIVEN = "read given"
    """Who holds what of a provider."""
    READ_PROJECT = "read project"
    READ_SERVERS = "read servers"


@dataclass(frozen=True, slots=True)
class Wish:
    """What one consumer is to hold; without amounts it is to be gone.

    ``seen`` is the generation that it must be at, ``None`` where it must not be there.
    """

    consumer: str
    seen: int | None
    amounts: Amounts

    @property
    def generation(self) -> int:
        """Where the consumer is once this is written."""
        return 1 if self.seen is None else self.seen + 1


@dataclass(frozen=True, slots=True)
class Operation:
    """One request of one client, and what came of it.

    ``subject`` is the consumer, provider, project or server that it is about; ``seen`` and
    ``total`` are a resize's, and ``found`` is what a read was told.
    """

    name: str
    client: str
    entrance: str
    kind: Kind
    begun_s: float
    ended_s: float
    outcome: Outcome
    status: int = 0
    """Of the answer; 0 where there was none."""
    subject: str = ""
    wishes: tuple[Wish, ...] = ()
    project: str = ""
    seen: int | None = None
    total: int = 0
    found: Mapping[str, Any] = field(default_factory=dict)


class History:
    """Where clients write down their operations; used by all of their threads."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._notes: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def add(self, operation: Operation) -> None:
        """Write one down."""
        with self._lock:
            self._operations.append(operation)

    def note(self, at_s: float, text: str) -> None:
        """Write down what was done to the servers, for whoever reads a failing history."""
        with self._lock:
            self._notes.append({"at_s": at_s, "note": text})

    def operations(self) -> list[Operation]:
        """All of them, in the order in which they began."""
        with self._lock:
            return sorted(self._operations, key=lambda each: each.begun_s)

    def write(self, path: Path, first: Iterable[str] = ()) -> None:
        """Keep it as a file of one JSON object per line, in the order of time."""
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
    """The operations of a file that :meth:`History.write` made."""
    found: list[Operation] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if "kind" not in line:
            continue
        line["kind"], line["outcome"] = Kind(line["kind"]), Outcome(line["outcome"])
        line["wishes"] = tuple(Wish(**each) for each in line["wishes"])
        found.append(Operation(**line))
    return found
