"""The program that serves OpenStack's Block Storage API: all of Cinder in one process.

Cinder's three services run in threads, and send each other messages through the queue in memory
that oslo.messaging has for tests. The volumes are those of Cinder's fake driver.
"""

from __future__ import annotations

import sys

from cinder import monkey_patch

monkey_patch.patch(backend="threading")

# ruff: noqa: E402 (the patch comes first)
import os_brick
from cinder import objects, rpc, service, version
from cinder.common import constants
from cinder.db import migration
from oslo_config import cfg

from tests.support.openstack.serving import run, serve

CONF = cfg.CONF


def main(listener: int, backend: str) -> None:
    """Make the tables, start the services, and serve."""
    objects.register_all()
    CONF(sys.argv[1:], project="cinder", version=version.version_string())
    os_brick.setup(CONF)
    migration.db_sync()
    rpc.init(CONF)
    host = f"{CONF.host}@{backend}"
    service.Service.create(
        host=host, service_name=backend, binary=constants.VOLUME_BINARY, coordination=True
    ).start()
    # A scheduler that starts first waits a minute for the hosts.
    service.Service.create(binary=constants.SCHEDULER_BINARY).start()
    from cinder.wsgi import api  # noqa: PLC0415 (it starts the API when imported)

    serve(api.application, listener)


if __name__ == "__main__":
    run(lambda: main(int(sys.argv.pop(1)), sys.argv.pop(1)))
