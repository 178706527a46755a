"""Handlers of the Image API's version document and JSON schemas."""

from __future__ import annotations

from innkeeper.entrypoints.api.image.schemas import IMAGE_DOCUMENT, IMAGES_DOCUMENT
from innkeeper.entrypoints.api.routing import Answer, Call

NEWEST_MINOR = 7
"""The minor number of the newest supported version, which added hidden images and SHA-512 hashes.
Later versions are about multiple stores."""


async def versions(call: Call) -> Answer:
    """List the API's versions."""
    links = [{"rel": "self", "href": f"{call.address}/v2/"}]
    older = [("SUPPORTED", minor) for minor in range(NEWEST_MINOR - 1, -1, -1)]
    listed = [
        {"id": f"v2.{minor}", "status": status, "links": links}
        for status, minor in [("CURRENT", NEWEST_MINOR), *older]
    ]
    return Answer(300, {"versions": listed})


async def image_schema(call: Call) -> Answer:
    """Show the JSON schema of an image."""
    return Answer(200, IMAGE_DOCUMENT)


async def images_schema(call: Call) -> Answer:
    """Show the JSON schema of a list of images."""
    return Answer(200, IMAGES_DOCUMENT)
