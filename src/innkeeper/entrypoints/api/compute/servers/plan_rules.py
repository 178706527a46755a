"""Policy rules of build plans."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.checks import PROJECT
from innkeeper.entrypoints.api.routing import Rule

SELECT = "os_compute_api:zones:select"

PLAN_RULES = (Rule(SELECT, PROJECT, "Have servers planned, to be made later."),)
