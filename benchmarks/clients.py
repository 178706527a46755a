"""Sends the requests of a run's clients, and collects their results.

Always true: the clients run in a separate process (:mod:`benchmarks.load`). A run with a single
unexpected response has no figures.
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
"""The microversion that the stock command uses to create servers."""
TOKEN = "bencher:bench"
ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Question:
    """A request pattern; :mod:`benchmarks.load` describes its placeholders.

    ``refusals`` are the statuses with which a request may be refused without ending the run. If
    ``beside`` is given, requests of both patterns are sent in turns.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: str = ""
    status: int = 200
    picks: Sequence[str] = ()
    refusals: Sequence[int] = ()
    beside: Question | None = None

    @property
    def pattern(self) -> dict[str, Any]:
        """The part that :mod:`benchmarks.load` needs."""
        return {
            "method": self.method,
            "path": self.path,
            "headers": dict(self.headers),
            "body": self.body,
        }


def compute_headers(token: str) -> dict[str, str]:
    """Return the headers that the stock client of the Compute API sends about itself."""
    return {
        "X-Auth-Token": token,
        "OpenStack-API-Version": f"compute {COMPUTE_VERSION}",
        "X-OpenStack-Nova-API-Version": COMPUTE_VERSION,
    }


def empty(token: str = TOKEN) -> Question:
    """Return the baseline: a request that passes through the whole service and does nothing."""
    return Question("POST", f"/compute{EMPTY_PATH}", compute_headers(token), "{}", 202)


def ask(
    service: Started, question: Question, clients: int, seconds: float, seed: int = 0
) -> dict[str, Any]:
    """Run this many clients for this long; returns the results.

    In the results, ``busy_s`` is the processor time of the service, and ``busiest_s`` that of its
    busiest process. ``seed`` determines the random parts of requests.
    """
    command = [sys.executable, "-m", "benchmarks.load", "--port", str(service.port)]
    command += ["--clients", str(clients), "--seconds", str(seconds)]
    sent = {
        "patterns": [each.pattern for each in (question, question.beside) if each is not None],
        "picks": list(question.picks),
        "seed": seed,
    }
    before = service.busy_by_process()
    done = subprocess.run(
        command, input=json.dumps(sent).encode(), stdout=subprocess.PIPE, check=True
    )
    busy = [after - before[pid] for pid, after in service.busy_by_process().items()]
    found: dict[str, Any] = json.loads(done.stdout)
    statuses = found["statuses"]
    wanted = str(question.status)
    if wanted not in statuses or statuses.keys() - {wanted, *map(str, question.refusals)}:
        raise RuntimeError(f"{question.path}: {statuses} {found['strays']}")
    spent = {"busy_s": sum(busy), "busiest_s": max(busy)}
    return {**found, "done": statuses[wanted], **spent}


@dataclass(slots=True)
class Outcome:
    """The results of one kind of request, over all repetitions.

    ``busy_s`` has the processor time of the service for each request, in seconds.
    """

    rates: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    p99s: list[float] = field(default_factory=list)
    busy_s: list[float] = field(default_factory=list)

    def add(self, found: dict[str, Any]) -> None:
        """Add one run of the load."""
        latencies = found["latencies_s"]
        self.rates.append(found["done"] / found["took_s"])
        self.medians.append(median(latencies))
        self.p99s.append(percentile(latencies, 99))
        self.busy_s.append(found["busy_s"] / found["done"])

    def figures(self, name: str) -> Iterator[Figure]:
        """Yield the medians of the repetitions."""
        yield Figure(f"{name}.rate", median(self.rates), "/s", is_rate=True)
        yield Figure(f"{name}.median", median(self.medians) * 1e3, "ms")
        yield Figure(f"{name}.p99", median(self.p99s) * 1e3, "ms")
        yield Figure(f"{name}.busy", median(self.busy_s) * 1e6, "us")

    def ratio(self, name: str, yardstick: Outcome) -> Figure:
        """Return the rate divided by that of ``yardstick``. Both were measured in turns."""
        ratios = [mine / its for mine, its in zip(self.rates, yardstick.rates, strict=True)]
        return Figure(f"{name}.ratio", median(ratios), "", is_rate=True)
