"""Answers of pods as a door shows them."""

from __future__ import annotations

import time
from dataclasses import replace

import msgspec
import pytest

from innkeeper.clients.pods import PodAnswer, PodSilent
from innkeeper.domain.door import MARK, SERVER, VOLUME
from innkeeper.engine.pods.shown import DoorView, answer_of
from tests.support.pod_rows import pod_of

DOOR = "http://door.example/compute"
USER = DoorView(pod_of(1), "acme", "ann", "top-image", "top-group", DOOR, is_admin=False)
LONG_S = 1.0
"""A quadratic search in this answer takes many seconds."""
SHOWN = {
    "server": {
        "id": "s",
        "tenant_id": "there",
        "user_id": "door",
        "key_name": "mine-0123456789abcdef",
        "metadata": {MARK: "m", "tenant_id": "kept"},
        "image": {"id": "there", "links": []},
        "server_groups": ["there"],
        "OS-EXT-AZ:availability_zone": "nova",
        "OS-EXT-SRV-ATTR:host": "h1",
        "OS-EXT-SRV-ATTR:hostname": "web",
        "links": [
            {"rel": "self", "href": "http://pod.example:8774/v2.1/servers/s"},
            {"rel": "bookmark", "href": "http://pod.example/compute/servers/s"},
            {"rel": "other", "href": "http://pod.example/secret"},
        ],
    }
}


def answer(status: int, body: object = None) -> PodAnswer:
    """Return an answer of a pod."""
    return PodAnswer(status, {}, b"" if body is None else msgspec.json.encode(body))


def test_nothing_of_the_pod_is_shown() -> None:
    status, body, headers = answer_of(answer(200, SHOWN), USER, SERVER)
    assert (status, headers) == (200, {"content-type": "application/json"})
    assert msgspec.json.decode(body) == {
        "server": {
            "id": "s",
            "tenant_id": "acme",
            "user_id": "ann",
            "key_name": "mine",
            "metadata": {"tenant_id": "kept"},
            "image": {"id": "top-image", "links": []},
            "server_groups": ["top-group"],
            "OS-EXT-AZ:availability_zone": "az1",
            "OS-EXT-SRV-ATTR:hostname": "web",
            "links": [
                {"rel": "self", "href": f"{DOOR}/v2.1/servers/s"},
                {"rel": "bookmark", "href": f"{DOOR}/servers/s"},
            ],
        }
    }


def shown(view: DoorView, body: object, kind: str = SERVER) -> object:
    """Return a body as the door shows it."""
    return msgspec.json.decode(answer_of(answer(200, body), view, kind)[1])


def test_an_unknown_user_or_image_is_shown_as_an_empty_text() -> None:
    bookmark = {"rel": "bookmark", "href": "http://pod.example/images/there"}
    view = replace(USER, user_id=None, image_id=None)
    body = {"user_id": "door", "image": {"id": "there"}, "links": [bookmark]}
    assert shown(view, body) == {"user_id": "", "image": "", "links": []}


@pytest.mark.parametrize("image_id", ["top-image", None])
def test_a_volume_shows_the_id_that_its_image_has_at_the_door(image_id: str | None) -> None:
    view, others = replace(USER, image_id=image_id), {"image_name": "i", "disk_format": "raw"}
    there = {"image_id": "there", **others}
    expected = others if image_id is None else {"image_id": image_id, **others}
    for field in ("volume_image_metadata", "metadata"):
        assert shown(view, {field: there}, VOLUME) == {field: expected}
    for own in ({"volume": {"metadata": there}}, {"metadata": {"image_id": "own"}}):
        assert shown(view, own, VOLUME) == own


@pytest.mark.parametrize("end", [" ", "\n", ""])
def test_an_address_costs_only_its_length(end: str) -> None:
    long = "/servers/s" * 20_000 + end
    links = [{"rel": "self", "href": f"http://pod.example/v2.1{long}"}]
    begun_s = time.process_time()
    location = {"location": f"http://pod.example/x{long}"}
    told = PodAnswer(202, location, msgspec.json.encode({"server": {"links": links}}))
    _, body, headers = answer_of(told, USER, SERVER)
    assert time.process_time() - begun_s < LONG_S
    shown = [] if end else [{"rel": "self", "href": f"{DOOR}/v2.1{long}"}]
    assert msgspec.json.decode(body)["server"]["links"] == shown
    assert headers.get("location") == (None if end else f"{DOOR}/v2.1{long}")


@pytest.mark.parametrize("status", [302, 401, 500, 502, 504])
def test_an_answer_that_no_api_gives_counts_as_no_answer(status: int) -> None:
    with pytest.raises(PodSilent):
        answer_of(answer(status, {}), USER, SERVER)


def test_an_answer_that_is_not_an_object_or_too_deep_counts_as_no_answer() -> None:
    deep: object = {}
    for _ in range(40):
        deep = {"a": deep}
    for body in ([], deep):
        with pytest.raises(PodSilent):
            answer_of(answer(200, body), USER, SERVER)


def test_an_answer_in_another_encoding_counts_as_no_answer() -> None:
    with pytest.raises(PodSilent):
        answer_of(PodAnswer(200, {}, b'{"server": {"name": "\xff"}}'), USER, SERVER)


def test_refusals_are_passed_on() -> None:
    fault = {"conflictingRequest": {"code": 409, "message": "no"}}
    status, body, _ = answer_of(answer(409, fault), USER, SERVER)
    assert (status, msgspec.json.decode(body)) == (409, fault)
    assert answer_of(answer(204), USER, SERVER) == (204, b"", {})
