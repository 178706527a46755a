"""Tokens: issued for a password or for another token, shown, and voided.

Always true: a refused login tells nothing about why, and takes the same time whether or not
the user exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Invalid, NotFound, Unauthenticated
from innkeeper.domain.identity import Role, TokenOwner, User
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.identity import conventions, noauth_tokens, password_checks
from innkeeper.entrypoints.api.identity.token_documents import Shown, document
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import logins, roles, tokens
from innkeeper.systems.identity.logins import NamedEntity, Scope
from innkeeper.systems.identity.tokens import PASSWORD, TOKEN, Claims, Signer

SUBJECT = "x-subject-token"
UNKNOWN_TOKEN = "Could not recognize the token."  # noqa: S105 - a message


def _shown(holder: TokenOwner, all_roles: tuple[Role, ...], claims: Claims) -> Shown:
    user, project = holder.user, holder.project
    return Shown(
        user=(user.id, user.name),
        project=None if project is None else (project.id, project.name),
        roles=all_roles,
        methods=claims.methods,
        # In this API's form: the token itself, and where the chain began.
        audit_ids=(claims.audit_ids[0], *claims.audit_ids[1:][-1:]),
        issued_at=claims.issued_at,
        expires_at=claims.expires_at,
    )


def _named(fields: Mapping[str, Any]) -> NamedEntity:
    domain = fields.get("domain", {})
    return NamedEntity(fields.get("id"), fields.get("name"), domain.get("id"), domain.get("name"))


def _scope(auth: Mapping[str, Any]) -> Scope:
    scope = auth.get("scope")
    if scope is None:
        return Scope()
    if scope == "unscoped" or "unscoped" in scope:
        return Scope(is_unscoped=True)
    if "project" in scope:
        return Scope(project=_named(scope["project"]))
    # Nobody has a role on the domain or on the whole system; there are none to have.
    raise Unauthenticated(logins.REFUSED)


async def issue(call: Call) -> Answer:
    """Log in."""
    auth = call.body["auth"]
    methods = auth["identity"]["methods"]
    if methods not in ([PASSWORD], [TOKEN]):
        raise Unauthenticated("Attempted to authenticate with an unsupported method.")
    if methods[0] not in auth["identity"]:
        raise Invalid(f"Expecting to find {methods[0]} in identity.")
    scope = _scope(auth)
    signer = call.site.signer
    if signer is None:
        shown, text = noauth_tokens.issue(call, auth["identity"], scope)
    else:
        log_in = _by_password if methods == [PASSWORD] else _by_token
        shown, text = await log_in(call, signer, auth["identity"], scope)
    headers = {SUBJECT: text, "vary": "X-Auth-Token"}
    return Answer(201, document(call, shown), headers)


def _holder_and_roles(tx: Tx, user: User, scope: Scope) -> tuple[TokenOwner, tuple[Role, ...]]:
    holder = logins.holder(tx, user, scope)
    return holder, roles.with_implied(tx, holder.roles)


async def _by_password(
    call: Call, signer: Signer, identity: Mapping[str, Any], scope: Scope
) -> tuple[Shown, str]:
    fields = identity[PASSWORD]["user"]
    who = _named(fields)
    user = await call.read(lambda tx: logins.user_named(tx, who))
    name = who.id or who.name or ""
    is_right = await password_checks.is_right(call, user, name, fields["password"])
    if user is None or not is_right:
        raise Unauthenticated(logins.REFUSED)
    known = user

    # Only now: a look at the scope would take time that a stranger's login does not take.
    # Whatever happened to the user since the first look has moved the stamp that goes into
    # the token, and leaves it void.
    def look(tx: Tx) -> tuple[TokenOwner, tuple[Role, ...]]:
        return _holder_and_roles(tx, known, scope)

    holder, all_roles = await call.read(look)
    return _signed(call, signer, holder, all_roles, None)


async def _by_token(
    call: Call, signer: Signer, identity: Mapping[str, Any], scope: Scope
) -> tuple[Shown, str]:
    claims = signer.open(identity[TOKEN]["id"], call.now)

    def look(tx: Tx) -> tuple[TokenOwner, tuple[Role, ...]]:
        return _holder_and_roles(tx, tokens.holder(tx, claims).user, scope)

    holder, all_roles = await call.read(look)
    return _signed(call, signer, holder, all_roles, claims)


def _signed(
    call: Call,
    signer: Signer,
    holder: TokenOwner,
    all_roles: tuple[Role, ...],
    parent: Claims | None,
) -> tuple[Shown, str]:
    methods = (PASSWORD,) if parent is None else tuple(sorted({TOKEN, *parent.methods}))
    claims, token = signer.issue(
        lambda: tokens.claims_for(
            holder,
            conventions.new_id(call),
            methods=methods,
            now=call.now,
            lifetime_s=call.site.settings.authenticating.token_lifetime_s,
            parent=parent,
        )
    )
    return _shown(holder, all_roles, claims), token


async def _subject(call: Call, signer: Signer, rule: str) -> tuple[Claims, Shown]:
    text = call.headers.get(SUBJECT)
    if not text:
        raise Invalid("The header X-Subject-Token is missing.")
    try:
        claims = signer.open(text, call.now)
    except Unauthenticated as error:
        raise NotFound(UNKNOWN_TOKEN) from error
    call.demand(rule, user_id=claims.user_id)

    def look(tx: Tx) -> Shown:
        holder = tokens.holder(tx, claims)
        return _shown(holder, roles.with_implied(tx, holder.roles), claims)

    try:
        return claims, await call.read(look)
    except Unauthenticated as error:
        raise NotFound(UNKNOWN_TOKEN) from error


async def show(call: Call) -> Answer:
    """Show what a token stands for."""
    signer = call.site.signer
    if signer is None:
        shown = noauth_tokens.subject(call)
    else:
        _, shown = await _subject(call, signer, "identity:validate_token")
    headers = {SUBJECT: call.headers[SUBJECT], "vary": "X-Auth-Token"}
    return Answer(200, document(call, shown), headers)


async def check(call: Call) -> Answer:
    """Tell whether a token is valid."""
    signer = call.site.signer
    if signer is None:
        noauth_tokens.subject(call)
    else:
        await _subject(call, signer, "identity:check_token")
    return Answer(200)


async def revoke(call: Call) -> Answer:
    """Void a token."""
    signer = call.site.signer
    if signer is None:
        # Whoever writes the name again has the token again.
        noauth_tokens.subject(call)
        return Answer(204)
    claims, _ = await _subject(call, signer, "identity:revoke_token")
    await call.write(lambda tx: tokens.revoke(tx, claims, now=call.now))
    call.site.authenticator.forget()
    return Answer(204)
