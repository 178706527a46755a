"""The scheduler that the settings describe: its driver, filters and weighers, by their names.

Always true: an unknown name is an error at start. A filter that is silently left out would
place servers where they must not be.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import Rules
from innkeeper.domain.slices import Scheduling
from innkeeper.scheduling.filters.capacity import NAME as CAPACITY
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.filters.forced_host import NAME as FORCED_HOST
from innkeeper.scheduling.filters.refused_hosts import NAME as REFUSED_HOSTS
from innkeeper.scheduling.pipeline import Filter, Pipeline, Weighed, Weigher
from innkeeper.scheduling.schedulers.catalogue import SCHEDULERS
from innkeeper.scheduling.schedulers.scheduler import Choice, Scheduler
from innkeeper.scheduling.weighers.catalogue import WEIGHER_SETS, WEIGHERS

ALWAYS = (FORCED_HOST, REFUSED_HOSTS, CAPACITY)
"""A host that an administrator names is no matter of taste, nor are those where a server is
already or failed. Nor is capacity: claims prove that nothing moved since it was found to
suffice, so somebody must have looked."""
TENANCY = frozenset({"AggregateMultiTenancyIsolation"})
"""Whose hosts are whose is not for a request to say: where the settings name these, no request
does without them."""
PARTS_MAX = 16
"""Of so many servers of one request it is kept what each weigher gave to their hosts: of all of
a thousand, it would take as long as deciding."""
OF_REQUESTS_MAX = 8
"""Sets of filters that requests named lately; their schedulers are kept, and remember."""


class Schedulers:
    """The scheduler of the settings, and those for requests that name their filters."""

    def __init__(self, settings: Scheduling) -> None:
        self._settings = settings
        self.default = scheduler_of(settings)
        self._of_requests: dict[tuple[str, ...], Scheduler] = {}

    def of(self, names: tuple[str, ...] | None) -> Scheduler:
        """The scheduler with these host filters in place of the default ones.

        Raises :class:`Invalid` for a name that is none, and for a filter that counts servers
        where the settings have none that does: then nobody counts them.
        """
        if names is None:
            return self.default
        asked = self.names_of(names)
        if asked not in self._of_requests:
            made = self._made(asked)
            if len(self._of_requests) >= OF_REQUESTS_MAX:
                self._of_requests.clear()
            self._of_requests[asked] = made
        return self._of_requests[asked]

    def names_of(self, names: tuple[str, ...] | None) -> tuple[str, ...]:
        """The filters that a request gets which names these, or none at all."""
        default = self._settings.default_host_filters
        if names is None:
            return default
        kept = [name for name in default if name in TENANCY]
        return tuple(dict.fromkeys((*names, *kept)))

    def _made(self, names: tuple[str, ...]) -> Scheduler:
        try:
            made = scheduler_of(self._settings, names)
        except ValueError as error:
            raise Invalid(str(error)) from error
        if made.pipeline.needs_servers and not self.default.pipeline.needs_servers:
            counting = [
                each.NAME
                for each in made.pipeline.filters
                if getattr(each, "NEEDS_SERVERS", False)
            ]
            raise Invalid(f"Servers are not counted here, as {', '.join(counting)} would need.")
        return made


def scheduler_of(settings: Scheduling, filters: Iterable[str] | None = None) -> Scheduler:
    """Make the scheduler; with other ``filters`` than the settings', if they are named.

    Raises ``ValueError`` for a name that is none.
    """
    names = settings.default_host_filters if filters is None else filters
    pipeline = Pipeline(filters_of(names), _weighers_of(settings))
    driver = _named("driver", settings.scheduler_driver, SCHEDULERS, "innkeeper.schedulers")
    are_parts_kept = settings.explain_decisions != "off"
    choice = Choice(
        settings.host_subset_size,
        settings.build_attempts_max - 1,
        PARTS_MAX if are_parts_kept else 0,
    )
    try:
        made: Scheduler = _checked(driver(pipeline, choice), Scheduler)
    except TypeError as error:
        raise ValueError(
            f"The driver {settings.scheduler_driver!r} cannot be made: {error}."
        ) from error
    return made


def rules_of(settings: Scheduling) -> Rules:
    """What filters and weighers are told."""
    return Rules(
        servers_per_host_max=settings.max_instances_per_host,
        busy_servers_per_host_max=settings.max_io_ops_per_host,
        isolated_images=frozenset(settings.isolated_images),
        isolated_hosts=frozenset(settings.isolated_hosts),
        isolated_hosts_take_isolated_images_only=(
            settings.restrict_isolated_hosts_to_isolated_images
        ),
        isolates_aggregates_by_trait=settings.enable_isolated_aggregate_filtering,
        capabilities_max_age_s=settings.capabilities_max_age_s,
        capability_multipliers=tuple(sorted(settings.capability_multipliers.items())),
    )


def filters_of(names: Iterable[str]) -> tuple[Filter, ...]:
    """The filters of these names, and those that are always in force."""
    wanted = dict.fromkeys((FORCED_HOST, *names, *ALWAYS))
    made = [_named("host filter", each, FILTERS, "innkeeper.filters") for each in wanted]
    return tuple(_checked(each, Filter) for each in made)


def multipliers_of(settings: Scheduling) -> dict[str, float]:
    """The weighers of the settings by name, sets of them told apart, and their multipliers."""
    multipliers: dict[str, float] = {}
    for name in settings.default_host_weighers:
        multipliers |= WEIGHER_SETS.get(name, {name: 1.0})
    unused = settings.weigher_multipliers.keys() - multipliers.keys()
    if unused:
        raise ValueError(
            f"The setting 'weigher_multipliers' names weighers that are not among "
            f"'default_host_weighers': {', '.join(sorted(unused))}."
        )
    return {**multipliers, **settings.weigher_multipliers}


def _weighers_of(settings: Scheduling) -> tuple[Weighed, ...]:
    multipliers = multipliers_of(settings)
    made = [
        (_named("weigher", name, WEIGHERS, "innkeeper.weighers", WEIGHER_SETS), factor)
        for name, factor in multipliers.items()
    ]
    return tuple((_checked(each, Weigher), factor) for each, factor in made)


def _named(
    noun: str,
    name: str,
    ours: Mapping[str, Any],
    group: str,
    sets: Iterable[str] = (),
) -> Any:
    """What a name stands for: one of ours, an entry point, or ``package.module:name``."""
    if name in ours:
        return ours[name]
    found = [each for each in entry_points(group=group) if each.name == name]
    try:
        if found:
            return found[0].load()
        if ":" in name or "." in name:
            return _imported(name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"The {noun} {name!r} cannot be had: {error}.") from error
    known = ", ".join(sorted([*ours, *sets]))
    raise ValueError(f"There is no {noun} {name!r}. There are: {known}.")


def _checked(found: Any, kind: type) -> Any:
    """What was found, if it has all that its kind has."""
    wanted = [*kind.__annotations__, *(name for name in vars(kind) if name[0] != "_")]
    lacking = [name for name in dict.fromkeys(wanted) if not hasattr(found, name)]
    if lacking:
        name = getattr(found, "NAME", getattr(found, "__name__", repr(found)))
        raise ValueError(f"The {kind.__name__.lower()} {name} has no {', '.join(lacking)}.")
    return found


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found
