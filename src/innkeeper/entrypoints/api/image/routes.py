"""All routes of the Image API."""

from __future__ import annotations

from innkeeper.entrypoints.api.image import documents, files, images, schemas
from innkeeper.entrypoints.api.image.rules import ADMIN, ANYBODY, WRITER
from innkeeper.entrypoints.api.routing import Route, Rule

PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
BITS_TYPE = "application/octet-stream"
_IMAGES = "/v2/images"
_ONE = "/v2/images/{image_id}"
_TAG = "/v2/images/{image_id}/tags/{tag}"

_MODIFY_IMAGE = Rule("modify_image", WRITER, "Change an image of one's own project.")
_GET_IMAGE_SCHEMA = Rule("get_image_schema", ANYBODY, "Read the form of images.")

ROUTES = (
    Route("GET", "", documents.versions, None, "List the API's versions.", success=(300,)),
    Route(
        "GET",
        _IMAGES,
        images.index,
        Rule("get_images", ANYBODY, "List the images one may see."),
        query=schemas.LIST,
    ),
    Route(
        "POST",
        _IMAGES,
        images.create,
        Rule("add_image", WRITER, "Create an image in one's own project."),
        "Create an image.",
        body=schemas.CREATE,
        success=(201,),
    ),
    Route(
        "GET",
        _ONE,
        images.show,
        Rule("get_image", ANYBODY, "Show an image one may see."),
        "Show an image.",
    ),
    Route(
        "PATCH",
        _ONE,
        images.update,
        _MODIFY_IMAGE,
        "Change an image.",
        body=schemas.PATCH,
        media_types=(PATCH_TYPE,),
    ),
    Route(
        "DELETE",
        _ONE,
        images.delete,
        Rule("delete_image", WRITER, "Delete an image of one's own project."),
        success=(204,),
    ),
    Route(
        "PUT",
        f"{_ONE}/file",
        files.upload,
        Rule("upload_image", WRITER, "Upload for an image of one's own project."),
        "Measure an image's data.",
        media_types=(BITS_TYPE,),
        takes_stream=True,
        success=(204,),
    ),
    Route(
        "GET",
        f"{_ONE}/file",
        files.download,
        Rule("download_image", ANYBODY, "Ask for the bits of an image one may see."),
        "Ask for an image's data, which is not kept.",
        success=(204,),
    ),
    Route("PUT", _TAG, images.add_tag, _MODIFY_IMAGE, "Tag an image.", success=(204,)),
    Route("DELETE", _TAG, images.remove_tag, _MODIFY_IMAGE, "Untag an image.", success=(204,)),
    Route(
        "POST",
        f"{_ONE}/actions/deactivate",
        images.deactivate,
        Rule("deactivate", ADMIN),
        success=(204,),
    ),
    Route(
        "POST",
        f"{_ONE}/actions/reactivate",
        images.reactivate,
        Rule("reactivate", ADMIN),
        success=(204,),
    ),
    Route(
        "GET",
        "/v2/schemas/image",
        documents.image_schema,
        _GET_IMAGE_SCHEMA,
        "Describe the form of an image.",
    ),
    Route(
        "GET",
        "/v2/schemas/images",
        documents.images_schema,
        _GET_IMAGE_SCHEMA,
        "Describe the form of a list of images.",
    ),
)
