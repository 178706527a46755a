"""Users, roles and tokens in the store: the first start, and events that invalidate a token."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import argon2
import pytest

from innkeeper.domain.errors import AlreadyExists, Unauthenticated
from innkeeper.domain.identity import Project, User
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.identity import first_start, passwords, projects, roles, tokens, users
from innkeeper.systems.identity.secret_boxes import SecretBox
from innkeeper.systems.identity.tokens import Claims, Signer

NOW = datetime(2026, 1, 1)  # noqa: DTZ001 - the core's clock is naive and in UTC
HOUR_S = 3600.0


class CountingIds:
    """Gives the same ids in every run."""

    def __init__(self, given: int = 0) -> None:
        self.given = given

    def uuid(self) -> str:
        """Give the next id."""
        self.given += 1
        return f"00000000-0000-4000-8000-{self.given:012x}"

    def seed(self) -> int:
        """Give the next seed."""
        self.given += 1
        return self.given


def start(store: Store, admin_hash: str = "hash") -> bool:
    with store.write() as tx:
        return first_start.ensure(
            tx, admin_hash=admin_hash, agent_hash="other", ids=CountingIds(), now=NOW
        )


def everything(tx: Tx) -> list[object]:
    return [projects.find(tx), users.find(tx), roles.find(tx), roles.assignments(tx)]


def test_the_first_start_creates_roles_and_users(store: Store) -> None:
    assert start(store)
    with store.read() as tx:
        held = [(a.user_name, a.project_name, a.role.name) for a in roles.assignments(tx)]
        assert held == [("admin", "admin", "admin"), ("innkeeper-agent", "service", "service")]
        assert [role.name for role in roles.find(tx)] == ["admin", "member", "reader", "service"]


def test_the_second_start_changes_nothing(store: Store) -> None:
    start(store)
    with store.write() as tx:
        (agent,) = users.find(tx, name="innkeeper-agent")
        users.delete(tx, agent.id)
        before = everything(tx)
    assert not start(store, "another")
    with store.read() as tx:
        assert everything(tx) == before


def test_an_interrupted_first_start_is_repeated(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.write() as tx:
        first_start.ensure(tx, admin_hash="a", agent_hash="b", ids=CountingIds(), now=NOW)
        raise ZeroDivisionError
    assert start(store, "good")
    with store.read() as tx:
        assert [user.password_hash for user in users.find(tx, name="admin")] == ["good"]


def test_resetting_the_administrator_restores_access(store: Store) -> None:
    start(store)
    with store.write() as tx:
        (admin,) = users.find(tx, name="admin")
        users.delete(tx, admin.id)
        first_start.reset_administrator(tx, admin_hash="new", ids=CountingIds(1000), now=NOW)
        (admin,) = users.find(tx, name="admin")
        assert (admin.password_hash, admin.is_enabled) == ("new", True)
        assert [each.role.name for each in roles.assignments(tx, user_id=admin.id)] == ["admin"]


def test_all_processes_share_one_key(store: Store) -> None:
    safe = SecretBox([b"k" * 32], lambda count: b"n" * count)
    with store.write() as tx:
        first = tokens.signing_key(tx, lambda: safe, draw=lambda count: b"a" * count, now=NOW)
    with store.write() as tx:
        other = tokens.signing_key(tx, lambda: safe, draw=lambda count: b"b" * count, now=NOW)
    assert other == first


def claims(tx: Tx) -> Claims:
    """The claims of a new token of the administrator."""
    signer = Signer(b"k" * 32)
    text = tokens.mint(tx, signer, "admin", "admin", audit_id="t1", now=NOW, lifetime_s=HOUR_S)
    return signer.open(text, NOW)


def test_a_token_stands_for_its_user(store: Store) -> None:
    start(store)
    with store.read() as tx:
        held = tokens.holder(tx, claims(tx))
        assert held.user.name == "admin"
        assert held.project is not None
        assert [role.name for role in held.roles] == ["admin"]
        assert "hash" not in repr(held)


Void = Callable[[Tx, User, Project], None]


def disable(tx: Tx, user: User, project: Project) -> None:
    users.update(tx, user.id, {"is_enabled": False}, now=NOW)


def disable_and_enable(tx: Tx, user: User, project: Project) -> None:
    disable(tx, user, project)
    users.update(tx, user.id, {"is_enabled": True}, now=NOW)


def set_password(tx: Tx, user: User, project: Project) -> None:
    users.update(tx, user.id, {"password_hash": "new"}, now=NOW - timedelta(days=1))


def delete_user(tx: Tx, user: User, project: Project) -> None:
    users.delete(tx, user.id)


def disable_project(tx: Tx, user: User, project: Project) -> None:
    projects.update(tx, project.id, {"is_enabled": False})


def delete_project(tx: Tx, user: User, project: Project) -> None:
    projects.delete(tx, project.id)


def withdraw_role(tx: Tx, user: User, project: Project) -> None:
    (role,) = roles.find(tx, name="admin")
    roles.withdraw(tx, user.id, project.id, role.id, now=NOW)


def withdraw_and_grant(tx: Tx, user: User, project: Project) -> None:
    withdraw_role(tx, user, project)
    (role,) = roles.find(tx, name="admin")
    roles.grant(tx, user.id, project.id, role.id)


def revoke(tx: Tx, user: User, project: Project) -> None:
    tokens.revoke(tx, claims(tx), now=NOW)


def revoke_twice(tx: Tx, user: User, project: Project) -> None:
    revoke(tx, user, project)
    revoke(tx, user, project)


VOIDING = (
    disable,
    disable_and_enable,
    set_password,
    delete_user,
    disable_project,
    delete_project,
    withdraw_role,
    withdraw_and_grant,
    revoke,
    revoke_twice,
)


@pytest.mark.parametrize("void", VOIDING, ids=lambda act: act.__name__)
def test_what_voids_a_token(store: Store, void: Void) -> None:
    start(store)
    with store.write() as tx:
        made = claims(tx)
        held = tokens.holder(tx, made)
        assert held.project is not None
        void(tx, held.user, held.project)
        with pytest.raises(Unauthenticated):
            tokens.holder(tx, made)


def got_by(tx: Tx, parent: Claims, audit_id: str) -> Claims:
    """The claims of a token that was derived from another one."""
    return tokens.claims_for(
        tokens.holder(tx, parent), audit_id, now=NOW, lifetime_s=HOUR_S, parent=parent
    )


@pytest.mark.parametrize(
    ("revoked", "void"),
    [("t1", "t1 a b c d"), ("a", "a b c"), ("b", "b c"), ("c", "c"), ("d", "d")],
)
def test_revoking_a_token_revokes_derived_tokens(store: Store, revoked: str, void: str) -> None:
    start(store)
    with store.write() as tx:
        made = {"t1": claims(tx)}
        for name, parent in (("a", "t1"), ("b", "a"), ("c", "b"), ("d", "t1")):
            made[name] = got_by(tx, made[parent], name)
        tokens.revoke(tx, made[revoked], now=NOW)
        for name, each in made.items():
            if name in void.split():
                with pytest.raises(Unauthenticated):
                    tokens.holder(tx, each)
            else:
                assert tokens.holder(tx, each).user.name == "admin"


def test_the_chain_of_derived_tokens_is_bounded(store: Store) -> None:
    start(store)
    long_id = "f" * 32
    with store.write() as tx:
        last = claims_with(claims(tx), long_id)
        for _ in range(tokens.CHAIN_MAX - 1):
            last = got_by(tx, last, long_id)
        text = Signer(b"k" * 32).sign(last)
        assert len(text) <= tokens.TOKEN_LENGTH_MAX
        assert Signer(b"k" * 32).open(text, NOW) == last
        with pytest.raises(Unauthenticated, match="log in again"):
            got_by(tx, last, long_id)


def test_expired_revocations_are_deleted(store: Store) -> None:
    start(store)
    with store.write() as tx:
        made = claims(tx)
        tokens.revoke(tx, made, now=NOW)
        other = tokens.claims_for(
            tokens.holder(tx, claims_with(made, "t2")), "t3", now=NOW, lifetime_s=HOUR_S
        )
        tokens.revoke(tx, other, now=made.expires_at + timedelta(seconds=1))
        # The revocation is gone; Signer.open refuses the expired token.
        assert tokens.holder(tx, made).user.name == "admin"


def claims_with(made: Claims, audit_id: str) -> Claims:
    """The same claims under another id."""
    return Claims(
        (audit_id,),
        made.user_id,
        made.project_id,
        made.methods,
        made.issued_us,
        made.expires_us,
        made.stamp_us,
    )


def test_names_are_unique(store: Store) -> None:
    start(store)
    with store.write() as tx, pytest.raises(AlreadyExists):
        projects.create(tx, Project("another", "admin", created_at=NOW))


def test_passwords() -> None:
    one, two = passwords.hash_of("secret"), passwords.hash_of("secret")
    assert one != two
    assert passwords.verify(one, "secret")
    assert not passwords.verify(one, "Secret")
    for nothing in (None, "", "no hash"):
        assert not passwords.verify(nothing, "nobody")


def test_a_check_without_a_user_computes_a_whole_hash() -> None:
    """A malformed hash would be rejected at once, which would reveal that there is no user."""
    with pytest.raises(argon2.exceptions.VerifyMismatchError):
        argon2.PasswordHasher().verify(passwords._NOBODYS_HASH, "nobody")
    theirs, nobodys = (
        argon2.extract_parameters(each)
        for each in (passwords.hash_of("secret"), passwords._NOBODYS_HASH)
    )
    assert theirs == nobodys
