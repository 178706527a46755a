"""Requests for servers and volumes are checked and translated before a pod gets them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from innkeeper.clients.pods import PodAnswer, PodCall, PodSilent
from innkeeper.domain.compute import Flavor
from innkeeper.domain.door import MARK, SERVER, VOLUME, DoorAnswer, DoorCaller, DoorRequest
from innkeeper.domain.errors import Invalid, QuotaExceeded, Unavailable
from innkeeper.domain.pods import Pod, PodRouting
from innkeeper.engine.pods import plans
from innkeeper.engine.pods.forwarding import Forwarding
from innkeeper.engine.pods.provisioning import Provisioning
from innkeeper.settings import load
from innkeeper.store.transactions import Store
from innkeeper.systems.compute.flavors import flavors, images
from innkeeper.systems.pods import routings
from tests.support.clouds import image
from tests.support.played_engines import PlayedEngine
from tests.support.pod_rows import add_pod
from tests.support.stores import NOW

QUOTAS = {"quota_metadata_items": 2}
SETTINGS = load(None, environ={}, overrides={"data_dir": "/unused", **QUOTAS})
ANN = DoorCaller("acme", "ann", is_admin=False)
IDS = {
    SERVER: "c0000000-0000-4000-8000-000000000001",
    VOLUME: "c0000000-0000-4000-8000-000000000002",
}
OLD, NEW = "d0000000-0000-4000-8000-000000000001", "d0000000-0000-4000-8000-000000000002"
SMALL = Flavor(id=0, flavor_id="small", name="small", vcpus=1, memory_mb=64, disk_gb=1)
AWAY, IN_DOUBT = PodSilent("refused"), PodSilent("no answer", may_have_arrived=True)


@dataclass
class Played(PlayedEngine):
    """A door over one pod, which has a server and a volume of a project."""

    store: Store
    outcome: PodAnswer | PodSilent = field(default_factory=lambda: PodAnswer(202, {}, b""))
    items: dict[str, str] = field(default_factory=dict)
    sent: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        with self.store.write() as tx:
            pod = add_pod(tx, 1)
            flavors.create(tx, SMALL, now=NOW)
            for uuid, name in ((OLD, "old"), (NEW, "new")):
                images.create(tx, image(id=uuid, name=name, owner="acme"))
            for kind, uuid in IDS.items():
                made = PodRouting(0, uuid, uuid, pod.id, "acme", kind, NOW, NOW, image_id=OLD)
                routings.create(tx, made)

    async def of_project(self, _: Pod, name: str) -> Any:
        """Return a login for a project."""
        return SimpleNamespace(project_name=name)

    async def own(self, pod: Pod) -> Any:
        """Return the administrator's login."""
        return await self.of_project(pod, "admin")

    async def send(self, _: object, call: PodCall) -> PodAnswer:
        """Answer a request as the pod."""
        path, _, query = call.target.partition("?")
        told: Any
        if path == "/v2/images":
            name = query.rpartition("=")[2]
            told = {"images": [{"id": f"{name} there", "name": name}]}
        elif path.startswith("/flavors/"):
            told = {"flavor": {"vcpus": 1, "ram": 64, "disk": 1}}
        elif call.method == "GET":
            told = {"metadata": {**self.items, MARK: "some"}}
        else:
            self.sent.append(msgspec.json.decode(call.body))
            if isinstance(self.outcome, PodSilent):
                raise self.outcome
            return self.outcome
        return PodAnswer(200, {}, msgspec.json.encode(told))

    def ask(self, kind: str, method: str, path: str, body: Any) -> DoorAnswer:
        """Send a request for the server or the volume."""
        clouds = cast(
            "Any",
            SimpleNamespace(engine=self, client=self, podding=SETTINGS.podding, clock=lambda: NOW),
        )
        tenants = cast("Any", self)
        provisioning = Provisioning(clouds, tenants)
        it = Forwarding(clouds, SETTINGS, tenants, provisioning, cast("Any", None))
        request = DoorRequest(kind, method, path, body, {}, "http://door.example", ANN)
        return asyncio.run(it.forward(request, IDS[kind], lambda _: None))

    def act(self, kind: str, **action: Any) -> Any:
        """Carry out an action, and return what the pod got."""
        self.ask(kind, "POST", f"/{kind}s/{IDS[kind]}/action", action)
        return self.sent[-1]

    def image_of(self, kind: str) -> str | None:
        """Return the id of the image that the door shows for the server or the volume."""
        with self.store.read() as tx:
            return routings.place_of(tx, IDS[kind], kind).image_id


@pytest.fixture
def at(store: Store) -> Played:
    """A door over one pod."""
    return Played(store)


@pytest.mark.parametrize("flavor", ["small", "http://door.example/v2.1/flavors/small"])
def test_a_resize_may_name_a_flavor_by_its_address(at: Played, flavor: str) -> None:
    assert at.act(SERVER, resize={"flavorRef": flavor}) == {"resize": {"flavorRef": "small"}}


@pytest.mark.parametrize(
    ("kind", "action", "key"), [(SERVER, "rebuild", "imageRef"), (VOLUME, "os-reimage", "image_id")]
)
def test_an_action_that_writes_an_image_names_that_of_the_pod(
    at: Played, kind: str, action: str, key: str
) -> None:
    assert at.act(kind, **{action: {key: NEW}}) == {action: {key: "new there"}}
    assert at.image_of(kind) == NEW
    with pytest.raises(Invalid, match="could not be found"):
        at.act(kind, **{action: {key: "new there"}})


@pytest.mark.parametrize(("outcome", "shown"), [(AWAY, OLD), (IN_DOUBT, NEW)])
def test_a_rebuild_that_never_reached_the_pod_leaves_the_old_image(
    at: Played, outcome: PodSilent, shown: str
) -> None:
    at.outcome = outcome
    with pytest.raises(Unavailable):
        at.act(SERVER, rebuild={"imageRef": NEW})
    assert at.image_of(SERVER) == shown


@pytest.mark.parametrize(
    ("method", "key", "body", "fits"),
    [
        ("POST", "", {"metadata": {"a": "2", "b": "2"}}, True),
        ("POST", "", {"metadata": {"b": "2", "c": "2"}}, False),
        ("PUT", "", {"metadata": {"b": "2", "c": "2"}}, True),
        ("PUT", "", {"metadata": {"b": "2", "c": "2", "d": "2"}}, False),
        ("PUT", "/metadata", {"meta": {"metadata": "2"}}, True),
    ],
)
def test_the_quota_of_metadata_items_holds_for_servers(
    at: Played, method: str, key: str, body: Any, fits: bool
) -> None:
    at.items = {"a": "1"}
    path = f"/servers/{IDS[SERVER]}/metadata{key}"
    if fits:
        assert at.ask(SERVER, method, path, body).status == 202
    else:
        with pytest.raises(QuotaExceeded, match="Maximum number of metadata items exceeds 2"):
            at.ask(SERVER, method, path, body)
    assert bool(at.sent) is fits


def test_the_quota_of_metadata_items_holds_for_one_more_item(at: Played) -> None:
    at.items = {"a": "1", "b": "1"}
    path = f"/servers/{IDS[SERVER]}/metadata/"
    at.ask(SERVER, "PUT", f"{path}a", {"meta": {"a": "2"}})
    with pytest.raises(QuotaExceeded):
        at.ask(SERVER, "PUT", f"{path}c", {"meta": {"c": "2"}})


@pytest.mark.parametrize(("items", "fits"), [("ab", True), ("abc", False)])
def test_the_quota_of_metadata_items_holds_for_creates_and_rebuilds(
    at: Played, items: str, fits: bool
) -> None:
    metadata = dict.fromkeys(items, "1")
    fields = {"flavorRef": "small", "imageRef": "", "networks": "none", "metadata": metadata}
    body = {"server": {"name": "s", **fields}}
    create = DoorRequest(SERVER, "POST", "/servers", body, {}, "http://door.example", ANN)

    def plan() -> int:
        with at.store.read() as tx:
            return plans.plan(tx, SETTINGS, create).number

    if fits:
        assert plan() == 1
        assert at.act(SERVER, rebuild={"imageRef": NEW, "metadata": metadata})
        return
    with pytest.raises(QuotaExceeded):
        plan()
    with pytest.raises(QuotaExceeded):
        at.act(SERVER, rebuild={"imageRef": NEW, "metadata": metadata})


def test_the_metadata_of_volumes_has_no_quota(at: Played) -> None:
    path = f"/volumes/{IDS[VOLUME]}/metadata"
    at.ask(VOLUME, "POST", path, {"metadata": dict.fromkeys("abc", "1")})
    assert at.sent == [{"metadata": dict.fromkeys("abc", "1")}]
