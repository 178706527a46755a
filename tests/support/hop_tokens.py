"""Hop tokens as a zone parent signs them, for tests that stand for the parent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from innkeeper.domain import hops
from innkeeper.domain.hops import HopClaims
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.zone_tree import TreeRequest

MOUNT = "/compute"


def token(  # noqa: PLR0913 - a hop token has that many facts
    method: str,
    path: str,
    body: bytes,
    *,
    parent: str,
    password: str,
    project: str | None = "lab",
    user: str = "ann",
    roles: Sequence[str] = ("member", "reader"),
    id: str | None = None,
    hops_left: int = 2,
    of_path: str | None = None,
    visited: Sequence[str] | None = None,
    seconds_ago: float = 0.0,
) -> str:
    """Return a token for one request; ``of_path`` replaces the path for which it is valid.

    ``visited`` are the zones that the request has passed: by default, one unknown zone.
    """
    issued_at = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=seconds_ago)
    claims = HopClaims(
        parent_name=parent,
        id=id or uuid4().hex,
        issued_at=issued_at,
        expires_at=issued_at + timedelta(seconds=hops.LIFETIME_S),
        method=method,
        target=hops.signed_target((of_path or path).removeprefix(MOUNT)),
        body_digest=hops.digest_of(body),
        caller=RequestContext(
            "", user, project, frozenset(roles), user_name=user, project_name=project
        ),
        tree=TreeRequest(
            str(uuid4()),
            (str(uuid4()),) if visited is None else tuple(visited),
            hops_left,
            5000,
            "answers-of-a-test.invalid",
        ),
    )
    return hops.sign(claims, password)
