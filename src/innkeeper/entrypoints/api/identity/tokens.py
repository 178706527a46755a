"""Handlers that issue, show and revoke tokens. A token is issued for a password or another token.

Always true: the answer to a rejected login contains no reason, and takes the same time whether or
not the user exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Invalid, NotFound, Unauthenticated
from innkeeper.domain.identity import Role, TokenOwner, User
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.identity import conventions, noauth_tokens, users
from innkeeper.entrypoints.api.identity.noauth_tokens import SUBJECT, UNKNOWN_TOKEN
from innkeeper.entrypoints.api.identity.token_documents import TokenView, document
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import logins, roles, tokens
from innkeeper.systems.identity.logins import NamedEntity, Scope
from innkeeper.systems.identity.tokens import PASSWORD, TOKEN, Claims, Signer


def _shown(holder: TokenOwner, all_roles: tuple[Role, ...], claims: Claims) -> TokenView:
    user, project = holder.user, holder.project
    return TokenView(
        user=(user.id, user.name),
        project=None if project is None else (project.id, project.name),
        roles=all_roles,
        methods=claims.methods,
        # This API shows the audit ids of the token itself and of the first token in its chain.
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
    # No role can be assigned on the domain or on the whole system.
    raise Unauthenticated(logins.REFUSED)


async def issue(call: Call) -> Answer:
    """Issue a token in exchange for a password or for another token."""
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
) -> tuple[TokenView, str]:
    fields = identity[PASSWORD]["user"]
    named = _named(fields)
    user = await call.read(lambda tx: logins.user_named(tx, named))
    name = named.id or named.name or ""
    is_right = await users.is_password_of(call, user, name, fields["password"])
    if user is None or not is_right:
        raise Unauthenticated(logins.REFUSED)
    known = user
    # Read the project and roles only after the password check, so that unknown users do not get
    # faster answers than known users. If the user has changed since the first read, the token is
    # invalid, because it contains the old ``tokens_valid_from``.
    holder, all_roles = await call.read(lambda tx: _holder_and_roles(tx, known, scope))
    return _signed(call, signer, holder, all_roles, None)


async def _by_token(
    call: Call, signer: Signer, identity: Mapping[str, Any], scope: Scope
) -> tuple[TokenView, str]:
    claims = signer.open(identity[TOKEN]["id"], call.now)
    holder, all_roles = await call.read(
        lambda tx: _holder_and_roles(tx, tokens.holder(tx, claims).user, scope)
    )
    return _signed(call, signer, holder, all_roles, claims)


def _signed(
    call: Call,
    signer: Signer,
    holder: TokenOwner,
    all_roles: tuple[Role, ...],
    parent: Claims | None,
) -> tuple[TokenView, str]:
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


async def _subject(call: Call, signer: Signer, rule: str) -> tuple[Claims, TokenView]:
    text = noauth_tokens.subject_header(call)
    try:
        claims = signer.open(text, call.now)
    except Unauthenticated as error:
        raise NotFound(UNKNOWN_TOKEN) from error
    call.demand(rule, user_id=claims.user_id)

    def look(tx: Tx) -> TokenView:
        holder = tokens.holder(tx, claims)
        return _shown(holder, roles.with_implied(tx, holder.roles), claims)

    try:
        return claims, await call.read(look)
    except Unauthenticated as error:
        raise NotFound(UNKNOWN_TOKEN) from error


async def show(call: Call) -> Answer:
    """Show a token's user, project and roles."""
    signer = call.site.signer
    if signer is None:
        shown = noauth_tokens.subject(call)
    else:
        _, shown = await _subject(call, signer, "identity:validate_token")
    headers = {SUBJECT: call.headers[SUBJECT], "vary": "X-Auth-Token"}
    return Answer(200, document(call, shown), headers)


async def check(call: Call) -> Answer:
    """Check that a token is valid."""
    signer = call.site.signer
    if signer is None:
        noauth_tokens.subject(call)
    else:
        await _subject(call, signer, "identity:check_token")
    return Answer(200)


async def revoke(call: Call) -> Answer:
    """Revoke a token."""
    signer = call.site.signer
    if signer is None:
        # A token that consists of names cannot be revoked.
        noauth_tokens.subject(call)
        return Answer(204)
    claims, _ = await _subject(call, signer, "identity:revoke_token")
    await call.write(lambda tx: tokens.revoke(tx, claims, now=call.now))
    call.site.authenticator.forget()
    return Answer(204)
