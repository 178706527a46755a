"""Default checks of the Block Storage API's policy rules, and the rules that only handlers check.

Always true: these rules do not check which project owns a volume. The handlers check the owner.
"""

from __future__ import annotations

from innkeeper.entrypoints.api import checks
from innkeeper.entrypoints.api.routing import Rule

ADMIN, ANYBODY, PROJECT = checks.ADMIN, checks.ANYBODY, checks.PROJECT
WRITER = f"{ADMIN} or {checks.WRITER}"
"""All callers except those that have only the role ``reader``."""
_ACTION = "volume_extension:volume_actions"
_IMAGE = "volume_extension:volume_image_metadata"

OTHER_RULES = (
    Rule("volume:extend", checks.PROJECT_WRITER),
    Rule("volume:force_delete", ADMIN),
    Rule("volume:update_readonly_flag", checks.PROJECT_WRITER, "Make a volume read-only."),
    Rule(
        "volume_extension:volume_admin_actions:reset_status", ADMIN, "Set the status of a volume."
    ),
    Rule(
        "volume_extension:volume_admin_actions:force_detach",
        ADMIN,
        "Detach a volume, whatever its state is.",
    ),
    Rule(f"{_ACTION}:set_bootable", checks.PROJECT_WRITER, "Let servers boot from a volume."),
    Rule(f"{_ACTION}:reserve", checks.PROJECT_WRITER, "Reserve a volume for an attachment."),
    Rule(f"{_ACTION}:unreserve", checks.PROJECT_WRITER, "Undo the reservation of a volume."),
    Rule(f"{_ACTION}:begin_detaching", checks.PROJECT_WRITER, "Begin to detach a volume."),
    Rule(f"{_ACTION}:roll_detaching", checks.PROJECT_WRITER, "Cancel a detachment that has begun."),
    Rule(f"{_ACTION}:attach", checks.PROJECT_WRITER, "Record that a volume was attached."),
    Rule(f"{_ACTION}:detach", checks.PROJECT_WRITER, "Record that a volume was detached."),
    Rule(f"{_IMAGE}:set", checks.PROJECT_WRITER, "Add image metadata to a volume."),
    Rule(f"{_IMAGE}:remove", checks.PROJECT_WRITER, "Remove image metadata from a volume."),
    Rule(f"{_IMAGE}:show", PROJECT, "Show the image metadata of a volume."),
)
