"""What 2.57 changed about quotas: files put into servers are gone, and their limits with them.

Nothing was ever put into a server here, so the older versions show the field's defaults.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.accounts.quotas import put_into
from innkeeper.entrypoints.api.compute.accounts.schemas import UPDATE_QUOTAS_BEFORE_2_57
from innkeeper.entrypoints.api.microversions import Edge
from innkeeper.entrypoints.api.routing import Answer, Call

FILES = 5
FILE_BYTES = 10240
PATH_BYTES = 255


def _add(answer: Answer, call: Call) -> None:
    put_into(
        answer,
        {
            "injected_file_content_bytes": FILE_BYTES,
            "injected_file_path_bytes": PATH_BYTES,
            "injected_files": FILES,
        },
    )


def _add_limits(answer: Answer, call: Call) -> None:
    answer.body["limits"]["absolute"].update(
        maxPersonality=FILES, maxPersonalitySize=FILE_BYTES
    )


EDGES = (
    Edge("GET", "/v2.1/os-quota-sets/{project_id}", down=_add),
    Edge("GET", "/v2.1/os-quota-sets/{project_id}/detail", down=_add),
    Edge("GET", "/v2.1/os-quota-sets/{project_id}/defaults", down=_add),
    Edge("GET", "/v2.1/os-quota-class-sets/{class_id}", down=_add),
    Edge(
        "PUT",
        "/v2.1/os-quota-sets/{project_id}",
        body_before=UPDATE_QUOTAS_BEFORE_2_57,
        down=_add,
    ),
    Edge("GET", "/v2.1/limits", down=_add_limits),
)
