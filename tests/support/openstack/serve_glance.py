"""The program that serves OpenStack's Image API: Glance."""

from __future__ import annotations

import sys

from glance.cmd import manage
from glance.common import config

from tests.support.openstack.serving import serve


def main(listener: int, settings: str) -> None:
    """Make the tables, and serve."""
    config.parse_args([], default_config_files=[settings])
    manage.DbCommands().sync()
    from glance.wsgi import api  # noqa: PLC0415 (it reads its settings when imported)

    serve(api.application, listener)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
