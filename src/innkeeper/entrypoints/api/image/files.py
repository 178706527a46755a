"""The bits of images: measured as they come in, and kept nowhere.

Scheduling needs to know how large an image is and clients that what arrived is what was sent;
neither needs the bits to stay. Agents have images of their own.
"""

from __future__ import annotations

import hashlib

from innkeeper.domain.compute import Image
from innkeeper.domain.errors import NotFound, TooLarge
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute import images


async def upload(call: Call) -> Answer:
    """Measure what is uploaded; the image is active from then on."""
    context, image_id = call.context, call.params["image_id"]
    # Asked before the bits come, so that nobody sends them in vain, and again when all came.
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
    """Say that there are no bits: none yet, or none that are kept."""
    context, image_id = call.context, call.params["image_id"]
    image: Image = await call.read(
        lambda tx: images.get(tx, image_id, context.project_id, is_admin=context.is_admin)
    )
    if image.size_bytes is None:
        return Answer(204)
    raise NotFound(
        f"Image {image_id} is known here, but its data is not kept: this is a catalogue only."
    )


async def _measure(call: Call) -> tuple[int, str, str]:
    bytes_max = call.site.settings.serving.image_bytes_max
    announced = call.headers.get("content-length", "0")
    if announced.isdigit() and len(announced) < len(str(2**63)) and int(announced) > bytes_max:
        raise TooLarge(f"The image is larger than {bytes_max} bytes.")
    size = 0
    # Clients compare this one; it protects from accidents, not from people.
    checksum = hashlib.md5(usedforsecurity=False)
    sha512 = hashlib.sha512()
    async for part in call.body:
        size += len(part)
        if size > bytes_max:
            raise TooLarge(f"The image is larger than {bytes_max} bytes.")
        checksum.update(part)
        sha512.update(part)
    return size, checksum.hexdigest(), sha512.hexdigest()
