"""The upgrade that records the usage of volume quotas fills the table from the volumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import alembic.command
import pytest
import sqlalchemy as sa

from innkeeper.domain.volumes import VolumeUsage
from innkeeper.engine.database import Database
from innkeeper.engine.maintenance import audit
from innkeeper.store import schema
from innkeeper.store.backends import catalogue
from innkeeper.store.migrations import running
from innkeeper.store.queries.volumes import quota_usages
from innkeeper.store.transactions import Store, Tx
from tests.support.clouds import NOW, Numbers
from tests.support.databases import DATABASES

BEFORE = "0025"
SECOND_TYPE = 2
VOLUMES: tuple[tuple[str, int, int, int | None], ...] = (
    ("a", 1, 5, None),
    ("a", 1, 5, 8),
    ("a", SECOND_TYPE, 1, None),
    ("b", 1, 2, None),
)
"""Volumes of the older program: project, type, size, and the size that the volume grows to."""


def fill(tx: Tx) -> None:
    there = sa.MetaData()
    there.reflect(tx)
    ids, moments = Numbers(), {"created_at": NOW, "updated_at": NOW}
    kind = {"id": SECOND_TYPE, "uuid": ids.uuid(), "name": "second", "is_public": True}
    tx.execute(there.tables["volume_types"].insert(), {**kind, "extra_specs": "{}", **moments})
    same: dict[str, Any] = {
        "user_id": "user",
        "status": "available",
        "availability_zone": "nova",
        "is_bootable": False,
        "is_read_only": False,
        "is_multiattach": False,
        "image_metadata": "{}",
        "metadata": "{}",
        **moments,
    }
    for project_id, type_id, size_gb, growing_to_gb in VOLUMES:
        own = {"uuid": ids.uuid(), "project_id": project_id, "type_id": type_id}
        sizes = {"size_gb": size_gb, "growing_to_gb": growing_to_gb}
        tx.execute(there.tables["volumes"].insert(), {**same, **own, **sizes})


@pytest.mark.parametrize("kind", DATABASES)
def test_an_upgrade_counts_the_volumes_of_each_project_and_type(kind: str, tmp_path: Path) -> None:
    url = DATABASES[kind](tmp_path)
    backend = catalogue.of_url(url)
    store = Store(backend, backend.engines(url, readers_max=2, busy_timeout_s=5.0))
    with store.write() as tx:
        store.backend.begin_upgrade(tx)
        store.backend.prepare(tx, is_empty=True)
        alembic.command.upgrade(running.config(tx), BEFORE)
        store.backend.end_upgrade(tx)
    with store.write() as tx:
        fill(tx)
    schema.upgrade(store, NOW)
    with store.read() as tx:
        counted = {
            project: sorted(used.values(), key=lambda each: each.volumes)
            for project, used in quota_usages.of_projects(tx, ["a", "b", "c"]).items()
        }
    assert counted == {
        "a": [VolumeUsage(1, 1), VolumeUsage(2, 13)],
        "b": [VolumeUsage(1, 2)],
        "c": [],
    }
    assert audit.look(Database(store)) == []
    store.dispose()
