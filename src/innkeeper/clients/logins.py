"""Logins for API clients: fixed tokens, or tokens from a Keystone.

Always true: no password or token is written to a log, and every request has a deadline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import yaml
from keystoneauth1 import exceptions, loading, session

from innkeeper.domain.errors import Invalid, Unavailable

TIMEOUT_S = 10.0
SEARCHED = ("./clouds.yaml", "~/.config/openstack/clouds.yaml", "/etc/openstack/clouds.yaml")
"""The files in which OpenStack's own clients look for clouds, in this order."""
OVERRIDE = "_endpoint_override"
"""The suffix of the keys with which a cloud's configuration overrides addresses of the catalog."""
AUTH_TYPES = {"token": "v3token", "password": "password"}


class TokenSource(Protocol):
    """A source of tokens for one login."""

    def token(self) -> str:
        """Return a token that should be valid. Raises :class:`Unavailable`."""

    def renew(self) -> None:
        """Discard the token, because the service refused it."""

    def service_url(self, service_type: str) -> str | None:
        """Return an API's URL from the service catalog, or ``None`` if the catalog lacks it."""


class GivenToken:
    """A fixed token; see :class:`TokenSource`."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token

    def renew(self) -> None:
        """Do nothing: there is no other token."""

    def service_url(self, service_type: str) -> str | None:
        """Return ``None``: a token alone has no catalog."""
        return None


class TokenFile:
    """Reads tokens from a file that another program rewrites; see :class:`TokenSource`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token: str | None = None

    def token(self) -> str:
        self._token = self._token or self._read()
        return self._token

    def _read(self) -> str:
        try:
            found = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"Cannot read {self._path}: {type(error).__name__}.") from error
        if not found:
            raise Unavailable(f"There is no token in {self._path}.")
        return found

    def renew(self) -> None:
        self._token = None

    def service_url(self, service_type: str) -> str | None:
        """Return ``None``: a token alone has no catalog."""
        return None


class KeystoneLogin:
    """A login to an Identity API. It renews expired tokens; see :class:`TokenSource`.

    ``places`` has addresses by service type, which override the addresses in the catalog.
    """

    def __init__(
        self,
        auth_type: str,
        options: Mapping[str, Any],
        region: str | None,
        ca_file: str | None,
        *,
        interface: str = "public",
        places: Mapping[str, str] | None = None,
    ) -> None:
        try:
            loader: Any = loading.get_plugin_loader(AUTH_TYPES.get(auth_type, auth_type))
            known = {option.dest for option in loader.get_options()}
            plugin = loader.load_from_options(
                **{name: value for name, value in options.items() if name in known}
            )
        except exceptions.ClientException as error:
            raise Invalid(f"The login is not complete: {error}.") from error
        self.ca_file = ca_file
        self._region = region
        self._interface = interface
        self._places = places or {}
        self._session = session.Session(auth=plugin, timeout=TIMEOUT_S, verify=ca_file or True)

    def token(self) -> str:
        try:
            found = self._session.get_token()
        except exceptions.ClientException as error:
            raise Unavailable(f"Cannot get a token: {type(error).__name__}.") from error
        if not found:
            raise Unavailable("The Identity API returned no token.")
        return str(found)

    def renew(self) -> None:
        self._session.invalidate()

    def service_url(self, service_type: str) -> str | None:
        if service_type in self._places:
            return self._places[service_type]
        try:
            found = self._session.get_endpoint(
                service_type=service_type, region_name=self._region, interface=self._interface
            )
        except exceptions.ClientException as error:
            raise Unavailable(f"Cannot get the service catalog: {type(error).__name__}.") from error
        return None if found is None else str(found)


def from_environment(environ: Mapping[str, str]) -> TokenSource:
    """Return the login that ``OS_CLOUD``, ``OS_TOKEN`` or the ``OS_*`` password variables describe.

    Raises :class:`Invalid` if no login is set, or if the login is incomplete.
    """
    cloud = environ.get("OS_CLOUD")
    if cloud:
        return from_cloud(cloud, environ)
    options = {
        name.removeprefix("OS_").lower(): value
        for name, value in environ.items()
        if name.startswith("OS_")
    }
    if "auth_url" not in options:
        if options.get("token"):
            return GivenToken(options["token"])
        raise Invalid("There is no login: set OS_CLOUD, OS_TOKEN, or OS_AUTH_URL with a password.")
    return _login(options, options)


def from_cloud(cloud: str, environ: Mapping[str, str]) -> KeystoneLogin:
    """Return a cloud's login from the file in ``OS_CLIENT_CONFIG_FILE``, or a default file."""
    named = environ.get("OS_CLIENT_CONFIG_FILE")
    return from_clouds_file(cloud, [named] if named else SEARCHED)


def from_clouds_file(cloud: str, paths: Sequence[str]) -> KeystoneLogin:
    """Return a cloud's login from the first existing file of ``paths``."""
    for path in paths:
        found = Path(path).expanduser()
        if found.is_file():
            return _from_file(cloud, found)
    raise Invalid(f"No clouds.yaml was found for the cloud {cloud!r}.")


def _from_file(cloud: str, path: Path) -> KeystoneLogin:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        found = content["clouds"][cloud]
        options = dict(found["auth"])
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Invalid(f"Cannot read {path}: {type(error).__name__}.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(f"{path} has no cloud {cloud!r} with an auth section.") from error
    places = {
        key.removesuffix(OVERRIDE).replace("_", "-"): str(value)
        for key, value in found.items()
        if key.endswith(OVERRIDE)
    }
    interface = str(found.get("interface") or "public")
    return _login(found, options, interface=interface, places=places)


def _login(source: Mapping[str, Any], options: Mapping[str, Any], **more: Any) -> KeystoneLogin:
    # Most clouds have only the default domain, so configurations omit it.
    filled = {"user_domain_name": "Default", "project_domain_name": "Default", **options}
    for side in ("user", "project"):
        if f"{side}_domain_id" in options:
            filled.pop(f"{side}_domain_name")
    auth_type = source.get("auth_type", "password")
    return KeystoneLogin(auth_type, filled, source.get("region_name"), source.get("cacert"), **more)
