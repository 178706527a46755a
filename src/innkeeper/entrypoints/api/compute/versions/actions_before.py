"""How the bodies of actions looked from version to version, each made of the one after it."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.schema_types import NAME, closed
from innkeeper.entrypoints.api.compute.servers.action_schemas import (
    EVACUATE,
    HOST,
    HOST_OR_NULL,
    MIGRATE_LIVE,
    NOT_LOOKED_AT,
    PASSWORD,
    actions_with,
    body_with,
)
from innkeeper.entrypoints.api.compute.servers.actions import BODY
from innkeeper.entrypoints.api.compute.servers.schemas import BOOLEAN
from innkeeper.entrypoints.api.microversions import Schema

UNSHELVE_INTO_ZONE: Schema = {
    **closed({"availability_zone": NAME}, ("availability_zone",)),
    "type": ["object", "null"],
}
EVACUATE_BY_FORCE = body_with(EVACUATE, {"force": BOOLEAN})
EVACUATE_WITH_STORAGE = closed(
    {"host": HOST, "onSharedStorage": BOOLEAN, "adminPass": PASSWORD}, ("onSharedStorage",)
)
LIVE_BY_FORCE = body_with(MIGRATE_LIVE, {"force": BOOLEAN})
LIVE_OVER_COMMIT = closed(
    {"block_migration": BOOLEAN, "disk_over_commit": BOOLEAN, "host": HOST_OR_NULL},
    ("block_migration", "disk_over_commit", "host"),
)

BEFORE_2_91 = actions_with(BODY, {"unshelve": UNSHELVE_INTO_ZONE})
BEFORE_2_77 = actions_with(BEFORE_2_91, {"unshelve": NOT_LOOKED_AT})
BEFORE_2_73 = actions_with(BEFORE_2_77, {"lock": NOT_LOOKED_AT})
BEFORE_2_68 = actions_with(
    BEFORE_2_73, {"evacuate": EVACUATE_BY_FORCE, "os-migrateLive": LIVE_BY_FORCE}
)
BEFORE_2_56 = actions_with(BEFORE_2_68, {"migrate": NOT_LOOKED_AT})
BEFORE_2_30 = actions_with(BEFORE_2_56, {"os-migrateLive": MIGRATE_LIVE})
BEFORE_2_29 = actions_with(BEFORE_2_30, {"evacuate": EVACUATE})
BEFORE_2_25 = actions_with(BEFORE_2_29, {"os-migrateLive": LIVE_OVER_COMMIT})
BEFORE_2_14 = actions_with(BEFORE_2_25, {"evacuate": EVACUATE_WITH_STORAGE})
