"""Credentials of agents: issued by administrators, listed, taken back.

Always true: the text of a credential is in the answer that issues it, and in no other.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.identity import AgentCredential
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import agent_credentials

PATH = "/v2.1/os-agent-credentials"


async def create(call: Call) -> Answer:
    """Issue a credential; this answer alone has its text."""
    asked = call.body["agent_credential"]
    made, text = await call.write(
        lambda tx: agent_credentials.issue(
            tx,
            asked["agent_name"],
            hosts=tuple(asked.get("hosts", ())),
            lifetime_s=asked.get("lifetime_s"),
            is_replacing=asked.get("replace", False),
            ids=call.site.ids,
            now=call.now,
        )
    )
    call.site.authenticator.forget()
    return Answer(201, {"agent_credential": {**_shown(made), "credential": text}})


async def index(call: Call) -> Answer:
    """List credentials."""
    limit, marker, name = limit_of(call), call.last("marker"), call.last("agent_name")
    if name is not None:
        found = await call.read(lambda tx: agent_credentials.of_agent(tx, name))
    else:
        found = await call.read(lambda tx: agent_credentials.page(tx, marker, limit))
    body: dict[str, Any] = {"agent_credentials": [_shown(each) for each in found]}
    if name is None and found and len(found) == limit:
        behind = next_query(call, found[-1].id)
        body["agent_credentials_links"] = [
            {"rel": "next", "href": f"{call.address}{PATH}?{behind}"}
        ]
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show one credential."""
    credential_id = call.params["credential_id"]
    found = await call.read(lambda tx: agent_credentials.get(tx, credential_id))
    return Answer(200, {"agent_credential": _shown(found)})


async def delete(call: Call) -> Answer:
    """Take one credential back."""
    credential_id = call.params["credential_id"]
    await call.write(lambda tx: agent_credentials.revoke(tx, credential_id))
    call.site.authenticator.forget()
    return Answer(204)


def _shown(credential: AgentCredential) -> dict[str, Any]:
    ends = credential.expires_at
    return {
        "id": credential.id,
        "agent_name": credential.agent_name,
        "hosts": list(credential.hosts),
        "created_at": f"{credential.created_at.isoformat()}Z",
        "expires_at": None if ends is None else f"{ends.isoformat()}Z",
    }
