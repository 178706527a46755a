"""Who may do what in the Identity API, by Keystone's names.

Administrators may do everything; everybody may see and change their own: their token, their
password, their projects. A rule about somebody's own thing is asked twice: by the route,
where the caller is the target, and by the handler, with the real one.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Rule

ADMIN = "role:admin"
ADMIN_OR_SELF = "role:admin or user_id:%(user_id)s"
ADMIN_SERVICE_OR_SELF = "role:admin or role:service or user_id:%(user_id)s"
ANYBODY = "@"


def _of(noun: str, plural: str, get: str = ADMIN) -> tuple[Rule, ...]:
    return (
        Rule(f"identity:get_{noun}", get, f"Show a {noun}."),
        Rule(f"identity:list_{plural}", ADMIN, f"List {plural}."),
        Rule(f"identity:create_{noun}", ADMIN, f"Create a {noun}."),
        Rule(f"identity:update_{noun}", ADMIN, f"Change a {noun}."),
        Rule(f"identity:delete_{noun}", ADMIN, f"Delete a {noun}."),
    )


RULES = (
    *_of("project", "projects", "role:admin or project_id:%(project_id)s"),
    *_of("user", "users", ADMIN_OR_SELF),
    *_of("role", "roles"),
    Rule("identity:list_user_projects", ADMIN_OR_SELF, "List the projects of a user."),
    Rule("identity:change_password", "user_id:%(user_id)s", "Change one's own password."),
    Rule("identity:check_grant", ADMIN, "Ask whether a user has a role on a project."),
    Rule("identity:list_grants", ADMIN, "List the roles of a user on a project."),
    Rule("identity:create_grant", ADMIN, "Give a user a role on a project."),
    Rule("identity:revoke_grant", ADMIN, "Take a role from a user on a project."),
    Rule("identity:list_role_assignments", ADMIN_OR_SELF, "List who has which role where."),
    Rule("identity:validate_token", ADMIN_SERVICE_OR_SELF, "Show what a token stands for."),
    Rule("identity:check_token", ADMIN_SERVICE_OR_SELF, "Ask whether a token is valid."),
    Rule("identity:revoke_token", ADMIN_OR_SELF, "Void a token."),
    Rule("identity:get_auth_catalog", ANYBODY, "Show the service catalog."),
    Rule("identity:get_auth_projects", ANYBODY, "List the projects one can log in to."),
    Rule("identity:get_auth_domains", ANYBODY, "List the domains one can log in to."),
    Rule("identity:get_domain", ANYBODY, "Show a domain."),
    Rule("identity:list_domains", ADMIN, "List domains."),
    Rule("identity:get_service", ADMIN, "Show a service of the catalog."),
    Rule("identity:list_services", ADMIN, "List the services of the catalog."),
    Rule("identity:get_endpoint", ADMIN, "Show an address of a service."),
    Rule("identity:list_endpoints", ADMIN, "List the addresses of services."),
    Rule("identity:get_region", ANYBODY, "Show a region."),
    Rule("identity:list_regions", ANYBODY, "List regions."),
)
