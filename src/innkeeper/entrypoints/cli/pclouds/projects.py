"""Finds the projects that commands name.

Always true: the result is the id of a project in the Identity API or in the caller's own token, or
a text in the form of an id. Other texts are never sent to the service.

The returned id may belong to no project, if the caller may not look up projects, or if
``may_be_gone`` is true. In the first case, a warning is logged.
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
"""Ids in Identity services have 32 hexadecimal digits, or are UUIDs with hyphens."""
DOTS = frozenset({".", ".."})


def project_id(
    connection: Any, text: str, log: logging.Logger, *, may_be_gone: bool = False
) -> str:
    """Return the id of the project with this id or name.

    The caller's own project is read from the token. Other projects are looked up by id and then by
    name. If the caller may not look up projects, a text in the form of an id is returned unchanged,
    with a warning. If ``may_be_gone`` is true, an id that the Identity API does not know is
    returned, too. In all other cases, raises :class:`CommandError`.
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
    """Return the id of the login's project, if ``text`` is this project's id or name.

    Otherwise, returns ``None``.
    """
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
        # The login is a token with a fixed address, at which the SDK would call another API.
        return None
    identity = connection.identity
    # If the SDK cannot discover the service's versions, its client has no resources.
    return identity if hasattr(identity, "projects") else None


def _by_id(identity: Any, text: str) -> tuple[str | None, bool]:
    """Return the project's id if it exists, and whether the caller may look up projects by id."""
    if text in DOTS or quote(text, safe="") != text:
        # Such a text would change the path of the request.
        return None, True
    try:
        return str(identity.get_project(text).id), True
    except (exceptions.NotFoundException, exceptions.BadRequestException):
        return None, True
    except (exceptions.ForbiddenException, CatalogException):
        return None, False


def _by_name(identity: Any, text: str) -> tuple[str | None, bool]:
    """Return the id of the project with this name, and whether the caller may list projects.

    Raises :class:`CommandError` if several projects have the name.
    """
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
