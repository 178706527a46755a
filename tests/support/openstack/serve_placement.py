"""The program that serves OpenStack's Placement API."""

from __future__ import annotations

import sys

from tests.support.openstack.serving import serve


def main(listener: int) -> None:
    """Serve the service whose settings the environment points to."""
    from placement.wsgi import api  # noqa: PLC0415 (it reads its settings when imported)

    serve(api.application, listener)


if __name__ == "__main__":
    main(int(sys.argv[1]))
