"""The answers about origins (CORS) are those of the original."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.original import Original, original
from tests.support.running import Running, running

HERE = "https://console.example.org"
ELSEWHERE = "https://elsewhere.example.org"
PATHS = ("/", "/resource_providers", "/nowhere")
PREFLIGHTS: tuple[dict[str, str], ...] = (
    {},
    {"origin": HERE},
    {"origin": ELSEWHERE},
    {"origin": HERE, "access-control-request-method": "GET"},
    {"origin": ELSEWHERE, "access-control-request-method": "GET"},
    {"origin": HERE, "access-control-request-method": "HEAD"},
    {"origin": HERE, "access-control-request-method": "get"},
    {
        "origin": HERE,
        "access-control-request-method": "PUT",
        "access-control-request-headers": "x-auth-token, content-type",
    },
    {
        "origin": HERE,
        "access-control-request-method": "PUT",
        "access-control-request-headers": "X-Auth-Token,x-strange",
    },
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Original, Running]]:
    folder = tmp_path_factory.mktemp("origins")
    with (
        original(folder, cors__allowed_origin=HERE) as theirs,
        running(folder / "ours", cors_allowed_origins=[HERE]) as ours,
    ):
        yield theirs, ours


def reported(response: httpx.Response) -> dict[str, Any]:
    """All headers that matter to a browser."""
    headers = {k: v for k, v in response.headers.items() if k.startswith("access-control-")}
    varies = {each.strip().lower() for each in response.headers.get("vary", "").split(",")}
    has_id = "x-openstack-request-id" in response.headers
    by_origin = "origin" in varies
    return {"status": response.status_code, "by_origin": by_origin, "has_id": has_id, **headers}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["admin", None])
def test_preflights(shared: tuple[Original, Running], path: str, token: str | None) -> None:
    theirs, ours = shared
    for headers in PREFLIGHTS:
        expected = reported(theirs.call("OPTIONS", path, headers=headers, token=token))
        given = ours.call("OPTIONS", f"/placement{path}", headers=headers, token=token)
        assert reported(given) == expected, headers
        assert given.content == b""


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", [HERE, ELSEWHERE, None])
@pytest.mark.parametrize("token", ["admin", None])
def test_requests(
    shared: tuple[Original, Running], path: str, origin: str | None, token: str | None
) -> None:
    theirs, ours = shared
    headers = {} if origin is None else {"origin": origin}
    headers["openstack-api-version"] = "placement 1.39"
    expected = theirs.call("GET", path, headers=headers, token=token)
    given = ours.call("GET", f"/placement{path}", headers=headers, token=token)
    assert reported(given) == reported(expected)


@pytest.mark.parametrize("path", ["/compute/v2.1/flavors", "/identity/v3", "/image/v2/images"])
def test_every_api_is_shared(shared: tuple[Original, Running], path: str) -> None:
    _, ours = shared
    answer = ours.call("GET", path, headers={"origin": HERE})
    assert answer.headers["access-control-allow-origin"] == HERE
    asked = {"origin": HERE, "access-control-request-method": "POST"}
    preflight = ours.call("OPTIONS", path, headers=asked, token=None)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-methods"] == "POST"


def test_further_settings_mean_the_same(tmp_path: Path) -> None:
    asked = {
        "origin": ELSEWHERE,
        "access-control-request-method": "TRACE",
        "access-control-request-headers": "x-mine",
    }
    with (
        original(
            tmp_path,
            cors__allowed_origin="*",
            cors__allow_credentials="false",
            cors__expose_headers="X-One,X-Two",
            cors__max_age="7",
            cors__allow_methods="TRACE",
            cors__allow_headers="X-Mine",
        ) as theirs,
        running(
            tmp_path / "ours",
            cors_allowed_origins=["*"],
            cors_allow_credentials=False,
            cors_expose_headers=["X-One", "X-Two"],
            cors_max_age_s=7,
            cors_allow_methods=["TRACE"],
            cors_allow_headers=["X-Mine"],
        ) as ours,
    ):
        for method, headers in (("OPTIONS", asked), ("GET", {"origin": ELSEWHERE})):
            expected = theirs.call(method, "/resource_providers", headers=headers)
            given = ours.call(method, "/placement/resource_providers", headers=headers)
            assert reported(given) == reported(expected)


def test_without_origins_nothing_is_shared(tmp_path: Path) -> None:
    with running(tmp_path) as ours:
        answer = ours.call("GET", "/placement/resource_providers", headers={"origin": HERE})
        assert answer.status_code == 200
        assert not any(name.startswith("access-control") for name in answer.headers)
        asked = {"origin": HERE, "access-control-request-method": "GET"}
        refused = ours.call("OPTIONS", "/placement/resource_providers", headers=asked)
        assert refused.status_code == 405
