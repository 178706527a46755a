"""Zones that the stock ``openstack`` command links to a tree."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.compat.openstack_command import Started, started

ADMINISTERED = "allow_admin_api = true\nenable_zone_routing = true\n"
COMPUTE = "/compute/v2.1"


@contextmanager
def zone(folder: Path, name: str, *options: str) -> Iterator[Started]:
    """Run a zone with a key of its own."""
    folder.mkdir()
    config = folder / "settings.toml"
    key = f'build_plan_encryption_key = "{secrets.token_hex(32)}"\n'
    config.write_text(f'zone_name = "{name}"\n{key}{ADMINISTERED}', encoding="utf-8")
    with started(folder, "--config", str(config), *options) as running:
        yield running


def link(parent: Started, child: Started, name: str) -> None:
    """Make a zone the child of another one."""
    made = child.ask("zone", "parent", "create", "up")
    words = ("--username", "up", "--password", made["password"])
    parent.ask("zone", "create", name, child.url + COMPUTE, *words)
