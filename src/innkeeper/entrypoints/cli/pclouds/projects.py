"""Resolves the project names and ids of commands.

Always true: the result is the id of a project that the Identity API or the caller's own token
knows, or a text in the form of an id. Other texts never reach the service.

May be false: that the project exists, if the caller may not look it up. A warning is then logged.
"""

from __future__ import annotations

import logging
import re
from typing import Any
from urllib.parse import quote

from keystoneauth1.exceptions import CatalogException
from keystoneauth1.identity.base import BaseIdentityPlugin
from openstack import exceptions
from osc_lib import exceptions as osc_exceptions

ID_FORM = re.compile(
    r"[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)
"""Ids of Identity services have 32 hexadecimal digits, or the form of UUIDs with dashes."""
DOTS = frozenset({".", ".."})


def project_id(
    connection: Any, text: str, log: logging.Logger, *, may_be_gone: bool = False
) -> str:
    """Return the id of the project with this id or name.

    The caller's own project is read from the token. Other projects are looked up by id and then by
    name. If the caller may not look them up, a text in the form of an id is used unchanged, with a
    warning. With ``may_be_gone``, an id that the Identity API does not know is also used. In all
    other cases, raises :class:`CommandError`.
    """
    own = own_id(connection, text)
    if own is not None:
        return own
    has_id_form = ID_FORM.fullmatch(text) is not None
    identity, may_look = _identity(connection), False
    if identity is not None:
        by_id, may_show = _by_id(identity, text)
        by_name, may_list = (None, True) if by_id else _by_name(identity, text)
        known = by_id or by_name
        if known is not None:
            return known
        may_look = may_show if has_id_form else may_list
    if not has_id_form:
        raise osc_exceptions.CommandError(_unknown(text, may_look=may_look))
    if not may_look:
        log.warning("Project %s was not checked: this login may not look up projects.", text)
    elif not may_be_gone:
        raise osc_exceptions.CommandError(_unknown(text, may_look=True))
    return text


def own_id(connection: Any, text: str) -> str | None:
    """Return the id of the login's project if ``text`` is its id or name, or else ``None``."""
    mine = connection.session.get_project_id()
    if mine is None:
        return None
    if text == mine:
        return text
    auth = connection.session.auth
    if not isinstance(auth, BaseIdentityPlugin):
        return None
    access = auth.get_access(connection.session)
    return str(mine) if text == access.project_name else None


def _identity(connection: Any) -> Any:
    """Return the client of the Identity API, or ``None`` if the login has no such API."""
    if not isinstance(connection.session.auth, BaseIdentityPlugin):
        # The login is a token with a fixed address. The SDK would call another API there.
        return None
    identity = connection.identity
    # If the SDK cannot discover the service's versions, its client has no resources.
    return identity if hasattr(identity, "projects") else None


def _by_id(identity: Any, text: str) -> tuple[str | None, bool]:
    """Return the id if a project has it, and whether the caller may look up projects by id."""
    if text in DOTS or quote(text, safe="") != text:
        # Such a text would change the path, and so address something else.
        return None, True
    try:
        return str(identity.get_project(text).id), True
    except (exceptions.NotFoundException, exceptions.BadRequestException):
        return None, True
    except (exceptions.ForbiddenException, CatalogException):
        return None, False


def _by_name(identity: Any, text: str) -> tuple[str | None, bool]:
    """Return the id of the only project of this name, and whether the caller may list projects."""
    try:
        found = [each.id for each in identity.projects(name=text) if each.name == text]
    except (exceptions.ForbiddenException, exceptions.NotFoundException, CatalogException):
        return None, False
    if len(found) > 1:
        raise osc_exceptions.CommandError(
            f"{len(found)} projects are called '{text}'. Name one by its ID: {', '.join(found)}."
        )
    return (str(found[0]) if found else None), True


def _unknown(text: str, *, may_look: bool) -> str:
    if may_look:
        return f"No project has the name or ID '{text}'."
    return (
        f"'{text}' does not have the form of a project's ID, and this login may not look up "
        "projects by name. Name the project by its ID."
    )
