"""Plain requests that lose a race check again which pclouds accept them."""

from __future__ import annotations

from pathlib import Path

import pytest

from innkeeper.systems.compute.hosts.hosts import ServiceChange
from innkeeper.systems.pclouds.hosts import HostRequest
from tests.support.clouds import faults, reported
from tests.support.moves import Movers
from tests.support.outdated_snapshot import boot_outdated
from tests.support.pcloud_operator import PcloudOperator

OWNER = "project"


@pytest.mark.parametrize("is_still_automatic", [True, False])
def test_a_late_claim_rechecks_automatic_placement(
    tmp_path: Path, is_still_automatic: bool
) -> None:
    operator = PcloudOperator(Movers(tmp_path, reported("a1")))
    operator.define("large", 1)
    operator.switch_service("a1", ServiceChange(is_disabled=True))
    operator.pool("large", "a1", by_aggregate=False)
    uuid = operator.create(OWNER, name="p", is_automatic=True)
    operator.allocate(uuid, HostRequest("one", "large", None, True))
    far = operator.cloud.beside()
    # The other process's claim is based on stale facts, and comes too late.
    named = operator.movers.boot(None, project_id=OWNER, hints={"pcloud": uuid})
    operator.update(uuid, is_automatic=is_still_automatic)
    request = far.request(project_id=OWNER)
    (fault,) = faults(boot_outdated(far, request))
    assert (fault is None) == is_still_automatic
    server = operator.movers.server(request.server_ids[0])
    assert server.host == (operator.movers.server(named).host if is_still_automatic else None)
    far.judge()
    far.close()
    operator.movers.close()
