"""The tags of a flavor or volume type, and the volumes and servers beside it, choose the pods."""

from __future__ import annotations

from typing import Any

import pytest

from innkeeper.domain.compute import Flavor
from innkeeper.domain.door import SERVER, VOLUME, DoorCaller, DoorRequest
from innkeeper.domain.errors import Invalid
from innkeeper.domain.pods import PodRouting
from innkeeper.engine.pods import plans
from innkeeper.engine.pods.plans import Plan
from innkeeper.settings import load
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.flavors import flavors
from innkeeper.systems.pods import bindings, routings
from innkeeper.systems.volumes import types
from tests.support.pod_rows import CAD, POLICY, add_pod
from tests.support.stores import NOW

SETTINGS = load(None, environ={}, overrides={"data_dir": "/unused"})
ANN = DoorCaller("acme", "ann", is_admin=False)
TYPES = {
    "std": "e0000000-0000-4000-8000-000000000001",
    "cad": "e0000000-0000-4000-8000-000000000002",
}
PLAIN, TYPED, HERE = (f"c0000000-0000-4000-8000-00000000000{each}" for each in (1, 2, 3))
HINTS = "OS-SCH-HNT:scheduler_hints"


def furnish(tx: Tx) -> None:
    """Add a pod for general work, and one for special work that has two volumes and a server."""
    add_pod(tx, 1)
    special = add_pod(tx, 2, tags=dict(CAD))
    for name, specs in (("std", {}), ("cad", CAD)):
        types.create(tx, TYPES[name], name, None, specs, is_public=True, now=NOW)
        flavor = Flavor(id=0, flavor_id=name, name=name, vcpus=1, memory_mb=64, disk_gb=1)
        flavors.create(tx, flavor, now=NOW)
        flavors.add_extra_specs(tx, name, specs, is_checked=False, now=NOW)
    for uuid, kind, type_uuid in (
        (PLAIN, VOLUME, None),
        (TYPED, VOLUME, TYPES["cad"]),
        (HERE, SERVER, None),
    ):
        made = PodRouting(0, uuid, uuid, special.id, "acme", kind, NOW, NOW, type_uuid=type_uuid)
        routings.create(tx, made)


def planned(tx: Tx, kind: str, fields: Any, **more: Any) -> Plan:
    """Return the plan of a create."""
    body = {kind: fields, **more}
    request = DoorRequest(kind, "POST", f"/{kind}s", body, {}, "http://door.example", ANN)
    return plans.plan(tx, SETTINGS, request)


@pytest.mark.parametrize(
    ("fields", "hints", "type_name"),
    [
        ({"source_volid": TYPED}, {}, "cad"),
        ({"source_volid": PLAIN}, {}, None),
        ({}, {"local_to_instance": HERE}, None),
        ({}, {"same_host": [PLAIN]}, None),
        ({"volume_type": "cad"}, {"local_to_instance": HERE}, "cad"),
    ],
)
def test_a_volume_without_a_type_goes_to_the_pod_of_what_it_names(
    store: Store, fields: Any, hints: Any, type_name: str | None
) -> None:
    with store.write() as tx:
        furnish(tx)
        plan = planned(tx, VOLUME, {"size": 1, **fields}, **{HINTS: hints})
        assert bindings.choose(tx, POLICY, plan.asked).pod.pod_name == "p2"
        assert (None if plan.kind is None else plan.kind.name) == type_name
        assert plan.limits.type_name == (type_name or "")


def test_a_copy_has_the_image_of_its_source(store: Store) -> None:
    image_id, other = "d0000000-0000-4000-8000-000000000001", "c0000000-0000-4000-8000-000000000009"
    with store.write() as tx:
        furnish(tx)
        pod = routings.homes(tx, VOLUME, [PLAIN])[0][0].pod_id
        made = PodRouting(0, other, other, pod, "acme", VOLUME, NOW, NOW, image_id=image_id)
        routings.create(tx, made)
        plan = planned(tx, VOLUME, {"size": 1, "source_volid": other})
        assert (plan.image_id, plan.image_name) == (image_id, None)


def test_a_type_that_is_named_chooses_the_pod_also_beside_a_server(store: Store) -> None:
    with store.write() as tx:
        furnish(tx)
        fields = {"size": 1, "volume_type": "std"}
        plan = planned(tx, VOLUME, fields, **{HINTS: {"local_to_instance": HERE}})
        assert bindings.choose(tx, POLICY, plan.asked).pod.pod_name == "p1"


@pytest.mark.parametrize(
    ("flavor", "kind", "fits"),
    [
        ("std", "std", True),
        ("std", None, True),
        ("cad", "cad", True),
        ("cad", None, True),
        ("std", "cad", False),
        ("cad", "std", False),
    ],
)
def test_a_server_and_its_new_volumes_need_the_same_tags(
    store: Store, flavor: str, kind: str | None, fits: bool
) -> None:
    device = {"source_type": "blank", "destination_type": "volume", "volume_size": 1}
    device |= {} if kind is None else {"volume_type": kind}
    fields = {"flavorRef": flavor, "imageRef": "", "block_device_mapping_v2": [device]}
    with store.write() as tx:
        furnish(tx)
        if fits:
            found = bindings.choose(tx, POLICY, planned(tx, SERVER, fields).asked)
            assert found.pod.pod_name == ("p2" if flavor == "cad" else "p1")
        else:
            with pytest.raises(Invalid, match=f"volume type {kind} and the flavor have different"):
                planned(tx, SERVER, fields)
