"""The program that serves OpenStack's Identity API: Keystone, with its users and the catalog.

Other services wait for its answers. So it begins to serve when all its data is there.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Mapping
from typing import Any

import keystone.conf
from keystone.cmd import bootstrap
from keystone.common import fernet_utils, provider_api
from keystone.common.sql import upgrades
from keystone.server.flask import core

from tests.support.openstack.serving import serve

KEYS = ("fernet_tokens", "fernet_receipts")
PROVIDERS = provider_api.ProviderAPIs


def main(listener: int, region: str, password: str, catalog: Mapping[str, str]) -> None:
    """Make the tables, the keys, the users and the catalog, and serve.

    ``catalog`` has the address of each type of service.
    """

    def prepare() -> None:
        upgrades.offline_sync_database_to_version()
        for section in KEYS:
            keys = getattr(keystone.conf.CONF, section)
            folder = fernet_utils.FernetUtils(keys.key_repository, keys.max_active_keys, section)
            folder.create_key_directory()
            folder.initialize_key_repository()
        # The parts of Keystone can be connected only once in a process.
        if os.fork() == 0:
            _fill(region, password, catalog)
            os._exit(0)
        _, status = os.wait()
        assert status == 0, "the users and the catalog were not made"

    application = core.initialize_application(
        "public", post_log_configured_function=prepare, config_files=core._get_config_files()
    )
    serve(application, listener)


def _fill(region: str, password: str, catalog: Mapping[str, str]) -> None:
    first = bootstrap.Bootstrapper()
    first.admin_username, first.admin_password = "admin", password
    first.project_name, first.admin_role_name = "admin", "admin"
    first.service_name, first.region_id = "keystone", region
    first.public_url = catalog["identity"]
    first.bootstrap()
    _add_service_user(first, password)
    for type_, url in catalog.items():
        if type_ != "identity":
            _add_service(region, type_, url)


def _add_service_user(first: Any, password: str) -> None:
    domain = first.default_domain_id
    project = {"id": uuid.uuid4().hex, "name": "service", "domain_id": domain, "enabled": True}
    PROVIDERS.resource_api.create_project(project["id"], project)
    wanted = {"name": "service", "password": password, "domain_id": domain, "enabled": True}
    user = PROVIDERS.identity_api.create_user(wanted)
    for role in (first.admin_role_id, first.service_role_id):
        PROVIDERS.assignment_api.create_grant(role, user_id=user["id"], project_id=project["id"])


def _add_service(region: str, type_: str, url: str) -> None:
    service = {"id": uuid.uuid4().hex, "type": type_, "name": type_, "enabled": True}
    PROVIDERS.catalog_api.create_service(service["id"], service)
    endpoint = {
        "id": uuid.uuid4().hex,
        "service_id": service["id"],
        "interface": "public",
        "region_id": region,
        "url": url,
        "enabled": True,
    }
    PROVIDERS.catalog_api.create_endpoint(endpoint["id"], endpoint)


if __name__ == "__main__":
    words = sys.argv[1:]
    # Keystone would read them too.
    del sys.argv[1:]
    main(int(words[0]), words[1], words[2], json.loads(words[3]))
