"""Routes of agents' credentials, for administrators."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.hosts import agent_credentials, agent_schemas
from innkeeper.entrypoints.api.routing import Route

_CREDENTIALS = agent_credentials.PATH
_CREDENTIAL = f"{_CREDENTIALS}/{{credential_id}}"
_RULE = "os_compute_api:os-agent-credentials"

CREDENTIAL_ROUTES = (
    Route(
        "GET",
        _CREDENTIALS,
        agent_credentials.index,
        f"{_RULE}:list",
        "List the credentials of agents.",
        query=agent_schemas.CREDENTIALS,
    ),
    Route(
        "POST",
        _CREDENTIALS,
        agent_credentials.create,
        f"{_RULE}:create",
        "Issue a credential for an agent.",
        body=agent_schemas.CREDENTIAL,
        success=(201,),
    ),
    Route(
        "GET",
        _CREDENTIAL,
        agent_credentials.show,
        f"{_RULE}:show",
        "Show a credential of an agent, but for its secret.",
    ),
    Route(
        "DELETE",
        _CREDENTIAL,
        agent_credentials.delete,
        f"{_RULE}:delete",
        "Take an agent's credential back.",
        success=(204,),
    ),
)
