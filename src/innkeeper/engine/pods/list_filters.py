"""Translate the filters of a list for pods, whose ids and names differ from the door's.

Always true: a filter is sent to a pod only if its value (or the translated value) means the same in
the pod. The door (gateway) applies all other filters to the rows of the pod, or refuses them with
an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
"""If this service applies a filter itself, it reads this many rows of a pod at once."""
IMAGES = ("image", "image_ref")
TYPES = ("volume_type", "volume_type_id")
INTERNAL = {
    SERVER: frozenset({"instance_type_id", "kernel_id", "ramdisk_id", "launched_on"}),
    "volume": frozenset({"encryption_key_id"}),
}
"""Filters by fields that pods know, but this service neither knows nor shows."""

Filters = Sequence[tuple[str, str]]
ValueOf = Callable[[str], Json]
"""A function that returns the value of a row's field, as the pod shows it."""
Accepts = Callable[[ValueOf, PodHome], bool]
"""A function that returns whether a row of a pod passes a filter. It gets the fields of the row,
and its home: the pod, the project and a few more facts of the resource."""


@dataclass(frozen=True, slots=True)
class PodFilters:
    """The filters of a list for one pod.

    Those ``sent`` are applied by the pod. Those in ``here`` are applied by this service.
    """

    sent: Filters
    here: Sequence[Accepts] = ()

    def accept(self, value_of: ValueOf, home: PodHome) -> bool:
        """Return whether a row passes the filters that this service itself applies."""
        return not self.here or all(accepts(value_of, home) for accepts in self.here)


class ListFilters:
    """Translates the filters of lists."""

    def __init__(self, clouds: PodClouds, provisioning: Provisioning) -> None:
        self._clouds = clouds
        self._provisioning = provisioning

    def check(self, request: DoorRequest, filters: Filters) -> None:
        """Raise :class:`Invalid` for a filter that has no meaning in this service."""
        for name, _ in filters:
            if name in INTERNAL[request.kind]:
                raise Invalid(f"This service does not filter by {name}.")

    async def of_pod(
        self, pod: Pod, login: PodLogin, request: DoorRequest, filters: Filters
    ) -> PodFilters:
        """Return the filters for a pod. Raises :class:`PodSilent`."""
        is_server = request.kind == SERVER
        sent: list[tuple[str, str]] = []
        here: list[Accepts] = []
        for name, value in filters:
            if name == "user_id":
                # In a pod, all resources belong to this service's user.
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
                here.append(_of_type(await self._types(request, value)))
            else:
                sent.append((name, value))
        return PodFilters(sent, here)

    async def _image(
        self, pod: Pod, login: PodLogin, request: DoorRequest, value: str
    ) -> str | None:
        """Return the id of an image in a pod, or ``None`` if this service or the pod lacks it."""
        try:
            _, name = await self._clouds.engine.read(
                lambda tx: plans.image_of(tx, value, request.caller)
            )
            return await self._provisioning.image(pod, login, name or "")
        except (Conflict, Invalid):
            return None

    async def _types(self, request: DoorRequest, value: str) -> Mapping[str, str]:
        """Return the names of the volume types with this id or name, by the ids of the types."""
        caller = request.caller

        def look(tx: Tx) -> Mapping[str, str]:
            known = types.listing(tx, caller.project_id, is_admin=caller.is_admin)
            return {each.uuid: each.name for each in known if value in (each.uuid, each.name)}

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


def _of_type(wanted: Mapping[str, str]) -> Accepts:
    def accepts(value_of: ValueOf, home: PodHome) -> bool:
        if home.type_uuid is not None:
            # The type may have been renamed since the pod made the volume.
            return home.type_uuid in wanted
        name = value_of("volume_type")
        return isinstance(name, str) and name in wanted.values()

    return accepts
