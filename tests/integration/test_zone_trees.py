"""Trees of zones, each a process of its own."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.zone_processes import zone_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def test_a_boot_uses_the_hosts_of_a_child(tmp_path: Path) -> None:
    """A batch that is too large for one zone gets hosts in its child."""
    with zone_tree(tmp_path) as tree:
        root, kid = tree.start("root", hosts=1), tree.start("kid", hosts=2)
        tree.link("root", "kid")
        root.add_flavor()
        booted = root.boot(4)
        assert booted.status_code == httpx.codes.ACCEPTED, booted.text
        assert root.child("kid")["servers"] == len(kid.server_ids()) == 2
