"""All scheduler hints of a request together are bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.running import running

BYTES_MAX = 16 * 1024
FRAME = '{"colour":""}'


@pytest.mark.parametrize(
    ("colour", "status"),
    [
        ("x" * (BYTES_MAX - len(FRAME)), 202),
        ("x" * (BYTES_MAX - len(FRAME) + 1), 400),
        ("é" * ((BYTES_MAX - len(FRAME)) // 2 + 1), 400),
    ],
    ids=["just enough", "a byte too many", "bytes count, not characters"],
)
def test_hints_are_bounded_together(tmp_path: Path, colour: str, status: int) -> None:
    with running(tmp_path) as service:
        flavor = {"name": "small", "id": "small", "ram": 512, "vcpus": 1, "disk": 1}
        service.call("POST", "/compute/v2.1/flavors", json={"flavor": flavor})
        body = {
            "server": {"name": "web", "flavorRef": "small"},
            "os:scheduler_hints": {"colour": colour},
        }
        answer = service.call("POST", "/compute/v2.1/servers", json=body)
        assert answer.status_code == status
        if status == 400:
            told = f"The scheduler hints are too large: use at most {BYTES_MAX} bytes of JSON."
            assert answer.json() == {"badRequest": {"code": 400, "message": told}}
        listed = service.call("GET", "/compute/v2.1/servers").json()["servers"]
        assert len(listed) == (status == 202)
