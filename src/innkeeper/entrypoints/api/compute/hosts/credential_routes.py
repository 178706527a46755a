"""Routes of agents' credentials, for administrators."""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN
from innkeeper.entrypoints.api.compute.hosts import agent_credentials, agent_schemas
from innkeeper.entrypoints.api.routing import Route, Rule

_CREDENTIALS = agent_credentials.PATH
_CREDENTIAL = f"{_CREDENTIALS}/{{credential_id}}"
_RULE = "os_compute_api:os-agent-credentials"

CREDENTIAL_ROUTES = (
    Route(
        "GET",
        _CREDENTIALS,
        agent_credentials.index,
        Rule(f"{_RULE}:list", ADMIN),
        "List the credentials of agents.",
        query=agent_schemas.CREDENTIALS,
    ),
    Route(
        "POST",
        _CREDENTIALS,
        agent_credentials.create,
        Rule(f"{_RULE}:create", ADMIN),
        "Issue a credential for an agent.",
        body=agent_schemas.CREDENTIAL,
        success=(201,),
    ),
    Route(
        "GET",
        _CREDENTIAL,
        agent_credentials.show,
        Rule(f"{_RULE}:show", ADMIN),
        "Show a credential of an agent, but for its secret.",
    ),
    Route(
        "DELETE",
        _CREDENTIAL,
        agent_credentials.delete,
        Rule(f"{_RULE}:delete", ADMIN),
        "Take an agent's credential back.",
        success=(204,),
    ),
)
