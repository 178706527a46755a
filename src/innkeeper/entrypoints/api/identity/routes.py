"""The Identity API: URL and method to handler and policy."""

from __future__ import annotations

from innkeeper.entrypoints.api.identity import (
    catalog,
    documents,
    domains,
    logins,
    projects,
    roles,
    schemas,
    tokens,
    users,
)
from innkeeper.entrypoints.api.identity.checks import (
    ADMIN,
    ADMIN_OR_SELF,
    ADMIN_SERVICE_OR_SELF,
    ANYBODY,
    PROJECT,
    SELF,
)
from innkeeper.entrypoints.api.identity.faults import body_refusal, form, query_refusal
from innkeeper.entrypoints.api.routing import Api, Route, Rule, all_rules

TOKENS = "/v3/auth/tokens"
LOGIN_BYTES_MAX = 64 * 1024
"""Whoever logs in is a stranger still, and has little to say."""
GRANTS = "/v3/projects/{project_id}/users/{user_id}/roles"
GRANT = f"{GRANTS}/{{role_id}}"

_AUTH = (
    Route("GET", "", documents.choices, None, "List the versions.", success=(300,)),
    # With its slash: clients ask for it with and without.
    Route("GET", "/v3/", documents.show, None),
    Route(
        "POST",
        TOKENS,
        tokens.issue,
        None,
        body=schemas.LOGIN,
        success=(201,),
        body_bytes_max=LOGIN_BYTES_MAX,
    ),
    Route(
        "GET",
        TOKENS,
        tokens.show,
        Rule("identity:validate_token", ADMIN_SERVICE_OR_SELF, "Show what a token stands for."),
        "Show a token.",
    ),
    Route(
        "HEAD",
        TOKENS,
        tokens.check,
        Rule("identity:check_token", ADMIN_SERVICE_OR_SELF, "Ask whether a token is valid."),
        "Check a token.",
    ),
    Route(
        "DELETE",
        TOKENS,
        tokens.revoke,
        Rule("identity:revoke_token", ADMIN_OR_SELF),
        success=(204,),
    ),
    Route(
        "GET",
        "/v3/auth/catalog",
        catalog.show,
        Rule("identity:get_auth_catalog", ANYBODY, "Show the service catalog."),
    ),
    Route(
        "GET",
        "/v3/auth/projects",
        logins.find_projects,
        Rule("identity:get_auth_projects", ANYBODY),
    ),
    Route(
        "GET",
        "/v3/auth/domains",
        logins.find_domains,
        Rule("identity:get_auth_domains", ANYBODY),
        "List the domains one can log in to.",
    ),
)

_PROJECTS = (
    Route(
        "GET",
        "/v3/projects",
        projects.find,
        Rule("identity:list_projects", ADMIN),
        query=schemas.PROJECT_QUERY,
    ),
    Route(
        "POST",
        "/v3/projects",
        projects.create,
        Rule("identity:create_project", ADMIN),
        body=schemas.PROJECT_CREATE,
        success=(201,),
    ),
    Route("GET", "/v3/projects/{project_id}", projects.show, Rule("identity:get_project", PROJECT)),
    Route(
        "PATCH",
        "/v3/projects/{project_id}",
        projects.update,
        Rule("identity:update_project", ADMIN),
        body=schemas.PROJECT_UPDATE,
    ),
    Route(
        "DELETE",
        "/v3/projects/{project_id}",
        projects.delete,
        Rule("identity:delete_project", ADMIN),
        success=(204,),
    ),
)

_USERS = (
    Route(
        "GET", "/v3/users", users.find, Rule("identity:list_users", ADMIN), query=schemas.USER_QUERY
    ),
    Route(
        "POST",
        "/v3/users",
        users.create,
        Rule("identity:create_user", ADMIN),
        "Create a user.",
        body=schemas.USER_CREATE,
        success=(201,),
    ),
    Route("GET", "/v3/users/{user_id}", users.show, Rule("identity:get_user", ADMIN_OR_SELF)),
    Route(
        "PATCH",
        "/v3/users/{user_id}",
        users.update,
        Rule("identity:update_user", ADMIN),
        body=schemas.USER_UPDATE,
    ),
    Route(
        "DELETE",
        "/v3/users/{user_id}",
        users.delete,
        Rule("identity:delete_user", ADMIN),
        success=(204,),
    ),
    Route(
        "POST",
        "/v3/users/{user_id}/password",
        users.change_password,
        Rule("identity:change_password", SELF),
        "Change one's own password.",
        body=schemas.PASSWORD_CHANGE,
        success=(204,),
    ),
    Route(
        "GET",
        "/v3/users/{user_id}/projects",
        projects.of_user,
        Rule("identity:list_user_projects", ADMIN_OR_SELF),
        "List the projects of a user.",
    ),
)

_ROLES = (
    Route(
        "GET", "/v3/roles", roles.find, Rule("identity:list_roles", ADMIN), query=schemas.ROLE_QUERY
    ),
    Route(
        "POST",
        "/v3/roles",
        roles.create,
        Rule("identity:create_role", ADMIN),
        body=schemas.ROLE_CREATE,
        success=(201,),
    ),
    Route("GET", "/v3/roles/{role_id}", roles.show, Rule("identity:get_role", ADMIN)),
    Route(
        "PATCH",
        "/v3/roles/{role_id}",
        roles.update,
        Rule("identity:update_role", ADMIN),
        body=schemas.ROLE_UPDATE,
    ),
    Route(
        "DELETE",
        "/v3/roles/{role_id}",
        roles.delete,
        Rule("identity:delete_role", ADMIN),
        success=(204,),
    ),
    Route("GET", GRANTS, roles.find_granted, Rule("identity:list_grants", ADMIN)),
    Route(
        "HEAD",
        GRANT,
        roles.check,
        Rule("identity:check_grant", ADMIN, "Ask whether a user has a role on a project."),
        "Check a user's role on a project.",
        success=(204,),
    ),
    Route("PUT", GRANT, roles.grant, Rule("identity:create_grant", ADMIN), success=(204,)),
    Route("DELETE", GRANT, roles.withdraw, Rule("identity:revoke_grant", ADMIN), success=(204,)),
    Route(
        "GET",
        "/v3/role_assignments",
        roles.assignments,
        Rule("identity:list_role_assignments", ADMIN_OR_SELF, "List who has which role where."),
        query=schemas.ASSIGNMENT_QUERY,
    ),
)

_CLOUD = (
    Route(
        "GET",
        "/v3/domains",
        domains.find,
        Rule("identity:list_domains", ADMIN),
        query=schemas.DOMAIN_QUERY,
    ),
    Route(
        "GET",
        "/v3/domains/{domain_id}",
        domains.show,
        Rule("identity:get_domain", ANYBODY),
        "Show a domain.",
    ),
    Route(
        "GET",
        "/v3/services",
        catalog.find_services,
        Rule("identity:list_services", ADMIN, "List the services of the catalog."),
        query=schemas.SERVICE_QUERY,
    ),
    Route(
        "GET",
        "/v3/services/{service_id}",
        catalog.show_service,
        Rule("identity:get_service", ADMIN, "Show a service of the catalog."),
    ),
    Route(
        "GET",
        "/v3/endpoints",
        catalog.find_endpoints,
        Rule("identity:list_endpoints", ADMIN),
        query=schemas.ENDPOINT_QUERY,
    ),
    Route(
        "GET",
        "/v3/endpoints/{endpoint_id}",
        catalog.show_endpoint,
        Rule("identity:get_endpoint", ADMIN, "Show an address of a service."),
    ),
    Route(
        "GET",
        "/v3/regions",
        domains.find_regions,
        Rule("identity:list_regions", ANYBODY),
        "List regions.",
        query=schemas.REGION_QUERY,
    ),
    Route(
        "GET",
        "/v3/regions/{region_id}",
        domains.show_region,
        Rule("identity:get_region", ANYBODY),
        "Show a region.",
    ),
)

ROUTES = (*_AUTH, *_PROJECTS, *_USERS, *_ROLES, *_CLOUD)
IDENTITY = Api(
    name="identity",
    service_type="identity",
    title="Identity",
    routes=ROUTES,
    rules=all_rules(ROUTES),
    fault_form=form,
    body_refusal=body_refusal,
    query_refusal=query_refusal,
    has_single_query_values=True,
    catalog_path="/v3",
)
