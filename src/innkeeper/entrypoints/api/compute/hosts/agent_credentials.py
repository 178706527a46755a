"""These handlers let administrators issue, list and revoke the credentials of agents.

Always true: a credential's secret is shown only once, when the credential is issued.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.identity import AgentCredential
from innkeeper.entrypoints.api.compute.links import next_page
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import agent_credentials


async def create(call: Call) -> Answer:
    """Issue a credential for an agent. Only this answer shows the secret."""
    requested = call.body["agent_credential"]
    issued, text = await call.write(
        lambda tx: agent_credentials.issue(
            tx,
            requested["agent_name"],
            hosts=tuple(requested.get("hosts", ())),
            lifetime_s=requested.get("lifetime_s"),
            is_replacing=requested.get("replace", False),
            ids=call.site.ids,
            now=call.now,
        )
    )
    call.site.authenticator.forget()
    return Answer(201, {"agent_credential": {**_shown(issued), "credential": text}})


async def index(call: Call) -> Answer:
    """List the credentials of agents."""
    limit, marker, name = limit_of(call), call.last("marker"), call.last("agent_name")
    if name is not None:
        found = await call.read(lambda tx: agent_credentials.of_agent(tx, name))
    else:
        found = await call.read(lambda tx: agent_credentials.page(tx, marker, limit))
    body: dict[str, Any] = {"agent_credentials": [_shown(each) for each in found]}
    if name is None and found and len(found) == limit:
        body["agent_credentials_links"] = next_page(call, "os-agent-credentials", found[-1].id)
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show a credential of an agent, without its secret."""
    credential_id = call.params["credential_id"]
    found = await call.read(lambda tx: agent_credentials.get(tx, credential_id))
    return Answer(200, {"agent_credential": _shown(found)})


async def delete(call: Call) -> Answer:
    """Revoke a credential of an agent."""
    credential_id = call.params["credential_id"]
    await call.write(lambda tx: agent_credentials.revoke(tx, credential_id))
    call.site.authenticator.forget()
    return Answer(204)


def _shown(credential: AgentCredential) -> dict[str, Any]:
    expires_at = credential.expires_at
    return {
        "id": credential.id,
        "agent_name": credential.agent_name,
        "hosts": list(credential.hosts),
        "created_at": f"{credential.created_at.isoformat()}Z",
        "expires_at": None if expires_at is None else f"{expires_at.isoformat()}Z",
    }
