"""Parses pods and their policies from the command line.

Always true: policies use the service's own filters and weighers, with the same names. Errors are
raised as :class:`Invalid`, and quote the invalid part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.numerals import number_of, whole_of
from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.pods import VOLUME_GB, Pod, check_numbers
from innkeeper.entrypoints.simulator import policies
from innkeeper.entrypoints.simulator.hosts import RATIOS, shape_amounts
from innkeeper.scheduling.pod_choosing import PodPolicy
from innkeeper.scheduling.simulation.pod_replay import DAY_S, SimulatedPod, added_at, blank_pod
from innkeeper.scheduling.simulation.pod_work import KINDS
from innkeeper.systems.pods.policy import policy_of
from innkeeper.terminal.arguments import names

PODS_MAX = 1000
FIELDS = ("filters", "threshold", "pods")
NUMBERS = {"weight": "weight", "price": "price", "threshold": "threshold_percent"}
"""The keys of pods on the command line, and the field that each key sets."""
HOW = "Write pods as [COUNTx]SHAPE[/KEY=VALUE]..., with + between groups, not {!r}."


@dataclass(frozen=True, slots=True)
class NamedPodPolicy:
    """A policy to compare and its pods, under the name with which the results are shown."""

    name: str
    text: str
    policy: PodPolicy
    pods: tuple[SimulatedPod, ...]


def parse(options: Mapping[str, Any]) -> tuple[NamedPodPolicy, ...]:
    """Parse the policies to compare and their pods.

    If the options have no policy, the service's default policy is used.
    """
    pods = pods_of(options["pods"])
    found = tuple(_policy(text, pods) for text in options["pod_policy"])
    given = [each.name for each in found]
    if len(set(given)) < len(given):
        raise Invalid(f"Two policies have the same name: {', '.join(given)}.")
    usual = ", ".join(Podding().default_pod_weighers)
    return found or (NamedPodPolicy("default", usual, policy_of(Podding()), pods),)


def _policy(text: str, usual: Sequence[SimulatedPod]) -> NamedPodPolicy:
    first, *others = text.split(";")
    name, separator, weighers = (part.strip() for part in first.partition("="))
    if not separator or not policies.NAME.fullmatch(name):
        raise Invalid(
            "Write a policy as NAME=WEIGHERS[;filters=A,B][;threshold=PERCENT][;pods=SPEC], not "
            f"{text!r}. The name may contain letters, digits and . _ + -."
        )
    changes: dict[str, str] = {}
    for each in others:
        key, separator, value = (part.strip() for part in each.partition("="))
        if key not in FIELDS or not separator or key in changes:
            expected = " or ".join(f"{field}=..." for field in FIELDS)
            raise Invalid(f"The policy {name}: expected {expected}, not {each!r}.")
        changes[key] = value
    pods = pods_of(changes["pods"]) if "pods" in changes else tuple(usual)
    if "threshold" in changes:
        percent = _number("threshold", changes["threshold"])
        pods = tuple(_changed(each, threshold_percent=percent) for each in pods)
    filters = names(changes["filters"]) if "filters" in changes else None
    return NamedPodPolicy(name, text, _chosen(name, filters, weighers), pods)


def _chosen(name: str, filters: Sequence[str] | None, weighers: str) -> PodPolicy:
    found, multipliers = policies.weighers_of(weighers)
    podding = Podding(
        default_pod_weighers=tuple(found) if weighers else Podding().default_pod_weighers,
        pod_weigher_multipliers=multipliers,
    )
    try:
        return policy_of(podding, filters)
    except ValueError as error:
        raise Invalid(f"The policy {name}: {error}") from error


def pods_of(text: str) -> tuple[SimulatedPod, ...]:
    """Parse groups of pods, such as ``3x4000c16000g/volumes=200000``."""
    found: list[SimulatedPod] = []
    for part in text.split("+"):
        head, *keys = part.strip().split("/")
        number, separator, shape = head.partition("x")
        count = whole_of(number) if separator else 1
        if not head or count is None or not 1 <= count <= PODS_MAX:
            raise Invalid(HOW.format(part))
        one = _pod(shape if separator else head, keys)
        for _ in range(count):
            at = len(found) + 1
            pod = replace(one.pod, id=at, uuid=str(at), pod_name=f"p{at}")
            found.append(replace(one, pod=pod))
    if len(found) > PODS_MAX:
        raise Invalid(f"There must be at most {PODS_MAX} pods.")
    if all(each.added_s > 0 for each in found):
        raise Invalid("At least one pod must be there from the beginning.")
    return tuple(found)


def _pod(shape: str, keys: Sequence[str]) -> SimulatedPod:
    found = SimulatedPod(blank_pod(0), _totals(shape))
    for option in keys:
        key, separator, value = option.partition("=")
        if not separator or not value:
            raise Invalid(f"Expected KEY=VALUE after a slash, not {option!r}.")
        found = _set(found, key, value)
    return _changed(found, created_at=added_at(found.added_s))


def _set(pod: SimulatedPod, key: str, value: str) -> SimulatedPod:
    if key == "headroom":
        return _changed(pod, headroom=_totals(value))
    number = _number(key, value)
    if key in NUMBERS:
        return _changed(pod, **{NUMBERS[key]: number})
    if key in RATIOS:
        ratios = {**pod.pod.allocation_ratios, KINDS[RATIOS[key]]: number}
        return _changed(pod, allocation_ratios=ratios)
    if key == "volumes":
        return replace(pod, totals={**pod.totals, VOLUME_GB: number})
    if key == "from":
        return replace(pod, added_s=number * DAY_S)
    if key == "drain":
        return replace(pod, drained_s=number * DAY_S)
    known = ", ".join((*NUMBERS, *RATIOS, "headroom", "volumes", "from", "drain"))
    raise Invalid(f"A pod has no key {key!r}. It has {known}.")


def _totals(shape: str) -> dict[str, float]:
    amounts = shape_amounts(shape)
    unknown = amounts.keys() - KINDS.keys()
    if unknown:
        raise Invalid(f"A pod can have only cores, memory and disk, unlike {shape!r}.")
    return {KINDS[name]: float(amount) for name, amount in amounts.items()}


def _changed(pod: SimulatedPod, **fields: Any) -> SimulatedPod:
    changed: Pod = replace(pod.pod, **fields)
    check_numbers(changed)
    return replace(pod, pod=changed)


def _number(key: str, text: str) -> float:
    number = number_of(text)
    if number is None or (number < 0 and key != "weight"):
        raise Invalid(f"{key} is {text!r}, but must be a number in digits, such as 4 or 1.5.")
    return float(number)
