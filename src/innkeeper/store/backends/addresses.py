"""Parse URLs with several servers: ``name://user@one:3306,two:3306,three:3306/database``.

SQLAlchemy reads only URLs with one host, so this module separates the list of hosts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import sqlalchemy as sa

PORT_MAX = 65_535
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::(?P<port>[0-9]+))?", re.ASCII)
# In a password, these characters are escaped as %2F, %3F or %23, as in every URL.
_PARTS = re.compile(r"(?P<scheme>[^:/?#]+://)(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL)


class Address(NamedTuple):
    """The address of one server."""

    host: str
    port: int | None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def split(url: str) -> tuple[sa.URL, list[Address]]:
    """Return the URL with only its first host, and the list of all addresses in order.

    The list is empty if the URL has no host. Raises ``ValueError`` for an invalid URL. The text of
    the error contains no password.
    """
    found = _PARTS.fullmatch(url)
    if found is None:
        raise ValueError("The database URL must have the form name://user@host:port/database.")
    login, at, hosts = found["authority"].rpartition("@")
    addresses = [_address(each, at) for each in hosts.split(",")] if hosts else []
    if len(set(addresses)) < len(addresses):
        raise ValueError("The database URL lists the same address twice.")
    first = str(addresses[0]) if addresses else ""
    try:
        return sa.make_url(found["scheme"] + login + at + first + found["rest"]), addresses
    except (sa.exc.ArgumentError, ValueError) as error:
        # The text of the original error quotes the URL with its password.
        raise ValueError("The database URL is invalid.") from error


def _address(text: str, at: str) -> Address:
    found = _HOST.fullmatch(text.strip())
    port = int(found["port"]) if found is not None and found["port"] else None
    if found is None or (port is not None and not 1 <= port <= PORT_MAX):
        # Without an "@", the text may be a user name and a password that contains a "/". So do not
        # quote it.
        named = repr(text) if at else "The text after ://"
        raise ValueError(
            f"{named} in the database URL is not an address: use host:port, separated by commas."
        )
    return Address(found["host"], port)
