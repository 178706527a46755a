"""Where the servers of one database are: ``name://user@one:3306,two:3306,three:3306/database``.

SQLAlchemy reads URLs of one host; here the list is taken out of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import sqlalchemy as sa

PORT_MAX = 65_535
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::(?P<port>[0-9]+))?", re.ASCII)
# A password with one of these in it has them as %2F, %3F or %23, as in every URL.
_PARTS = re.compile(r"(?P<scheme>[^:/?#]+://)(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL)


class Address(NamedTuple):
    """One server."""

    host: str
    port: int | None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def split(url: str) -> tuple[sa.URL, list[Address]]:
    """The URL with the first of its hosts, and all of them, in the order they are given.

    A URL without any host has no addresses. Raises ``ValueError``, whose text shows no
    password, for what is no URL of this form.
    """
    found = _PARTS.fullmatch(url)
    if found is None:
        raise ValueError("The database's URL is not of the form name://user@host:port/database.")
    login, at, hosts = found["authority"].rpartition("@")
    addresses = [_address(each, at) for each in hosts.split(",")] if hosts else []
    if len(set(addresses)) < len(addresses):
        raise ValueError("The database's URL names one address twice.")
    first = str(addresses[0]) if addresses else ""
    try:
        return sa.make_url(found["scheme"] + login + at + first + found["rest"]), addresses
    except (sa.exc.ArgumentError, ValueError) as error:
        # Its text quotes the URL, with the password in it.
        raise ValueError("The database's URL cannot be read.") from error


def _address(text: str, at: str) -> Address:
    found = _HOST.fullmatch(text.strip())
    port = int(found["port"]) if found is not None and found["port"] else None
    if found is None or (port is not None and not 1 <= port <= PORT_MAX):
        # Without an "@", it may be a login whose password has a "/" in it.
        named = repr(text) if at else "What follows the ://"
        raise ValueError(
            f"{named} in the database's URL is no address: host:port, several with commas."
        )
    return Address(found["host"], port)
