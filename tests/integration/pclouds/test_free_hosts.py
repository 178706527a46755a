"""Lists of host flavors count free hosts only for callers that may see the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from innkeeper.domain.slices import Dedicating
from innkeeper.entrypoints.api.pclouds import host_flavors as host_flavor_views
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds import host_flavors
from tests.support.clouds import reported
from tests.support.moves import Movers
from tests.support.pcloud_operator import PcloudOperator
from tests.support.statements import Counter

SPARE = 4


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[PcloudOperator]:
    """A pool of free hosts."""
    names = [f"a{number}" for number in range(SPARE)]
    made = PcloudOperator(Movers(tmp_path, *map(reported, names)))
    made.define("gold", 1)
    for name in names:
        made.switch_service(name, ServiceChange(is_disabled=True))
        made.pool("gold", name, by_aggregate=False)
    yield made
    made.movers.close()


@dataclass(frozen=True)
class Visit:
    """A caller that lists host flavors: the settings, and what it may see."""

    dedicating: Dedicating
    is_administrator: bool

    @property
    def site(self) -> Visit:
        """The service."""
        return self

    @property
    def settings(self) -> Visit:
        return self

    def allows(self, _: str) -> bool:
        """Whether the caller may see all."""
        return self.is_administrator


def test_free_hosts_are_not_counted_for_callers_that_may_not_see_them(
    operator: PcloudOperator,
) -> None:
    context, counter = operator.context(), Counter(operator.cloud)

    def seen(visit: Any, tx: Tx) -> list[dict[str, Any]]:
        found = host_flavors.page(tx, after=None, limit=9)
        return host_flavor_views._shown(tx, visit, found, context)

    def counted_for(*, is_shown: bool, is_administrator: bool) -> int:
        visit = Visit(Dedicating(show_free_hosts=is_shown), is_administrator)
        look = partial(seen, visit)
        (line,) = operator.cloud.read(look)
        assert line.get("free") == ({"nova": SPARE} if is_shown or is_administrator else None)
        return counter.of(lambda: operator.cloud.read(look))

    hidden = counted_for(is_shown=False, is_administrator=False)
    assert counted_for(is_shown=True, is_administrator=False) == hidden + 1
    assert counted_for(is_shown=False, is_administrator=True) == hidden + 1
