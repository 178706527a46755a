"""Limits of the pclouds that a project may own, and of the projects that may use a pcloud."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from innkeeper.domain.errors import QuotaExceeded
from innkeeper.domain.moves import Initiator
from innkeeper.domain.pclouds import Pcloud
from innkeeper.domain.slices import Dedicating
from innkeeper.systems.pclouds import pclouds
from innkeeper.systems.pclouds.context import PcloudContext
from tests.support.clouds import NOW, Cloud, cloud_in

FEW = Dedicating(quota_pclouds=2, quota_pcloud_projects=2)
CONTEXT = PcloudContext(FEW, 60.0, Initiator("req-1", "project", "user"), NOW)
BOUNDLESS = replace(CONTEXT, settings=Dedicating(quota_pclouds=-1, quota_pcloud_projects=-1))


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return cloud_in(tmp_path)


def create(cloud: Cloud, project_id: str = "project", context: PcloudContext = CONTEXT) -> Pcloud:
    uuid = cloud.ids.uuid()
    made: Pcloud = cloud.write(
        lambda tx: pclouds.create(tx, uuid, project_id, {"name": "p"}, context)
    )
    return made


def test_the_number_of_pclouds_is_bounded(cloud: Cloud) -> None:
    first = create(cloud)
    create(cloud)
    with pytest.raises(QuotaExceeded, match="too many pclouds: there are 2 of 2"):
        create(cloud)
    create(cloud, "other")
    create(cloud, context=BOUNDLESS)
    cloud.write(lambda tx: pclouds.delete(tx, first, CONTEXT))
    with pytest.raises(QuotaExceeded):
        create(cloud)


def test_a_transfer_respects_the_quota_of_pclouds(cloud: Cloud) -> None:
    create(cloud)
    create(cloud)
    theirs = create(cloud, "other")
    with pytest.raises(QuotaExceeded):
        cloud.write(lambda tx: pclouds.transfer(tx, theirs, "project", CONTEXT))
    cloud.write(lambda tx: pclouds.transfer(tx, theirs, "third", CONTEXT))


def test_the_number_of_authorized_projects_is_bounded(cloud: Cloud) -> None:
    made = create(cloud)

    def let_in(project_id: str, context: PcloudContext = CONTEXT) -> None:
        cloud.write(lambda tx: pclouds.authorize(tx, made, project_id, context))

    let_in("second")
    let_in("second")
    with pytest.raises(QuotaExceeded, match="there are 2 of 2"):
        let_in("third")
    let_in("third", BOUNDLESS)
    cloud.write(lambda tx: pclouds.drop(tx, made, "second", CONTEXT))
    cloud.write(lambda tx: pclouds.drop(tx, made, "third", CONTEXT))
    let_in("third")
