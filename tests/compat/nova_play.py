"""The program that plays every scene with Nova's own code, and writes down the answers.

It is a process of its own, because Nova keeps settings and connections until its process ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.compat import (
    nova_candidate_scenes,
    nova_consumer_scenes,
    nova_provider_scenes,
    nova_reshape_scenes,
    nova_service_scenes,
)
from tests.compat.nova_cloud import Nova

SCENES = (
    *nova_provider_scenes.SCENES,
    *nova_candidate_scenes.SCENES,
    *nova_consumer_scenes.SCENES,
    *nova_reshape_scenes.SCENES,
    *nova_service_scenes.SCENES,
)


def main(settings: Path, reported: Path, roles: str) -> None:
    """Play the scenes; for services without authentication, send the roles in a header."""
    nova = Nova(settings, {"x-roles": roles} if roles else {})
    for scene in SCENES:
        scene(nova)
    reported.write_text(json.dumps(nova.reported, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
