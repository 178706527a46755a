"""One client's connections to several addresses of the service.

Always true: an answer, a lost answer and a request that was never sent are
distinguished.
"""

from __future__ import annotations

import http.client
import json
import select
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

ADDRESS = "127.0.0.1"
ANSWER_WITHIN_S = 5.0
HEADERS = {
    "x-auth-token": "admin",
    "x-roles": "admin,service",
    "openstack-api-version": "compute 2.74, placement 1.39",
    "content-type": "application/json",
}


class Answer(NamedTuple):
    """An answer and its source; status 0 is no answer, :data:`NOT_SENT` was never sent."""

    status: int
    body: Any
    entrance: str


LOST = 0
NOT_SENT = -1


class Door:
    """Used by one thread; each call goes to another address."""

    def __init__(
        self, ports: Sequence[int], dice: Random, within_s: float = ANSWER_WITHIN_S
    ) -> None:
        self._within_s = within_s
        self._ports = ports
        self._dice = dice
        self._open: dict[int, http.client.HTTPConnection] = {}

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Send one request, without a retry."""
        port = self._dice.choice(self._ports)
        connection = self._kept(port)
        if connection is None:
            connection = http.client.HTTPConnection(ADDRESS, port, timeout=self._within_s)
            try:
                connection.connect()
            except OSError:
                return Answer(NOT_SENT, None, str(port))
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, HEADERS)
            found = connection.getresponse()
            text = found.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return Answer(LOST, None, str(port))
        if not found.will_close:
            self._open[port] = connection
        is_json = found.headers.get_content_type() == "application/json"
        return Answer(found.status, json.loads(text) if is_json and text else None, str(port))

    def _kept(self, port: int) -> http.client.HTTPConnection | None:
        """The connection of an earlier call, unless the service has closed it since.

        The service closes idle connections, and a request sent then is lost.
        """
        kept = self._open.pop(port, None)
        if kept is not None and select.select([kept.sock], [], [], 0)[0]:
            kept.close()
            return None
        return kept

    def close(self) -> None:
        """Close all connections."""
        for each in self._open.values():
            each.close()
        self._open.clear()
