"""Logins at pods (clouds behind this service): requests for Identity v3 tokens, and answers.

Always true: an address of a service is an http or https URL that can be called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from innkeeper.domain.errors import Invalid

TOKEN_CHARS_MAX = 8192
PUBLIC = "public"
ALIASES: Mapping[str, tuple[str, ...]] = {
    "block-storage": ("block-storage", "block-store", "volumev3", "volume")
}
"""The names that catalogs use for a type of service, the preferred one first."""


@dataclass(frozen=True, slots=True)
class PodLogin:
    """The data with which this service logs in to a pod.

    ``uuid`` and ``name`` are those of the pod. ``endpoints`` has addresses by service type, which
    override the addresses in the catalog. Without a ``region_name``, services of any region are
    used.
    """

    uuid: str
    name: str
    auth_url: str
    username: str
    password: str = field(repr=False)
    user_domain: str
    project_name: str
    project_domain: str
    region_name: str
    endpoints: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of a cached token. All logins to the same project of a pod share the token."""
        return self.uuid, self.project_domain, self.project_name


class _Endpoint(msgspec.Struct):
    url: str
    interface: str = PUBLIC
    region: str | None = None
    region_id: str | None = None


class _Service(msgspec.Struct):
    type: str
    endpoints: list[_Endpoint] = []


class _Domain(msgspec.Struct, frozen=True):
    id: str = ""


class _Owner(msgspec.Struct, frozen=True):
    id: str = ""
    domain: _Domain = _Domain()


class _Token(msgspec.Struct):
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)]
    project: _Owner = _Owner()
    user: _Owner = _Owner()
    catalog: list[_Service] = []


class _Answer(msgspec.Struct):
    token: _Token


_DECODER = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, slots=True)
class PodSession:
    """A token, the time when it expires, and the services of the pod.

    Services are tuples (type, region, address). The ids of the project, of its domain and of the
    user are their ids in the pod.
    """

    token: str = field(repr=False)
    expires_at: datetime
    services: tuple[tuple[str, str, str], ...]
    project_id: str = ""
    domain_id: str = ""
    user_id: str = ""

    def address(self, service_type: str, region_name: str) -> str | None:
        """Return the public address of a service, or ``None`` if the catalog lacks the service."""
        for name in ALIASES.get(service_type, (service_type,)):
            for type_, region, address in self.services:
                if type_ == name and region_name in ("", region):
                    return address
        return None


def checked_url(name: str, url: str) -> str:
    """Return a normalized address of a pod. Raises :class:`Invalid`, which names the field."""
    try:
        parts = urlsplit(url)
        is_fine = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise Invalid(f"{name} is not a valid URL.") from error
    plain = parts.username is None and not parts.query and not parts.fragment
    is_visible = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not is_fine or not plain or not is_visible:
        raise Invalid(f"{name} must be an http or https URL, without user, query and fragment.")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def checked_auth_url(url: str) -> str:
    """Return the normalized address of a pod's Identity API v3. Raises :class:`Invalid`."""
    found = checked_url("auth_url", url)
    return found if found.endswith("/v3") else found + "/v3"


def login_body(login: PodLogin) -> bytes:
    """Return the body of a login with a password, which asks for a token for the project."""
    user = {
        "name": login.username,
        "password": login.password,
        "domain": {"name": login.user_domain},
    }
    project = {"name": login.project_name, "domain": {"name": login.project_domain}}
    identity = {"methods": ["password"], "password": {"user": user}}
    return msgspec.json.encode({"auth": {"identity": identity, "scope": {"project": project}}})


def session_of(token: str, body: bytes) -> PodSession:
    """Return the session from an answer to a login. Raises ``ValueError`` if none can be read."""
    if not token or len(token) > TOKEN_CHARS_MAX or not (token.isascii() and token.isprintable()):
        raise ValueError("it has no usable token")
    try:
        told = _DECODER.decode(body).token
        expires_at = told.expires_at.astimezone(UTC).replace(tzinfo=None)
    except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError) as error:
        raise ValueError("it is no token document") from error
    services = tuple(
        (service.type, each.region_id or each.region or "", address)
        for service in told.catalog
        for each in service.endpoints
        if each.interface == PUBLIC and (address := _usable(each.url)) is not None
    )
    project = told.project
    return PodSession(token, expires_at, services, project.id, project.domain.id, told.user.id)


def _usable(url: str) -> str | None:
    try:
        return checked_url("url", url)
    except Invalid:
        return None
