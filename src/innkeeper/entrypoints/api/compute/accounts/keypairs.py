"""A user's keypairs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from innkeeper.domain.compute import Keypair
from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.compute.accounts.quotas import default_limits
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.accounts import keypairs, quotas

USER_ID_MAX = 64
_RULE = "os_compute_api:os-keypairs"


async def index(call: Call) -> Answer:
    """List a user's keypairs."""
    user_id = _user(call, "index")
    limit, marker = limit_of(call), call.last("marker")
    found = await call.read(lambda tx: keypairs.page(tx, user_id, marker, limit))
    body: dict[str, Any] = {"keypairs": [{"keypair": _short(each)} for each in found]}
    if found and len(found) == limit:
        behind = next_query(call, found[-1].name)
        href = f"{call.address}/v2.1/os-keypairs?{behind}"
        body["keypairs_links"] = [{"rel": "next", "href": href}]
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show one keypair."""
    user_id = _user(call, "show")
    keypair = await call.read(lambda tx: keypairs.get(tx, user_id, call.params["name"]))
    body = {
        **_short(keypair),
        "user_id": keypair.user_id,
        "id": keypair.id,
        "created_at": _moment(keypair.created_at),
        "updated_at": None,
        "deleted": False,
        "deleted_at": None,
    }
    return Answer(200, {"keypair": body})


async def create(call: Call) -> Answer:
    """Keep a public key, or make a pair where the client's version still may ask for one."""
    body = call.body["keypair"]
    user_id = body.get("user_id") or call.context.user_id or ""
    call.demand(f"{_RULE}:create", user_id=user_id)
    key_type = body.get("type", keypairs.SSH)
    private_key = None
    if "public_key" in body:
        public_key = body["public_key"]
    elif key_type == keypairs.SSH:
        made = keypairs.generate("innkeeper")
        public_key, private_key = made.public_key, made.private_key
    else:
        raise Invalid("Keypairs of the type x509 can be imported, and are not made here.")
    keypair = Keypair(
        user_id=user_id,
        name=body["name"],
        key_type=key_type,
        public_key=public_key,
        fingerprint=keypairs.fingerprint(key_type, public_key),
        created_at=call.now,
    )
    if len(user_id) > USER_ID_MAX:
        raise Invalid(f"A user's id has at most {USER_ID_MAX} characters.")
    project_id = call.context.project_id or ""
    default = default_limits(call)
    await call.write(
        lambda tx: keypairs.add(tx, keypair, quotas.limits(tx, project_id, default).keypairs)
    )
    answer = {**_short(keypair), "user_id": user_id}
    if private_key is not None:
        answer["private_key"] = private_key
    return Answer(201, {"keypair": answer})


async def delete(call: Call) -> Answer:
    """Delete a keypair."""
    user_id = _user(call, "delete")
    await call.write(lambda tx: keypairs.delete(tx, user_id, call.params["name"]))
    return Answer(204)


def in_answer(answer: Answer) -> list[dict[str, Any]]:
    """The keypairs in an answer, be it a list or one of them."""
    body: dict[str, Any] = answer.body
    if "keypair" in body:
        return [body["keypair"]]
    return [each["keypair"] for each in body["keypairs"]]


def _user(call: Call, verb: str) -> str:
    """Whose keypairs this is about; raises unless the caller may ask."""
    user_id = call.last("user_id") or call.context.user_id or ""
    call.demand(f"{_RULE}:{verb}", user_id=user_id)
    return user_id


def _short(keypair: Keypair) -> dict[str, Any]:
    return {
        "name": keypair.name,
        "public_key": keypair.public_key,
        "fingerprint": keypair.fingerprint,
        "type": keypair.key_type,
    }


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")
