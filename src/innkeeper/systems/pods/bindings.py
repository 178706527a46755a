"""Bind projects to pods. A binding says which pod takes the work of a project and group.

A group is the set of pods with the same affinity tags. The flavor or volume type of a request
decides the group.

Always true: for each project, group and availability zone, there is at most one active binding. All
bindings for the same project, group and availability zone follow one another without overlap. When
a project moves to another pod, the old binding ends at the time when the new binding starts.

A chosen pod may be full, because the pod's measurement may be a day old.

If two writers bind at the same time, unique columns of the table admit only one new binding. The
second transaction fails. The engine then repeats this transaction, which finds the binding of the
first writer.

Source: the design *Dynamic Pod Binding*; ADR 0039.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from innkeeper.domain.errors import Conflict, InUse, NotFound, Overtaken, UnknownPlace
from innkeeper.domain.ids import IdSource
from innkeeper.domain.pod_usage import Usage, usage_of
from innkeeper.domain.pods import EndReason, Pod, PodBinding, PodRequest, group_of
from innkeeper.scheduling import pod_choosing
from innkeeper.scheduling.pod_choosing import PodPolicy, PodVerdict
from innkeeper.snapshot.pods import PodTable
from innkeeper.store.queries.pods import bindings, measurements, pods
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods.usage import placed

BY_POLICY, BY_ADMINISTRATOR = "chosen by the policy", "bound by an administrator"

# Queries that are re-exported unchanged.
BindingSearch = bindings.BindingSearch
page = bindings.page
found = bindings.by_uuid
every_active = bindings.every_active


class NoPod(Conflict):
    """No pod passes all filters. ``verdicts`` tell administrators why each pod was refused."""

    code = "no_pod"

    def __init__(self, verdicts: Sequence[PodVerdict]) -> None:
        super().__init__("No pod can take this request.")
        self.verdicts = tuple(verdicts)

    @property
    def message_for_administrators(self) -> str:
        """The message with the reason for each pod. Users must not see pods."""
        return f"{self.message} {pod_choosing.refusal(self.verdicts)}.".strip()


@dataclass(frozen=True, slots=True)
class ChosenPod:
    """The pod that is chosen for a request.

    ``binding`` is the project's active binding to this pod, or ``None``.
    """

    pod: Pod
    binding: PodBinding | None


@dataclass(frozen=True, slots=True)
class ExplainedPods:
    """The policy's verdict about each pod for a request, and the pod that would be chosen.

    ``bound`` has the pods that the project is bound to. ``chosen`` is the pod that would take the
    request.
    """

    request: PodRequest
    verdicts: Sequence[PodVerdict]
    bound: tuple[Pod, ...]
    chosen: Pod | None


def table_of(
    tx: Tx, changed: Mapping[str, Pod] | None = None, added: Sequence[tuple[Pod, Usage]] = ()
) -> PodTable:
    """Return the columns of all pods.

    The pods in ``changed``, by id, replace the stored pods. ``added`` has pods that do not exist
    yet. Amounts that this service placed in a pod after the pod's last measurement count as used.
    """
    known = [(changed or {}).get(each.uuid, each) for each in pods.every(tx)]
    newest = measurements.newest(tx)
    usages: dict[int, Usage] = {each: usage_of(row.usage) for each, row in newest.items()}
    usages |= {pod.id: usage for pod, usage in added if usage}
    return PodTable([*known, *(pod for pod, _ in added)], usages, placed(tx, newest))


def group_of_specs(tx: Tx, specs: Mapping[str, str], keys: Sequence[str]) -> str:
    """Return the group of a request whose flavor or volume type has these extra specs.

    A spec is a tag if its key is among ``keys``, or if any pod has a tag with this key.
    """
    if not specs:
        return group_of({})
    known = {*keys, *(key for each in pods.every(tx) for key in each.tags)}
    return group_of({key: value for key, value in specs.items() if key in known})


def choose(tx: Tx, policy: PodPolicy, request: PodRequest) -> ChosenPod:
    """Return the pod for a request, without binding the project to the pod.

    Raises :class:`UnknownPlace` if the availability zone has no pods. Raises :class:`NoPod` if
    every pod is refused.
    """
    return _choose(tx, policy, request, _History.of(tx, request.project_id, request.group))


def bind(
    tx: Tx, policy: PodPolicy, request: PodRequest, *, ids: IdSource, now: datetime
) -> tuple[PodBinding, bool]:
    """Return the active binding for a request, and True if the binding is new.

    Raises the errors of :func:`choose`.
    """
    history = _History.of(tx, request.project_id, request.group)
    choice = _choose(tx, policy, request, history)
    if choice.binding is not None:
        return choice.binding, False
    why = (EndReason.MOVED, BY_POLICY)
    also = history.usable(request)[:1]
    return _move(tx, history, choice.pod, why=why, also=also, ids=ids, now=now), True


def bind_to(
    tx: Tx, project_id: str, pod: Pod, *, ids: IdSource, now: datetime
) -> tuple[PodBinding, bool]:
    """Bind a project to a pod, in the group and availability zone of the pod.

    Return the active binding, and True if the binding is new.
    """
    history = _History.of(tx, project_id, pod.group)
    for each in history.active:
        if each.pod_id == pod.id:
            return each, False
    why = (EndReason.REPLACED, BY_ADMINISTRATOR)
    return _move(tx, history, pod, why=why, also=(), ids=ids, now=now), True


def follow(
    tx: Tx, request: PodRequest, pod: Pod, begun_at: datetime, *, ids: IdSource, now: datetime
) -> PodBinding | None:
    """Bind a project to the pod that has accepted a request. Return the binding if it is new.

    Do nothing if the project already has a binding in this availability zone that began after the
    request.
    """
    history = _History.of(tx, request.project_id, request.group)
    for each in history.active:
        is_newer = each.az_name == pod.az_name and each.started_at >= begun_at
        if each.pod_id == pod.id or is_newer:
            return None
    why = (EndReason.MOVED, BY_POLICY)
    also = history.usable(request)[:1]
    return _move(tx, history, pod, why=why, also=also, ids=ids, now=now)


def end(tx: Tx, uuid: str, *, now: datetime) -> PodBinding:
    """End an active binding. The next request of the project chooses a pod.

    Raises :class:`NotFound` for an unknown binding. Raises :class:`InUse` if the binding has
    already ended.
    """
    binding = get(tx, uuid)
    at = max(now, binding.started_at)
    if not bindings.end(tx, binding.id, EndReason.ENDED, at):
        raise InUse(f"Binding {uuid} has ended already.")
    return get(tx, uuid)


def get(tx: Tx, uuid: str) -> PodBinding:
    """Return a binding. Raises :class:`NotFound`."""
    found = bindings.by_uuid(tx, uuid)
    if found is None:
        raise NotFound(f"Binding {uuid} could not be found.")
    return found


def explain(
    tx: Tx, policy: PodPolicy, request: PodRequest, changed: Mapping[str, Pod] | None = None
) -> ExplainedPods:
    """Return the pod that :func:`bind` would choose, and the policy's verdict about each pod."""
    table = table_of(tx, changed)
    check_zone(table, request.az_name)
    asked = _History.of(tx, request.project_id, request.group).asked(request)
    return ExplainedPods(
        asked,
        pod_choosing.explain(policy, table, asked),
        tuple(each for each in table.pods if each.id in asked.bound),
        pod_choosing.choose(policy, table, asked),
    )


def check_zone(table: PodTable, az_name: str | None) -> None:
    """Raise :class:`UnknownPlace` if the availability zone has no pods."""
    if az_name is not None and not (table.az_names == az_name).any():
        raise UnknownPlace(f"The availability zone {az_name} does not exist.")


@dataclass(frozen=True, slots=True)
class _History:
    """The active bindings of a project and group, and the number of the last binding.

    The bindings are ordered by chain, oldest first. The number is read before the bindings. If
    another writer commits between the two reads, either that writer's binding is among the active
    bindings, or the next number is already used.
    """

    project_id: str
    group: str
    last_sequence: int
    active: Sequence[PodBinding]

    @staticmethod
    def of(tx: Tx, project_id: str, group: str) -> _History:
        last = bindings.last_sequence(tx, project_id, group)
        return _History(project_id, group, last, bindings.active(tx, project_id, group))

    def usable(self, request: PodRequest) -> list[PodBinding]:
        """Return the active bindings that a request may use.

        If the request names no availability zone, the result has all active bindings of the project
        and group.
        """
        zone = request.az_name
        return [each for each in self.active if zone is None or each.az_name == zone]

    def asked(self, request: PodRequest) -> PodRequest:
        """Return the request, completed with the pods that the project is bound to."""
        found = self.usable(request)
        bound = tuple(each.pod_id for each in found if each.pod_id is not None)
        return replace(request, bound=bound)


def _choose(tx: Tx, policy: PodPolicy, request: PodRequest, history: _History) -> ChosenPod:
    table = table_of(tx)
    check_zone(table, request.az_name)
    asked = history.asked(request)
    pod = pod_choosing.choose(policy, table, asked)
    if pod is None:
        raise NoPod(pod_choosing.explain(policy, table, asked))
    found = history.usable(request)
    return ChosenPod(pod, next((each for each in found if each.pod_id == pod.id), None))


def _move(
    tx: Tx,
    history: _History,
    pod: Pod,
    *,
    why: tuple[str, str],
    also: Sequence[PodBinding],
    ids: IdSource,
    now: datetime,
) -> PodBinding:
    """Start a binding to a pod. End the bindings in ``also`` and in the pod's availability zone."""
    end_reason, start_reason = why
    ends = {each.id: each for each in history.active if each.az_name == pod.az_name}
    ends |= {each.id: each for each in also}
    # The clocks of processes differ, but a new binding must not start before an older one.
    times = [now, *(each.started_at for each in ends.values())]
    ended = bindings.ended_at(tx, history.project_id, history.group, pod.az_name)
    at = max(times if ended is None else [*times, ended])
    for each in ends.values():
        if not bindings.end(tx, each.id, end_reason, at):
            raise Overtaken(f"Binding {each.uuid} has just ended.")
    sequence = history.last_sequence + 1
    made = PodBinding(
        id=0,
        uuid=ids.uuid(),
        project_id=history.project_id,
        group_name=history.group,
        az_name=pod.az_name,
        pod_id=pod.id,
        pod_uuid=pod.uuid,
        sequence=sequence,
        chain=min((each.chain for each in ends.values()), default=sequence),
        started_at=at,
        start_reason=start_reason,
    )
    bindings.add(tx, made)
    return get(tx, made.uuid)
