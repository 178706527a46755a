"""The Identity API, with its routes and their policy rules.

The rules have Keystone's names. A rule about the caller's own resources is checked twice. First,
the route checks it as if the caller owned the resource. Then the handler checks it with the actual
owner.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.checks import ADMIN, ANYBODY, PROJECT, USER
from innkeeper.entrypoints.api.identity import (
    catalog,
    documents,
    projects,
    roles,
    schemas,
    tokens,
    users,
)
from innkeeper.entrypoints.api.identity.faults import body_refusal, form, query_refusal
from innkeeper.entrypoints.api.routing import Api, Route, Rule, all_rules

SELF = "user_id:%(user_id)s"
USER_OR_SERVICE = f"role:admin or role:service or {SELF}"

TOKENS = "/v3/auth/tokens"
LOGIN_BYTES_MAX = 64 * 1024
"""Maximum size of a login. Logins are small, and come from unauthenticated clients."""
GRANTS = "/v3/projects/{project_id}/users/{user_id}/roles"
GRANT = f"{GRANTS}/{{role_id}}"

_AUTH = (
    Route("GET", "", documents.choices, None, success=(300,)),
    # The path ends with a slash, because clients request it with and without a slash.
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
    Route("GET", TOKENS, tokens.show, Rule("identity:validate_token", USER_OR_SERVICE)),
    Route("HEAD", TOKENS, tokens.check, Rule("identity:check_token", USER_OR_SERVICE)),
    Route("DELETE", TOKENS, tokens.revoke, Rule("identity:revoke_token", USER), success=(204,)),
    Route("GET", "/v3/auth/catalog", catalog.show, Rule("identity:get_auth_catalog", ANYBODY)),
    Route(
        "GET", "/v3/auth/projects", projects.of_caller, Rule("identity:get_auth_projects", ANYBODY)
    ),
    Route(
        "GET", "/v3/auth/domains", catalog.no_domains, Rule("identity:get_auth_domains", ANYBODY)
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
        body=schemas.USER_CREATE,
        success=(201,),
    ),
    Route("GET", "/v3/users/{user_id}", users.show, Rule("identity:get_user", USER)),
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
        body=schemas.PASSWORD_CHANGE,
        success=(204,),
    ),
    Route(
        "GET",
        "/v3/users/{user_id}/projects",
        projects.of_user,
        Rule("identity:list_user_projects", USER),
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
    Route("HEAD", GRANT, roles.check, Rule("identity:check_grant", ADMIN), success=(204,)),
    Route("PUT", GRANT, roles.grant, Rule("identity:create_grant", ADMIN), success=(204,)),
    Route("DELETE", GRANT, roles.withdraw, Rule("identity:revoke_grant", ADMIN), success=(204,)),
    Route(
        "GET",
        "/v3/role_assignments",
        roles.assignments,
        Rule("identity:list_role_assignments", USER),
        query=schemas.ASSIGNMENT_QUERY,
    ),
)

_CLOUD = (
    Route(
        "GET",
        "/v3/domains",
        catalog.find_domains,
        Rule("identity:list_domains", ADMIN),
        query=schemas.DOMAIN_QUERY,
    ),
    Route(
        "GET", "/v3/domains/{domain_id}", catalog.show_domain, Rule("identity:get_domain", ANYBODY)
    ),
    Route(
        "GET",
        "/v3/services",
        catalog.find_services,
        Rule("identity:list_services", ADMIN),
        query=schemas.SERVICE_QUERY,
    ),
    Route(
        "GET",
        "/v3/services/{service_id}",
        catalog.show_service,
        Rule("identity:get_service", ADMIN),
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
        Rule("identity:get_endpoint", ADMIN),
    ),
    Route(
        "GET",
        "/v3/regions",
        catalog.find_regions,
        Rule("identity:list_regions", ANYBODY),
        query=schemas.REGION_QUERY,
    ),
    Route(
        "GET", "/v3/regions/{region_id}", catalog.show_region, Rule("identity:get_region", ANYBODY)
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
