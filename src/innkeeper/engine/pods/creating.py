"""Make servers and volumes in pods.

Always true: a routing with a mark is written before a pod is asked. A create whose outcome is not
known is never sent again. A create that was refused leaves neither a routing nor a binding. A
client that has the answer may be told before the routing is settled; see
:mod:`innkeeper.engine.pods.told_creates`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

import msgspec
import structlog

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import PodAnswer, PodCall, PodSilent
from innkeeper.domain.door import MARK, SERVER, TAKES, VOLUME, DoorRequest, Json
from innkeeper.domain.errors import Conflict, Unavailable
from innkeeper.domain.ids import canonical_uuid
from innkeeper.domain.pods import Pod, PodRequest, PodRouting
from innkeeper.domain.slices import Settings
from innkeeper.engine.pods import plans, shown
from innkeeper.engine.pods.clouds import PodClouds
from innkeeper.engine.pods.group_pushing import GroupPushing
from innkeeper.engine.pods.plans import Plan
from innkeeper.engine.pods.pushing import Pushing
from innkeeper.engine.pods.shown import DoorView
from innkeeper.engine.pods.tenants import SERVICES, Tenants, decoded, is_gone
from innkeeper.engine.pods.told_creates import ToldCreates, left_before
from innkeeper.engine.retry import BINDING_ATTEMPTS_MAX, BINDINGS, again
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import bindings, routings
from innkeeper.systems.pods.bindings import NoPod

LOG = structlog.get_logger("innkeeper.pods")
RETRY_AFTER_S = 5
PAGES_MAX = 50
OWNER = "os-vol-tenant-attr:tenant_id"
PODS_MAX = 100
FULL = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE})
"""Refusals of a pod that another pod may not give: its quota, or its room."""
LACKING = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND})
"""Refusals of a pod that may have lost what the create names: a flavor, type, key pair or image."""
AWAY = "The place of this work does not answer. Try again later."
UNKNOWN = "It is not known yet whether this was made. Look at the list before you try again."


@dataclass(frozen=True, slots=True)
class DoorAnswer:
    """What the client gets."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class _Refused(Exception):
    """A pod refused a create, and surely made nothing. ``answer`` is what the client gets."""

    def __init__(self, why: str, answer: DoorAnswer | None, error: Conflict | None = None) -> None:
        super().__init__(why)
        self.answer, self.error = answer, error


@dataclass(frozen=True, slots=True)
class _Sent:
    """A create on its way to a pod, and the routing that was written before."""

    plan: Plan
    pod: Pod
    begun: PodRouting
    login: PodLogin


class Creating:
    """Chooses pods, and makes resources in them."""

    def __init__(
        self, clouds: PodClouds, settings: Settings, tenants: Tenants, pushing: Pushing
    ) -> None:
        self._clouds = clouds
        self._settings = settings
        self._tenants = tenants
        self._pushing = pushing
        self._groups = GroupPushing(clouds, tenants)
        self.told = ToldCreates(self.settle, self._marked_for, left_before(clouds))

    async def create(self, request: DoorRequest) -> DoorAnswer:
        """Make what a request asks for.

        Raises the errors of :func:`plans.plan`, :class:`QuotaExceeded`, :class:`Conflict` and
        :class:`Unavailable`.
        """
        plan: Plan | None = None
        refusals: list[tuple[Pod, _Refused]] = []
        for _ in range(PODS_MAX):
            try:
                plan, pod, moves = await self._choose(request, plan, [pod for pod, _ in refusals])
            except NoPod as error:
                raise_or_return = _outcome(refusals, error, is_admin=request.caller.is_admin)
                if isinstance(raise_or_return, DoorAnswer):
                    return raise_or_return
                raise raise_or_return from error
            try:
                return await self._in_pod(plan, pod, moves=moves)
            except _Refused as error:
                LOG.warning("pod_refused_create", pod=pod.pod_name, reason=str(error))
                self._pushing.forget(pod)
                refusals.append((pod, error))
        raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S)

    async def _choose(
        self, request: DoorRequest, known: Plan | None, refused: Sequence[Pod]
    ) -> tuple[Plan, Pod, bool]:
        """Return the plan, which is only read once, a pod, and whether the project moves there.

        It does not move if its binding is kept, or does not matter because of a volume.
        """
        gone = frozenset(each.id for each in refused)

        def look(tx: Tx) -> tuple[Plan, Pod, bool]:
            plan = known or plans.plan(tx, self._settings, request)
            away = gone if plan.must is None else gone | plans.others(tx, plan.must)
            asked = replace(plan.asked, refused=away)
            choice = bindings.choose(tx, self._clouds.policy, asked)
            return plan, choice.pod, choice.binding is None and plan.must is None

        return await self._clouds.engine.read(look)

    async def _in_pod(self, plan: Plan, pod: Pod, *, moves: bool) -> DoorAnswer:
        kind = plan.request.kind
        try:
            login = await self._tenants.of_project(pod, plan.request.caller.project_id)
            await self._tenants.lift_quota(pod, login, SERVICES[kind])
            body = await self._body(plan, pod, login)
        except Conflict as error:
            raise _Refused(error.message, None, error) from error
        except PodSilent as error:
            LOG.warning("pod_create_failed", pod=pod.pod_name, reason=str(error))
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        sent = _Sent(plan, pod, await self._begin(plan, pod, moves=moves), login)
        try:
            answer = await self._send(sent, body)
            if answer.status in LACKING:
                repaired = await self._repaired(sent)
                # A refusal made nothing, so this one may be sent again.
                answer = answer if repaired is None else await self._send(sent, repaired)
        except PodSilent as error:
            return await self._after_silence(sent, error)
        return await self._after_answer(sent, answer)

    async def _send(self, sent: _Sent, body: dict[str, Json]) -> PodAnswer:
        plan = sent.plan
        fields = body[plan.key]
        marked = {**fields, "metadata": {**(fields.get("metadata") or {}), MARK: sent.begun.top_id}}
        call = PodCall(
            SERVICES[plan.request.kind],
            "POST",
            plan.request.target,
            self._clouds.podding.pod_request_timeout_s,
            msgspec.json.encode({**body, plan.key: marked}),
            plan.request.headers,
        )
        return await self._clouds.client.send(sent.login, call)

    async def _repaired(self, sent: _Sent) -> dict[str, Json] | None:
        """Return the body again, if its pod had lost something that it names; else ``None``."""
        made = self._pushing.made
        try:
            body = await self._body(sent.plan, sent.pod, sent.login, is_sure=False)
        except (Conflict, PodSilent):
            return None
        return body if self._pushing.made > made else None

    async def _body(
        self, plan: Plan, pod: Pod, login: PodLogin, *, is_sure: bool = True
    ) -> dict[str, Json]:
        """Return the body for a pod, in which all that it names exists there.

        If it ``is_sure``, the pod is not asked again for what it had a moment ago.
        """
        fields = dict(plan.fields)
        if plan.flavor is not None:
            await self._pushing.flavor(pod, login, plan.flavor, is_sure=is_sure)
            fields["flavorRef"] = plan.flavor.flavor_id
        if plan.kind is not None:
            await self._pushing.volume_type(pod, login, plan.kind, is_sure=is_sure)
            fields["volume_type"] = plan.kind.name
        if plan.keypair is not None:
            fields["key_name"] = await self._pushing.keypair(
                pod, login, plan.keypair, is_sure=is_sure
            )
        if plan.image_name is not None:
            image_id = await self._pushing.image(pod, login, plan.image_name, is_sure=is_sure)
            fields.pop("image_id", None)
            fields["imageRef"] = image_id
        if plan.device_images:
            here = {
                ref: await self._pushing.image(pod, login, name, is_sure=is_sure)
                for ref, name in plan.device_images.items()
            }
            fields["block_device_mapping_v2"] = [
                {**each, "uuid": here[str(each["uuid"])]}
                if each.get("source_type") == "image"
                else each
                for each in fields["block_device_mapping_v2"]
            ]
        fields.pop("availability_zone", None)
        if pod.pod_az_name:
            fields["availability_zone"] = pod.pod_az_name
        whole = {**plan.request.body, plan.key: fields}
        if plan.server_group is not None:
            group_id = await self._groups.group(pod, login, plan.server_group)
            key = plans.hints_key(whole) or plans.HINT_KEYS[0]
            whole[key] = {**whole[key], "group": group_id}
        return whole

    async def _begin(self, plan: Plan, pod: Pod, *, moves: bool) -> PodRouting:
        now, caller = self._clouds.clock(), plan.request.caller
        wanted = PodRouting(
            0,
            self._clouds.ids.uuid(),
            None,
            pod.id,
            caller.project_id,
            plan.request.kind,
            now,
            now,
            user_id=caller.user_id,
            image_id=plan.image_id,
            number=plan.number,
            vcpus=plan.one.vcpus,
            memory_mb=plan.one.memory_mb,
            size_gb=plan.one.size_gb,
            disk_gb=plan.one.disk_gb,
            # What must be beside a volume does not move the project.
            group_name=plan.asked.group if moves else None,
            az_name=plan.asked.az_name,
            server_group_uuid=None if plan.server_group is None else plan.server_group.uuid,
            type_uuid=None if plan.kind is None else plan.kind.uuid,
        )
        return await self._clouds.engine.write(lambda tx: routings.begin(tx, wanted, plan.limits))

    async def _after_answer(self, sent: _Sent, answer: PodAnswer) -> DoorAnswer:
        plan, begun = sent.plan, sent.begun
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            error = PodSilent(f"it answers with the status {answer.status}", may_have_arrived=True)
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
            await self._clouds.engine.write(lambda tx: routings.forget(tx, begun.id))
            refusal = DoorAnswer(status, body, headers)
            if status in FULL:
                raise _Refused(f"it answers with the status {status}", refusal)
            return refusal
        made = told.get(plan.key)
        found = _ids([made]) if plan.number == 1 else []
        if not found:
            try:
                found = await self.marked(sent.login, begun)
            except PodSilent as error:
                raise Unavailable(UNKNOWN, retry_after_s=RETRY_AFTER_S) from error
        if not found or (plan.number == 1 and not _ids([made])):
            # The pod accepts, but does not say what it makes.
            silent = PodSilent("its answer has no usable id", may_have_arrived=True)
            return await self._after_silence(sent, silent)
        if plan.number > 1 or begun.group_name is not None or self._settings.is_one_of_several:
            await self._settled(sent, found)
        else:
            # What is on the disk suffices to find the resource again.
            self.told.begin(begun, found, sent.pod)
        return DoorAnswer(status, body, headers)

    async def _settled(self, sent: _Sent, found: Sequence[str]) -> None:
        if not await self.settle(sent.begun, found, sent.pod):
            LOG.error("pod_ids_not_unique", pod=sent.pod.pod_name, ids=list(found))
            raise Conflict(f"Two pods have a {sent.plan.key} with the id {found[0]}.")

    async def _after_silence(self, sent: _Sent, error: PodSilent) -> DoorAnswer:
        """Look for what a pod may have made. Nothing is sent again."""
        plan, begun = sent.plan, sent.begun
        LOG.warning("pod_create_failed", pod=sent.pod.pod_name, reason=str(error))
        if not error.may_have_arrived:
            await self._clouds.engine.write(lambda tx: routings.forget(tx, begun.id))
            raise Unavailable(AWAY, retry_after_s=RETRY_AFTER_S) from error
        try:
            found = await self.marked(sent.login, begun)
        except PodSilent as silent:
            raise Unavailable(UNKNOWN, retry_after_s=RETRY_AFTER_S) from silent
        if len(found) < plan.number:
            # The pod may still be at it. The periodic task looks again.
            raise Unavailable(UNKNOWN, retry_after_s=RETRY_AFTER_S) from error
        await self._settled(sent, found)
        version, path = ("/v2.1", "/servers") if plan.key == SERVER else ("/v3", "/volumes")
        href = f"{plan.request.address}{version}{path}/{found[0]}"
        body = {plan.key: {"id": found[0], "links": [{"rel": "self", "href": href}]}}
        headers = {"location": href, "content-type": "application/json"}
        return DoorAnswer(HTTPStatus.ACCEPTED, msgspec.json.encode(body), headers)

    async def settle(self, begun: PodRouting, found: Sequence[str], pod: Pod) -> list[str]:
        """Record what a pod has made, and bind the project to it. Return the ids recorded now."""
        now = self._clouds.clock()

        def work(tx: Tx) -> list[str]:
            settled = routings.settle(tx, begun, found, now)
            if settled and begun.group_name is not None:
                asked = PodRequest(begun.project_id, begun.group_name, begun.az_name)
                ids = self._clouds.ids
                bindings.follow(tx, asked, pod, begun.created_at, ids=ids, now=now)
            return settled

        return await again(lambda: self._clouds.engine.write(work), BINDINGS, BINDING_ATTEMPTS_MAX)

    async def _marked_for(self, begun: PodRouting, pod: Pod) -> list[str]:
        return await self.marked(await self._tenants.of_project(pod, begun.project_id), begun)

    async def marked(self, login: PodLogin, begun: PodRouting) -> list[str]:
        """Return the ids of the resources with the mark of a create. Raises :class:`PodSilent`."""
        if begun.top_id.startswith(TAKES):
            return await self._taken(login, begun)
        service, kind = SERVICES[begun.resource_type], f"{begun.resource_type}s"
        found: list[str] = []
        marker = ""
        for _ in range(PAGES_MAX):
            target = f"/{kind}/detail?limit=200{marker}"
            timeout_s = self._clouds.podding.pod_request_timeout_s
            answer = await self._clouds.client.send(
                login, PodCall(service, "GET", target, timeout_s)
            )
            rows = decoded(answer).get(kind)
            if answer.status != HTTPStatus.OK or not isinstance(rows, list):
                raise PodSilent(f"it answers with the status {answer.status}")
            found += _ids(rows, begun.top_id)
            last = _ids(rows[-1:])
            if not last or f"{kind}_links" not in decoded(answer):
                return found
            marker = f"&marker={last[0]}"
        raise PodSilent("the project has too many resources to look for one")

    async def _taken(self, login: PodLogin, begun: PodRouting) -> list[str]:
        """Return the id of a volume that another project takes over, if it has it already."""
        uuid = begun.top_id.removeprefix(TAKES)
        timeout_s = self._clouds.podding.pod_request_timeout_s
        session = await self._clouds.client.session(login, timeout_s)
        call = PodCall(SERVICES[VOLUME], "GET", f"/volumes/{uuid}", timeout_s)
        answer = await self._clouds.client.send(login, call)
        if is_gone(answer):
            return []
        told = decoded(answer).get("volume")
        if answer.status != HTTPStatus.OK or not isinstance(told, Mapping):
            raise PodSilent(f"it answers with the status {answer.status}")
        # A login that may see more than its project must not take what is not the project's.
        return [uuid] if told.get(OWNER) == session.project_id else []


def _ids(rows: Sequence[Json], mark: str | None = None) -> list[str]:
    """Return the ids of resources; with a mark, of those that have it."""
    found = []
    for each in rows:
        uuid = each.get("id") if isinstance(each, Mapping) else None
        if not isinstance(uuid, str) or canonical_uuid(uuid) is None:
            continue
        metadata = each.get("metadata")
        if mark is None or (isinstance(metadata, Mapping) and metadata.get(MARK) == mark):
            found.append(uuid)
    return found


def _outcome(
    refusals: Sequence[tuple[Pod, _Refused]], error: NoPod, *, is_admin: bool
) -> DoorAnswer | Conflict:
    """Return what the client gets if no pod is left: the first refusal, or the reasons."""
    if not refusals:
        message = error.message_for_administrators if is_admin else error.message
        return Conflict(message, code=error.code)
    first = refusals[0][1]
    if is_admin and len(refusals) > 1:
        reasons = "; ".join(f"{pod.pod_name}: {each}" for pod, each in refusals)
        return Conflict(f"No pod can take this request. {reasons}.", code=error.code)
    if first.answer is not None:
        return first.answer
    return first.error or Conflict(error.message, code=error.code)
