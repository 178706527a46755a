"""The settings of OpenStack's services, for a cloud on this machine.

The services keep their data in MariaDB: threads of Nova write at the same moment, and with SQLite
some of them would get errors.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGED = Path(sys.prefix) / "etc"
PASSWORD, REGION = "openstack-secret", "RegionOne"
IN_MEMORY = "fake:/"
"""The queue of oslo.messaging in the memory of one process."""
Sections = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Site:
    """What a service needs to know. ``urls`` has the addresses of all, by type of service.

    ``database`` makes an empty database, and returns its URL.
    """

    home: Path
    urls: Mapping[str, str]
    database: Callable[[], str]

    def write(self, name: str, sections: Sections) -> Path:
        """Write a file of settings."""
        lines = []
        for section, options in sections.items():
            lines += [f"[{section}]", *(f"{key} = {value}" for key, value in options.items())]
        path = self.home / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    @property
    def login(self) -> dict[str, str]:
        """The login of services."""
        return {
            "auth_type": "password",
            "auth_url": self.urls["identity"],
            "username": "service",
            "password": PASSWORD,
            "user_domain_name": "Default",
            "project_name": "service",
            "project_domain_name": "Default",
        }

    @property
    def shared(self) -> dict[str, Mapping[str, str]]:
        """The sections that most services have."""
        token_checks = {
            **self.login,
            "interface": "public",
            "www_authenticate_uri": self.urls["identity"],
            "service_token_roles": "service",
            "service_token_roles_required": "true",
        }
        return {
            "database": {"connection": self.database()},
            "keystone_authtoken": token_checks,
            "oslo_concurrency": {"lock_path": str(self.home)},
        }


Words = tuple[str, ...]
"""The arguments of a service's program, after the listening socket."""


def _keystone(site: Site) -> Words:
    sections = {
        "database": {"connection": site.database()},
        # Slow hashes would only cost time here.
        "identity": {"password_hash_rounds": "4"},
        "fernet_tokens": {"key_repository": str(site.home / "tokens")},
        "fernet_receipts": {"key_repository": str(site.home / "receipts")},
    }
    site.write("keystone.conf", sections)
    return REGION, PASSWORD, json.dumps(site.urls)


def _placement(site: Site) -> Words:
    shared = site.shared
    sections = {
        "api": {"auth_strategy": "keystone"},
        "keystone_authtoken": shared["keystone_authtoken"],
        "placement_database": {**shared["database"], "sync_on_startup": "true"},
    }
    site.write("placement.conf", sections)
    return ()


def _glance(site: Site) -> Words:
    stores = ("files", "os_glance_staging_store", "os_glance_tasks_store")
    sections = {
        "DEFAULT": {"enabled_backends": "files:file", "enabled_import_methods": "[]"},
        "glance_store": {"default_backend": "files"},
        **{name: {"filesystem_store_datadir": str(site.home / name)} for name in stores},
        "paste_deploy": {
            "flavor": "keystone",
            "config_file": str(PACKAGED / "glance" / "glance-api-paste.ini"),
        },
        **site.shared,
    }
    return (str(site.write("glance-api.conf", sections)),)


def _neutron(site: Site) -> Words:
    sections = {
        "DEFAULT": {
            "transport_url": IN_MEMORY,
            "state_path": str(site.home),
            "core_plugin": "ml2",
            "service_plugins": "",
            "api_paste_config": str(PACKAGED / "neutron" / "api-paste.ini"),
        },
        "ml2": {"type_drivers": "local", "tenant_network_types": "local", "mechanism_drivers": ""},
        **site.shared,
    }
    return "--config-file", str(site.write("neutron.conf", sections))


def _in_one_process(site: Site) -> dict[str, str]:
    """Return settings of Nova and Cinder."""
    return {
        "transport_url": IN_MEMORY,
        "state_path": str(site.home),
        "host": "fake",
        "my_ip": "127.0.0.1",
        # Only one of Cinder's services in a process can say that it is up.
        "service_down_time": "86400",
    }


def _nova(site: Site) -> Words:
    sections = {
        "DEFAULT": {**_in_one_process(site), "compute_driver": "fake.MediumFakeDriver"},
        "api_database": {"connection": site.database()},
        **dict.fromkeys(("placement", "neutron", "cinder"), site.login),
        "glance": {"region_name": REGION},
        "service_user": {**site.login, "send_service_user_token": "true"},
        **site.shared,
    }
    site.write("nova.conf", sections)
    # Nova looks for both files in one folder.
    shutil.copy(PACKAGED / "nova" / "api-paste.ini", site.home)
    return (site.database(),)


def _cinder(site: Site) -> Words:
    packaged, backend = PACKAGED / "cinder", "fake"
    sections = {
        "DEFAULT": {
            **_in_one_process(site),
            "auth_strategy": "keystone",
            "enabled_backends": backend,
            "api_paste_config": str(packaged / "api-paste.ini"),
            "resource_query_filters_file": str(packaged / "resource_filters.json"),
        },
        backend: {
            "volume_driver": "cinder.tests.fake_driver.FakeLoggingVolumeDriver",
            "volume_backend_name": backend,
        },
        **site.shared,
    }
    return backend, "--config-file", str(site.write("cinder.conf", sections))


SERVICES: Mapping[str, Callable[[Site], Words]] = {
    "keystone": _keystone,
    "placement": _placement,
    "glance": _glance,
    "neutron": _neutron,
    "nova": _nova,
    "cinder": _cinder,
}
"""Functions that write the settings of a service, and return the arguments of its program."""
