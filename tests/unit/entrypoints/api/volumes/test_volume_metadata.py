"""The number of metadata items that a volume may have."""

from __future__ import annotations

import pytest

from innkeeper.domain.door import MARK
from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.volumes.volumes import METADATA_MAX, check_metadata

FULL = {f"k{number}": "v" for number in range(METADATA_MAX)}


@pytest.mark.parametrize("more", [{}, {MARK: "m"}])
def test_the_mark_of_a_door_does_not_count_as_an_item(more: dict[str, str]) -> None:
    check_metadata({**FULL, **more})
    with pytest.raises(Invalid, match="at most 128"):
        check_metadata({**FULL, **more, "one-more": "v"})
