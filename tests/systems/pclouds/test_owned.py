"""What an owner has besides the use of its pcloud: it sees it, deletes it and transfers it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.pclouds import SizePolicy
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import hosts, pclouds, requests, sizes
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import LIST_MAX, PcloudOperator

OWNER, GUEST, STRANGER = "lab", "shop", "club"


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[PcloudOperator]:
    """A pool with one host."""
    made = PcloudOperator(Movers(tmp_path, reported("a1")))
    made.define("large", 1)
    made.switch_service("a1", ServiceChange(is_disabled=True))
    made.pool("large", "a1", by_aggregate=False)
    yield made
    made.movers.close()


def listed(operator: PcloudOperator, viewer: str | None) -> list[str]:
    """The pclouds in a project's list; ``None`` sees all."""
    found = operator.cloud.read(
        lambda tx: pclouds.page(tx, viewer=viewer, after=None, limit=LIST_MAX)
    )
    return [each.uuid for each in found]


def test_an_owner_without_access_still_sees_its_pcloud(operator: PcloudOperator) -> None:
    mine, theirs = operator.create(OWNER, name="mine"), operator.create(STRANGER, name="other")
    operator.act(mine, lambda tx, pcloud, context: pclouds.authorize(tx, pcloud, GUEST, context))
    operator.act(mine, lambda tx, pcloud, context: pclouds.drop(tx, pcloud, OWNER, context))
    seen = {each: listed(operator, each) for each in (OWNER, GUEST, STRANGER, None)}
    assert seen == {OWNER: [mine], GUEST: [mine], STRANGER: [theirs], None: [mine, theirs]}


def test_deleting_a_pcloud_deletes_kept_responses(operator: PcloudOperator) -> None:
    uuid, other = (operator.create(OWNER, name=each) for each in ("p", "q"))
    now = operator.movers.now
    operator.allocate(uuid, HostRequest("one", "large"))
    for each in (uuid, other):
        operator.act(
            each, lambda tx, pcloud, _: requests.begin(tx, pcloud, "token", "asked", "said", now)
        )
    operator.act_on(uuid, "one", hosts.release)
    operator.delete(uuid, by_aggregate=False)
    assert listed(operator, OWNER) == [other]
    told = operator.act(
        other, lambda tx, pcloud, _: requests.answered(tx, pcloud, "token", "asked")
    )
    assert told == "said"


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({}, None),
        ({"is_automatic": True}, "is_automatic"),
        ({"size": SizePolicy(2, 3, "large")}, "size"),
        ({"is_automatic": True, "size": SizePolicy(2, 3, "large")}, "is_automatic, size"),
    ],
)
def test_choices_of_the_former_owner_end(
    operator: PcloudOperator, facts: dict[str, Any], told: str | None
) -> None:
    uuid = operator.create(OWNER, name="mine")
    operator.update(uuid, cpu_ratio=2.0, **facts)
    after = operator.act(
        uuid, lambda tx, pcloud, context: pclouds.transfer(tx, pcloud, GUEST, context)
    )
    assert (after.is_automatic, after.size, after.cpu_ratio) == (False, None, 2.0)
    assert operator.cloud.read(sizes.due) == []
    done = operator.cloud.read(lambda tx: pclouds.actions(tx, uuid, limit=9, owner_id=GUEST))
    ended = [] if told is None else [("update", told)]
    transferred = ("transfer", f"to project {GUEST}")
    assert [(each.action, each.detail) for each in done] == [*ended, transferred]
