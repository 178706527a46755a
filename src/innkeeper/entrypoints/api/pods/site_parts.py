"""Access to the objects that only a service with pods has."""

from __future__ import annotations

from innkeeper.domain.errors import NotFound
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.entrypoints.api.routing import Call


def clouds_of(call: Call) -> PodClouds:
    """Return the clouds behind this service.

    Raises :class:`NotFound` if the setting ``apis`` does not contain ``pods``.
    """
    clouds = call.site.pods
    if clouds is None:
        raise NotFound("To use pods, add 'pods' to the setting apis.")
    return clouds


def region_of(call: Call) -> str:
    """Return the name of this service's own region. No pod may have this name."""
    return call.site.settings.authenticating.region_name
