"""Automatic placement: a pcloud accepts plain requests of its owner and of consenting projects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from innkeeper.domain.errors import Conflict, NotFound
from innkeeper.store.tables.placement import changes
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import pclouds
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator

OWNER, GUEST, STRANGER = "lab", "shop", "club"


class Folded:
    """A pcloud with one host, and actions on it."""

    def __init__(self, folder: Path) -> None:
        self.operator = PcloudOperator(Movers(folder, reported("a1"), reported("b1")))
        self.operator.define("large", 1)
        self.operator.switch_service("a1", ServiceChange(is_disabled=True))
        self.operator.pool("large", "a1", by_aggregate=False)
        self.uuid = self.operator.create(OWNER, name="p")
        self.operator.allocate(self.uuid, HostRequest("one", "large", None, True))

    def do(self, work: Callable[..., Any], given: Any) -> None:
        """Perform an action on the pcloud."""
        self.operator.act(
            self.uuid, lambda tx, pcloud, context: work(tx, pcloud, given, context), owner=OWNER
        )

    def taken_in(self) -> set[str]:
        """Projects with automatic placement, according to the host table and the store."""
        self.operator.cloud.reread()
        self.operator.cloud.judge()
        sets = self.operator.cloud.table.dedications
        return {each for each in (OWNER, GUEST, STRANGER) if sets.automatic_of(each)}

    def written(self) -> tuple[int, int]:
        """The number of recorded actions, and of changes."""
        told = self.operator.act(
            self.uuid, lambda tx, pcloud, _: pclouds.actions(tx, pcloud.uuid, limit=1000)
        )
        query = sa.select(sa.func.count()).select_from(changes)
        return len(told), self.operator.cloud.read(lambda tx: tx.execute(query).scalar_one())


@pytest.fixture
def folded(tmp_path: Path) -> Iterator[Folded]:
    made = Folded(tmp_path)
    yield made
    made.operator.movers.close()


def test_the_host_table_has_the_projects_with_automatic_placement(folded: Folded) -> None:
    off, on = ({"is_automatic": is_automatic} for is_automatic in (False, True))
    story: list[tuple[Callable[..., Any], Any, set[str]]] = [
        (pclouds.authorize, GUEST, set()),
        (pclouds.accept, GUEST, set()),
        (pclouds.update, on, {OWNER, GUEST}),
        (pclouds.decline, GUEST, {OWNER}),
        (pclouds.accept, GUEST, {OWNER, GUEST}),
        # An owner without access may not use its pcloud, which still accepts other projects.
        (pclouds.drop, OWNER, {GUEST}),
        (pclouds.update, off, set()),
        (pclouds.update, on, {GUEST}),
        (pclouds.authorize, OWNER, {OWNER, GUEST}),
        (pclouds.drop, GUEST, {OWNER}),
        (pclouds.authorize, GUEST, {OWNER}),
        (pclouds.accept, GUEST, {OWNER, GUEST}),
        # The new owner has no access yet, and no project has accepted requests under this owner.
        (pclouds.transfer, STRANGER, set()),
        (pclouds.authorize, STRANGER, set()),
        (pclouds.update, on, {STRANGER}),
        (pclouds.transfer, OWNER, set()),
        (pclouds.update, on, {OWNER}),
    ]
    for number, (work, given, expected) in enumerate(story):
        folded.do(work, given)
        assert folded.taken_in() == expected, (number, work, given)


@pytest.mark.parametrize(("work", "again"), [("accept", OWNER), ("decline", GUEST)])
def test_repeated_changes_write_nothing(folded: Folded, work: str, again: str) -> None:
    folded.do(pclouds.authorize, GUEST)
    say = partial(folded.do, getattr(pclouds, work))
    before = folded.written()
    say(again)
    assert folded.written() == before
    folded.do(pclouds.accept, GUEST)
    done, changed = folded.written()
    assert (done, changed) == (before[0] + 1, before[1] + 1)
    folded.do(pclouds.accept, GUEST)
    assert folded.written() == (done, changed)


@pytest.mark.parametrize("work", [pclouds.accept, pclouds.decline])
def test_a_project_without_access_cannot_accept_or_decline(
    folded: Folded, work: Callable[..., Any]
) -> None:
    folded.do(pclouds.drop, OWNER)
    for project in (OWNER, STRANGER):
        with pytest.raises(NotFound, match=f"Project {project} may not use"):
            folded.do(work, project)


def test_an_owner_cannot_decline_its_own_pcloud(folded: Folded) -> None:
    with pytest.raises(Conflict, match="so it cannot decline automatic placement"):
        folded.do(pclouds.decline, OWNER)
