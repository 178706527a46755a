"""Filters, weighers and drivers as operators write them; some fail, as their hints ask them to.

The hint ``trouble`` says what goes wrong: a word of :data:`TROUBLES`.
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
    """What is to go wrong in a method: ``None`` if nothing is."""
    wanted = spec.hints.get("trouble")
    if isinstance(wanted, Mapping):
        wanted = wanted.get(method)
    return None if wanted is None else TROUBLES[str(wanted)]


class RackFilter:
    """Only hosts that the hint ``rack`` names; one or a list."""

    NAME = "RackFilter"
    REASON = "the host is in another rack"
    READS: Reads = ("hints",)

    @staticmethod
    def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """True in the rack, which is a host here."""
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
        """Which rack is asked for."""
        wrong = trouble(spec, "missing")
        return str(spec.hints.get("rack")) if wrong is None else wrong(1)


class DeclaredRackFilter(RackFilter):
    """As the other one, and says which hints it reads."""

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
        """One for the host that is named, and nothing for the others."""
        wrong = trouble(spec, "column")
        if wrong is not None:
            return wrong(row_count(hosts, rows))
        return named(hosts, [str(spec.hints.get("like"))], rows).astype(np.float64)

    @staticmethod
    def scale(hosts: HostTable, spec: RequestSpec) -> Any:
        """A host."""
        wrong = trouble(spec, "scale")
        return 0.001 if wrong is None else wrong(1)


class FailsOnce:
    """A filter that fails the first time that it is asked about less than the whole table."""

    NAME = "FailsOnceFilter"
    REASON = "the host is full"
    READS: Reads = ("amounts",)

    def __init__(self) -> None:
        self.is_armed = True

    def mask(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
        """True where nothing is used yet."""
        answer: Mask = hosts.used["VCPU"][rows] == 0
        is_whole = isinstance(rows, slice) and rows == slice(None)
        if self.is_armed and not is_whole:
            self.is_armed = False
            raise RuntimeError(SECRET)
        return answer

    def missing(self, hosts: HostTable, spec: RequestSpec) -> str:
        """What is wanted."""
        return "an empty host"


class Forgetful:
    """A filter whose answers for some rows are not what it says of all of them."""

    NAME = "ForgetfulFilter"
    REASON = "the host is forgotten"
    READS: Reads = ()

    @staticmethod
    def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask | None:
        """Nothing to say, except of the whole table."""
        is_whole = isinstance(rows, slice) and rows == slice(None)
        return ~nowhere(hosts, rows) if is_whole else None

    @staticmethod
    def missing(hosts: HostTable, spec: RequestSpec) -> str:
        """Nothing."""
        return ""


class ReadsWhatIsNot(RackFilter):
    """A filter that names a field that requests do not have."""

    READS: Reads = ("project_id", "hint")


class ReadsLetters(RackFilter):
    """A filter whose names are one text."""

    READS: Any = "hints"


class HintsAsText(RackFilter):
    """A filter whose hints are one text."""

    HINTS = "rack"


class Nameless(RackFilter):
    """A filter whose name is a number."""

    NAME: Any = 5


class Reasonless(RackFilter):
    """A filter with an empty reason."""

    REASON = ""


class NeedsHosts(RackFilter):
    """A filter that cannot be asked of an empty table."""

    @staticmethod
    def mask(hosts: HostTable, spec: RequestSpec, rows: Rows) -> Mask:
        """Compares all with the first."""
        alike: Mask = hosts.zone_codes[rows] == hosts.zone_codes[0]
        return alike


class Speechless(RackFilter):
    """A filter that never says what was missing."""

    @staticmethod
    def missing(hosts: HostTable, spec: RequestSpec) -> Any:
        """Nothing at all."""
        return None


class ScalesBadly(RackWeigher):
    """A weigher without a scale."""

    @staticmethod
    def scale(hosts: HostTable, spec: RequestSpec) -> Any:
        """No number."""
        return None


class Endless:
    """A weigher whose last number is no finite one, and whose scale is that number."""

    NAME = "EndlessWeigher"
    READS: Reads = ()
    AGGREGATE_KEY = "endless_weight_multiplier"

    def __init__(self, number: float) -> None:
        self.number = number

    def column(self, hosts: HostTable, spec: RequestSpec, rows: Rows) -> Any:
        """The number, after zeros."""
        numbers = np.zeros(row_count(hosts, rows))
        numbers[-1:] = self.number
        return numbers

    def scale(self, hosts: HostTable, spec: RequestSpec) -> float:
        """The number."""
        return self.number


class Taking:
    """A driver that takes places of the table and then fails, if the hint says so."""

    NAME = "taking"

    def __init__(self, pipeline: Pipeline, choice: Choice) -> None:
        self.pipeline = pipeline
        self._inner = AllAtOnce(pipeline, choice)

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """As all at once."""
        made = self._inner.plan(hosts, spec)
        if "trouble" in spec.hints:
            raise RuntimeError(SECRET)
        return made


class Planless(Taking):
    """A driver that makes no plans."""

    def plan(self, hosts: HostTable, spec: RequestSpec) -> Any:
        """None."""
        return None


FAILS_ONCE = FailsOnce()


class OwnQueries(RackFilter):
    """A filter that heeds queries in its own way."""

    NAME = "OwnQueriesFilter"
    READS: Reads = ("query",)
