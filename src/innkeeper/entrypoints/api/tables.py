"""All public APIs, by name: the one place that lists them."""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.entrypoints.api.compute_api import COMPUTE
from innkeeper.entrypoints.api.identity.routes import IDENTITY
from innkeeper.entrypoints.api.image.api import IMAGE
from innkeeper.entrypoints.api.leases.routes import RESERVATION
from innkeeper.entrypoints.api.placement.routes import PLACEMENT
from innkeeper.entrypoints.api.routing import Api

APIS: Mapping[str, Api] = {
    "compute": COMPUTE,
    "identity": IDENTITY,
    "image": IMAGE,
    "placement": PLACEMENT,
    "reservation": RESERVATION,
}
