"""The program that serves OpenStack's Compute API: all of Nova in one process.

Nova's four services run in threads, and send each other messages through the queue in memory
that oslo.messaging has for tests. The host is one of Nova's fake driver.
"""

from __future__ import annotations

import sys

# Its import chooses native threads; nothing of Nova may be imported before.
from nova.cmd import manage  # isort: skip

import os_vif
from nova import objects, service
from nova.api.openstack import wsgi_app
from nova.compute import rpcapi as compute_topics
from nova.conductor import rpcapi as conductor_topics
from nova.db import migration
from nova.scheduler import rpcapi as scheduler_topics

from tests.support.openstack.serving import run, serve

API, PROGRAM = "osapi_compute", "nova-api-os-compute"
SERVICES = (
    ("nova-conductor", conductor_topics.RPC_TOPIC, None),
    ("nova-scheduler", scheduler_topics.RPC_TOPIC, None),
    ("nova-compute", compute_topics.RPC_TOPIC, compute_topics.RPC_TOPIC_ALT),
)


def main(listener: int, failed: str) -> None:
    """Make the tables and the cell, start the services, and serve.

    ``failed`` is the database of servers that no host took.
    """
    wsgi_app.init_global_data(wsgi_app._get_config_files(), API, PROGRAM)
    objects.register_all()
    os_vif.initialize()
    migration.db_sync(database="api")
    cells = manage.CellV2Commands()
    cells.map_cell0(failed)
    cells.create_cell("cell1")
    manage.DbCommands().sync()
    for binary, topic, other_topic in SERVICES:
        service.Service.create(binary=binary, topic=topic, topic_alt=other_topic).start()
    cells.discover_hosts()
    serve(wsgi_app.init_application(API, PROGRAM), listener)


if __name__ == "__main__":
    run(lambda: main(int(sys.argv.pop(1)), sys.argv.pop(1)))
