"""Sets up identity before a serving process accepts requests.

Always true: the administrator's password is written to the login file before the commit that makes
the password valid. If the process crashes between the write and the commit, the start can be
repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import structlog

from innkeeper.domain.identity import CatalogService
from innkeeper.domain.ids import Clock, IdSource
from innkeeper.domain.slices import Settings, Storing
from innkeeper.engine.database import Database
from innkeeper.engine.engine import Engine
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api import auth_builtin
from innkeeper.entrypoints.api.auth import NoauthAuthenticator
from innkeeper.entrypoints.api.auth_agents import AgentsAuthenticator
from innkeeper.entrypoints.api.auth_zones import ZonesAuthenticator
from innkeeper.entrypoints.api.identity import clouds_file, key_files, private_files
from innkeeper.entrypoints.api.routing import Api
from innkeeper.entrypoints.api.site import Authenticator
from innkeeper.entrypoints.api.token_cache import Epoch
from innkeeper.systems.identity import catalog, first_start, passwords, tokens
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.identity.tokens import Signer
from innkeeper.systems.zones import children

LOG = structlog.get_logger("innkeeper.identity")
KEYSTONE_TIMEOUT_S = 5.0
"""Timeout of one request to Keystone."""
KEYSTONE_DEADLINE_S = 12.0
"""Timeout of a token's validation, including the wait for a thread and the service user's login."""
AGENT_TOKEN_FILE = "agent.token"  # noqa: S105 - a file's name
AGENT_TOKEN_LIFETIME_S = 3600.0
AGENT_TOKEN_PERIOD_S = 600.0
"""The seconds between renewals of the embedded agent's token. A token lives several times as long,
so that a single failed renewal is harmless."""

Draw = Callable[[], str]
"""Returns a new random text."""


def signer(
    database: Database, storing: Storing, draw: Callable[[int], bytes], now: datetime
) -> Signer:
    """Return the signer of tokens, with this database's signing key.

    Raises :class:`~innkeeper.entrypoints.api.identity.key_files.KeyFileError` if the key file that
    opens the signing key is missing or wrong.
    """
    path = key_files.path_of(storing)

    def take(tx: Tx) -> Signer:
        if tokens.is_signing_key_open(tx):
            LOG.warning("signing_key_not_sealed", advice="innkeeper encryption-key rotate")
        return Signer(
            tokens.signing_key(
                tx, lambda: key_files.secret_box_for(tx, path, draw), draw=draw, now=now
            )
        )

    return database.write(take)


def zone_secrets(
    database: Database, storing: Storing, draw: Callable[[int], bytes], ids: IdSource, now: datetime
) -> tuple[SecretBox, str]:
    """Return the box that seals the secrets of neighbour zones, and this zone's random id.

    Raises the errors of :func:`signer`.
    """
    path = key_files.path_of(storing)

    def take(tx: Tx) -> tuple[SecretBox, str]:
        box = key_files.secret_box_for(tx, path, draw)
        return box, children.own_zone_id(tx, box, ids, now)

    return database.write(take)


def authenticator(
    settings: Settings,
    signer: Signer | None,
    box: SecretBox | None,
    engine: Engine,
    clock: Clock,
    epoch: Epoch | None = None,
) -> Authenticator:
    """Return the authenticator for the configured mode of identity.

    Agents and zone parents have credentials of their own in every mode. Pass ``epoch`` if other
    processes can change users, roles or credentials.
    """
    authenticating = settings.authenticating
    remember_s = authenticating.token_cache_s
    users: Authenticator
    if authenticating.auth == "keystone":
        # Import this only if needed, because the library takes a third of a second to load.
        from innkeeper.clients.keystone import Keystone  # noqa: PLC0415
        from innkeeper.entrypoints.api import auth_keystone  # noqa: PLC0415

        keystone = Keystone(
            authenticating.keystone_url or "",
            user=authenticating.keystone_user or "",
            password=authenticating.keystone_password or "",
            project=authenticating.keystone_project,
            domain=authenticating.keystone_domain,
            timeout_s=KEYSTONE_TIMEOUT_S,
        )
        users = auth_keystone.authenticator(keystone, clock, remember_s, KEYSTONE_DEADLINE_S)
    elif signer is not None:
        users = auth_builtin.authenticator(signer, engine, clock, remember_s, epoch)
    else:
        users = NoauthAuthenticator()
    users = AgentsAuthenticator(users, engine, clock, remember_s, epoch)
    if box is None:
        return users
    return ZonesAuthenticator(users, engine, box, clock, remember_s, epoch)


def services(settings: Settings, apis: Mapping[str, Api]) -> tuple[CatalogService, ...]:
    """Return the services in the catalog, one for each name of each served API."""
    return tuple(
        catalog.service(label, kind, getattr(settings.serving, f"{name}_prefix") + api.catalog_path)
        for name, api in apis.items()
        for label, kind in (
            (name, api.service_type),
            *((alias, alias) for alias in api.service_aliases),
        )
    )


def auth_url(settings: Settings, address: str) -> str:
    """Return the address of the Identity API of a service that listens on ``address``."""
    serving = settings.serving
    return (serving.public_url or address).rstrip("/") + serving.identity_prefix + "/v3"


def prepare_logins(
    database: Database, settings: Settings, address: str, ids: IdSource, draw: Draw, now: datetime
) -> Path | None:
    """Create the administrator at the first start, and return the login file.

    Each later start updates the address in the file, and returns ``None``.
    """
    directory = _directory(settings)
    if database.read(first_start.is_done):
        clouds_file.move(directory, auth_url(settings, address))
        return None
    password = draw()
    admin_hash, agent_hash = passwords.hash_of(password), passwords.hash_of(draw())

    def begin(tx: Tx) -> Path | None:
        is_first = first_start.ensure(
            tx, admin_hash=admin_hash, agent_hash=agent_hash, ids=ids, now=now
        )
        if not is_first:
            return None
        return clouds_file.write(directory, _login(settings, address, password))

    return database.write(begin)


def reset_password(
    database: Database, settings: Settings, address: str, ids: IdSource, draw: Draw, now: datetime
) -> Path:
    """Set a new password for the administrator, and return the login file that contains it.

    If the file already has an address, the address is kept.
    """
    directory = _directory(settings)
    password = draw()
    login = _login(settings, address, password, clouds_file.read_auth_url(directory))
    admin_hash = passwords.hash_of(password)

    def reset(tx: Tx) -> Path:
        first_start.reset_administrator(tx, admin_hash=admin_hash, ids=ids, now=now)
        return clouds_file.write(directory, login)

    return database.write(reset)


def write_agent_token(
    database: Database, settings: Settings, signer: Signer | None, ids: IdSource, now: datetime
) -> Path:
    """Issue a token for the embedded agent, write it to a file, and return the file's path.

    Without a ``signer`` every token is trusted, so the token is the administrator's name.
    """
    token = first_start.ADMIN
    if signer is not None:
        token = database.read(
            lambda tx: tokens.mint(
                tx,
                signer,
                first_start.AGENT,
                first_start.SERVICE_PROJECT,
                audit_id=ids.uuid().replace("-", ""),
                now=now,
                lifetime_s=AGENT_TOKEN_LIFETIME_S,
            )
        )
    path = _directory(settings) / AGENT_TOKEN_FILE
    private_files.write(path, token + "\n")
    return path


def how_to_log_in(path: Path) -> str:
    """Return the text to print after the first start."""
    return (
        "\nThis is the first start. The administrator's login is in\n"
        f"  {path.resolve()}\n"
        "which only you can read. To use it, type:\n"
        f"  export OS_CLIENT_CONFIG_FILE={path.resolve()} OS_CLOUD={clouds_file.CLOUD}\n"
        "  openstack token issue\n\n"
    )


def _directory(settings: Settings) -> Path:
    directory = Path(settings.storing.data_dir)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _login(
    settings: Settings, address: str, password: str, url: str | None = None
) -> clouds_file.CloudLogin:
    return clouds_file.CloudLogin(
        auth_url=url or auth_url(settings, address),
        user=first_start.ADMIN,
        password=password,
        project=first_start.ADMIN,
        region=settings.authenticating.region_name,
    )
