"""These handlers list, show, create and delete a user's keypairs."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.keypairs import Keypair
from innkeeper.entrypoints.api.compute.accounts.quotas import default_limits
from innkeeper.entrypoints.api.compute.links import next_page
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.paging import limit_of
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
        body["keypairs_links"] = next_page(call, "os-keypairs", found[-1].name)
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show a user's keypair."""
    user_id = _user(call, "show")
    keypair = await call.read(lambda tx: keypairs.get(tx, user_id, call.params["name"]))
    body = {
        **_short(keypair),
        "user_id": keypair.user_id,
        "id": keypair.id,
        "created_at": micros(keypair.created_at),
        "updated_at": None,
        "deleted": False,
        "deleted_at": None,
    }
    return Answer(200, {"keypair": body})


async def create(call: Call) -> Answer:
    """Import a public key. Before 2.92, a request without a public key generates a keypair."""
    body = call.body["keypair"]
    user_id = body.get("user_id") or call.context.user_id or ""
    call.demand(f"{_RULE}:create", user_id=user_id)
    key_type = body.get("type", keypairs.SSH)
    private_key = None
    if "public_key" in body:
        public_key = body["public_key"]
    elif key_type == keypairs.SSH:
        generated = keypairs.generate("innkeeper")
        public_key, private_key = generated.public_key, generated.private_key
    else:
        raise Invalid("Keypairs of type x509 cannot be generated: send a public_key to import one.")
    keypair = Keypair(
        user_id=user_id,
        name=body["name"],
        key_type=key_type,
        public_key=public_key,
        fingerprint=keypairs.fingerprint(key_type, public_key),
        created_at=call.now,
    )
    if len(user_id) > USER_ID_MAX:
        raise Invalid(f"The user_id is too long: it can have at most {USER_ID_MAX} characters.")
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
    """Delete a user's keypair."""
    user_id = _user(call, "delete")
    await call.write(lambda tx: keypairs.delete(tx, user_id, call.params["name"]))
    return Answer(204)


def _user(call: Call, verb: str) -> str:
    """Return the user whose keypairs are requested. Raises if policy denies the request."""
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
