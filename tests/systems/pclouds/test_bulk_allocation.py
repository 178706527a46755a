"""Bulk allocations: what one transaction does, and how a request continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.errors import Conflict, NotFound, QuotaExceeded, Refusal
from innkeeper.domain.moves import Initiator
from innkeeper.domain.pclouds import Pcloud, PcloudHost
from innkeeper.domain.slices import Dedicating
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.queries.pclouds import pclouds as pcloud_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts import hosts as compute_hosts
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import (
    audit,
    bulk_allocation,
    host_flavors,
    hosts,
    pclouds,
    replaced,
    requests,
)
from innkeeper.systems.pclouds.bulk_allocation import (
    BEGINNING,
    TAKEN_AT_ONCE,
    AllocationProgress,
    Request,
)
from innkeeper.systems.pclouds.context import PcloudContext
from innkeeper.systems.pclouds.hosts import HostRequest
from innkeeper.systems.pclouds.replaced import LOOKED_AT_ONCE
from tests.support.clouds import NOW, Cloud, cloud_in, reported
from tests.support.statements import Counter

CONTEXT = PcloudContext(
    Dedicating(quota_pcloud_units=-1), 60.0, Initiator("req-1", "project", "user"), NOW
)
UUID = "b0000000-0000-4000-8000-000000000001"
FREE = 25
DRAWS = 12
TOKEN = "try-1"
MANY_MORE = 5
NONE_ON_MARS = "There is no free host of host flavor large in availability zone mars."
NAMES = tuple(f"host-{number:02}" for number in range(FREE))


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    """A pcloud, and many free hosts."""
    machine_names = [f"m{number:02}" for number in range(FREE)]
    made = cloud_in(tmp_path, *(reported(name) for name in machine_names))

    def furnish(tx: Tx) -> None:
        flavor = host_flavors.create(tx, made.ids.uuid(), "large", "", 1, NOW)
        pclouds.create(tx, UUID, "project", {"name": "p"}, CONTEXT)
        for name in machine_names:
            closed = ServiceChange(is_disabled=True)
            compute_hosts.change_service(tx, compute_hosts.by_name(tx, name), closed, NOW)
            host_flavors.add_host(tx, flavor, name, NOW)

    made.write(furnish)
    return made


def tell_hosts(_: Tx, made: Sequence[PcloudHost]) -> list[Any]:
    return [each.name for each in made]


def tell_failure(host_request: HostRequest, refusal: Refusal) -> list[str]:
    return [host_request.name, refusal.code]


def wanting(
    names: Sequence[str] = NAMES, token: str | None = TOKEN, flavor: str = "large"
) -> Request:
    host_requests = [HostRequest(name, flavor) for name in names]
    return Request(host_requests, token, f"{names} {flavor}", tell_hosts, tell_failure)


class Client:
    """A client that requests hosts, and the progress reported to it."""

    def __init__(self, cloud: Cloud, request: Request, context: PcloudContext = CONTEXT) -> None:
        self.cloud = cloud
        self.request = request
        self.context = context
        self.so_far = BEGINNING

    def step(self) -> AllocationProgress:
        """Run one transaction."""
        before = self.so_far

        def go_on(tx: Tx) -> AllocationProgress:
            mine = pclouds.get(tx, UUID)
            return bulk_allocation.go_on(tx, mine, self.request, before, self.context)

        self.so_far = self.cloud.write(go_on)
        return self.so_far

    def answer(self) -> dict[str, Any]:
        """The response so far."""
        return self.so_far.as_answer(self.request)

    def finish(self) -> int:
        """Run all steps; return their number."""
        steps = 0
        while self.so_far.remaining(self.request):
            self.step()
            steps += 1
        return steps


def taken(cloud: Cloud) -> tuple[str, ...]:
    """The names of the pcloud's hosts, after an audit."""
    assert not cloud.read(lambda tx: list(audit.findings(tx)))
    return tuple(each.name for each in cloud.read(lambda tx: hosts.page(tx, pclouds.get(tx, UUID))))


def kept(cloud: Cloud, token: str = TOKEN) -> Any:
    """The response kept for a token."""

    def look(tx: Tx) -> Any:
        return pcloud_rows.answered(tx, pclouds.get(tx, UUID).id, token)

    return cloud.read(look)


def test_one_transaction_allocates_a_bounded_number(cloud: Cloud) -> None:
    client = Client(cloud, wanting(token=None))
    assert tuple(client.step().allocated) == NAMES[:TAKEN_AT_ONCE]
    assert taken(cloud) == NAMES[:TAKEN_AT_ONCE]
    assert client.finish() == 2
    assert taken(cloud) == tuple(client.so_far.allocated) == NAMES
    assert client.answer() == {"hosts": list(NAMES), "failures": []}


def test_a_repeated_request_continues_after_the_first_step(cloud: Cloud) -> None:
    Client(cloud, wanting()).step()
    names = list(NAMES[:TAKEN_AT_ONCE])
    # The key ``failures`` is for processes of an older release, which expect it.
    assert kept(cloud)[1] == {"names": names, "hosts": names, "failures": []}
    later = Client(cloud.beside(), wanting())
    assert tuple(later.step().allocated) == NAMES[: 2 * TAKEN_AT_ONCE]
    later.finish()
    later.cloud.close()
    assert tuple(later.so_far.allocated) == NAMES
    assert not later.so_far.failed
    assert taken(cloud) == NAMES
    third = Client(cloud, wanting())
    assert third.finish() == 1
    assert third.answer() == later.answer()


def test_two_clients_with_one_token_take_turns(cloud: Cloud) -> None:
    first, second = Client(cloud, wanting()), Client(cloud.beside(), wanting())
    first.step()
    second.step()
    first.step()
    assert tuple(first.so_far.allocated) == NAMES
    second.step()
    second.cloud.close()
    assert second.answer() == first.answer()
    assert not first.so_far.failed
    assert taken(cloud) == NAMES


def test_failures_are_retried(cloud: Cloud) -> None:
    more = ("early", *NAMES, "late")
    client = Client(cloud, wanting(more))
    client.finish()
    failures = [[name, "no_free_host"] for name in more[-2:]]
    assert client.answer() == {"hosts": list(more[:-2]), "failures": failures}

    def give_back(tx: Tx) -> None:
        mine: Pcloud = pclouds.get(tx, UUID)
        hosts.release(tx, mine, hosts.get(tx, mine, "early"), CONTEXT)

    cloud.write(give_back)
    again = Client(cloud, wanting(more))
    assert again.finish() == 1
    assert again.answer() == {"hosts": list(more[:-1]), "failures": failures[1:]}
    assert taken(cloud) == tuple(sorted(more[1:-1]))


def test_progress_kept_by_an_older_release_is_continued(cloud: Cloud) -> None:
    told = {"name": NAMES[0]}
    request = wanting(NAMES[:2])

    def keep(tx: Tx) -> None:
        mine = pclouds.get(tx, UUID)
        answer = {"hosts": [told], "failures": [{"name": NAMES[1]}]}
        requests.begin(tx, mine, TOKEN, request.digest, answer, NOW)

    cloud.write(keep)
    client = Client(cloud, request)
    client.finish()
    assert client.answer() == {"hosts": [told, NAMES[1]], "failures": []}


def test_a_flavor_without_free_hosts_is_not_searched_again(cloud: Cloud) -> None:
    """Further requests for this flavor and zone fail with the same message; other zones succeed."""
    more = tuple(f"late-{number}" for number in range(MANY_MORE))
    host_requests = [HostRequest(name, "large", "mars") for name in more]
    counter = Counter(cloud)

    def taken_of(wanted: Sequence[HostRequest]) -> list[str]:
        def act(tx: Tx) -> list[str]:
            made, failures = hosts.allocate_many(tx, pclouds.get(tx, UUID), wanted, CONTEXT)
            assert [host_request for host_request, _ in failures] == [
                e for e in wanted if e in host_requests
            ]
            assert {str(refusal) for _, refusal in failures} <= {NONE_ON_MARS}
            return [each.name for each in made]

        named: list[str] = cloud.write(act)
        return named

    one, many = (counter.of(partial(taken_of, host_requests[:count])) for count in (1, MANY_MORE))
    assert one == many
    assert taken_of([host_requests[0], HostRequest("first", "large"), *host_requests[1:]]) == [
        "first"
    ]


def test_a_request_without_allocations_is_not_kept(cloud: Cloud) -> None:
    client = Client(cloud, wanting(flavor="small"))
    assert client.finish() == 3
    assert not client.so_far.allocated
    assert isinstance(client.so_far.refusal, NotFound)
    assert kept(cloud) is None
    cloud.write(lambda tx: host_flavors.create(tx, cloud.ids.uuid(), "small", "", 1, NOW))
    again = Client(cloud, wanting(flavor="small"))
    again.finish()
    assert again.so_far.refusal is not None
    assert again.so_far.refusal.code == hosts.NO_FREE_HOST


def test_the_first_refusal_is_reported(cloud: Cloud) -> None:
    none_left = replace(CONTEXT, settings=Dedicating(quota_pcloud_units=0))
    client = Client(cloud, wanting(token=None), none_left)
    client.step()
    client.context = replace(CONTEXT, now=NOW + timedelta(hours=1))
    client.finish()
    assert not client.so_far.allocated
    assert isinstance(client.so_far.refusal, QuotaExceeded)


def test_a_client_without_allocations_continues_where_another_is(cloud: Cloud) -> None:
    """The first client's failures were not kept, and by now the hosts can be allocated."""
    none_left = replace(CONTEXT, settings=Dedicating(quota_pcloud_units=0))
    first, second = Client(cloud, wanting(), none_left), Client(cloud, wanting())
    first.step()
    assert len(first.so_far.failed) == TAKEN_AT_ONCE
    second.step()
    first.context = CONTEXT
    first.step()
    assert tuple(first.so_far.allocated) == NAMES[: 2 * TAKEN_AT_ONCE]
    assert not first.so_far.failed
    second.finish()
    first.finish()
    assert first.answer() == second.answer()
    assert taken(cloud) == NAMES


def test_another_request_with_the_token_is_refused_between_steps(cloud: Cloud) -> None:
    Client(cloud, wanting()).step()
    with pytest.raises(Conflict, match="try-1 was already used for another request"):
        Client(cloud, wanting(("other",))).step()
    assert taken(cloud) == NAMES[:TAKEN_AT_ONCE]


def test_hosts_released_between_steps_are_not_allocated_again(cloud: Cloud) -> None:
    Client(cloud, wanting()).step()

    def give_back(tx: Tx) -> None:
        mine: Pcloud = pclouds.get(tx, UUID)
        hosts.release(tx, mine, hosts.get(tx, mine, NAMES[0]), CONTEXT)

    cloud.write(give_back)
    later = Client(cloud, wanting())
    later.finish()
    assert tuple(later.so_far.allocated) == NAMES
    assert taken(cloud) == NAMES[1:]


def test_the_draw_covers_all_free_hosts(cloud: Cloud) -> None:
    def draw(tx: Tx, seed: int, turn: int) -> str:
        """The machine that this seed allocates; it is released at once."""
        mine, context = pclouds.get(tx, UUID), replace(CONTEXT, seed=seed)
        had = hosts.allocate(tx, mine, HostRequest("drawn", "few"), context, turn)
        hosts.release(tx, mine, had, context)
        return had.hostname

    def look(tx: Tx) -> None:
        few = host_flavors.create(tx, cloud.ids.uuid(), "few", "", 1, NOW)
        for name in ("m03", "m04", "m05"):
            host_flavors.remove_host(tx, host_flavors.get(tx, "large"), name, NOW)
            host_flavors.add_host(tx, few, name, NOW)
        by_seed = {draw(tx, seed, 0) for seed in range(DRAWS)}
        by_turn = {draw(tx, 0, turn) for turn in range(DRAWS)}
        assert by_seed == by_turn == {"m03", "m04", "m05"}

    cloud.write(look)


def test_one_transaction_releases_a_bounded_number_of_replaced_hosts(cloud: Cloud) -> None:
    Client(cloud, wanting(token=None)).finish()

    def retire(tx: Tx) -> None:
        """Mark all hosts as replaced and without servers."""
        found = [each.host_id for each in hosts.page(tx, pclouds.get(tx, UUID))]
        pcloud_hosts.end_billing(tx, found, NOW)
        for host_id in found:
            pcloud_hosts.change(tx, host_id, is_replaced=True, units=0)

    cloud.write(retire)
    given = [cloud.write(lambda tx: replaced.look_after(tx, CONTEXT)) for _ in range(3)]
    assert given == [LOOKED_AT_ONCE, FREE - LOOKED_AT_ONCE, 0]
    assert taken(cloud) == ()
