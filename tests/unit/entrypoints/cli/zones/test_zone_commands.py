"""The commands of zones, and their requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from osc_lib.exceptions import CommandError

from innkeeper.entrypoints.api.zones.routes import TREE_ROUTES
from tests.support.commands import ZONE_COMMANDS, Answer, Service, run

ROOT = Path(__file__).resolve().parents[5]
UUID = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"
URL = "http://kid:8780/compute/v2.1"
TOLD = {"hosts": 4.0, "vcpus_free": 32.0, "memory_mb_free": 1024.0}
ZONE: dict[str, Any] = {
    **{"id": UUID, "name": "kid", "api_url": URL, "is_active": True, "enabled": True},
    **{"draining": False, "weight_offset": 0.0, "weight_scale": 1.0, "capabilities": TOLD},
    **{"username": "up", "servers": 2, "latency_ms": 1.5, "last_seen_at": None},
    "last_error": None,
}
PARENT: dict[str, Any] = {
    **{"id": UUID, "name": "up", "roles": ["member"], "instances": -1, "cores": -1},
    **{"ram": -1, "enabled": True},
}
OWN = (200, {"zone": {"id": OTHER, "name": "root", "capabilities": TOLD}})
ZONES = (200, {"zones": [ZONE]})
PARENTS = (200, {"zone_parents": [PARENT]})
LOGIN = {"name": "kid", "api_url": URL, "username": "up"}
BETWEEN_ZONES = {"/v2.1/zones/undo", "/v2.1/zones/servers"}
"""Routes that only zones use."""

CALLS: list[tuple[str, Sequence[Answer], tuple[str, str, Any]]] = [
    ("zone list", [ZONES], ("GET", "/zones", None)),
    ("zone list --long", [ZONES], ("GET", "/zones/detail", None)),
    ("zone show kid", [ZONES, (200, {"zone": ZONE})], ("GET", f"/zones/{UUID}", None)),
    (
        f"zone create kid {URL} --username up --password s3cret --weight-offset 0 "
        "--weight-scale 0.5 --disable",
        [(200, {"zone": ZONE})],
        (
            "POST",
            "/zones",
            {
                "zone": {
                    **LOGIN,
                    "password": "s3cret",
                    "weight_offset": 0.0,
                    "weight_scale": 0.5,
                    "enabled": False,
                }
            },
        ),
    ),
    (
        f"zone create kid {URL} --username up --password s3cret",
        [(200, {"zone": ZONE})],
        ("POST", "/zones", {"zone": {**LOGIN, "password": "s3cret"}}),
    ),
    (
        f"zone set kid --name son --url {URL} --username other --password new",
        [ZONES, (200, {"zone": ZONE})],
        (
            "PUT",
            f"/zones/{UUID}",
            {"zone": {**LOGIN, "name": "son", "username": "other", "password": "new"}},
        ),
    ),
    (
        f"zone set {UUID} --weight-offset 0 --weight-scale 2 --enable --drain",
        [ZONES, (200, {"zone": ZONE})],
        (
            "PUT",
            f"/zones/{UUID}",
            {"zone": {"weight_offset": 0, "weight_scale": 2, "enabled": True, "draining": True}},
        ),
    ),
    (
        "zone set kid --disable --undrain",
        [ZONES, (200, {"zone": ZONE})],
        ("PUT", f"/zones/{UUID}", {"zone": {"enabled": False, "draining": False}}),
    ),
    (
        "zone set kid --replaced --password new",
        [ZONES, (200, {"zone": ZONE})],
        ("PUT", f"/zones/{UUID}", {"zone": {"replaced": True, "password": "new"}}),
    ),
    ("zone delete kid", [ZONES, (204, None)], ("DELETE", f"/zones/{UUID}", None)),
    ("zone tree", [OWN, ZONES], ("GET", "/zones/detail", None)),
    ("zone info", [OWN], ("GET", "/zones/info", None)),
    ("zone parent list", [PARENTS], ("GET", "/zones/parents", None)),
    (
        "zone parent show up",
        [PARENTS, (200, {"zone_parent": PARENT})],
        ("GET", f"/zones/parents/{UUID}", None),
    ),
    (
        "zone parent create up --role member --role reader --instances 0 --cores 8 --ram -1",
        [(201, {"zone_parent": {**PARENT, "password": "s3cret"}})],
        (
            "POST",
            "/zones/parents",
            {
                "zone_parent": {
                    "name": "up",
                    "roles": ["member", "reader"],
                    "instances": 0,
                    "cores": 8,
                    "ram": -1,
                }
            },
        ),
    ),
    (
        "zone parent set up --instances 0 --no-role --disable",
        [PARENTS, (200, {"zone_parent": PARENT})],
        (
            "PUT",
            f"/zones/parents/{UUID}",
            {"zone_parent": {"instances": 0, "roles": [], "enabled": False}},
        ),
    ),
    (
        "zone parent set up --new-password --role member",
        [PARENTS, (200, {"zone_parent": {**PARENT, "password": "new"}})],
        (
            "PUT",
            f"/zones/parents/{UUID}",
            {"zone_parent": {"new_password": True, "roles": ["member"]}},
        ),
    ),
    ("zone parent delete up", [PARENTS, (204, None)], ("DELETE", f"/zones/parents/{UUID}", None)),
]


@pytest.mark.parametrize(("words", "answers", "asked"), CALLS, ids=[e[0] for e in CALLS])
def test_a_command_sends_its_request(
    words: str, answers: Sequence[Answer], asked: tuple[str, str, Any]
) -> None:
    service = Service(*answers)
    run(words, service)
    assert service.asked[-1] == asked


def test_every_route_of_administrators_has_a_command() -> None:
    asked = {(method, url) for _, _, (method, url, _) in CALLS}

    def is_requested(method: str, path: str) -> bool:
        form = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        return any(method == m and form.fullmatch(f"/v2.1{url}") for m, url in asked)

    left = {e.path for e in TREE_ROUTES if not is_requested(e.method, e.path)}
    assert left == BETWEEN_ZONES


def test_every_command_is_tested_and_documented() -> None:
    page = (ROOT / "docs" / "reference" / "zone-commands.md").read_text(encoding="utf-8")
    assert ZONE_COMMANDS
    for name in ZONE_COMMANDS:
        assert any(words.startswith(name) for words, _, _ in CALLS), name
        assert f"| `{name}" in page, name


def test_the_tree_shows_this_zone_and_its_children() -> None:
    off = {**ZONE, "name": "off", "enabled": False, "capabilities": {}, "servers": 0}
    lost = {**ZONE, "name": "lost", "is_active": False}
    _, rows = run("zone tree", Service(OWN, (200, {"zones": [off, lost, ZONE]})))
    assert [tuple(each) for each in rows] == [
        ("root", "this zone", 4, 32, 1024, None),
        ("|- off", "disabled", None, None, None, 0),
        ("|- lost", "inactive", 4, 32, 1024, 2),
        ("`- kid", "active", 4, 32, 1024, 2),
    ]


def test_a_draining_zone_is_shown_as_such() -> None:
    _, rows = run("zone list", Service((200, {"zones": [{**ZONE, "draining": True}]})))
    assert rows == [[UUID, "kid", URL, "draining"]]


def test_an_id_goes_before_a_name() -> None:
    listed = (200, {"zones": [{**ZONE, "id": OTHER, "name": UUID}, ZONE]})
    service = Service(listed, (204, None))
    run(f"zone delete {UUID}", service)
    assert service.asked[-1] == ("DELETE", f"/zones/{UUID}", None)


@pytest.mark.parametrize(
    ("words", "answers", "why"),
    [
        ("zone show son", [ZONES], "No child zone has the name or ID 'son'."),
        ("zone parent show down", [PARENTS], "No zone parent has the name or ID 'down'."),
        (
            "zone show kid",
            [(200, {"zones": [ZONE, {**ZONE, "id": OTHER}]})],
            f"2 have the name 'kid'. Name one by its ID: {UUID}, {OTHER}.",
        ),
        ("zone set kid", [ZONES], "Give at least one option."),
        ("zone parent set up", [PARENTS], "Give at least one option."),
    ],
)
def test_what_cannot_be_done_is_said(words: str, answers: Sequence[Answer], why: str) -> None:
    with pytest.raises(CommandError, match=re.escape(why)):
        run(words, Service(*answers))


def test_a_password_is_the_first_line_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret\n", encoding="utf-8")
    service = Service((200, {"zone": ZONE}))
    run(f"zone create kid {URL} --username up --password-file {file}", service)
    assert service.asked[-1][2]["zone"]["password"] == "s3cret"


@pytest.mark.parametrize("content", ["", "\n"])
def test_a_file_without_a_password_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "password"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(CommandError, match="has no password"):
        run(f"zone set kid --password-file {file}", Service(ZONES))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        run(f"zone set kid --password-file {tmp_path}/none", Service(ZONES))


@pytest.mark.parametrize("number", ["nan", "inf", "much"])
def test_a_weight_is_a_number(number: str) -> None:
    with pytest.raises(SystemExit):
        run(f"zone set kid --weight-scale {number}", Service(ZONES))
