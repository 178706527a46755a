"""The rules of pods in plain Python, for one pod at a time, with the bindings in a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from innkeeper.domain.pods import KINDS, Pod, PodRequest


def passes(pod: Pod, used: Mapping[str, float] | None, request: PodRequest, *, bound: bool) -> bool:
    """Whether a pod may take a request; ``used`` is of 100, or ``None`` if it was not measured."""
    if request.az_name not in (None, pod.az_name) or pod.group != request.group:
        return False
    if pod.is_in_maintenance or pod.id in request.refused:
        return False
    if pod.health.is_up is False and not bound:
        return False
    for kind in KINDS:
        if used is None or kind not in used:
            continue
        most = min(100.0 * pod.threshold_percent / 100, 100.0 - pod.headroom.get(kind, 0.0))
        asked = request.amounts.get(kind, 0.0)
        if used[kind] >= most or used[kind] + asked > most:
            return False
    return True


def weight(pod: Pod, known: Iterable[Pod]) -> float:
    """The weight with the default weighers."""
    everyone = list(known)
    greatest = max(abs(each.weight) for each in everyone)
    own = 1000.0 * pod.weight / greatest if greatest else 0.0
    older = sum(each.created_at >= pod.created_at for each in everyone)
    return own + older / len(everyone)


@dataclass(slots=True)
class Bound:
    """A binding of the model. ``ended`` is a reason, or empty."""

    project: str
    group: str
    zone: str
    pod: int
    chain: int
    ended: str = ""


@dataclass(slots=True)
class PlainPods:
    """All pods, what is used of them, and all bindings, in the order in which they were made."""

    pods: dict[int, Pod] = field(default_factory=dict)
    used: dict[int, Mapping[str, float]] = field(default_factory=dict)
    bindings: list[Bound] = field(default_factory=list)

    def active(self, project: str, group: str, zone: str | None = None) -> list[Bound]:
        """The active bindings of a project and group, the oldest chain first."""
        found = [
            each
            for each in self.bindings
            if not each.ended
            and (each.project, each.group) == (project, group)
            and zone in (None, each.zone)
        ]
        return sorted(found, key=lambda each: each.chain)

    def choose(self, request: PodRequest) -> Pod | None:
        """The pod for a request."""
        kept = self.active(request.project_id, request.group, request.az_name)
        bound = [each.pod for each in kept]
        fit = [
            each
            for each in self.pods.values()
            if passes(each, self.used.get(each.id), request, bound=each.id in bound)
        ]
        for pod_id in bound:
            if pod_id in [each.id for each in fit]:
                return self.pods[pod_id]
        # Among equal weights, the first pod is chosen.
        return max(fit, key=lambda each: weight(each, self.pods.values()), default=None)

    def bind(self, request: PodRequest) -> Pod | None:
        """Bind a project, or keep its binding. ``None`` if no pod passes."""
        pod = self.choose(request)
        kept = self.active(request.project_id, request.group, request.az_name)
        if pod is not None and pod.id not in [each.pod for each in kept]:
            self._start(request.project_id, request.group, pod, "moved", kept[:1])
        return pod

    def bind_to(self, project: str, pod: Pod) -> None:
        """Bind a project to a pod by hand."""
        if pod.id not in [each.pod for each in self.active(project, pod.group)]:
            self._start(project, pod.group, pod, "replaced", [])

    def _start(self, project: str, group: str, pod: Pod, why: str, also: Iterable[Bound]) -> None:
        gone = [*self.active(project, group, pod.az_name)]
        gone += [each for each in also if each not in gone]
        number = 1 + sum((each.project, each.group) == (project, group) for each in self.bindings)
        for each in gone:
            each.ended = why
        chain = min((each.chain for each in gone), default=number)
        self.bindings.append(Bound(project, group, pod.az_name, pod.id, chain))
