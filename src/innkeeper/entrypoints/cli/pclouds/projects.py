"""Which project a command means: one rule for every command that takes a project.

Always true: what leaves here is the id of a project that the Identity API or the caller's own
token knows, or a text in the form of an id. A word that is neither never reaches the service.

May be false: that there is a project with an id that the caller may not look up. A warning
says so.
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
"""Identity services make ids of 32 hexadecimal digits; some write them as UUIDs with dashes."""
DOTS = frozenset({".", ".."})


def project_id(
    connection: Any, text: str, log: logging.Logger, *, may_be_gone: bool = False
) -> str:
    """The id of the project that ``text`` names.

    The caller's own project is known by its token. Others are looked up, by id and then by
    name. Where the caller may not look, a text in the form of an id is taken as it is, and a
    warning says so. With ``may_be_gone``, an id that the Identity API does not know is taken
    as well. Raises :class:`CommandError` for everything else.
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
    """The id of the project that the login is for, if ``text`` is its id or its name."""
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
    """The Identity API, or ``None`` if this login has none to ask."""
    if not isinstance(connection.session.auth, BaseIdentityPlugin):
        # A token with one fixed address: what looks like Identity there is another API.
        return None
    identity = connection.identity
    # Without the versions of the service, the SDK gives a client that knows no resources.
    return identity if hasattr(identity, "projects") else None


def _by_id(identity: Any, text: str) -> tuple[str | None, bool]:
    """The id, if it is a project's; and whether the caller may look it up."""
    if text in DOTS or quote(text, safe="") != text:
        # In a path it would be something other than an id, and something else would answer.
        return None, True
    try:
        return str(identity.get_project(text).id), True
    except (exceptions.NotFoundException, exceptions.BadRequestException):
        return None, True
    except (exceptions.ForbiddenException, CatalogException):
        return None, False


def _by_name(identity: Any, text: str) -> tuple[str | None, bool]:
    """The id of the one project of this name; and whether the caller may list projects."""
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
