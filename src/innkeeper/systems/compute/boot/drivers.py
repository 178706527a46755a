"""Builds schedulers from the driver, filters and weighers that the settings name.

Always true: an unknown name or an unusable plug-in is an error at start. If a filter were left out
silently, servers could be placed on forbidden hosts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import Rules
from innkeeper.domain.preemption import reach_s
from innkeeper.domain.slices import Leasing, Scheduling
from innkeeper.scheduling.filters.capacity import NAME as CAPACITY
from innkeeper.scheduling.filters.catalogue import FILTERS
from innkeeper.scheduling.filters.dedication import LEASE, PCLOUD
from innkeeper.scheduling.filters.forced_host import NAME as FORCED_HOST
from innkeeper.scheduling.filters.refused_hosts import NAME as REFUSED_HOSTS
from innkeeper.scheduling.filters.volume_pools import NAME as VOLUME_POOLS
from innkeeper.scheduling.pipeline import Filter, Pipeline, Weighed, Weigher
from innkeeper.scheduling.schedulers.catalogue import SCHEDULERS
from innkeeper.scheduling.schedulers.scheduler import Choice, Scheduler
from innkeeper.scheduling.weighers.catalogue import WEIGHER_SETS, WEIGHERS
from innkeeper.systems.compute.boot import loading, plugins
from innkeeper.systems.compute.boot.loading import NamesNothing
from innkeeper.systems.compute.grouping import hint_names
from innkeeper.systems.compute.grouping.hint_names import Readers

ALWAYS = (FORCED_HOST, REFUSED_HOSTS, VOLUME_POOLS, PCLOUD, LEASE, CAPACITY)
"""Filters that are always in force, even if the settings do not name them. If an operator could
leave out one of them, dedicated hosts might be open to all projects. The capacity filter is
included because a claim does not check the free capacity. A claim checks only that a provider has
not changed since it was filtered."""
TENANCY = frozenset({"AggregateMultiTenancyIsolation"})
"""Filters that separate projects. If the settings name such a filter, no request can leave it out.
"""
NO_LEASING = Leasing()
"""The default settings of leases. With these settings, no server is preemptible."""
PARTS_MAX = 16
"""For requests with at most this many servers, the weights of single weighers are stored. Storing
the weights of a thousand servers would take as long as the decision itself."""
SETTINGS = {
    "driver": "scheduler_driver",
    "host filter": "default_host_filters",
    "weigher": "default_host_weighers",
}
"""The setting that names the plug-ins of each kind."""
OF_REQUESTS_MAX = 8
"""The maximum number of cached schedulers for requests that name their own filters."""


class Schedulers:
    """The default scheduler from the settings, and the schedulers of requests that name filters.

    Raises ``ValueError`` for a wrong name in the settings.
    """

    def __init__(self, settings: Scheduling) -> None:
        self._settings = settings
        try:
            self.default = scheduler_of(settings)
        except NamesNothing as error:
            setting = SETTINGS[error.noun]
            raise ValueError(f"The setting {setting!r} is wrong. {error}") from error
        self._of_requests: dict[tuple[str, ...], Scheduler] = {}
        self._weighers = [each for each, factor in _weighers_of(settings) if factor != 0.0]
        filters = self.default.pipeline.filters
        known = hint_names.known_to((*filters, *self._weighers))
        self._readers = hint_names.readers(filters, self._weighers, known)

    @property
    def has_plugins(self) -> bool:
        """Whether the settings name a plug-in as the driver, as a filter or as a weigher."""
        used = (*self.default.pipeline.filters, *self._weighers)
        is_own = isinstance(self.default, plugins.GuardedDriver)
        return is_own or any(isinstance(each, plugins.Guarded) for each in used)

    def of(self, names: tuple[str, ...] | None) -> Scheduler:
        """Return the scheduler that uses these host filters instead of the default filters.

        Raises :class:`Invalid` for an unknown name. Also raises :class:`Invalid` for a filter that
        needs the number of servers on each host, if the host table lacks this number. The table has
        the number only if a filter or weigher in the settings needs it.
        """
        if names is None:
            return self.default
        filters = self.names_of(names)
        if filters not in self._of_requests:
            made = self._made(filters)
            if len(self._of_requests) >= OF_REQUESTS_MAX:
                self._of_requests.clear()
            self._of_requests[filters] = made
        return self._of_requests[filters]

    def readers(self, names: tuple[str, ...] | None) -> Readers:
        """Return the scheduler hints that the filters and weighers of a request read.

        ``names`` are the filters that the request names, or ``None``. Raises the errors of
        :meth:`of`.
        """
        if names is None:
            return self._readers
        filters = self.of(names).pipeline.filters
        return hint_names.readers(filters, self._weighers, self._readers.known)

    def names_of(self, names: tuple[str, ...] | None) -> tuple[str, ...]:
        """Return the names of the filters that are in force for a request.

        ``names`` are the filters that the request names, or ``None``.
        """
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
                each.NAME for each in made.pipeline.filters if getattr(each, "NEEDS_SERVERS", False)
            ]
            raise Invalid(
                "This service does not count the servers on each host, so these filters cannot be "
                f"used: {', '.join(counting)}."
            )
        return made


def scheduler_of(settings: Scheduling, filters: Iterable[str] | None = None) -> Scheduler:
    """Create the scheduler. ``filters`` override the filters of the settings.

    Raises ``ValueError`` for an unknown name.
    """
    names = settings.default_host_filters if filters is None else filters
    pipeline = Pipeline(filters_of(names), _weighers_of(settings))
    driver = loading.named("driver", settings.scheduler_driver, SCHEDULERS, "innkeeper.schedulers")
    are_parts_kept = settings.explain_decisions != "off"
    choice = Choice(
        settings.host_subset_size,
        settings.build_attempts_max - 1,
        PARTS_MAX if are_parts_kept else 0,
    )
    return _driver_made(settings.scheduler_driver, driver, pipeline, choice)


def _driver_made(name: str, driver: Any, pipeline: Pipeline, choice: Choice) -> Scheduler:
    # Only a class is called. Calling anything else could have side effects.
    if not isinstance(driver, type) or not hasattr(driver, "plan"):
        raise NamesNothing(
            "driver", f"The driver {name!r} cannot be created: it is not a class with a 'plan'."
        )
    try:
        made = driver(pipeline, choice)
    except TypeError as error:
        raise NamesNothing("driver", f"The driver {name!r} cannot be created: {error}.") from error
    scheduler: Scheduler = loading.complete("driver", name, made, Scheduler)
    if name in SCHEDULERS:
        return scheduler
    why = plugins.why_driver_unusable(scheduler)
    if why is not None:
        raise NamesNothing("driver", f"The driver {name!r} {why}.")
    guarded: Any = plugins.GuardedDriver(scheduler)
    return guarded  # type: ignore[no-any-return]


def rules_of(settings: Scheduling, leasing: Leasing = NO_LEASING) -> Rules:
    """Return the settings that filters and weighers read."""
    is_allowed = leasing.allow_preemptible_servers
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
        preemptible_reach_s=reach_s(leasing.preemption_grace_s) if is_allowed else None,
    )


def filters_of(names: Iterable[str]) -> tuple[Filter, ...]:
    """Return the filters with these names, and also the filters that are always in force."""
    in_force = dict.fromkeys((FORCED_HOST, *names, *ALWAYS))
    noun = "host filter"
    return tuple(
        _checked(noun, each, loading.named(noun, each, FILTERS, "innkeeper.filters"), Filter)
        for each in in_force
    )


def multipliers_of(settings: Scheduling) -> dict[str, float]:
    """Return the multipliers of the weighers in the settings, by weigher name.

    If the settings name a set of weighers, the result has each weigher in the set.
    """
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
    made = {
        name: loading.named("weigher", name, WEIGHERS, "innkeeper.weighers", WEIGHER_SETS)
        for name in multipliers
    }
    return tuple(
        (_checked("weigher", name, each, Weigher), multipliers[name]) for name, each in made.items()
    )


def _checked(noun: str, name: str, found: Any, kind: type) -> Any:
    """Check a filter or weigher, and return it. A plug-in is wrapped in a guard."""
    loading.complete(noun, name, found, kind)
    if name in FILTERS or name in WEIGHERS:
        return found
    why = plugins.why_unusable(found)
    if why is not None:
        raise NamesNothing(noun, f"The {noun} {name!r} {why}.")
    return plugins.Guarded(noun, found)
