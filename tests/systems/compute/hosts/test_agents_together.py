"""Heartbeats, polls and results of many agents take as few statements as those of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from innkeeper.domain.compute import Agent, Booted, Status
from innkeeper.domain.errors import NotFound
from innkeeper.domain.hosts import HostReport
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import AgentId, ServerId
from innkeeper.random_ids import RandomIds
from innkeeper.store.queries.compute import agents as agent_rows
from innkeeper.store.queries.compute import hosts as host_rows
from innkeeper.store.queries.compute import orders
from innkeeper.store.queries.compute import servers as server_rows
from innkeeper.store.queries.compute.orders import NewOrder
from innkeeper.store.queries.placement import capacity
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import agents, work
from innkeeper.systems.compute.hosts import reports as host_reports
from innkeeper.systems.compute.hosts.agents import AgentHeartbeat
from innkeeper.systems.compute.hosts.reports import AgentReport, apply_together
from innkeeper.systems.compute.hosts.work import Poll, ResultsReport
from innkeeper.systems.compute.servers.results import Result, ResultSettings
from tests.support.clouds import AGENT, DEFAULTS, NOW, Cloud, cloud_in, reported
from tests.support.statements import Counter

LATER = NOW + timedelta(seconds=30)
SETTINGS = ResultSettings()
ADMIN = RequestContext("req-1", user_id="admin", roles=frozenset({"admin"}))
STRANGER = RequestContext("req-2", user_id="stranger", roles=frozenset({"service"}))
NOBODY = "f0000000-0000-4000-8000-000000000000"
KIND = "start"


def agent_id(number: int) -> AgentId:
    return AgentId(f"b0000000-0000-4000-8000-{number:012}")


AGENTS = [agent_id(number) for number in range(20)]


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of one host, and twenty more agents without hosts."""
    made = cloud_in(tmp_path, reported("h1"))

    def add(tx: Tx) -> None:
        for number, each in enumerate(AGENTS):
            agent_rows.add(tx, Agent(each, f"agent-{number}", "fake", "owner", NOW, NOW))

    made.write(add)
    yield made
    made.close()


def give(cloud: Cloud, *to: AgentId) -> None:
    """Add an order for each agent."""
    new = [NewOrder(each, "h1", ServerId(f"s-{i}"), KIND) for i, each in enumerate(to)]
    cloud.write(lambda tx: orders.add(tx, new, NOW))


def seen(cloud: Cloud) -> set[AgentId]:
    """The agents whose last contact is later than the start."""
    found = cloud.read(agent_rows.last_seen)
    return {each for each, moment in found if moment == LATER}


def test_many_heartbeats_are_two_statements(cloud: Cloud) -> None:
    counter = Counter(cloud)

    def beat(*ids: AgentId) -> None:
        beats = [AgentHeartbeat(ADMIN, each, LATER) for each in ids]
        assert cloud.write(lambda tx: agents.heartbeats(tx, beats)) == [None] * len(ids)

    one = counter.of(lambda: beat(AGENTS[0]))
    assert seen(cloud) == {AGENTS[0]}
    assert counter.of(lambda: beat(*AGENTS)) == one
    assert seen(cloud) == set(AGENTS)


def test_a_heartbeat_that_is_refused_affects_no_other(cloud: Cloud) -> None:
    beats = [
        AgentHeartbeat(ADMIN, NOBODY, LATER),
        AgentHeartbeat(STRANGER, AGENTS[0], LATER),
        AgentHeartbeat(ADMIN, AGENTS[1], LATER),
    ]
    first, second, third = cloud.write(lambda tx: agents.heartbeats(tx, beats))
    assert isinstance(first, NotFound)
    assert isinstance(second, NotFound)
    assert third is None
    assert seen(cloud) == {AGENTS[1]}


def polled(cloud: Cloud, *polls: Poll) -> list[list[int] | str]:
    """The number of the server in each order, or the name of the refusal."""
    answers = cloud.read(lambda tx: work.polled(tx, polls))
    return [
        [int(order.server_uuid[2:]) for order in each]
        if isinstance(each, list)
        else type(each).__name__
        for each in answers
    ]


def test_each_poll_gets_its_own_orders(cloud: Cloud) -> None:
    one, two, three = AGENTS[:3]
    give(cloud, one, two, one, two, one)
    numbers = [each.id for each in cloud.read(lambda tx: work.waiting(tx, one, 0, 9))]
    polls = [
        Poll(ADMIN, one, numbers[0], 9),
        Poll(ADMIN, two, 0, 1),
        Poll(ADMIN, three, 0, 9),
        Poll(STRANGER, one, 0, 9),
        Poll(ADMIN, NOBODY, 0, 9),
        Poll(ADMIN, one, 0, 2),
    ]
    together = polled(cloud, *polls)
    assert together == [[2, 4], [1], [], "NotFound", "NotFound", [0, 2]]
    assert [polled(cloud, each)[0] for each in polls] == together


def test_many_polls_are_three_statements(cloud: Cloud) -> None:
    give(cloud, *AGENTS)
    counter = Counter(cloud)
    polls = [Poll(ADMIN, each, 0, 9) for each in AGENTS]
    few = counter.of(lambda: polled(cloud, *polls[:2]))
    assert counter.of(lambda: polled(cloud, *polls)) == few


def report(agent: AgentId, *numbers: int, context: RequestContext = ADMIN) -> ResultsReport:
    return ResultsReport(context, agent, [Result(each, True) for each in numbers], LATER, SETTINGS)


def test_results_of_many_agents_apply_once(cloud: Cloud) -> None:
    (booted,) = cloud.boot(cloud.request(3))
    assert isinstance(booted, Booted)
    one, two, three = (each.id for each in cloud.read(lambda tx: work.waiting(tx, AGENT.id, 0, 9)))
    reports = [
        report(AGENT.id, one, one),
        report(AGENTS[0], two),
        report(AGENT.id, two, one),
        report(AGENT.id, three, context=STRANGER),
        report(AgentId(NOBODY), three),
    ]
    answers = cloud.write(lambda tx: work.record_together(tx, reports))
    assert answers[:3] == [[(one, True), (one, False)], [(two, False)], [(two, True), (one, False)]]
    assert [type(each) for each in answers[3:]] == [NotFound, NotFound]
    again = cloud.write(lambda tx: work.record_together(tx, reports[:1]))
    assert again == [[(one, False), (one, False)]]
    alive = cloud.read(partial(server_rows.alive, uuids=booted.server_ids))
    assert sorted(each.status for each in alive) == [Status.ACTIVE, Status.ACTIVE, Status.BUILD]


def test_many_reports_are_as_many_statements_as_one(cloud: Cloud) -> None:
    cloud.boot(cloud.request(4))
    numbers = [each.id for each in cloud.read(lambda tx: work.waiting(tx, AGENT.id, 0, 9))]
    counter = Counter(cloud)

    def record(*reports: ResultsReport) -> None:
        cloud.write(lambda tx: work.record_together(tx, reports))

    one = counter.of(lambda: record(report(AGENT.id, numbers[0])))
    rest = [report(AGENT.id, each) for each in numbers[1:]]
    assert counter.of(lambda: record(*rest)) == one


def said(agent: AgentId, *hosts: HostReport, context: RequestContext = ADMIN) -> AgentReport:
    return AgentReport(context, agent, hosts, DEFAULTS, RandomIds(), LATER)


def applied(cloud: Cloud, *reports: AgentReport) -> list[list[str] | str]:
    """The hosts in each answer, or the name of the refusal."""
    answers = cloud.write(lambda tx: apply_together(tx, reports))
    return [
        [host.name for host in each] if isinstance(each, list) else type(each).__name__
        for each in answers
    ]


def reported_at(cloud: Cloud) -> set[str]:
    """The hosts that were reported later than at the start."""
    found = cloud.read(lambda tx: host_rows.by_names(tx, HOSTS.values()))
    return {each.name for each in found.values() if each.reported_at == LATER}


HOSTS = {each: f"x{number}" for number, each in enumerate(AGENTS)}


@pytest.fixture
def hosted(cloud: Cloud) -> Cloud:
    """The cloud, in which each of the twenty agents has a host."""
    for agent, host in HOSTS.items():
        each = AgentReport(ADMIN, agent, [reported(host)], DEFAULTS, RandomIds(), NOW)
        assert applied(cloud, each) == [[host]]
    return cloud


def test_repeated_reports_of_many_agents_are_as_many_statements_as_of_two(hosted: Cloud) -> None:
    counter = Counter(hosted)
    reports = [said(agent, reported(host)) for agent, host in HOSTS.items()]
    two = counter.of(lambda: applied(hosted, *reports[:2]))
    assert reported_at(hosted) == set(list(HOSTS.values())[:2])
    assert counter.of(lambda: applied(hosted, *reports)) == two
    assert reported_at(hosted) == set(HOSTS.values())


def test_each_report_among_others_has_its_own_effect(hosted: Cloud) -> None:
    """New hosts, changed hosts, other agents' hosts and unknown traits are reported at once."""
    one, two, three, four = AGENTS[:4]
    reports = [
        said(one, reported(HOSTS[one], vcpus=77)),
        said(two, reported("new")),
        said(three, reported(HOSTS[one])),
        said(four, reported(HOSTS[four])),
        said(AgentId(NOBODY), reported("other")),
        said(two, reported(HOSTS[two]), context=STRANGER),
        said(two, reported(HOSTS[two]), reported(HOSTS[two])),
        said(four, reported(HOSTS[four], vcpus=99)),
    ]
    answers = applied(hosted, *reports)
    assert answers[:2] == [[HOSTS[one]], ["new"]]
    assert answers[2] == "Conflict"
    assert answers[3:] == [[HOSTS[four]], "NotFound", "NotFound", "Invalid", [HOSTS[four]]]
    found = [totals(hosted, each) for each in (HOSTS[one], "new", HOSTS[four])]
    assert found == [[77, 100, 4096], [4, 100, 4096], [99, 100, 4096]]


def totals(cloud: Cloud, name: str) -> list[int]:
    """The totals of a host's inventories, in ascending order."""
    views = cloud.read(partial(capacity.views, ids=[cloud.host(name).provider_id]))
    return sorted(each.total for view in views.values() for each in view.inventories.values())


def test_a_report_that_is_refused_later_affects_no_other(hosted: Cloud) -> None:
    one, two = AGENTS[:2]
    bad = replace(reported(HOSTS[one]), traits=frozenset({"NO_SUCH_TRAIT"}))
    assert applied(hosted, said(one, bad), said(two, reported(HOSTS[two]))) == [
        "Invalid",
        [HOSTS[two]],
    ]
    assert reported_at(hosted) == {HOSTS[two]}


def test_reports_move_the_orders_of_their_hosts(hosted: Cloud) -> None:
    one, two = AGENTS[:2]
    wrong = [NewOrder(two, HOSTS[one], ServerId("s-0"), KIND)]
    hosted.write(lambda tx: orders.add(tx, wrong, NOW))
    applied(hosted, *(said(each, reported(HOSTS[each])) for each in (one, two)))
    assert polled(hosted, Poll(ADMIN, one, 0, 9), Poll(ADMIN, two, 0, 9)) == [[0], []]


def test_what_takes_longer_shares_a_batch_with_less() -> None:
    done, failed = Result(1, True), Result(2, False)
    assert work.line_count([done, done]) == 2
    assert work.line_count([done, failed]) == 1 + work.FAILURE_LINES > 2
    again, first = reported("h1"), reported("h1", servers=())
    assert host_reports.line_count([again, again]) == 2
    assert host_reports.line_count([again, first]) == 1 + host_reports.FIRST_LINES > 2
