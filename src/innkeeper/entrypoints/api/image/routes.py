"""The routes of the Image API, and their policy rules."""

from __future__ import annotations

from innkeeper.entrypoints.api.image import documents, files, images, schemas
from innkeeper.entrypoints.api.image.rules import ADMIN, ANYBODY, WRITER
from innkeeper.entrypoints.api.routing import Route, Rule

PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
BITS_TYPE = "application/octet-stream"
_IMAGES = "/v2/images"
_ONE = "/v2/images/{image_id}"
_TAG = "/v2/images/{image_id}/tags/{tag}"

_ADD_IMAGE = Rule("add_image", WRITER, "Create an image in the caller's project.")
_MODIFY_IMAGE = Rule("modify_image", WRITER, "Change an image of the caller's project.")
_DELETE_IMAGE = Rule("delete_image", WRITER, "Delete an image of the caller's project.")
_GET_IMAGE_SCHEMA = Rule("get_image_schema", ANYBODY, "Show the JSON schemas of images.")

ROUTES = (
    Route("GET", "", documents.versions, None, success=(300,)),
    Route("GET", _IMAGES, images.index, Rule("get_images", ANYBODY), query=schemas.LIST),
    Route("POST", _IMAGES, images.create, _ADD_IMAGE, body=schemas.CREATE, success=(201,)),
    Route("GET", _ONE, images.show, Rule("get_image", ANYBODY)),
    Route(
        "PATCH", _ONE, images.update, _MODIFY_IMAGE, body=schemas.PATCH, media_types=(PATCH_TYPE,)
    ),
    Route("DELETE", _ONE, images.delete, _DELETE_IMAGE, success=(204,)),
    Route(
        "PUT",
        f"{_ONE}/file",
        files.upload,
        Rule("upload_image", WRITER, "Upload the data of an image of the caller's project."),
        media_types=(BITS_TYPE,),
        takes_stream=True,
        success=(204,),
    ),
    Route("GET", f"{_ONE}/file", files.download, Rule("download_image", ANYBODY), success=(204,)),
    Route("PUT", _TAG, images.add_tag, _MODIFY_IMAGE, success=(204,)),
    Route("DELETE", _TAG, images.remove_tag, _MODIFY_IMAGE, success=(204,)),
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
    Route("GET", "/v2/schemas/image", documents.image_schema, _GET_IMAGE_SCHEMA),
    Route("GET", "/v2/schemas/images", documents.images_schema, _GET_IMAGE_SCHEMA),
)
