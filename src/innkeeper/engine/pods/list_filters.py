"""Translate the filters of a list for each pod, whose ids and names differ from those of the door.

Always true: a filter is sent to a pod only if the filter's value means the same there. The door
(gateway) applies each other filter to the rows of the pod, or refuses it with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.domain.door import SERVER, DoorRequest, Json
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.pods import Pod, PodHome
from innkeeper.engine.pods import plans
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.provisioning import Provisioning, keypair_name
from innkeeper.store.transactions import Tx
from innkeeper.systems.volumes import types

PAGE = 1000
"""The number of rows of a pod that are read at once if the door applies a filter itself."""
IMAGES = ("image", "image_ref")
TYPES = ("volume_type", "volume_type_id")
INTERNAL = {
    SERVER: frozenset({"instance_type_id", "kernel_id", "ramdisk_id", "launched_on"}),
    "volume": frozenset({"encryption_key_id"}),
}
"""Filters by fields that pods know, and that the door neither knows nor shows."""

Filters = Sequence[tuple[str, str]]
ValueOf = Callable[[str], Json]
"""Returns the value of a field of a row, as the pod shows it."""
Accepts = Callable[[ValueOf, PodHome], bool]
"""Returns whether a row of a pod passes a filter, by the fields and the home of the row. The home
has the pod, the project and a few more fields of the row's resource."""


@dataclass(frozen=True, slots=True)
class PodFilters:
    """The filters that are ``sent`` to a pod, and the filters that the door applies ``here``."""

    sent: Filters
    here: Sequence[Accepts] = ()

    def accept(self, value_of: ValueOf, home: PodHome) -> bool:
        """Return whether a row passes the filters that are applied here."""
        return not self.here or all(accepts(value_of, home) for accepts in self.here)


class ListFilters:
    """Translates the filters of lists."""

    def __init__(self, clouds: PodClouds, provisioning: Provisioning) -> None:
        self._clouds = clouds
        self._provisioning = provisioning

    def check(self, request: DoorRequest, filters: Filters) -> None:
        """Raise :class:`Invalid` for a filter that has no meaning at the door."""
        for name, _ in filters:
            if name in INTERNAL[request.kind]:
                raise Invalid(f"The door does not filter by {name}.")

    async def of_pod(
        self, pod: Pod, login: PodLogin, request: DoorRequest, filters: Filters
    ) -> PodFilters:
        """Return the filters for a pod. Raises :class:`PodSilent`."""
        is_server = request.kind == SERVER
        sent: list[tuple[str, str]] = []
        here: list[Accepts] = []
        for name, value in filters:
            if name == "user_id":
                # In a pod, all resources belong to one user: the door's.
                here.append(_of_user(value))
            elif name == "key_name" and is_server:
                here.append(_with_key(value))
            elif name == "flavor" and is_server:
                sent.append((name, value.rpartition("/")[2]))
            elif name in IMAGES and is_server and value:
                known = await self._image(pod, login, request, value)
                if known is None:
                    here.append(_of_image(value))
                else:
                    sent.append((name, known))
            elif name == "image_id" and not is_server:
                here.append(_of_image(value))
            elif name in TYPES and not is_server:
                here.append(_of_type(await self._type_names(request, value)))
            else:
                sent.append((name, value))
        return PodFilters(sent, here)

    async def _image(
        self, pod: Pod, login: PodLogin, request: DoorRequest, value: str
    ) -> str | None:
        """Return the id of an image in a pod; ``None`` if the door or the pod lost the image."""
        try:
            _, name = await self._clouds.engine.read(
                lambda tx: plans.image_of(tx, value, request.caller)
            )
            return await self._provisioning.image(pod, login, name or "")
        except (Conflict, Invalid):
            return None

    async def _type_names(self, request: DoorRequest, value: str) -> frozenset[str]:
        caller = request.caller

        def look(tx: Tx) -> frozenset[str]:
            known = types.listing(tx, caller.project_id, is_admin=caller.is_admin)
            return frozenset(each.name for each in known if value in (each.uuid, each.name))

        return await self._clouds.engine.read(look)


def _of_user(value: str) -> Accepts:
    return lambda _, home: home.user_id == value


def _with_key(value: str) -> Accepts:
    def accepts(value_of: ValueOf, _: PodHome) -> bool:
        name = value_of("key_name")
        return isinstance(name, str) and keypair_name(name) == value

    return accepts


def _of_image(value: str) -> Accepts:
    wanted = value.rpartition("/")[2]
    return lambda _, home: home.image_id == wanted


def _of_type(names: frozenset[str]) -> Accepts:
    def accepts(value_of: ValueOf, _: PodHome) -> bool:
        name = value_of("volume_type")
        return isinstance(name, str) and name in names

    return accepts
