"""Create the flavors, key pairs and volume types that servers and volumes need in a pod.

Always true: objects that exist in the pod are not changed. Images are looked up by their names, and
not made. Extra specs that choose a group of pods are not sent to the pods. In a pod, they would
require hosts or volume pools with a capability of that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import quote, urlencode

import msgspec

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import IMAGE, PodAnswer, PodCall, PodSilent
from innkeeper.domain.compute import Flavor
from innkeeper.domain.door import Json
from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.domain.keypairs import Keypair
from innkeeper.domain.pods import Pod
from innkeeper.domain.volumes import VolumeType
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.tenants import BLOCK_STORAGE, COMPUTE, Tenants, decoded

KNOWN_FOR = timedelta(minutes=5)
"""The time for which this service assumes that a pod still has an object. A refused create ends
this time at once."""
KNOWN_MAX = 10_000
REFUSALS = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
"""Statuses with which a pod refuses to make an object. Another pod may agree to make it."""
DIGEST_CHARS = 16
NAME_CHARS_MAX = 255
KEY_VERSION, NEW_KEY_VERSION = "compute 2.2", "compute 2.92"
"""Microversions: key pairs have types since ``KEY_VERSION``, and their names may have dots since
``NEW_KEY_VERSION``."""
_OWN_KEY = re.compile(rf"(.+)-[0-9a-f]{{{DIGEST_CHARS}}}")


class Provisioning:
    """Makes objects that pods lack, and remembers for a while which objects they have.

    ``made`` counts the objects that were made, or that have a new id. If ``is_sure`` is false, the
    pod is asked even for remembered objects.
    """

    def __init__(self, clouds: PodClouds, tenants: Tenants) -> None:
        self._clouds = clouds
        self._tenants = tenants
        self._known: dict[tuple[object, ...], tuple[datetime, str]] = {}
        self.made = 0

    def forget(self, pod: Pod) -> None:
        """Forget which objects a pod has, because the pod has refused a create."""
        for key in [each for each in self._known if each[0] == pod.uuid]:
            del self._known[key]

    async def flavor(
        self, pod: Pod, login: PodLogin, flavor: Flavor, *, is_sure: bool = True
    ) -> None:
        """Make a flavor, if the pod lacks it.

        Raises :class:`Conflict` if the pod refuses it, or has a different flavor with this id.
        """
        key = (pod.uuid, login.project_name, flavor.flavor_id, flavor.updated_at)
        if is_sure and self._is_known(key):
            return
        own = await self._tenants.own(pod)
        path = f"/flavors/{quote(flavor.flavor_id, safe='')}"
        found = await self._ask(own, COMPUTE, "GET", path)
        if found.status == HTTPStatus.NOT_FOUND:
            self.made += 1
            found = await self._ask(own, COMPUTE, "POST", "/flavors", _flavor_body(flavor))
            if found.status == HTTPStatus.CONFLICT:
                # Another request has just made the flavor, or a flavor with another id has this
                # name.
                found = await self._ask(own, COMPUTE, "GET", path)
            elif found.status == HTTPStatus.OK:
                specs = _without_tags(flavor.extra_specs, pod)
                found = await self._with_specs(own, path, found, specs)
        _demand(found, f"flavor {flavor.name}", HTTPStatus.OK)
        told = decoded(found).get("flavor")
        if not isinstance(told, Mapping):
            raise PodSilent("its answer lacks the flavor")
        amounts = (told.get("vcpus"), told.get("ram"), told.get("disk"))
        if amounts != (flavor.vcpus, flavor.memory_mb, flavor.disk_gb):
            raise Conflict(f"The cloud that would run the server has another flavor {flavor.name}.")
        if told.get("os-flavor-access:is_public") is False:
            await self._give(own, login, path)
        self._remember(key)

    async def _with_specs(
        self, own: PodLogin, path: str, made: PodAnswer, specs: Mapping[str, str]
    ) -> PodAnswer:
        """Give a new flavor its extra specs.

        Return the pod's answer about the flavor, or its refusal of the specs.

        If the specs are refused, the flavor is deleted again. Otherwise, later creates would use it
        without its specs.
        """
        if not specs:
            return made
        is_whole = False
        try:
            body = {"extra_specs": specs}
            answer = await self._ask(own, COMPUTE, "POST", f"{path}/os-extra_specs", body)
            is_whole = answer.status == HTTPStatus.OK
        finally:
            if not is_whole:
                await self._ask(own, COMPUTE, "DELETE", path)
        return made if is_whole else answer

    async def _give(self, own: PodLogin, login: PodLogin, path: str) -> None:
        timeout_s = self._clouds.podding.pod_request_timeout_s
        session = await self._clouds.client.session(login, timeout_s)
        body = {"addTenantAccess": {"tenant": session.project_id}}
        given = await self._ask(own, COMPUTE, "POST", f"{path}/action", body)
        if given.status not in (HTTPStatus.OK, HTTPStatus.CONFLICT):
            raise PodSilent(f"the flavor cannot be shared: {given.status}")

    async def keypair(
        self, pod: Pod, login: PodLogin, keypair: Keypair, *, is_sure: bool = True
    ) -> str:
        """Make a key pair, if the pod lacks it, and return its name in the pod."""
        if len(keypair.name) + DIGEST_CHARS >= NAME_CHARS_MAX:
            raise Invalid("The name of the key pair is too long.")
        text = "\0".join((keypair.user_id, keypair.public_key))
        name = f"{keypair.name}-{sha256(text.encode()).hexdigest()[:DIGEST_CHARS]}"
        key = (pod.uuid, "keypair", name)
        if not (is_sure and self._is_known(key)):
            # In a pod, all key pairs belong to this service's user, whatever the project.
            wanted = {"name": name, "type": keypair.key_type, "public_key": keypair.public_key}
            is_new = bool({".", "@"} & set(name))
            headers = {"openstack-api-version": NEW_KEY_VERSION if is_new else KEY_VERSION}
            body = {"keypair": wanted}
            made = await self._ask(login, COMPUTE, "POST", "/os-keypairs", body, headers)
            fine = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.CONFLICT)
            _demand(made, f"key pair {keypair.name}", *fine)
            self.made += made.status != HTTPStatus.CONFLICT
            self._remember(key)
        return name

    async def image(self, pod: Pod, login: PodLogin, name: str, *, is_sure: bool = True) -> str:
        """Return the id of the image with this name in the pod.

        Raises :class:`Conflict` if the pod has no image or several images with this name.
        """
        key = (pod.uuid, login.project_name, "image", name)
        known = self._is_known(key)
        if known and is_sure:
            return known
        answer = await self._ask(login, IMAGE, "GET", f"/v2/images?{urlencode({'name': name})}")
        rows = _rows(decoded(answer).get("images"))
        found = [each for each in rows if each.get("name") == name]
        uuid = found[0].get("id") if len(found) == 1 else None
        if not isinstance(uuid, str):
            number = "no image" if not found else "several images"
            raise Conflict(
                f"The cloud that would run the server has {number} with the name {name}."
            )
        self.made += uuid != known
        self._remember(key, uuid)
        return uuid

    async def volume_type(
        self, pod: Pod, login: PodLogin, kind: VolumeType, *, is_sure: bool = True
    ) -> None:
        """Make a volume type, if the pod lacks it. Let the project use a private type."""
        key = (pod.uuid, "type", login.project_name, kind.name, kind.updated_at)
        if is_sure and self._is_known(key):
            return
        own = await self._tenants.own(pod)
        answer = await self._ask(own, BLOCK_STORAGE, "GET", "/types?is_public=None")
        rows = _rows(decoded(answer).get("volume_types"))
        found: Json = next((each for each in rows if each.get("name") == kind.name), None)
        if found is None:
            self.made += 1
            wanted = {
                "name": kind.name,
                "extra_specs": _without_tags(kind.extra_specs, pod),
                "os-volume-type-access:is_public": kind.is_public,
            }
            made = await self._ask(own, BLOCK_STORAGE, "POST", "/types", {"volume_type": wanted})
            _demand(made, f"volume type {kind.name}", HTTPStatus.OK, HTTPStatus.CONFLICT)
            if made.status == HTTPStatus.CONFLICT:
                # Another request has just made the volume type. The next request finds it.
                raise PodSilent("the pod is still making the volume type")
            found = decoded(made).get("volume_type")
        if isinstance(found, Mapping) and _is_private(found):
            await self._share(own, login, str(found.get("id")))
        self._remember(key)

    async def _share(self, own: PodLogin, login: PodLogin, type_id: str) -> None:
        timeout_s = self._clouds.podding.pod_request_timeout_s
        session = await self._clouds.client.session(login, timeout_s)
        body = {"addProjectAccess": {"project": session.project_id}}
        path = f"/types/{quote(type_id, safe='')}/action"
        given = await self._ask(own, BLOCK_STORAGE, "POST", path, body)
        if given.status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.CONFLICT):
            raise PodSilent(f"the volume type cannot be shared: {given.status}")

    def _is_known(self, key: tuple[object, ...]) -> str:
        known = self._known.get(key)
        is_fresh = known is not None and self._clouds.clock() - known[0] < KNOWN_FOR
        return known[1] if known is not None and is_fresh else ""

    def _remember(self, key: tuple[object, ...], value: str = "known") -> None:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[key] = self._clouds.clock(), value

    async def _ask(
        self,
        login: PodLogin,
        service_type: str,
        method: str,
        target: str,
        body: Json = None,
        headers: Mapping[str, str] | None = None,
    ) -> PodAnswer:
        raw = b"" if body is None else msgspec.json.encode(body)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        call = PodCall(service_type, method, target, timeout_s, raw, headers or {})
        return await self._clouds.client.send(login, call)


def _demand(answer: PodAnswer, what: str, *fine: HTTPStatus) -> None:
    """Raise :class:`Conflict` if a pod has refused to make an object.

    Raises :class:`PodSilent` if the pod neither refuses nor answers with a ``fine`` status.
    """
    if answer.status in REFUSALS:
        raise Conflict(f"The {what} cannot be made in the cloud that needs it.")
    if answer.status not in fine:
        raise PodSilent(f"the {what} cannot be made: {answer.status}")


def keypair_name(name: str) -> str:
    """Return the name that a key pair of a pod has in this service."""
    found = _OWN_KEY.fullmatch(name)
    return name if found is None else found[1]


def _rows(told: object) -> list[dict[str, Json]]:
    """Return the objects in a list, or nothing if the value is not a list."""
    return [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []


def _is_private(told: Mapping[str, Json]) -> bool:
    return told.get("os-volume-type-access:is_public", told.get("is_public")) is False


def _without_tags(specs: Mapping[str, str], pod: Pod) -> dict[str, str]:
    """Return the extra specs, except those that choose a group of pods."""
    return {key: value for key, value in specs.items() if key not in pod.tags}


def _flavor_body(flavor: Flavor) -> dict[str, Json]:
    return {
        "flavor": {
            "id": flavor.flavor_id,
            "name": flavor.name,
            "vcpus": flavor.vcpus,
            "ram": flavor.memory_mb,
            "disk": flavor.disk_gb,
            "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gb,
            "swap": flavor.swap_mb,
            "os-flavor-access:is_public": flavor.is_public,
        }
    }
