"""All routes of the Image API."""

from __future__ import annotations

from innkeeper.entrypoints.api.image import documents, files, images, schemas
from innkeeper.entrypoints.api.routing import Route

PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
BITS_TYPE = "application/octet-stream"
_IMAGES = "/v2/images"
_ONE = "/v2/images/{image_id}"
_TAG = "/v2/images/{image_id}/tags/{tag}"

ROUTES = (
    Route("GET", "", documents.versions, None, "List the API's versions.", success=(300,)),
    Route("GET", _IMAGES, images.index, "get_images", "List images.", query=schemas.LIST),
    Route(
        "POST",
        _IMAGES,
        images.create,
        "add_image",
        "Create an image.",
        body=schemas.CREATE,
        success=(201,),
    ),
    Route("GET", _ONE, images.show, "get_image", "Show an image."),
    Route(
        "PATCH",
        _ONE,
        images.update,
        "modify_image",
        "Change an image.",
        body=schemas.PATCH,
        media_types=(PATCH_TYPE,),
    ),
    Route("DELETE", _ONE, images.delete, "delete_image", "Delete an image.", success=(204,)),
    Route(
        "PUT",
        f"{_ONE}/file",
        files.upload,
        "upload_image",
        "Measure an image's data.",
        media_types=(BITS_TYPE,),
        takes_stream=True,
        success=(204,),
    ),
    Route(
        "GET",
        f"{_ONE}/file",
        files.download,
        "download_image",
        "Ask for an image's data, which is not kept.",
        success=(204,),
    ),
    Route("PUT", _TAG, images.add_tag, "modify_image", "Tag an image.", success=(204,)),
    Route("DELETE", _TAG, images.remove_tag, "modify_image", "Untag an image.", success=(204,)),
    Route(
        "POST",
        f"{_ONE}/actions/deactivate",
        images.deactivate,
        "deactivate",
        "Keep new servers from an image.",
        success=(204,),
    ),
    Route(
        "POST",
        f"{_ONE}/actions/reactivate",
        images.reactivate,
        "reactivate",
        "Let servers start from an image again.",
        success=(204,),
    ),
    Route(
        "GET",
        "/v2/schemas/image",
        documents.image_schema,
        "get_image_schema",
        "Describe the form of an image.",
    ),
    Route(
        "GET",
        "/v2/schemas/images",
        documents.images_schema,
        "get_image_schema",
        "Describe the form of a list of images.",
    ),
)
