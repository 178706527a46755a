"""No outcome depends on whether boots were planned during the flush of the batch before them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import Busy, Conflict, Doubtful, Unreachable
from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.engine.batches import carry_out
from innkeeper.snapshot import recording
from innkeeper.store.queries.compute import agents, server_actions, servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot import dry_run
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.compute.boot.executor import BootExecutor
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.compute.hosts import hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from tests.support.clouds import AGENT, NOW, Cloud, cloud_in, reported, steps_of
from tests.support.flushes import Flushes, KnowingPlanner

BATCHES = 20
HOSTS = 12
QUOTAS = Computing(quota_instances=40, quota_cores=60, quota_ram=-1)
SPREADING = Scheduling(
    default_host_filters=(*Scheduling().default_host_filters, "NumInstancesFilter"),
    max_instances_per_host=6,
    host_subset_size=3,
    explain_decisions="full",
)
FAILURES: tuple[Callable[[], Exception], ...] = (
    lambda: Busy("Other writers are slow."),
    lambda: Unreachable("The connection is lost."),
    lambda: RuntimeError("a defect"),
    lambda: Conflict("a refusal of the whole batch"),
    lambda: Doubtful("The database did not say."),
)
Step = tuple[str, Any]


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    """The log events of a test."""
    with capture_logs() as captured:
        yield captured


@dataclass
class Batch:
    """The steps of a batch, how its flush fails, and what else happens before the next batch.

    ``expected`` are the boots that are known to wait during the flush.
    """

    steps: Sequence[Step]
    failure: Callable[[], Exception] | None
    expected: Sequence[BootRequest]
    foreign: Sequence[Step]


class Story:
    """Random batches; the same seed tells the same story."""

    def __init__(self, seed: int, cloud: Cloud) -> None:
        self._random = random.Random(seed)  # noqa: S311 - must be repeatable, not secret
        self._cloud = cloud
        self._now = NOW

    def batches(self) -> list[Batch]:
        """Return the batches, each with what is known of the next batch at that time."""
        all_steps = [self._steps() for _ in range(BATCHES)]
        return [
            Batch(
                steps,
                self._random.choice(FAILURES) if self._chance(0.2) else None,
                self._guess(following),
                [self._change()] if self._chance(0.5) else [],
            )
            for steps, following in zip(all_steps, [*all_steps[1:], []], strict=True)
        ]

    def _steps(self) -> list[Step]:
        self._now += timedelta(seconds=self._random.choice((0, 1, 1, 40)))
        boots = self._random.choice((0, 0, 1, 3, 5, 8))
        steps: list[Step] = [("boot", self._boot()) for _ in range(boots)]
        if self._chance(0.6):
            steps.append(("write", heard(self._now)))
        if self._chance(0.7):
            steps.append(self._other())
        self._random.shuffle(steps)
        return steps

    def _boot(self) -> BootRequest:
        more: dict[str, Any] = {
            "project_id": self._random.choice(("one", "two")),
            "flavor_id": self._random.choice(("small", "small", "wide", "unknown")),
            "now": self._now,
        }
        if self._chance(0.1):
            more["key_name"] = "unknown"
        if self._chance(0.1):
            more["availability_zone"] = self._random.choice(("nova", "elsewhere"))
        if self._chance(0.1):
            more["is_across_zones"] = True
        if self._chance(0.1):
            more["hints"] = {"query": '[">=", "$free_ram_mb", 2048]'}
        least = self._random.choice((1, 1, 1, 3))
        return self._cloud.request(least, least + self._random.choice((0, 0, 2)), **more)

    def _other(self) -> Step:
        asked = self._boot()
        return self._random.choice(
            (("explain", asked), ("decide", (planned(asked), self._now)), self._change())
        )

    def _change(self) -> Step:
        name = f"h{self._random.randrange(HOSTS)}"
        size = self._random.randrange(6, 20)
        number = self._random.randrange(1_000_000)
        return self._random.choice(
            (
                ("write", service(name, is_disabled=self._chance(0.4))),
                ("write", heard(self._now)),
                ("write", grown(self._cloud, name, size)),
                ("write", trait_of_flavor(number)),
                ("boot", self._boot()),
            )
        )

    def _guess(self, following: Sequence[Step]) -> list[BootRequest]:
        boots = [work for kind, work in following if kind == "boot"]
        if self._chance(0.4):
            # A client leaves, or another command arrives before the expected boots.
            boots.insert(self._random.randrange(len(boots) + 1), self._boot())
        if boots and self._chance(0.2):
            del boots[self._random.randrange(len(boots))]
        if self._chance(0.1):
            self._random.shuffle(boots)
        return boots

    def _chance(self, of: float) -> bool:
        return self._random.random() < of


def heard(now: datetime) -> Callable[[Tx], None]:
    return lambda tx: agents.mark_seen(tx, [AGENT.id], now)


def service(name: str, *, is_disabled: bool) -> Callable[[Tx], None]:
    def write(tx: Tx) -> None:
        hosts.change_service(tx, hosts.by_name(tx, name), ServiceChange(is_disabled), NOW)

    return write


def grown(cloud: Cloud, name: str, vcpus: int) -> Callable[[Tx], None]:
    return lambda tx: cloud.report_in(tx, reported(name, vcpus, memory_mb=vcpus * 1024))


def trait_of_flavor(number: int) -> Callable[[Tx], None]:
    """Change what the wide flavor requests, so that plans made ahead for it are wrong."""

    def write(tx: Tx) -> None:
        specs = {"resources:DISK_GB": str(1 + number % 3)}
        flavors.add_extra_specs(tx, "wide", specs, now=NOW, is_checked=True)

    return write


def planned(request: BootRequest) -> Callable[[Tx, DecisionContext], Any]:
    """Plan a boot as for a zone parent."""
    return lambda tx, context: dry_run.plan(tx, context, request)


class Process:
    """A cloud that carries out a story, with all its answers and its final database."""

    def __init__(self, folder: Path, scheduling: Scheduling, *, is_planning: bool) -> None:
        folder.mkdir()
        reports = [reported(f"h{number}", vcpus=6 + number % 5) for number in range(HOSTS)]
        self.cloud = cloud_in(folder, *reports, scheduling=scheduling, computing=QUOTAS)
        self.cloud.add_flavor("wide", vcpus=2)
        self.other = self.cloud.beside()
        self.planner = KnowingPlanner(self.cloud.executor)
        self._is_planning = is_planning
        self.told: list[Any] = []

    def tell(self, batches: Sequence[Batch]) -> None:
        for each in batches:
            failures = [each.failure] if each.failure is not None else []

            def flush(failures: list[Callable[[], Exception]] = failures) -> None:
                if failures:
                    raise failures.pop()()

            self.planner.requests = each.expected if self._is_planning else ()
            store = Flushes(self.cloud.store, flush)
            answers = carry_out(
                store, self.cloud.executor, steps_of(each.steps), planner=self.planner
            )
            self.told += map(comparable, answers)
            self.told += [self._written(each) for each in answers if isinstance(each, Booted)]
            if each.foreign:
                self.told += map(comparable, self.other.carry_out(*each.foreign))
        self.cloud.reread()

    def _written(self, booted: Booted) -> list[Any]:
        def look(tx: Tx) -> list[Any]:
            rows = [servers.by_uuid(tx, each) for each in booted.server_ids]
            kept = [server_actions.decision(tx, each) for each in booted.server_ids]
            return [(row and row.host, found) for row, found in zip(rows, kept, strict=True)]

        return self.cloud.read(look)  # type: ignore[no-any-return]

    def close(self) -> None:
        self.cloud.close()
        self.other.close()


def comparable(answer: Any) -> Any:
    return (type(answer), str(answer)) if isinstance(answer, Exception) else answer


def columns(cloud: Cloud) -> dict[str, Any]:
    moment = recording.copy_of(cloud.table)
    return {**moment.columns, **moment.state}


@pytest.mark.parametrize("scheduling", [Scheduling(), SPREADING], ids=["usual", "spreading"])
@pytest.mark.parametrize("seed", range(4))
def test_outcomes_and_table_are_as_without(
    tmp_path: Path, seed: int, scheduling: Scheduling
) -> None:
    plain = Process(tmp_path / "plain", scheduling, is_planning=False)
    ahead = Process(tmp_path / "ahead", scheduling, is_planning=True)
    batches = Story(seed, plain.cloud).batches()
    plain.tell(batches)
    ahead.tell(batches)
    assert ahead.told == plain.told
    np.testing.assert_equal(columns(ahead.cloud), columns(plain.cloud))
    ahead.cloud.judge()
    used, undone = ahead.cloud.executor.plans_ahead()
    assert used + undone == ahead.planner.planned
    assert used, "the story must have plans that are used"
    plain.close()
    ahead.close()


class Forgetful(BootExecutor):
    """An executor with a defect: after a failed flush, it keeps the plans made on top of it."""

    def forget(self) -> None:
        """See :class:`BootExecutor`."""
        self.follower.forget()


@pytest.mark.parametrize("failure", FAILURES)
def test_plans_that_outlive_a_failed_flush_are_noticed(
    tmp_path: Path, failure: Callable[[], Exception]
) -> None:
    """The other tests would notice plans that outlive a failed flush, the likeliest defect."""
    process = Process(tmp_path / "ahead", Scheduling(), is_planning=True)
    cloud = process.cloud
    cloud.executor = Forgetful(cloud.scheduling, QUOTAS)
    cloud.boot(cloud.request())
    with cloud.store.read() as tx:
        cloud.executor.load(tx)
    process.planner = KnowingPlanner(cloud.executor)
    nothing: Step = ("write", lambda _: None)
    expected = [cloud.request(3) for _ in range(3)]
    process.tell([Batch([nothing], None, (), ()), Batch([nothing], failure, expected, ())])
    assert process.planner.planned == 3
    with pytest.raises(AssertionError):
        cloud.judge()
    process.close()
