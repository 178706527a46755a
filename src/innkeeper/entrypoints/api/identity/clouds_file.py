"""The file from which OpenStack's clients read the administrator's login.

Always true: only the file's owner can read it. A write keeps the other clouds in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from innkeeper.entrypoints.api.identity import private_files

NAME = "clouds.yaml"
CLOUD = "innkeeper"


@dataclass(frozen=True, slots=True)
class CloudLogin:
    """The administrator's login and the address of the Identity API."""

    auth_url: str
    user: str
    password: str
    project: str
    region: str


def write(directory: Path, login: CloudLogin) -> Path:
    """Write the login to the file, and return the file's path."""
    path = directory / NAME
    content = _content(path)
    content["clouds"][CLOUD] = {
        "auth_type": "password",
        "auth": {
            "auth_url": login.auth_url,
            "username": login.user,
            "password": login.password,
            "project_name": login.project,
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
        "region_name": login.region,
        "identity_api_version": 3,
    }
    private_files.write(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    return path


def move(directory: Path, auth_url: str) -> None:
    """Update the Identity API's address in the file, if the file has a login."""
    path = directory / NAME
    content = _content(path)
    auth = _auth(content)
    if auth and auth.get("auth_url") != auth_url:
        auth["auth_url"] = auth_url
        private_files.write(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def read_auth_url(directory: Path) -> str | None:
    """Return the Identity API's address in the file, or ``None`` if the file has no address."""
    found = _auth(_content(directory / NAME)).get("auth_url")
    return found if isinstance(found, str) else None


def _auth(content: dict[str, Any]) -> dict[str, Any]:
    cloud = content["clouds"].get(CLOUD)
    auth = cloud.get("auth") if isinstance(cloud, dict) else None
    return auth if isinstance(auth, dict) else {}


def _content(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, UnicodeDecodeError, yaml.YAMLError):
        return {"clouds": {}}
    is_ours = isinstance(content, dict) and isinstance(content.get("clouds"), dict)
    return content if is_ours else {"clouds": {}}
