"""The microversions of the Placement API as a table."""

from __future__ import annotations

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import passage
from innkeeper.entrypoints.api.placement import schemas
from innkeeper.entrypoints.api.placement.versions.table import VERSIONS


def test_no_version_is_missing() -> None:
    assert [step.version for step in VERSIONS.steps] == [
        Version(1, minor) for minor in range(1, 40)
    ]


def test_the_oldest_schema_is_the_one_before_the_next_change() -> None:
    path = "/allocations/{consumer}"

    def required(minor: int) -> list[str]:
        steps = VERSIONS.after(Version(1, minor))
        body = passage(steps, "PUT", path, schemas.WRITE_CONSUMER, None).body
        assert body is not None
        return sorted(body["required"])

    assert required(0) == ["allocations"]
    assert required(8) == ["allocations", "project_id", "user_id"]
    assert required(27) == ["allocations", "project_id", "user_id"]
    assert required(28) == ["allocations", "consumer_generation", "project_id", "user_id"]
    assert len(required(39)) == 5
