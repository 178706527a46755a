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
from innkeeper.entrypoints.api.identity.faults import body_refusal, form, query_refusal
from innkeeper.entrypoints.api.identity.rules import RULES
from innkeeper.entrypoints.api.routing import Api, Route

TOKENS = "/v3/auth/tokens"
LOGIN_BYTES_MAX = 64 * 1024
"""Whoever logs in is a stranger still, and has little to say."""
GRANTS = "/v3/projects/{project_id}/users/{user_id}/roles"
GRANT = f"{GRANTS}/{{role_id}}"

_AUTH = (
    Route("GET", "", documents.choices, None, "List the versions.", success=(300,)),
    # With its slash: clients ask for it with and without.
    Route("GET", "/v3/", documents.show, None, "Show version 3."),
    Route(
        "POST",
        TOKENS,
        tokens.issue,
        None,
        "Log in.",
        body=schemas.LOGIN,
        success=(201,),
        body_bytes_max=LOGIN_BYTES_MAX,
    ),
    Route("GET", TOKENS, tokens.show, "identity:validate_token", "Show a token."),
    Route("HEAD", TOKENS, tokens.check, "identity:check_token", "Check a token."),
    Route(
        "DELETE",
        TOKENS,
        tokens.revoke,
        "identity:revoke_token",
        "Void a token.",
        success=(204,),
    ),
    Route(
        "GET",
        "/v3/auth/catalog",
        catalog.show,
        "identity:get_auth_catalog",
        "Show the catalog.",
    ),
    Route(
        "GET",
        "/v3/auth/projects",
        logins.find_projects,
        "identity:get_auth_projects",
        "List the projects one can log in to.",
    ),
    Route(
        "GET",
        "/v3/auth/domains",
        logins.find_domains,
        "identity:get_auth_domains",
        "List the domains one can log in to.",
    ),
)

_PROJECTS = (
    Route(
        "GET",
        "/v3/projects",
        projects.find,
        "identity:list_projects",
        "List projects.",
        query=schemas.PROJECT_QUERY,
    ),
    Route(
        "POST",
        "/v3/projects",
        projects.create,
        "identity:create_project",
        "Create a project.",
        body=schemas.PROJECT_CREATE,
        success=(201,),
    ),
    Route(
        "GET",
        "/v3/projects/{project_id}",
        projects.show,
        "identity:get_project",
        "Show a project.",
    ),
    Route(
        "PATCH",
        "/v3/projects/{project_id}",
        projects.update,
        "identity:update_project",
        "Change a project.",
        body=schemas.PROJECT_UPDATE,
    ),
    Route(
        "DELETE",
        "/v3/projects/{project_id}",
        projects.delete,
        "identity:delete_project",
        "Delete a project.",
        success=(204,),
    ),
)

_USERS = (
    Route(
        "GET",
        "/v3/users",
        users.find,
        "identity:list_users",
        "List users.",
        query=schemas.USER_QUERY,
    ),
    Route(
        "POST",
        "/v3/users",
        users.create,
        "identity:create_user",
        "Create a user.",
        body=schemas.USER_CREATE,
        success=(201,),
    ),
    Route("GET", "/v3/users/{user_id}", users.show, "identity:get_user", "Show a user."),
    Route(
        "PATCH",
        "/v3/users/{user_id}",
        users.update,
        "identity:update_user",
        "Change a user.",
        body=schemas.USER_UPDATE,
    ),
    Route(
        "DELETE",
        "/v3/users/{user_id}",
        users.delete,
        "identity:delete_user",
        "Delete a user.",
        success=(204,),
    ),
    Route(
        "POST",
        "/v3/users/{user_id}/password",
        users.change_password,
        "identity:change_password",
        "Change one's own password.",
        body=schemas.PASSWORD_CHANGE,
        success=(204,),
    ),
    Route(
        "GET",
        "/v3/users/{user_id}/projects",
        projects.of_user,
        "identity:list_user_projects",
        "List the projects of a user.",
    ),
)

_ROLES = (
    Route(
        "GET",
        "/v3/roles",
        roles.find,
        "identity:list_roles",
        "List roles.",
        query=schemas.ROLE_QUERY,
    ),
    Route(
        "POST",
        "/v3/roles",
        roles.create,
        "identity:create_role",
        "Create a role.",
        body=schemas.ROLE_CREATE,
        success=(201,),
    ),
    Route("GET", "/v3/roles/{role_id}", roles.show, "identity:get_role", "Show a role."),
    Route(
        "PATCH",
        "/v3/roles/{role_id}",
        roles.update,
        "identity:update_role",
        "Change a role.",
        body=schemas.ROLE_UPDATE,
    ),
    Route(
        "DELETE",
        "/v3/roles/{role_id}",
        roles.delete,
        "identity:delete_role",
        "Delete a role.",
        success=(204,),
    ),
    Route(
        "GET",
        GRANTS,
        roles.find_granted,
        "identity:list_grants",
        "List the roles of a user on a project.",
    ),
    Route(
        "HEAD",
        GRANT,
        roles.check,
        "identity:check_grant",
        "Check a user's role on a project.",
        success=(204,),
    ),
    Route(
        "PUT",
        GRANT,
        roles.grant,
        "identity:create_grant",
        "Give a user a role on a project.",
        success=(204,),
    ),
    Route(
        "DELETE",
        GRANT,
        roles.withdraw,
        "identity:revoke_grant",
        "Take a role from a user on a project.",
        success=(204,),
    ),
    Route(
        "GET",
        "/v3/role_assignments",
        roles.assignments,
        "identity:list_role_assignments",
        "List who has which role on what.",
        query=schemas.ASSIGNMENT_QUERY,
    ),
)

_CLOUD = (
    Route(
        "GET",
        "/v3/domains",
        domains.find,
        "identity:list_domains",
        "List domains.",
        query=schemas.DOMAIN_QUERY,
    ),
    Route(
        "GET", "/v3/domains/{domain_id}", domains.show, "identity:get_domain", "Show a domain."
    ),
    Route(
        "GET",
        "/v3/services",
        catalog.find_services,
        "identity:list_services",
        "List services.",
        query=schemas.SERVICE_QUERY,
    ),
    Route(
        "GET",
        "/v3/services/{service_id}",
        catalog.show_service,
        "identity:get_service",
        "Show a service.",
    ),
    Route(
        "GET",
        "/v3/endpoints",
        catalog.find_endpoints,
        "identity:list_endpoints",
        "List the addresses of services.",
        query=schemas.ENDPOINT_QUERY,
    ),
    Route(
        "GET",
        "/v3/endpoints/{endpoint_id}",
        catalog.show_endpoint,
        "identity:get_endpoint",
        "Show one address of a service.",
    ),
    Route(
        "GET",
        "/v3/regions",
        domains.find_regions,
        "identity:list_regions",
        "List regions.",
        query=schemas.REGION_QUERY,
    ),
    Route(
        "GET",
        "/v3/regions/{region_id}",
        domains.show_region,
        "identity:get_region",
        "Show a region.",
    ),
)

IDENTITY = Api(
    name="identity",
    service_type="identity",
    title="Identity",
    routes=(*_AUTH, *_PROJECTS, *_USERS, *_ROLES, *_CLOUD),
    rules=RULES,
    fault_form=form,
    body_refusal=body_refusal,
    query_refusal=query_refusal,
    has_single_query_values=True,
    catalog_path="/v3",
)
