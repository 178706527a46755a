"""The program that serves OpenStack's Network API: Neutron, without any agent."""

from __future__ import annotations

import sys

import sqlalchemy.orm
from neutron import server
from neutron.db.migration.models import head
from neutron.server import api
from neutron_lib.db import api as database

from tests.support.openstack.serving import Application, serve


def main(listener: int) -> None:
    """Make the tables, and serve."""

    def prepare() -> Application:
        # Neutron's migrations do not run on SQLite.
        head.get_metadata().create_all(database.CONTEXT_WRITER.get_engine())
        # Some answers need attributes of models that only exist once all models are connected.
        sqlalchemy.orm.configure_mappers()
        application: Application = api.api_server()
        return application

    serve(server.boot_server(prepare, prog="neutron-api"), listener)


if __name__ == "__main__":
    main(int(sys.argv.pop(1)))
