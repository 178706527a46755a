"""Checks of the Image API's policy rules, and the rules that handlers ask themselves.

Whose image it is, the room itself looks at.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Rule

ADMIN = "role:admin"
ANYBODY = "@"
WRITER = "role:admin or role:member or role:service or not role:reader"
"""Everybody but those who may only look."""

OTHER_RULES = (
    Rule("publicize_image", ADMIN, "Show an image to all projects."),
    Rule("communitize_image", WRITER, "Let all projects use an image who know of it."),
    Rule("set_image_owner", ADMIN, "Put an image into a project that is not one's own."),
)
