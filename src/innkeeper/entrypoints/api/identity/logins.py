"""What somebody who has a token can log in to next."""

from __future__ import annotations

from innkeeper.domain.identity import Project
from innkeeper.entrypoints.api.identity import conventions, projects
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import projects as all_projects


async def find_projects(call: Call) -> Answer:
    """List the projects one can log in to."""
    user_id = call.context.user_id or ""
    found = await call.read(lambda tx: all_projects.of_user(tx, user_id))
    if call.site.signer is None and call.context.project_id is not None:
        # Nothing is stored of users who are believed; they can log in to what they name.
        found = [Project(call.context.project_id, call.context.project_id)]
    shown = [projects.view(call, each) for each in found if each.is_enabled]
    return Answer(200, conventions.listed(call, "projects", shown))


async def find_domains(call: Call) -> Answer:
    """List the domains one can log in to: none, because no role is given on a domain."""
    return Answer(200, conventions.listed(call, "domains", []))
