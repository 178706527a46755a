"""Nova's unmodified services: nova-compute's resource tracker, nova-scheduler, nova-manage.

Only the layer below them is a fake, and it is Nova's own: a driver that runs no machines.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from nova import objects
from nova.compute.resource_tracker import ResourceTracker
from nova.conf import CONF
from nova.scheduler.manager import SchedulerManager
from nova.virt import fake
from oslo_messaging import ExpectedException
from oslo_utils import timeutils

from tests.compat.nova_cloud import PROJECT, USER, Nova, refusal, uuid
from tests.compat.nova_requests import amounts, flavor, spec

MACHINES = ("machine-1", "machine-2")
COMMAND_WITHIN_S = 120.0
ORPHANS_FOUND, ORPHANS_DELETED = 3, 4


def _reports(nova: Nova, host: str) -> Any:
    """The part of nova-compute that reports a host; returns the host's row in Nova."""
    CONF.set_override("host", host)
    seen = {"report_count": 1, "last_seen_up": timeutils.utcnow()}
    named = {"host": host, "binary": "nova-compute", "topic": "compute"}
    service = objects.Service(nova.context, **named, **seen)
    service.create()
    driver = fake.MediumFakeDriver(fake.FakeVirtAPI())
    driver.init_host(host)
    tracker = ResourceTracker(host, driver, reportclient=nova.client())
    tracker.set_service_ref(service)
    tracker.update_available_resource(nova.context, host, startup=True)
    # Another client writes to the provider; the next report copes with that.
    row = tracker.compute_nodes[host]
    nova.client().aggregate_add_host(nova.context, uuid("machines"), host_name=host)
    driver.vcpus = 12
    tracker.update_available_resource(nova.context, host)
    return row


def _manage(nova: Nova, *words: str) -> tuple[int, str]:
    """Run ``nova-manage``, and return its exit status and its output."""
    command = Path(sys.executable).with_name("nova-manage")
    ran = subprocess.run(
        [str(command), "--config-file", str(nova.settings), *words],
        capture_output=True,
        text=True,
        timeout=COMMAND_WITHIN_S,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


def _placed(nova: Nova, scheduler: Any, server: str, wanted: Any) -> Any:
    """Let nova-scheduler select a host for a server and claim it."""
    selections = scheduler.select_destinations(
        nova.context,
        spec_obj=spec(wanted, server),
        instance_uuids=[uuid(server)],
        return_objects=True,
        return_alternates=True,
    )
    return selections[0]


def hosts_and_servers(nova: Nova) -> None:
    """Hosts report, servers are placed and claimed, and Nova's own audit finds nothing."""
    rows = {host: _reports(nova, host) for host in MACHINES}
    for host, row in rows.items():
        client = nova.client()
        found = client.get_provider_tree_and_ensure_root(nova.context, row.uuid, name=host)
        inventory = nova.note(f"{host} reports", found.data(host).inventory)
        assert inventory["VCPU"]["total"] == 12
        assert found.in_aggregates(host, [uuid("machines")])
        assert found.has_traits(host, ["COMPUTE_NODE"])
    assert _manage(nova, "cell_v2", "simple_cell_setup")[0] == 0

    scheduler = SchedulerManager()
    first, *others = _placed(nova, scheduler, "placed", flavor("small"))
    assert {first.service_host, *(one.service_host for one in others)} == set(MACHINES)
    row = rows[first.service_host]
    held = nova.client().get_allocs_for_consumer(nova.context, uuid("placed"))
    assert amounts(held["allocations"]) == {row.uuid: {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 20}}
    large = flavor("large", {"resources:VCPU": "13"})
    refusal(ExpectedException, partial(_placed, nova, scheduler, "too large", large))

    where = {"host": row.host, "node": row.hypervisor_hostname, "compute_id": row.id}
    owner = {"project_id": PROJECT, "user_id": USER}
    server = objects.Instance(nova.context, uuid=uuid("placed"), **owner, **where)
    server.create()
    status, reported = _manage(nova, "placement", "audit", "--verbose")
    assert status == 0, reported
    # Nova has forgotten a server, but the server's claim remains.
    server.destroy()
    status, reported = _manage(nova, "placement", "audit", "--verbose")
    assert status == ORPHANS_FOUND, reported
    assert uuid("placed") in reported
    status, reported = _manage(nova, "placement", "audit", "--delete")
    assert status == ORPHANS_DELETED, reported
    left = nova.client().get_allocs_for_consumer(nova.context, uuid("placed"))
    assert left["allocations"] == {}


SCENES = (hosts_and_servers,)
