"""Default checks of the Image API's policy rules, and the rules that only handlers check.

Always true: no policy rule of the Image API checks which project owns an image. The compute system
checks the owner.
"""

from __future__ import annotations

from innkeeper.entrypoints.api import checks
from innkeeper.entrypoints.api.routing import Rule

ADMIN, ANYBODY = checks.ADMIN, checks.ANYBODY
WRITER = f"{ADMIN} or {checks.WRITER}"
"""All callers except those that have only the role ``reader``."""

OTHER_RULES = (
    Rule("publicize_image", ADMIN, "Make an image public."),
    Rule("communitize_image", WRITER, "Make an image a community image."),
    Rule("set_image_owner", ADMIN, "Set another project as the owner of an image."),
)
