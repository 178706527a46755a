"""Create servers and volumes in pods.

Always true: a routing with a mark is written before a pod is asked. A create whose outcome is
unknown is never sent again. A refused create leaves neither a routing nor a binding.

A client may get its answer before the routing is settled; see
:mod:`innkeeper.engine.pods.acknowledged_creates`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import msgspec
import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import WITH_STATUS, PodAnswer, PodCall, PodSilent
from innkeeper.domain.door import (
    MARK,
    SERVER,
    DoorAnswer,
    DoorRequest,
    Json,
    PodRefused,
    object_of,
    objects_of,
)
from innkeeper.domain.errors import Conflict, Refusal, Unavailable
from innkeeper.domain.pods import Pod, PodRequest, PodRouting
from innkeeper.domain.slices import Settings
from innkeeper.engine.pods import devices, hints, shown
from innkeeper.engine.pods.acknowledged_creates import AcknowledgedCreates, left_before
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.create_intents import (
    CreateIntent,
    CreateIntents,
    MadeInPod,
    record,
    record_together,
)
from innkeeper.engine.pods.group_provisioning import GroupProvisioning
from innkeeper.engine.pods.marks import Marks, ids_of
from innkeeper.engine.pods.plans import Plan
from innkeeper.engine.pods.provisioning import Provisioning
from innkeeper.engine.pods.refusals import of_too_many, without_pod
from innkeeper.engine.pods.shown import DoorView
from innkeeper.engine.pods.tenants import BLOCK_STORAGE, SERVICES, Tenants, decoded
from innkeeper.engine.retry import (
    BINDING_ATTEMPTS_MAX,
    BINDINGS,
    GROUP_ATTEMPTS_MAX,
    GROUP_PAUSE_S,
    PODS_MAX,
    again,
)
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import bindings, boot_volumes, routings
from innkeeper.systems.pods.bindings import NoPod
from innkeeper.systems.pods.pod_groups import GroupElsewhere

LOG = structlog.get_logger("innkeeper.pods")
RETRY_AFTER_S = 5
FULL = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE})
"""Statuses with which a pod refuses a create because it lacks quota or room. Another pod may accept
the create."""
LACKING = {HTTPStatus.BAD_REQUEST: "badRequest", HTTPStatus.NOT_FOUND: "itemNotFound"}
"""Statuses (and the keys of their bodies) that show that a pod may have lost an object of the
create: a flavor, volume type, key pair, image or server group."""
AWAY = "The cloud that serves this request does not answer. Try again later."
UNKNOWN = "It is not known whether the resource was created. Check the list before you retry."


@dataclass(frozen=True, slots=True)
class _Sent:
    """A create that is being sent to a pod, and the login for it."""

    create: CreateIntent
    login: PodLogin

    @property
    def plan(self) -> Plan:
        return self.create.plan

    @property
    def pod(self) -> Pod:
        return self.create.pod

    @property
    def begun(self) -> PodRouting:
        return self.create.routing


class Creating:
    """Chooses pods, and creates resources in them."""

    def __init__(
        self, clouds: PodClouds, settings: Settings, tenants: Tenants, provisioning: Provisioning
    ) -> None:
        self._clouds = clouds
        self._settings = settings
        self._tenants = tenants
        self._provisioning = provisioning
        self._groups = GroupProvisioning(clouds, tenants)
        self._marks = Marks(clouds)
        self._intents = CreateIntents(clouds, settings)
        self.acknowledged = AcknowledgedCreates(
            self.settle, self._marked_for, left_before(clouds), clouds.engine.hasten
        )

    async def create(self, request: DoorRequest) -> DoorAnswer:
        """Create the resources that a request asks for.

        Raises the errors of :func:`plans.plan`, :class:`QuotaExceeded`, :class:`Conflict` and
        :class:`Unavailable`.
        """
        refusals: list[tuple[Pod, PodRefused]] = []
        for _ in range(GROUP_ATTEMPTS_MAX):
            try:
                return await self._in_some_pod(request, refusals)
            except GroupElsewhere as error:
                # Another request is creating the group's first server in another pod. The next
                # attempt follows it.
                elsewhere = error
                await asyncio.sleep(GROUP_PAUSE_S)
        raise elsewhere

    async def _in_some_pod(
        self, request: DoorRequest, refusals: list[tuple[Pod, PodRefused]]
    ) -> DoorAnswer:
        """Create the resources in the first pod that does not refuse them."""
        plan: Plan | None = None
        is_admin = request.caller.is_admin
        while len(refusals) < PODS_MAX:
            try:
                begun = await self._intents.begin(request, plan, [pod for pod, _ in refusals])
            except NoPod as error:
                outcome = without_pod(refusals, error, is_admin=is_admin)
                if isinstance(outcome, DoorAnswer):
                    return outcome
                raise outcome from error
            plan = begun.plan
            try:
                return await self._in_pod(begun)
            except PodRefused as error:
                LOG.warning("pod_refused_create", pod=begun.pod.pod_name, reason=str(error))
                self._provisioning.forget(begun.pod)
                refusals.append((begun.pod, error))
        raise of_too_many(refusals, is_admin=is_admin)

    async def _in_pod(self, begun: CreateIntent) -> DoorAnswer:
        try:
            login, body = await self._prepared(begun.plan, begun.pod)
        except (Refusal, PodSilent) as error:
            # The create was not sent to the pod yet.
            await self._forget(begun)
            if isinstance(error, Conflict):
                raise PodRefused(error.message, None, error) from error
            if isinstance(error, PodSilent):
                LOG.warning("pod_create_failed", pod=begun.pod.pod_name, reason=str(error))
                raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
            raise
        sent = _Sent(begun, login)
        try:
            answer = await self._send(sent, body)
            if _may_lack(answer):
                repaired = await self._repaired(sent, body)
                # A refused create made nothing, so it may be sent again.
                answer = answer if repaired is None else await self._send(sent, repaired)
        except PodSilent as error:
            return await self._after_silence(sent, error)
        return await self._after_answer(sent, answer)

    async def _prepared(self, plan: Plan, pod: Pod) -> tuple[PodLogin, dict[str, Json]]:
        """Return the login and the body for a create. Make the named objects that the pod lacks.

        Raises :class:`Conflict` if the pod refuses to make something, and :class:`PodSilent`.
        """
        login = await self._tenants.of_project(pod, plan.request.caller.project_id)
        await self._tenants.lift_quota(pod, login, SERVICES[plan.request.kind])
        if plan.boot_volumes:
            await self._tenants.lift_quota(pod, login, BLOCK_STORAGE)
        return login, await self._body(plan, pod, login)

    async def _send(self, sent: _Sent, body: dict[str, Json]) -> PodAnswer:
        plan = sent.plan
        fields = object_of(body[plan.key])
        metadata = object_of(fields.get("metadata") or {})
        marked = {**fields, "metadata": {**metadata, MARK: sent.begun.top_id}}
        call = PodCall(
            SERVICES[plan.request.kind],
            "POST",
            plan.request.target,
            self._clouds.podding.pod_request_timeout_s,
            msgspec.json.encode({**body, plan.key: marked}),
            plan.request.headers,
        )
        return await self._clouds.client.send(sent.login, call)

    async def _repaired(self, sent: _Sent, refused: Mapping[str, Json]) -> dict[str, Json] | None:
        """Return a new body if the pod had lost an object of the ``refused`` one, or ``None``."""
        made = self._provisioning.made
        try:
            body = await self._body(sent.plan, sent.pod, sent.login, is_sure=False)
        except (Conflict, PodSilent):
            return None
        return body if self._provisioning.made > made or body != refused else None

    async def _body(
        self, plan: Plan, pod: Pod, login: PodLogin, *, is_sure: bool = True
    ) -> dict[str, Json]:
        """Return the body for a pod. Make the objects that the body names and the pod lacks.

        With ``is_sure``, the pod is not asked for objects that it had a few minutes ago.
        """
        fields = dict(plan.fields)
        if plan.flavor is not None:
            await self._provisioning.flavor(pod, login, plan.flavor, is_sure=is_sure)
            fields["flavorRef"] = plan.flavor.flavor_id
        if plan.kind is not None and fields.get("volume_type"):
            await self._provisioning.volume_type(pod, login, plan.kind, is_sure=is_sure)
            fields["volume_type"] = plan.kind.name
        if plan.keypair is not None:
            fields["key_name"] = await self._provisioning.keypair(
                pod, login, plan.keypair, is_sure=is_sure
            )
        if plan.image_name is not None:
            image_id = await self._provisioning.image(pod, login, plan.image_name, is_sure=is_sure)
            fields.pop("image_id", None)
            fields["imageRef"] = image_id
        if plan.device_images or plan.device_types:
            here = {
                ref: await self._provisioning.image(pod, login, name, is_sure=is_sure)
                for ref, name in plan.device_images.items()
            }
            for kind in plan.device_types.values():
                await self._provisioning.volume_type(pod, login, kind, is_sure=is_sure)
            names = {name: kind.name for name, kind in plan.device_types.items()}
            told = objects_of(fields[devices.KEY])
            fields[devices.KEY] = devices.translated(told, here, names)
        fields.pop("availability_zone", None)
        if pod.pod_az_name:
            fields["availability_zone"] = pod.pod_az_name
        body = {**object_of(plan.request.body), plan.key: fields}
        whole = hints.translated(body, plan.key, plan.hinted, pod.id)
        if plan.server_group is not None:
            group_id = await self._groups.group(pod, login, plan.server_group, is_sure=is_sure)
            key = hints.key_of(whole) or hints.SERVER_KEYS[0]
            whole[key] = {**object_of(whole[key]), "group": group_id}
        return whole

    async def _after_answer(self, sent: _Sent, answer: PodAnswer) -> DoorAnswer:
        plan, begun = sent.plan, sent.begun
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            error = PodSilent.of_status(answer.status, may_have_arrived=True)
            return await self._after_silence(sent, error)
        view = DoorView.of(
            sent.pod, begun, plan.request.address, is_admin=plan.request.caller.is_admin
        )
        try:
            status, body, headers = shown.answer_of(answer, view, plan.key)
            told = decoded(answer)
        except PodSilent as error:
            return await self._after_silence(sent, error)
        if status >= HTTPStatus.BAD_REQUEST:
            await self._forget(sent.create)
            refusal = DoorAnswer(status, body, headers)
            if status in FULL:
                raise PodRefused(WITH_STATUS.format(status), refusal)
            return refusal
        if plan.number > 1 or "reservation_id" in told:
            # The answer lacks the ids of some servers.
            try:
                found = await self._marks.found(sent.login, begun)
            except PodSilent as error:
                raise Unavailable(UNKNOWN, retry_after_s=RETRY_AFTER_S) from error
        else:
            found = ids_of([told.get(plan.key)])
        if not found:
            # The pod has accepted the create, but has not told the id of the resource.
            silent = PodSilent("its answer has no usable id", may_have_arrived=True)
            return await self._after_silence(sent, silent)
        if plan.number > 1 or begun.group_name is not None or self._settings.is_one_of_several:
            await self._settled(sent, found)
        else:
            # The routing on the disk is enough to find the resource again.
            made = MadeInPod(begun, found, self._clouds.clock(), bool(plan.boot_volumes))
            recorded = self._clouds.engine.write_with_next(record_together, made)
            self.acknowledged.begin(begun, sent.pod, recorded)
        return DoorAnswer(status, body, headers)

    async def _settled(self, sent: _Sent, found: Sequence[str]) -> None:
        has_volumes = bool(sent.plan.boot_volumes)
        if not await self.settle(sent.begun, found, sent.pod, has_volumes=has_volumes):
            LOG.error("pod_ids_not_unique", pod=sent.pod.pod_name, ids=list(found))
            raise Conflict(f"Two pods have a {sent.plan.key} with the id {found[0]}.")

    async def _after_silence(self, sent: _Sent, error: PodSilent) -> DoorAnswer:
        """Look for what the pod may have made. The create is not sent again."""
        plan, begun = sent.plan, sent.begun
        LOG.warning("pod_create_failed", pod=sent.pod.pod_name, reason=str(error))
        if not error.may_have_arrived:
            await self._forget(sent.create)
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        try:
            found = await self._marks.found(sent.login, begun)
        except PodSilent as silent:
            raise Unavailable(UNKNOWN, retry_after_s=RETRY_AFTER_S) from silent
        if len(found) < plan.number:
            # The pod may still be making the resource. The periodic task looks again.
            raise Unavailable(UNKNOWN, retry_after_s=RETRY_AFTER_S) from error
        await self._settled(sent, found)
        version, path = ("/v2.1", "/servers") if plan.key == SERVER else ("/v3", "/volumes")
        href = f"{plan.request.address}{version}{path}/{found[0]}"
        body = {plan.key: {"id": found[0], "links": [{"rel": "self", "href": href}]}}
        headers = {"location": href, "content-type": "application/json"}
        return DoorAnswer(HTTPStatus.ACCEPTED, msgspec.json.encode(body), headers)

    async def _forget(self, create: CreateIntent) -> None:
        """Forget a create that has certainly made nothing."""
        begun, now = create.routing, self._clouds.clock()

        def work(tx: Tx) -> None:
            routings.forget(tx, begun.id)
            if create.plan.boot_volumes:
                boot_volumes.settle(tx, begun, (), now)

        await self._clouds.engine.write(work)

    async def settle(
        self, begun: PodRouting, found: Sequence[str], pod: Pod, *, has_volumes: bool = True
    ) -> list[str]:
        """Record what a pod has made, and bind the project to the pod. Return the recorded ids.

        With ``has_volumes``, the pod may also make volumes for the created servers.
        """
        now = self._clouds.clock()
        made = MadeInPod(begun, found, now, has_volumes)

        def work(tx: Tx) -> list[str]:
            settled = record(tx, made)
            if settled and begun.group_name is not None:
                asked = PodRequest(begun.project_id, begun.group_name, begun.az_name)
                ids = self._clouds.ids
                bindings.follow(tx, asked, pod, begun.created_at, ids=ids, now=now)
            return settled

        return await again(lambda: self._clouds.engine.write(work), BINDINGS, BINDING_ATTEMPTS_MAX)

    async def _marked_for(self, begun: PodRouting, pod: Pod) -> list[str]:
        login = await self._tenants.of_project(pod, begun.project_id)
        return await self._marks.found(login, begun)


def _may_lack(answer: PodAnswer) -> bool:
    """Return whether a pod may have refused a create because it lost an object of the create.

    Raises :class:`PodSilent` if the answer is not JSON. Such an answer is probably from a proxy,
    which does not know whether the pod has made something.
    """
    return answer.status in LACKING and LACKING[HTTPStatus(answer.status)] in decoded(answer)
