"""Policy rules of the Image API. Whose image it is, the room itself looks at."""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Rule

_ADMIN = "role:admin"
_ANYBODY = "@"
_WRITER = "role:admin or role:member or role:service or not role:reader"
"""Everybody but those who may only look."""

RULES = (
    Rule("get_images", _ANYBODY, "List the images one may see."),
    Rule("get_image", _ANYBODY, "Show an image one may see."),
    Rule("add_image", _WRITER, "Create an image in one's own project."),
    Rule("modify_image", _WRITER, "Change an image of one's own project."),
    Rule("delete_image", _WRITER, "Delete an image of one's own project."),
    Rule("upload_image", _WRITER, "Upload for an image of one's own project."),
    Rule("download_image", _ANYBODY, "Ask for the bits of an image one may see."),
    Rule("publicize_image", _ADMIN, "Show an image to all projects."),
    Rule("communitize_image", _WRITER, "Let all projects use an image who know of it."),
    Rule("set_image_owner", _ADMIN, "Put an image into a project that is not one's own."),
    Rule("deactivate", _ADMIN, "Keep new servers from an image."),
    Rule("reactivate", _ADMIN, "Let servers start from an image again."),
    Rule("get_image_schema", _ANYBODY, "Read the form of images."),
)
