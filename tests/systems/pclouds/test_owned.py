"""What an owner has of a pcloud besides using it: sees it, and can be rid of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import hosts, pclouds, requests
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operations import LIST_MAX, Landlord

OWNER, GUEST, STRANGER = "lab", "shop", "club"


@pytest.fixture
def landlord(tmp_path: Path) -> Iterator[Landlord]:
    """A pool with one host."""
    made = Landlord(Movers(tmp_path, reported("a1")))
    made.define("large", 1)
    made.switch_service("a1", ServiceChange(is_disabled=True))
    made.pool("large", "a1", by_aggregate=False)
    yield made
    made.movers.close()


def listed(landlord: Landlord, viewer: str | None) -> list[str]:
    """The pclouds that a project sees in its list; ``None`` sees all."""
    found = landlord.cloud.read(
        lambda tx: pclouds.page(tx, viewer=viewer, after=None, limit=LIST_MAX)
    )
    return [each.uuid for each in found]


def test_an_owner_that_let_itself_out_still_sees_its_pcloud(landlord: Landlord) -> None:
    mine, theirs = landlord.create(OWNER, name="mine"), landlord.create(STRANGER, name="other")
    landlord.act(mine, lambda tx, pcloud, terms: pclouds.authorize(tx, pcloud, GUEST, terms))
    landlord.act(mine, lambda tx, pcloud, terms: pclouds.drop(tx, pcloud, OWNER, terms))
    seen = {each: listed(landlord, each) for each in (OWNER, GUEST, STRANGER, None)}
    assert seen == {OWNER: [mine], GUEST: [mine], STRANGER: [theirs], None: [mine, theirs]}


def test_a_pcloud_is_forgotten_with_what_its_clients_were_answered(landlord: Landlord) -> None:
    uuid, other = (landlord.create(OWNER, name=each) for each in ("p", "q"))
    now = landlord.movers.now
    landlord.allocate(uuid, HostRequest("one", "large"))
    for each in (uuid, other):
        landlord.act(
            each,
            lambda tx, pcloud, _: requests.begin(tx, pcloud, "token", "asked", "said", now),
        )
    landlord.act_on(uuid, "one", hosts.release)
    landlord.delete(uuid, by_aggregate=False)
    assert listed(landlord, OWNER) == [other]
    told = landlord.act(
        other, lambda tx, pcloud, _: requests.answered(tx, pcloud, "token", "asked")
    )
    assert told == "said"
