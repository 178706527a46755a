"""Builds rows of servers as a boot writes them, for tests of later steps."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.compute import Power, Status, Task
from innkeeper.domain.ids import ServerId

NOON = datetime.fromisoformat("2026-01-01T12:00:00")


def uuid(number: int) -> ServerId:
    """Return a server's id."""
    return ServerId(f"00000000-0000-4000-8000-{number:012x}")


def row(number: int, **more: Any) -> dict[str, Any]:
    """Return the row of a server that is being built, without a host."""
    moment = NOON + timedelta(seconds=number // 3)
    return {
        "uuid": uuid(number),
        "name": f"server-{number}",
        "hostname": f"server-{number}",
        "description": None,
        "project_id": "red",
        "user_id": "ann",
        "batch_id": "r-1",
        "launch_index": 0,
        "flavor": {"name": "small"},
        "flavor_id": "small",
        "vcpus": 2,
        "memory_mb": 512,
        "disk_gb": 1,
        "image_id": None,
        "image_properties": {},
        "status": Status.BUILD,
        "task_state": Task.SPAWNING,
        "power_state": Power.NO_STATE,
        "host": None,
        "provider_id": None,
        "asked_az": None,
        "key_name": None,
        "has_config_drive": False,
        "user_data": None,
        "metadata": {},
        "tags": [],
        "hints": {},
        "request_id": None,
        "access_ip_v4": "",
        "access_ip_v6": "",
        "is_locked": False,
        "locked_reason": None,
        "fault": None,
        "decision": None,
        "created_at": moment,
        "updated_at": moment,
        "launched_at": None,
        "deleted_at": None,
        **more,
    }
