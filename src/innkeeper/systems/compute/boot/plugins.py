"""Catches failures of the operator's own plug-ins.

A guard is an object of this module that wraps a filter, weigher or driver.

Always true: if a guarded plug-in fails or returns an invalid value, no decision is made. Instead,
:class:`PluginFailed` is raised, which names the plug-in. Only failures of the explaining methods
(``missing``, ``missing_counted``, ``lacks``) are tolerated. If an explaining method fails, a
standard text replaces the explanation.

Built-in filters and weighers are not guarded, which saves time in each decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
import structlog

from innkeeper.domain.errors import PluginFailed
from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling.pipeline import ALL_ROWS
from innkeeper.scheduling.reading import frozen
from innkeeper.scheduling.schedulers.scheduler import Scheduler
from innkeeper.snapshot.amounts import Rows
from innkeeper.snapshot.columns import HostTable

LOG = structlog.get_logger("innkeeper.compute")

DERIVED = frozenset({"names_dedicated", "uses_leased", "unneeded_until_s"})
FIELDS = frozenset(each.name for each in msgspec.structs.fields(RequestSpec)) | DERIVED
"""The fields of a request spec that a plug-in may name in ``READS``."""
FACTS = ("NAME", "REASON", "READS", "AGGREGATE_KEY", "NEEDS_SERVERS", "HINTS")
NUMBERS = "biuf"
"""NumPy's dtype kinds that count as numbers: booleans, integers and floats."""
PLUGIN_ERRORS = (Exception, SystemExit)
"""The errors of plug-ins that are caught. ``SystemExit`` is caught because some libraries call
``sys.exit`` on bad input. Otherwise, the process would end in the middle of a decision."""
TRIAL_AMOUNTS = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}


class WrongAnswer(TypeError):
    """A plug-in returned a value of the wrong type or shape."""


class Guard:
    """Turns the errors in a ``with`` block into :class:`PluginFailed`.

    Errors of the types in ``passed_on`` are raised unchanged.
    """

    def __init__(
        self, noun: str, plugin: str, passed_on: tuple[type[Exception], ...] = (PluginFailed,)
    ) -> None:
        self._noun = noun
        self._plugin = plugin
        self._passed_on = passed_on

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, PLUGIN_ERRORS) and not isinstance(error, self._passed_on):
            raise PluginFailed(self._noun, self._plugin, _line_of(error)) from error


def _line_of(error: BaseException) -> str:
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])


def log(failure: PluginFailed) -> None:
    """Log which plug-in failed, and how."""
    LOG.error(
        "plugin_failed",
        kind=failure.noun,
        plugin=failure.plugin,
        error=failure.why,
        exc_info=failure,
    )


class Guarded:
    """Wraps a plug-in filter or weigher, and checks each return value."""

    def __init__(self, noun: str, found: Any) -> None:
        for name in FACTS:
            if hasattr(found, name):
                setattr(self, name, getattr(found, name))
        guard = Guard(noun, str(found.NAME))
        for name, check in CHECKS.items():
            if hasattr(found, name):
                setattr(self, name, _checked(guard, getattr(found, name), name, check))
        for name, words in WORDS.items():
            if hasattr(found, name):
                setattr(self, name, _worded(guard, getattr(found, name), name, words))
        if hasattr(found, "HALVES"):
            self.HALVES = tuple(Guarded(noun, half) for half in found.HALVES)


Check = Callable[[str, Any, HostTable, tuple[Any, ...]], Any]
"""A function that checks the return value of a method. It takes the method's name, the value, the
host table and the other arguments. It returns the valid value, or raises :class:`WrongAnswer`."""


def _checked(guard: Guard, method: Any, name: str, check: Check) -> Callable[..., Any]:
    def call(hosts: HostTable, spec: RequestSpec, *more: Any) -> Any:
        with guard:
            return check(name, method(hosts, spec, *more), hosts, more)

    return call


def _worded(guard: Guard, method: Any, name: str, words: Any) -> Callable[..., Any]:
    def call(hosts: HostTable, spec: RequestSpec, *more: Any) -> Any:
        try:
            with guard:
                return _valid(method(hosts, spec, *more), name, words)
        except PluginFailed as failure:
            # The decision has already been made. The method only explains it.
            log(failure)
            return words.instead(f"the {failure.noun} {failure.plugin} could not give details")

    return call


def _valid(answer: Any, name: str, words: Any) -> Any:
    if not words.is_valid(answer):
        raise WrongAnswer(f"{name} returned {_kind(answer)}, not {words.expected}")
    return answer


class _Sentence:
    expected = "a text"

    @staticmethod
    def is_valid(answer: Any) -> bool:
        return isinstance(answer, str)

    @staticmethod
    def instead(text: str) -> Any:
        return text


class _Lines:
    expected = "a list of texts"

    @staticmethod
    def is_valid(answer: Any) -> bool:
        return isinstance(answer, list | tuple) and all(isinstance(e, str) for e in answer)

    @staticmethod
    def instead(text: str) -> Any:
        return [text]


def _array(name: str, answer: Any, kinds: str, count: int | None) -> Any:
    """Return ``answer`` if it is a one-dimensional array with one of these dtype kinds.

    ``count`` is the expected length, or ``None`` for any length. Raises :class:`WrongAnswer`.
    """
    if not isinstance(answer, np.ndarray) or answer.dtype.kind not in kinds:
        expected = "truth values" if kinds == "b" else "numbers"
        raise WrongAnswer(f"{name} returned {_kind(answer)}, not an array of {expected}")
    is_long = answer.ndim == 1 and count in (None, answer.shape[0])
    if not is_long:
        raise WrongAnswer(f"{name} returned an array of shape {answer.shape}, not ({count},)")
    return answer


def _kind(answer: Any) -> str:
    if isinstance(answer, np.ndarray):
        return f"an array of {answer.dtype}"
    return type(answer).__name__


def _count(hosts: HostTable, rows: Rows) -> int:
    """Return the number of selected rows, which is the length that an array must have."""
    return len(range(hosts.host_count)[rows]) if isinstance(rows, slice) else int(rows.size)


def _mask(name: str, answer: Any, hosts: HostTable, more: tuple[Any, ...]) -> Any:
    return None if answer is None else _array(name, answer, "b", _count(hosts, more[0]))


def _column(name: str, answer: Any, hosts: HostTable, more: tuple[Any, ...]) -> Any:
    numbers = _array(name, answer, NUMBERS, _count(hosts, more[0]))
    if not np.isfinite(numbers).all():
        raise WrongAnswer(f"{name} returned numbers that are not finite")
    return numbers


def _few(name: str, answer: Any, hosts: HostTable, more: tuple[Any, ...]) -> Any:
    if answer is None:
        return None
    rows = _array(name, answer, "iu", None)
    is_in_order = bool((rows[1:] > rows[:-1]).all())
    if rows.size and not (is_in_order and rows[0] >= 0 and rows[-1] < hosts.host_count):
        raise WrongAnswer(f"{name} returned rows that do not exist, or are not in ascending order")
    return rows


def _scale(name: str, answer: Any, hosts: HostTable, more: tuple[Any, ...]) -> Any:
    if not isinstance(answer, int | float | np.number):
        raise WrongAnswer(f"{name} returned {_kind(answer)}, not a number")
    scale = float(answer)
    if not np.isfinite(scale):
        raise WrongAnswer(f"{name} returned {scale}, which is not finite")
    return scale


def _admits(name: str, answer: Any, hosts: HostTable, more: tuple[Any, ...]) -> Any:
    if not isinstance(answer, bool | np.bool_):
        raise WrongAnswer(f"{name} returned {_kind(answer)}, not a truth value")
    return bool(answer)


def _stamp(name: str, answer: Any, hosts: HostTable, more: tuple[Any, ...]) -> Any:
    stamp = answer.tobytes() if isinstance(answer, np.ndarray) else frozen(answer)
    # A stamp is compared with earlier stamps. Values that are not hashable may compare wrongly.
    hash(stamp)
    return stamp


CHECKS: dict[str, Check] = {
    "mask": _mask,
    "few": _few,
    "admits": _admits,
    "column": _column,
    "number": _scale,
    "scale": _scale,
    "stamp": _stamp,
}
WORDS: dict[str, Any] = {"missing": _Sentence, "missing_counted": _Sentence, "lacks": _Lines}


class GuardedDriver:
    """Wraps a plug-in driver.

    If the driver fails, the amounts of some planned servers may stay subtracted from the table.
    """

    def __init__(self, driver: Scheduler) -> None:
        self.NAME = driver.NAME
        self.pipeline = driver.pipeline
        self._driver = driver
        self._guard = Guard("driver", str(driver.NAME))

    def plan(self, hosts: HostTable, spec: RequestSpec) -> BuildPlan:
        """Call the driver's :meth:`Scheduler.plan`. Raises :class:`PluginFailed`."""
        with self._guard:
            made = self._driver.plan(hosts, spec)
            if not isinstance(made, BuildPlan):
                raise WrongAnswer(f"plan returned {_kind(made)}, not a BuildPlan")
            return made


# -- at start ----------------------------------------------------------------------------------


def why_unusable(found: Any) -> str | None:
    """Return the reason why a filter or weigher cannot be used, or ``None``.

    The reason continues a sentence that begins with the plug-in's name. The fields in ``READS``
    must exist, ``HINTS`` must be a tuple of names, and the methods must work without hosts.
    """
    return _misnamed(found) or _failing(found)


def _misnamed(found: Any) -> str | None:
    for name in ("NAME", "REASON", "AGGREGATE_KEY"):
        text = getattr(found, name, "text")
        if not isinstance(text, str) or not text:
            return f"has a {name} that is not a text"
    for name, known in (("READS", FIELDS), ("HINTS", None)):
        named = getattr(found, name, ())
        if not _are_names(named):
            return f"has {name} that is not a tuple of names"
        unknown = [each for each in named if known is not None and each not in known]
        if unknown:
            return f"has {unknown[0]!r} in {name}, which is not a field of the request spec"
    return None


def _failing(found: Any) -> str | None:
    hosts, spec = _trial()
    guard = Guard("plug-in", str(found.NAME))
    try:
        with guard:
            guarded = Guarded("plug-in", found)
            for rows in (ALL_ROWS, np.arange(0)):
                _ask(guarded, ("mask", "column"), hosts, spec, rows)
            _ask(guarded, ("scale", "stamp", "few"), hosts, spec)
            if hasattr(found, "missing"):
                _valid(found.missing(hosts, spec), "missing", _Sentence)
    except PluginFailed as failure:
        return f"fails on a table without hosts ({failure.why})"
    return None


def _ask(guarded: Guarded, methods: Iterable[str], *given: Any) -> None:
    for name in methods:
        if hasattr(guarded, name):
            getattr(guarded, name)(*given)


def why_driver_unusable(driver: Scheduler) -> str | None:
    """Return the reason why a driver cannot be used, or ``None``. See :func:`why_unusable`."""
    try:
        GuardedDriver(driver).plan(*_trial())
    except PluginFailed as failure:
        return f"fails on a table without hosts ({failure.why})"
    return None


def _are_names(named: Any) -> bool:
    is_many = isinstance(named, Iterable) and not isinstance(named, str | bytes)
    return is_many and all(isinstance(each, str) for each in named)


def _trial() -> tuple[HostTable, RequestSpec]:
    hosts = HostTable()
    hosts.knows_servers = True
    for name in TRIAL_AMOUNTS:
        hosts.ensure_class(name)
    spec = RequestSpec(
        amounts=TRIAL_AMOUNTS,
        project_id="project",
        user_id="user",
        now_s=0.0,
        silence_max_s=0.0,
        seed=0,
    )
    return hosts, spec
