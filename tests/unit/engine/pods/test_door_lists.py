"""Lists over pods: which pods they ask, and which rows pass a filter."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest

from innkeeper.domain.door import SERVER, VOLUME, DoorCaller, DoorRequest
from innkeeper.domain.errors import Unavailable
from innkeeper.domain.pods import Pod, PodHome
from innkeeper.engine.lateness import Lateness
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.list_filters import ListFilters
from innkeeper.engine.pods.list_questions import PodListQuestion
from innkeeper.engine.pods.lists import DoorPage, Lists
from tests.support.pod_rows import pod_of

CALLER = DoorCaller("acme", "user", is_admin=False)
REQUEST = DoorRequest(SERVER, "GET", "/servers", None, {}, "http://door", CALLER)


@dataclass(slots=True)
class Judge(Lateness):
    """Says alternately that a pod is late, or is not. ``asked`` are the pods that it judged."""

    verdicts: list[bool] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def is_late(self, uuid: str, last_seen_at: datetime | None) -> bool:
        self.asked.append(uuid)
        return self.verdicts.pop(0)


class Homes:
    """Replaces an engine whose database has a project's resources in these pods.

    The marker is in the first pod.
    """

    def __init__(self, *found: Pod) -> None:
        self._found = found

    async def read(self, _: Any) -> Any:
        return list(self._found), PodHome(self._found[0].id, "acme", "user", None, None)


def listed(judge: Judge, *found: Pod, marker: str | None = None) -> DoorPage:
    """List the servers in these pods. The judge must say that all of them are late."""
    nobody: Any = None
    homes: Any = Homes(*found)
    clouds = PodClouds(homes, nobody, nobody, nobody, nobody, nobody, nobody, judge)
    question = PodListQuestion(REQUEST, [], [("created_at", True)], 10, marker, "acme")
    return asyncio.run(Lists(clouds, nobody, nobody).page(question))


@pytest.mark.parametrize("count", [1, 2])
def test_a_list_judges_each_pod_once(count: int) -> None:
    found = [pod_of(number) for number in range(count)]
    judge = Judge(1.0, verdicts=[*[True] * count, *[False] * count])
    page = listed(judge, *found)
    assert (page.rows, page.missing) == ([], [each.pod_name for each in found])
    assert judge.asked == [each.uuid for each in found]


def test_a_list_does_not_wait_for_the_late_pod_of_its_marker() -> None:
    found = [pod_of(number) for number in range(2)]
    with pytest.raises(Unavailable):
        listed(Judge(1.0, verdicts=[True, True]), *found, marker="m")


class Types:
    """Replaces an engine whose database has a volume type."""

    async def read(self, _: Any) -> Any:
        return {"type-1": "std"}


@pytest.mark.parametrize(
    ("shown", "recorded", "expected"),
    [
        ("std", None, True),
        ("other", None, False),
        (None, None, False),
        ({"name": "std"}, None, False),
        ("its-former-name", "type-1", True),
        ("std", "type-2", False),
    ],
)
def test_a_filter_by_type_accepts_only_the_recorded_type_or_else_its_name(
    shown: Any, recorded: str | None, expected: bool
) -> None:
    nobody: Any = None
    types: Any = Types()
    clouds = PodClouds(types, nobody, nobody, nobody, nobody, nobody, nobody, nobody)
    request = replace(REQUEST, kind=VOLUME)
    found = ListFilters(clouds, nobody).of_pod(pod_of(1), nobody, request, [("volume_type", "std")])
    home = PodHome(1, "acme", "user", None, None, recorded)
    assert asyncio.run(found).accept(lambda _: shown, home) is expected
