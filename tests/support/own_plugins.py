"""Filters, weighers and drivers as operators write them. Hints make some of them fail.

The hint ``trouble`` names the failure, which is a key of :data:`TROUBLES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.facts.masks import named, nowhere, row_count
from innkeeper.scheduling.pipeline import Pipeline
from innkeeper.scheduling.reading import Reads
from innkeeper.scheduling.schedulers.catalogue import AllAtOnce
from innkeeper.scheduling.schedulers.scheduler import Choice
from innkeeper.snapshot.amounts import Mask, Rows
from innkeeper.snapshot.columns import HostTable

SECRET = "the password of the rack is 1234"


def _raise(count: int) -> Any:
    raise RuntimeError(SECRET)


def _exit(count: int) -> Any:
    raise SystemExit(SECRET)


TROUBLES: Mapping[str, Any] = {
    "error": _raise,
    "exit": _exit,
    "short": lambda count: np.ones(count + 1, dtype=np.bool_),
    "flat": lambda count: np.ones((count, 1), dtype=np.bool_),
    "numbers": np.ones,
    "list": lambda count: [True] * count,
    "true": lambda count: True,
}


def trouble(spec: RequestSpec, method: str) -> Any:
    """Return the failure that the hint requests for a method, or ``None``."""
    wanted = spec.hints.get("trouble")
    if isinstance(wanted, Mapping):
        wanted = wanted.get(method)
    return None if wanted is None else TROUBLES[str(wanted)]


class RackFilter:
    """Passes only hosts that the hint ``rack`` names: a name, or a list of names."""

    NAME = "RackFilter"
    REASON = "the host is in another rack"
    READS: Reads = ("hints",)

    @staticmethod
    def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return true for hosts of the rack, which here is a single host."""
        wrong = trouble(spec, "mask")
        if wrong is not None:
            answer: Mask = wrong(row_count(hosts, rows))
            return answer
        if "rack" not in spec.hints:
            return None
        rack = spec.hints["rack"]
        return named(hosts, list(rack) if isinstance(rack, list) else [str(rack)], rows)

    @staticmethod
    def missing(hosts: HostTable, spec: RequestSpec) -> str:
        """Return the requested rack."""
        wrong = trouble(spec, "missing")
        return str(spec.hints.get("rack")) if wrong is None else wrong(1)


class DeclaredRackFilter(RackFilter):
    """A :class:`RackFilter` that declares which hints it reads."""

    NAME = "DeclaredRackFilter"
    HINTS = ("rack", "trouble")


class Namesake(RackFilter):
    """A filter with the name of one of Innkeeper's."""

    NAME = "PcloudFilter"
    HINTS = ("rack",)


class RackWeigher:
    """Prefers the hosts that the hint ``like`` names."""

    NAME = "RackWeigher"
    READS: Reads = ("hints",)
    AGGREGATE_KEY = "rack_weight_multiplier"

    @staticmethod
    def column(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Any:
        """Return 1 for the named host, and 0 for the others."""
        wrong = trouble(spec, "column")
        if wrong is not None:
            return wrong(row_count(hosts, rows))
        return named(hosts, [str(spec.hints.get("like"))], rows).astype(np.float64)

    @staticmethod
    def scale(hosts: HostTable, spec: RequestSpec) -> Any:
        """Return a small constant."""
        wrong = trouble(spec, "scale")
        return 0.001 if wrong is None else wrong(1)


class FailsOnce:
    """A filter that fails the first time it is called for some rows only."""

    NAME = "FailsOnceFilter"
    REASON = "the host is full"
    READS: Reads = ("amounts",)

    def __init__(self) -> None:
        self.is_armed = True

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
        """Return true for hosts without usage."""
        answer: Mask = hosts.used["VCPU"][rows] == 0
        is_whole = isinstance(rows, slice) and rows == slice(None)
        if self.is_armed and not is_whole:
            self.is_armed = False
            raise RuntimeError(SECRET)
        return answer

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """Return the reason."""
        return "an empty host"


class Forgetful:
    """A filter whose result for some rows differs from its result for the whole table."""

    NAME = "ForgetfulFilter"
    REASON = "the host is forgotten"
    READS: Reads = ()

    @staticmethod
    def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Return false for some rows, and true for the whole table."""
        is_whole = isinstance(rows, slice) and rows == slice(None)
        return ~nowhere(hosts, rows) if is_whole else None

    @staticmethod
    def missing(hosts: HostTable, spec: RequestSpec) -> str:
        """Return an empty text."""
        return ""


class ReadsWhatIsNot(RackFilter):
    """A filter that reads a field that requests do not have."""

    READS: Reads = ("project_id", "hint")


class ReadsLetters(RackFilter):
    """A filter whose list of names is a single string."""

    READS: Any = "hints"


class HintsAsText(RackFilter):
    """A filter whose list of hints is a single string."""

    HINTS = "rack"


class Nameless(RackFilter):
    """A filter whose name is a number."""

    NAME: Any = 5


class Reasonless(RackFilter):
    """A filter with an empty reason."""

    REASON = ""


class NeedsHosts(RackFilter):
    """A filter that fails on an empty table."""

    @staticmethod
    def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
        """Compare all hosts with the first."""
        alike: Mask = hosts.zone_codes[rows] == hosts.zone_codes[0]
        return alike


class Speechless(RackFilter):
    """A filter without a reason."""

    @staticmethod
    def missing(hosts: HostTable, spec: RequestSpec) -> Any:
        """Return no text."""
        return None


class ScalesBadly(RackWeigher):
    """A weigher without a scale."""

    @staticmethod
    def scale(hosts: HostTable, spec: RequestSpec) -> Any:
        """Return something other than a number."""
        return None


class Endless:
    """A weigher whose last weight, and whose scale, is not finite."""

    NAME = "EndlessWeigher"
    READS: Reads = ()
    AGGREGATE_KEY = "endless_weight_multiplier"

    def __init__(self, number: float) -> None:
        self.number = number

    def column(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Any:
        """Return zeros, and the number as the last weight."""
        numbers = np.zeros(row_count(hosts, rows))
        numbers[-1:] = self.number
        return numbers

    def scale(self, hosts: HostTable, spec: RequestSpec) -> float:
        """Return the number."""
        return self.number


class Taking:
    """A driver that depletes the table and then fails, if the hint requests it."""

    NAME = "taking"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        self.pipeline = pipeline
        self._inner = AllAtOnce(pipeline, choice)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Plan as ``all_at_once`` does."""
        made = self._inner.plan(hosts, spec)
        if "trouble" in spec.hints:
            raise RuntimeError(SECRET)
        return made


class Planless(Taking):
    """A driver that makes no plans."""

    def plan(self, hosts: HostTable, spec: RequestSpec) -> Any:
        """Return ``None``."""
        return None


FAILS_ONCE = FailsOnce()


class OwnQueries(RackFilter):
    """A JSON filter of the operator's own."""

    NAME = "OwnQueriesFilter"
    READS: Reads = ("query",)
