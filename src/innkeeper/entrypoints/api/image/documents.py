"""The Image API's versions and the forms of its bodies."""

from __future__ import annotations

from innkeeper.entrypoints.api.image.schemas import IMAGE_DOCUMENT, IMAGES_DOCUMENT
from innkeeper.entrypoints.api.routing import Answer, Call

NEWEST_MINOR = 7
"""2.7 brought hidden images and the long hashes; what came later moves bits between stores."""


async def versions(call: Call) -> Answer:
    """List the versions. There is no best one, so the status says "multiple choices"."""
    links = [{"rel": "self", "href": f"{call.address}/v2/"}]
    listed = [
        {
            "id": f"v2.{minor}",
            "status": "CURRENT" if minor == NEWEST_MINOR else "SUPPORTED",
            "links": links,
        }
        for minor in range(NEWEST_MINOR, -1, -1)
    ]
    return Answer(300, {"versions": listed})


async def image_schema(call: Call) -> Answer:
    """Describe an image."""
    return Answer(200, IMAGE_DOCUMENT)


async def images_schema(call: Call) -> Answer:
    """Describe a list of images."""
    return Answer(200, IMAGES_DOCUMENT)
