"""The requests that a run's clients send, and their results.

Always true: the clients run in a process of their own (:mod:`benchmarks.load`). A run with a
single unexpected answer gives no figures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.figures import Figure, median, percentile
from benchmarks.running import Started
from benchmarks.served import EMPTY_PATH

COMPUTE_VERSION = "2.74"
"""The microversion of the stock command when it creates servers."""
TOKEN = "bencher:bench"
ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Question:
    """A request pattern; :mod:`benchmarks.load` says what is replaced in it.

    ``refusals`` are statuses that are accepted as well, though nothing was done.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: str = ""
    status: int = 200
    picks: Sequence[str] = ()
    refusals: Sequence[int] = ()


def compute_headers(token: str) -> dict[str, str]:
    """The headers that the stock client of the Compute API sends about itself."""
    return {
        "X-Auth-Token": token,
        "OpenStack-API-Version": f"compute {COMPUTE_VERSION}",
        "X-OpenStack-Nova-API-Version": COMPUTE_VERSION,
    }


def empty(token: str = TOKEN) -> Question:
    """The baseline: a request through the whole stack that does nothing."""
    return Question("POST", f"/compute{EMPTY_PATH}", compute_headers(token), "{}", 202)


def ask(
    service: Started, question: Question, clients: int, seconds: float, seed: int = 0
) -> dict[str, Any]:
    """Run this many clients for this long. ``seed`` determines random parts of requests."""
    command = [sys.executable, "-m", "benchmarks.load", "--port", str(service.port)]
    command += ["--clients", str(clients), "--seconds", str(seconds)]
    sent = {
        "method": question.method,
        "path": question.path,
        "headers": dict(question.headers),
        "body": question.body,
        "picks": list(question.picks),
        "seed": seed,
    }
    done = subprocess.run(
        command, input=json.dumps(sent).encode(), stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    statuses = found["statuses"]
    wanted = str(question.status)
    if wanted not in statuses or statuses.keys() - {wanted, *map(str, question.refusals)}:
        raise RuntimeError(f"{question.path}: {statuses} {found['strays']}")
    return {**found, "done": statuses[wanted]}


@dataclass(slots=True)
class Outcome:
    """The results of one kind of request, over all repetitions."""

    rates: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    p99s: list[float] = field(default_factory=list)

    def add(self, found: dict[str, Any]) -> None:
        """Add one run of the load."""
        latencies = found["latencies_s"]
        self.rates.append(found["done"] / found["took_s"])
        self.medians.append(median(latencies))
        self.p99s.append(percentile(latencies, 99))

    def figures(self, name: str) -> Iterator[Figure]:
        """The medians of the repetitions."""
        yield Figure(f"{name}.rate", median(self.rates), "/s", is_rate=True)
        yield Figure(f"{name}.median", median(self.medians) * 1e3, "ms")
        yield Figure(f"{name}.p99", median(self.p99s) * 1e3, "ms")

    def ratio(self, name: str, yardstick: Outcome) -> Figure:
        """The rate relative to another kind of request, measured in turns with this one."""
        ratios = [mine / its for mine, its in zip(self.rates, yardstick.rates, strict=True)]
        return Figure(f"{name}.ratio", median(ratios), "", is_rate=True)
