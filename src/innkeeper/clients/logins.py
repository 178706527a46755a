"""Tokens for programs of ours that call an API: given ones, or those that a Keystone makes.

Always true: no password and no token is written to a log, and every question has a deadline.
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
"""Where the stock clients look for clouds, in their order."""
OVERRIDE = "_endpoint_override"
"""How keys of a cloud end that say where an API is, whatever the catalog says."""
AUTH_TYPES = {"token": "v3token", "password": "password"}


class TokenSource(Protocol):
    """Whoever has tokens to give."""

    def token(self) -> str:
        """A token that should be good. Raises :class:`Unavailable` if none is to be had."""

    def renew(self) -> None:
        """Forget the token: it was refused."""

    def service_url(self, service_type: str) -> str | None:
        """Where the service catalog has an API; ``None`` without a catalog."""


class GivenToken:
    """One token, for as long as it lasts."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        """See :class:`TokenSource`."""
        return self._token

    def renew(self) -> None:
        """There is no other."""

    def service_url(self, service_type: str) -> str | None:
        """A token alone tells nothing about places."""
        return None


class TokenFile:
    """Tokens that somebody else writes into a file, each in the place of the last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token: str | None = None

    def token(self) -> str:
        """See :class:`TokenSource`."""
        found = self._token or self._read()
        self._token = found
        return found

    def _read(self) -> str:
        try:
            found = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"Cannot read {self._path}: {type(error).__name__}.") from error
        if not found:
            raise Unavailable(f"There is no token in {self._path}.")
        return found

    def renew(self) -> None:
        """See :class:`TokenSource`."""
        self._token = None

    def service_url(self, service_type: str) -> str | None:
        """A token alone tells nothing about places."""
        return None


class KeystoneLogin:
    """Logs in to an Identity API, and again when the token runs out.

    ``places`` has addresses by service type that go before those of the catalog.
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
        """See :class:`TokenSource`."""
        try:
            found = self._session.get_token()
        except exceptions.ClientException as error:
            raise Unavailable(f"No token: {type(error).__name__}.") from error
        if not found:
            raise Unavailable("The Identity API gave no token.")
        return str(found)

    def renew(self) -> None:
        """See :class:`TokenSource`."""
        self._session.invalidate()

    def service_url(self, service_type: str) -> str | None:
        """See :class:`TokenSource`."""
        if service_type in self._places:
            return self._places[service_type]
        try:
            found = self._session.get_endpoint(
                service_type=service_type, region_name=self._region, interface=self._interface
            )
        except exceptions.ClientException as error:
            raise Unavailable(f"No service catalog: {type(error).__name__}.") from error
        return None if found is None else str(found)


def from_environment(environ: Mapping[str, str]) -> TokenSource:
    """The login that ``OS_CLOUD``, ``OS_TOKEN`` or the ``OS_*`` password variables name.

    Raises :class:`Invalid` where they name none, or one that is not complete.
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
        raise Invalid("No login: set OS_CLOUD, OS_TOKEN, or OS_AUTH_URL and what goes with it.")
    return _login(
        options.get("auth_type", "password"),
        options,
        options.get("region_name"),
        options.get("cacert"),
    )


def from_cloud(cloud: str, environ: Mapping[str, str]) -> KeystoneLogin:
    """The login of a cloud in the file of ``OS_CLIENT_CONFIG_FILE``, or in the usual places."""
    named = environ.get("OS_CLIENT_CONFIG_FILE")
    return from_clouds_file(cloud, [named] if named else SEARCHED)


def from_clouds_file(cloud: str, paths: Sequence[str]) -> KeystoneLogin:
    """The login of a cloud in the first of these files that is there."""
    for path in paths:
        found = Path(path).expanduser()
        if found.is_file():
            return _from_file(cloud, found)
    raise Invalid(f"No clouds.yaml was found, and the cloud {cloud!r} is asked for.")


def _from_file(cloud: str, path: Path) -> KeystoneLogin:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        found = content["clouds"][cloud]
        options = dict(found["auth"])
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Invalid(f"Cannot read {path}: {type(error).__name__}.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(f"{path} has no cloud {cloud!r} with an auth section.") from error
    return _login(
        found.get("auth_type", "password"),
        options,
        found.get("region_name"),
        found.get("cacert"),
        interface=str(found.get("interface") or "public"),
        places={
            key.removesuffix(OVERRIDE).replace("_", "-"): str(value)
            for key, value in found.items()
            if key.endswith(OVERRIDE)
        },
    )


def _login(
    auth_type: str, options: Mapping[str, Any], region: str | None, ca_file: str | None, **more: Any
) -> KeystoneLogin:
    # Most clouds have one domain, and most people do not name it.
    filled = {"user_domain_name": "Default", "project_domain_name": "Default", **options}
    for side in ("user", "project"):
        if f"{side}_domain_id" in options:
            filled.pop(f"{side}_domain_name")
    return KeystoneLogin(auth_type, filled, region, ca_file, **more)
