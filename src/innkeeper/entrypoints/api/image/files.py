"""Handlers of image data. An upload computes the data's size and checksums, but stores no data.

The scheduler needs an image's size, and clients compare its checksum, but nothing reads the data.
Agents have their own copies of images.
"""

from __future__ import annotations

import hashlib

from innkeeper.domain.errors import NotFound, TooLarge
from innkeeper.entrypoints.api.image.images import visible
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.flavors import images


async def upload(call: Call) -> Answer:
    """Upload an image's data, and activate the image. Only size and checksums are stored."""
    context, image_id = call.context, call.params["image_id"]
    # Check before the upload, so that a rejected client sends no data. ``activate`` checks again.
    await call.read(
        lambda tx: images.uploadable(tx, image_id, context.project_id, is_admin=context.is_admin)
    )
    size, checksum, sha512 = await _measure(call)
    await call.write(
        lambda tx: images.activate(
            tx,
            image_id,
            context.project_id,
            size,
            checksum,
            sha512,
            is_admin=context.is_admin,
            now=call.now,
        )
    )
    return Answer(204)


async def download(call: Call) -> Answer:
    """Return 204 before an image's upload. After the upload, return 404: the data is not stored."""
    image = await call.read(lambda tx: visible(tx, call))
    if image.size_bytes is None:
        return Answer(204)
    raise NotFound(f"The data of image {image.id} is not stored: this service is a catalog only.")


async def _measure(call: Call) -> tuple[int, str, str]:
    bytes_max = call.site.settings.serving.image_bytes_max
    announced = call.headers.get("content-length", "0")
    if announced.isdigit() and len(announced) < len(str(2**63)) and int(announced) > bytes_max:
        raise TooLarge(f"The image is larger than {bytes_max} bytes.")
    size = 0
    # Clients compare the MD5 checksum, which detects accidental changes, not attacks.
    checksum = hashlib.md5(usedforsecurity=False)
    sha512 = hashlib.sha512()
    async for part in call.body:
        size += len(part)
        if size > bytes_max:
            raise TooLarge(f"The image is larger than {bytes_max} bytes.")
        checksum.update(part)
        sha512.update(part)
    return size, checksum.hexdigest(), sha512.hexdigest()
