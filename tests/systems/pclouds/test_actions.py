"""How long actions on pclouds are kept, and which owners they show."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from innkeeper.domain.moves import Initiator
from innkeeper.domain.pclouds import Pcloud, PcloudAction
from innkeeper.domain.slices import Dedicating
from innkeeper.store.pruning import ROWS_MAX
from innkeeper.store.queries.pclouds import actions as pcloud_actions
from innkeeper.store.tables.pclouds import pcloud_actions as pcloud_actions_table
from innkeeper.store.transactions import Tx
from innkeeper.systems.pclouds import members, pclouds
from innkeeper.systems.pclouds.context import PcloudContext
from tests.support.clouds import NOW, Cloud, cloud_in

KEPT = timedelta(days=90)
CONTEXT = PcloudContext(Dedicating(), 60.0, Initiator("req-1", "project", "user"), NOW)
UUID = "b0000000-0000-4000-8000-000000000001"
LATER = replace(CONTEXT, now=NOW + KEPT)


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    """A new pcloud."""
    made = cloud_in(tmp_path)
    made.write(lambda tx: pclouds.create(tx, UUID, "project", {"name": "p"}, CONTEXT))
    return made


def done(cloud: Cloud) -> list[PcloudAction]:
    """The readable actions, the oldest first."""
    found: list[PcloudAction] = cloud.read(lambda tx: pclouds.actions(tx, UUID, limit=10_000))
    return found[::-1]


def tell(cloud: Cloud, action: str, context: PcloudContext, count: int = 1) -> None:
    def write(tx: Tx) -> None:
        mine: Pcloud = pclouds.get(tx, UUID)
        for _ in range(count):
            members.record(tx, mine, action, context)

    cloud.write(write)


def prune(cloud: Cloud, context: PcloudContext) -> int:
    return int(cloud.write(lambda tx: pclouds.forget_old_actions(tx, context)))


def test_only_expired_actions_are_deleted(cloud: Cloud) -> None:
    tell(cloud, "later", replace(CONTEXT, now=NOW + timedelta(seconds=2)))
    assert prune(cloud, LATER) == 0
    assert prune(cloud, replace(LATER, now=LATER.now + timedelta(seconds=1))) == 1
    assert [each.action for each in done(cloud)] == ["later"]
    assert prune(cloud, replace(LATER, now=LATER.now + timedelta(seconds=3))) == 1
    assert prune(cloud, replace(LATER, now=LATER.now + timedelta(seconds=3))) == 0


def test_many_expired_actions_are_deleted_in_steps(cloud: Cloud) -> None:
    tell(cloud, "enable", CONTEXT, ROWS_MAX + 4)
    tell(cloud, "disable", LATER)
    much_later = replace(LATER, now=LATER.now + timedelta(seconds=1))
    assert [prune(cloud, much_later) for _ in range(3)] == [ROWS_MAX, 5, 0]
    assert [each.action for each in done(cloud)] == ["disable"]


def test_an_action_dated_in_the_future_does_not_keep_others(cloud: Cloud) -> None:
    cloud.write(lambda tx: pcloud_actions.prune(tx, NOW + timedelta(days=1)))
    tell(cloud, "ahead", replace(CONTEXT, now=NOW + 2 * KEPT))
    tell(cloud, "right", CONTEXT, 3)
    assert prune(cloud, replace(LATER, now=LATER.now + timedelta(seconds=1))) == 3
    assert [each.action for each in done(cloud)] == ["ahead"]


def test_without_a_retention_period_all_actions_are_kept(cloud: Cloud) -> None:
    for_good = replace(CONTEXT, settings=Dedicating(pcloud_actions_kept_days=0))
    assert prune(cloud, replace(for_good, now=NOW + 100 * KEPT)) == 0
    assert len(done(cloud)) == 1


def test_each_action_has_the_owner_of_its_time(cloud: Cloud) -> None:
    tell(cloud, "enable", CONTEXT)
    cloud.write(lambda tx: pclouds.transfer(tx, pclouds.get(tx, UUID), "other", CONTEXT))
    cloud.write(lambda tx: pclouds.delete(tx, pclouds.get(tx, UUID), CONTEXT))
    assert [(each.action, each.owner_id) for each in done(cloud)] == [
        ("create", "project"),
        ("enable", "project"),
        ("transfer", "other"),
        ("delete", "other"),
    ]
    latter = cloud.read(lambda tx: pclouds.actions(tx, UUID, limit=9, owner_id="other"))
    assert [each.action for each in latter] == ["delete", "transfer"]
    last = cloud.read(lambda tx: pclouds.last_action(tx, UUID.upper()))
    assert (last.action, last.owner_id) == ("delete", "other")
    assert cloud.read(lambda tx: pclouds.last_action(tx, "no id")) is None


def test_actions_without_an_owner_are_shown_to_the_present_owner(cloud: Cloud) -> None:
    cloud.write(lambda tx: tx.execute(pcloud_actions_table.update().values(owner_id=None)))
    tell(cloud, "enable", CONTEXT, 3)
    cloud.write(lambda tx: pclouds.transfer(tx, pclouds.get(tx, UUID), "other", CONTEXT))

    def page(before: int | None) -> list[PcloudAction]:
        return list(
            cloud.read(
                lambda tx: pclouds.actions(tx, UUID, before=before, limit=1, owner_id="other")
            )
        )

    (first,) = page(None)
    (second,) = page(first.id)
    assert [first.action, second.action] == ["transfer", "create"]
    assert page(second.id) == []
