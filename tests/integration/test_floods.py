"""A project that floods one process hardly delays the requests of others at another process."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.support.leading import forwards, led, made
from tests.support.service_processes import VERSIONS, Started
from tests.support.trust import NOBODY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
CLIENTS, SERVERS_EACH = 16, 500
"""Together, the clients' waiting requests have eight times as many rows as a commit writes."""
BOOTS_OF_OTHERS = 8
SHARE_MAX = 0.5
"""The other project's boots take less than this share of the time of the flood's boots."""
PATIENCE_S = 120.0
BOOTS = "/compute/v2.1/servers"


@dataclass(slots=True)
class Project:
    """Boots servers in one project, and notes how long each answer takes."""

    http: httpx.AsyncClient
    name: str
    count: int
    took_s: list[float] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    is_over: bool = False

    async def boot(self) -> None:
        """Boot servers once."""
        server = {"name": self.name, "flavorRef": "small", "networks": "none"}
        body = {"server": {**server, "min_count": self.count}}
        headers = {**VERSIONS, "x-auth-token": f"ann:{self.name}", "x-roles": "member"}
        begun_s = time.perf_counter()
        answer = await self.http.post(BOOTS, json=body, headers=headers)
        self.took_s.append(time.perf_counter() - begun_s)
        self.statuses.add(answer.status_code)

    async def keep_booting(self) -> None:
        """Boot until the flood is over."""
        while not self.is_over:
            await self.boot()


@asynccontextmanager
async def project(at: Started, name: str, count: int) -> AsyncIterator[Project]:
    """A project whose requests go to one process."""
    limits = httpx.Limits(max_connections=CLIENTS)
    url = at.http.base_url
    client = httpx.AsyncClient(
        base_url=url, timeout=PATIENCE_S, limits=limits, trust_env=False, verify=NOBODY
    )
    async with client:
        yield Project(client, name, count)


async def flood(flooded: Started, other: Started) -> tuple[Sequence[float], Project, Project]:
    """Boot first alone, and then during the flood; returns the times in this order."""
    async with project(flooded, "flood", SERVERS_EACH) as many, project(other, "few", 1) as few:
        for _ in range(BOOTS_OF_OTHERS):
            await few.boot()
        alone, few.took_s = few.took_s, []
        tasks = [asyncio.create_task(many.keep_booting()) for _ in range(CLIENTS)]
        while len(many.took_s) < CLIENTS:
            # The first answers arrive before all clients have sent a request.
            await asyncio.sleep(0.01)
        many.took_s.clear()
        while len(few.took_s) < BOOTS_OF_OTHERS or len(many.took_s) < CLIENTS:
            await few.boot()
        many.is_over = True
        await asyncio.gather(*tasks)
        return alone, many, few


def test_a_flood_at_one_process_does_not_starve_another(tmp_path: Path) -> None:
    with led(tmp_path, "sqlite", count=3) as cloud:
        assert made(cloud.leader, "small") == httpx.codes.OK
        before = [forwards(each)["answered"] for each in cloud.followers]
        alone, many, few = asyncio.run(flood(*cloud.followers))
        after = [forwards(each)["answered"] for each in cloud.followers]
        listed = cloud.leader.call("GET", f"{BOOTS}?limit=1", "ann:few")
    told = {"alone": alone, "beside the flood": few.took_s, "in the flood": many.took_s}
    for what, took_s in told.items():
        middle_s = statistics.median(took_s)
        sys.stdout.write(f"{what}: median {middle_s:.3f} s, longest {max(took_s):.3f} s\n")
    assert many.statuses == few.statuses == {httpx.codes.ACCEPTED}
    assert listed.status_code == httpx.codes.OK
    assert all(late > early for early, late in zip(before, after, strict=True)), "not forwarded"
    share = statistics.median(few.took_s) / statistics.median(many.took_s)
    assert share < SHARE_MAX
