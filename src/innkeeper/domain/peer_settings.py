"""Settings for several processes that share a database."""

from __future__ import annotations

from typing import Annotated

import msgspec


class Peering(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the processes that share a database reach each other.

    With ``forward_writes``, one process is the leader, and the others forward writes to the leader.
    Processes on other machines reach this process only at ``peer_host``. If ``peer_host`` is set,
    this process listens at this address with TLS, on ``peer_port`` or on the next free port after
    ``peer_port``.
    """

    forward_writes: bool = True
    peer_host: str | None = None
    peer_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 8790
