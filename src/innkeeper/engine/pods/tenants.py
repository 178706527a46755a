"""The door's projects in pods, and the door's logins to them.

Always true: each project of the door (gateway) has its own project in a pod. The name of the pod's
project is the id of the door's project. If the pod refuses the login to that project, the door
creates the project. No project is created twice, because a name is unique in its domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from urllib.parse import urlencode

import msgspec

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import IDENTITY, LoginRefused, PodAnswer, PodCall, PodSilent, body_of
from innkeeper.domain.door import SERVER, VOLUME, Json
from innkeeper.domain.pods import Pod
from innkeeper.engine.pods.clouds import PodClouds

LOGINS_MAX = 1_000
ROLES = ("member", "_member_")
"""The names that the role of ordinary users may have in a pod, with the preferred name first."""
COMPUTE, BLOCK_STORAGE = "compute", "block-storage"
SERVICES = {SERVER: COMPUTE, VOLUME: BLOCK_STORAGE}
"""The service type for each kind of resource."""
UNLIMITED = {
    COMPUTE: (
        *("instances", "cores", "ram", "server_groups", "server_group_members"),
        # The quota of key pairs is lifted, because all key pairs belong to this service's user. The
        # quota of metadata items is lifted, because the mark is one more item.
        *("key_pairs", "metadata_items"),
    ),
    BLOCK_STORAGE: ("volumes", "gigabytes"),
}
"""The quotas that are lifted for a project in a pod, because this service counts them itself. The
key is the service type."""


class Tenants:
    """The logins of this service at pods: as the administrator, and for projects."""

    def __init__(self, clouds: PodClouds) -> None:
        self._clouds = clouds
        self._ready: set[tuple[str, str, str]] = set()
        self._own: dict[str, tuple[datetime, PodLogin]] = {}

    async def own(self, pod: Pod) -> PodLogin:
        """Return the administrator's login at a pod. Raises :class:`PodSilent`.

        The login is cached until the pod's row changes.
        """
        changed_at, login = self._own.get(pod.uuid, (None, None))
        if login is None or changed_at != pod.updated_at:
            login = await self._clouds.own_login(pod)
            if len(self._own) >= LOGINS_MAX:
                self._own.clear()
            self._own[pod.uuid] = pod.updated_at, login
        return login

    async def of_project(self, pod: Pod, project_id: str) -> PodLogin:
        """Return the login for a project. Create the project if the pod lacks it.

        Raises :class:`PodSilent`.
        """
        own = await self.own(pod)
        login = replace(own, project_name=project_id)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        try:
            await self._clouds.client.session(login, timeout_s)
        except LoginRefused:
            await self._make(own, project_id)
            await self._clouds.client.session(login, timeout_s, is_sure=True)
        return login

    async def lift_quota(self, pod: Pod, login: PodLogin, service_type: str) -> None:
        """Set a project's quotas in a pod to unlimited, once per process.

        They are set again if the pod's project has another id, because it was made anew. Raises
        :class:`PodSilent`.
        """
        timeout_s = self._clouds.podding.pod_request_timeout_s
        session = await self._clouds.client.session(login, timeout_s)
        key = (pod.uuid, session.project_id, service_type)
        if key in self._ready:
            return
        quota_set = dict.fromkeys(UNLIMITED[service_type], -1)
        target = f"/os-quota-sets/{session.project_id}"
        own = await self.own(pod)
        answer = await self._ask(own, service_type, "PUT", target, {"quota_set": quota_set})
        if answer.status != HTTPStatus.OK:
            raise PodSilent(f"the quota of the project cannot be set: {answer.status}")
        self._ready.add(key)

    async def _make(self, own: PodLogin, name: str) -> None:
        """Create a project in a pod, and give this service's user a role on the project."""
        timeout_s = self._clouds.podding.pod_request_timeout_s
        session = await self._clouds.client.session(own, timeout_s)
        wanted = {"name": name, "domain_id": session.domain_id or "default"}
        made = await self._ask(own, IDENTITY, "POST", "/projects", {"project": wanted})
        if made.status == HTTPStatus.CONFLICT:
            made = await self._ask(own, IDENTITY, "GET", f"/projects?{urlencode(wanted)}")
        project_id = id_of_named(made, "project", name)
        role_id = await self._role(own)
        grant = f"/projects/{project_id}/users/{session.user_id}/roles/{role_id}"
        granted = await self._ask(own, IDENTITY, "PUT", grant)
        if granted.status != HTTPStatus.NO_CONTENT:
            raise PodSilent(f"the role on the project cannot be granted: {granted.status}")

    async def _role(self, own: PodLogin) -> str:
        for name in ROLES:
            answer = await self._ask(own, IDENTITY, "GET", f"/roles?{urlencode({'name': name})}")
            if decoded(answer).get("roles"):
                return id_of_named(answer, "role", name)
        raise PodSilent(f"the pod has no role {ROLES[0]}")

    async def _ask(
        self, login: PodLogin, service_type: str, method: str, target: str, body: Json = None
    ) -> PodAnswer:
        raw = b"" if body is None else msgspec.json.encode(body)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        return await self._clouds.client.send(
            login, PodCall(service_type, method, target, timeout_s, raw)
        )


def decoded(answer: PodAnswer) -> dict[str, Json]:
    """Return the body of an answer, or an empty object if there is no body.

    Raises :class:`PodSilent`.
    """
    return body_of(answer) if answer.body else {}


def is_gone(answer: PodAnswer) -> bool:
    """Return whether an answer says that a resource does not exist.

    Raises :class:`PodSilent` for a 404 that does not come from the API, but from a proxy, for
    example.
    """
    if answer.status != HTTPStatus.NOT_FOUND:
        return False
    if "itemNotFound" not in decoded(answer):
        raise PodSilent("a 404 that does not come from the API", may_have_arrived=True)
    return True


def id_of_named(answer: PodAnswer, kind: str, name: str) -> str:
    """Return the id of the project or role with this name, from an answer to a create or a list.

    Raises :class:`PodSilent` if no row has this name. The name is compared, because a pod may
    ignore the filter of a list. Otherwise, a project of this service might get another project's
    resources.
    """
    told = decoded(answer)
    rows = [told[kind]] if kind in told else told.get(f"{kind}s")
    for row in rows if isinstance(rows, list) else ():
        uuid, known = (row.get("id"), row.get("name")) if isinstance(row, Mapping) else (0, 0)
        # Keystone's database may ignore the case of names.
        is_named = isinstance(known, str) and known.casefold() == name.casefold()
        if is_named and isinstance(uuid, str) and _is_plain(uuid):
            return uuid
    raise PodSilent(f"the answer about the {kind} is not usable: {answer.status}")


def _is_plain(uuid: str) -> bool:
    """Return whether an id has only ASCII letters, digits and hyphens."""
    return uuid.isascii() and uuid.replace("-", "").isalnum()
