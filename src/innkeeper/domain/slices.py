"""The settings in typed slices, one for each part of the service.

``innkeeper.settings`` reads the settings, and ``wiring`` distributes the slices.

Always true: every number has a minimum and a maximum, which also rejects ``nan``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from innkeeper.domain.leases import RESOURCE_TYPES
from innkeeper.domain.peer_settings import Peering
from innkeeper.domain.pod_settings import Podding
from innkeeper.domain.setting_types import (
    YEAR_S,
    Bytes,
    Days,
    Few,
    Many,
    Multiplier,
    Port,
    Quota,
    Ratio,
    Seconds,
)


class Serving(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The HTTP server and its limits. Each of the ``apis`` has a URL prefix.

    One prefix may be empty. ``public_url`` replaces the URL of the request in links. ``tls_cert``
    and ``tls_key`` enable TLS; ``tls_client_ca`` also requires client certificates signed by that
    CA. ``X-Forwarded-For`` is accepted only from the networks in ``trusted_proxies``.

    ``image_bytes_max`` limits uploads of images, which this service measures but does not store.
    ``body_bytes_max`` limits all other bodies. ``requests_max``, ``bodies_bytes_max`` and
    ``connections_max`` apply to one process. ``client_timeout_s`` limits the time to receive the
    head of a request, and each wait for more of its body. CORS is enabled for
    ``cors_allowed_origins``. With several ``workers``, that many processes share the port. A
    process that makes no progress for ``worker_timeout_s`` is killed and restarted.
    """

    host: str = "127.0.0.1"
    port: Port = 8780
    public_url: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    trusted_proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    apis: tuple[str, ...] = ("identity", "placement", "compute", "image", "volume", "reservation")
    identity_prefix: str = "/identity"
    placement_prefix: str = "/placement"
    compute_prefix: str = "/compute"
    image_prefix: str = "/image"
    volume_prefix: str = "/volume"
    reservation_prefix: str = "/reservation"
    pods_prefix: str = "/pods"
    body_bytes_max: Bytes = 1024 * 1024
    image_bytes_max: Annotated[int, msgspec.Meta(ge=1, le=2**60)] = 1024 * 1024 * 1024 * 1024
    page_size_max: Many = 1000
    requests_max: Many = 10_000
    bodies_bytes_max: Bytes = 128 * 1024 * 1024
    connections_max: Many = 20_000
    client_timeout_s: Seconds = 30.0
    cors_allowed_origins: tuple[str, ...] = ()
    cors_allow_credentials: bool = True
    cors_expose_headers: tuple[str, ...] = (
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Subject-Token",
        "X-Service-Token",
        "OpenStack-API-Version",
    )
    cors_max_age_s: Annotated[int, msgspec.Meta(ge=0, le=YEAR_S)] = 3600
    cors_allow_methods: tuple[str, ...] = ("GET", "PUT", "POST", "DELETE", "PATCH")
    cors_allow_headers: tuple[str, ...] = (
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Identity-Status",
        "X-Roles",
        "X-Service-Catalog",
        "X-User-Id",
        "OpenStack-API-Version",
    )
    shutdown_grace_s: Seconds = 30.0
    workers: Few = 1
    worker_timeout_s: Annotated[float, msgspec.Meta(ge=2, le=YEAR_S)] = 60.0
    reader_threads: Few = 8
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["console", "json"] = "console"
    trace_endpoint: str | None = None


class Storing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The database and its timeouts.

    By default, the database is a SQLite file in ``data_dir``, and the encryption key is another
    file in that directory. ``database_is_shared`` tells whether other processes use the same
    database. ``busy_timeout_s`` limits the wait for locks. The database server ends a transaction
    that is idle for ``idle_timeout_s``. On startup, the service waits up to ``database_wait_s``
    for an unreachable database.
    """

    data_dir: str = "innkeeper-data"
    database_url: str | None = None
    encryption_key_file: str | None = None
    database_is_shared: bool | None = None
    busy_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=24 * 3600)] = 10.0
    idle_timeout_s: Annotated[float, msgspec.Meta(ge=1, le=24 * 3600)] = 15.0
    database_wait_s: Annotated[float, msgspec.Meta(ge=0, le=YEAR_S)] = 60.0

    @property
    def is_file(self) -> bool:
        """Whether the database is a local file."""
        return self.database_url is None or self.database_url.startswith("sqlite")


class Authenticating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Authentication and policy.

    With ``auth`` ``none``, the token itself names the caller. With ``builtin``, the Identity API of
    this service validates tokens. With ``keystone``, the Keystone at ``keystone_url`` validates
    tokens. This service logs in to Keystone as ``keystone_user``.

    Without ``enforce_new_defaults``, the legacy defaults of policy rules also grant access. Without
    ``enforce_scope``, rules about projects also accept tokens for the whole system. After
    ``login_failures_free`` failed logins in a row, each further attempt must wait. The waiting time
    doubles with each failure, up to ``login_wait_max_s``.
    """

    auth: Literal["none", "builtin", "keystone"] = "builtin"
    policy_file: str | None = None
    enforce_new_defaults: bool = True
    enforce_scope: bool = True
    token_lifetime_s: Seconds = 3600.0
    token_cache_s: Seconds = 10.0
    login_failures_free: Few = 5
    login_wait_max_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 60.0
    keystone_url: str | None = None
    keystone_user: str | None = None
    keystone_password: str | None = None
    keystone_project: str = "service"
    keystone_domain: str = "Default"
    region_name: str = "RegionOne"


DecisionDetail = Literal["off", "brief", "full"]
"""How much of a decision's explanation is stored with a server."""
RecordedDecisions = Literal["none", "failed", "all"]
"""Which decisions are recorded in files."""


class Scheduling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scheduler. The host with the highest weight wins.

    Drivers, filters, weighers and sets of weighers are given by name. Plugins are given as
    ``package.module:name``. ``build_attempts_max`` includes the first attempt.
    ``explain_decisions`` controls how much of an explanation is stored with a server.
    ``record_decisions`` controls which decisions are recorded in files, for replays.
    """

    scheduler_driver: str = "all_at_once"
    default_availability_zone: str = "nova"
    default_host_filters: tuple[str, ...] = (
        "ComputeFilter",
        "AvailabilityZoneFilter",
        "PcloudFilter",
        "CapacityFilter",
        "ComputeCapabilitiesFilter",
        "ImagePropertiesFilter",
        "AggregateMultiTenancyIsolation",
        "IsolatedAggregatesFilter",
        "ServerGroupFilter",
        "SameHostFilter",
        "DifferentHostFilter",
        "SimpleCIDRAffinityFilter",
    )
    default_host_weighers: tuple[str, ...] = ("spread",)
    weigher_multipliers: Mapping[str, Multiplier] = {}
    capability_multipliers: Mapping[str, Multiplier] = {}
    host_subset_size: Many = 1
    build_attempts_max: Few = 3
    max_instances_per_host: Many = 50
    max_io_ops_per_host: Many = 8
    isolated_images: tuple[str, ...] = ()
    isolated_hosts: tuple[str, ...] = ()
    restrict_isolated_hosts_to_isolated_images: bool = True
    enable_isolated_aggregate_filtering: bool = True
    capabilities_max_age_s: Seconds = 180.0
    explain_decisions: DecisionDetail = "brief"
    record_decisions: RecordedDecisions = "none"
    recordings_max: Many = 100
    claim_attempts_max: Few = 10
    servers_per_request_max: Many = 1000
    cpu_allocation_ratio: Ratio = 4.0
    ram_allocation_ratio: Ratio = 1.0
    disk_allocation_ratio: Ratio = 1.0


class Computing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Default quotas, timeouts of agents, and server actions. A quota of -1 is unlimited.

    A shelved server keeps its host for ``shelved_offload_time`` seconds, or forever with -1.
    """

    quota_instances: Quota = 10
    quota_cores: Quota = 20
    quota_ram: Quota = 51200
    quota_metadata_items: Quota = 128
    quota_key_pairs: Quota = 100
    quota_server_groups: Quota = 10
    quota_server_group_members: Quota = 10
    service_down_time_s: Seconds = 60.0
    work_poll_s: Seconds = 20.0
    order_timeout_s: Seconds = 600.0
    allow_resize_to_same_host: bool = False
    shelved_offload_time: Annotated[int, msgspec.Meta(ge=-1, le=YEAR_S)] = 0


class Volumes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Volumes: default quotas, the default type and the possible places. -1 is an unlimited quota.

    With ``volumes_on_hosts``, volumes may be on the disks of hosts and in shared pools. Without it,
    volumes may be only in shared pools. With ``cross_az_attach``, a server may use volumes of other
    availability zones.
    """

    quota_volumes: Quota = 10
    quota_gigabytes: Quota = 1000
    quota_per_volume_gigabytes: Quota = -1
    default_volume_type: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] = "__DEFAULT__"
    volumes_on_hosts: bool = True
    cross_az_attach: bool = True


class Dedicating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Dedicated hosts.

    By default, a project may own ``quota_pclouds`` pclouds, with ``quota_pcloud_units`` units of
    hosts in total. The project may share each pcloud with ``quota_pcloud_projects`` projects. -1
    means unlimited. An allocation tries up to ``host_allocation_attempts`` free hosts. With
    ``show_free_hosts``, all users may see the number of free hosts by host flavor and availability
    zone. Actions on pclouds are recorded for ``pcloud_actions_kept_days``, or forever with 0.
    """

    quota_pcloud_units: Quota = 10
    quota_pclouds: Quota = 10
    quota_pcloud_projects: Quota = 100
    host_allocation_attempts: Few = 5
    show_free_hosts: bool = True
    pcloud_actions_kept_days: Days = 90


class Leasing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Leases of hosts and of slots for servers.

    The freepool is the aggregate with the name ``freepool_aggregate_name``. Each host is kept free
    for ``cleaning_time_min`` before and after a lease. A warning is sent
    ``minutes_before_end_lease`` before the end of a lease, or never with 0. Leases last at most
    ``max_lease_duration_s``; -1 is unlimited. Projects in ``max_lease_duration_exempt_projects``
    have no such limit.

    A project may have ``quota_leases`` leases that are not over, and ``quota_future_leases`` leases
    that have not begun. At any time, a project may have ``quota_reserved_hosts`` whole hosts,
    ``quota_reserved_instances`` slots for servers, and ``quota_reserved_vcpus`` virtual processors
    in slots. These are default quotas; -1 is unlimited.

    An external service at ``lease_check_url`` is asked before leases are created or changed, and is
    notified when leases end. It gets ``lease_check_token``, and has ``lease_check_timeout_s`` to
    answer. If the service does not answer, the request is refused. With ``lease_check_fails_open``,
    the request is accepted instead. Notifications are posted to ``lease_webhook_url``, signed with
    ``lease_webhook_secret``.

    A failed host is replaced in leases that have begun, or will begin within
    ``lease_healing_interval_min``. With 0, it is replaced in all leases.

    ``lease_resource_types`` are the resource types that can be reserved.

    With ``allow_preemptible_servers``, servers of preemptible flavors use the freepool until a
    lease needs their host. Users are warned at least ``preemption_grace_s`` before such a server is
    deleted.
    """

    freepool_aggregate_name: str = "freepool"
    cleaning_time_min: Annotated[int, msgspec.Meta(ge=0, le=7 * 24 * 60)] = 0
    minutes_before_end_lease: Annotated[int, msgspec.Meta(ge=0, le=366 * 24 * 60)] = 60
    max_lease_duration_s: Annotated[int, msgspec.Meta(ge=-1, le=100 * YEAR_S)] = -1
    max_lease_duration_exempt_projects: tuple[str, ...] = ()
    quota_leases: Quota = -1
    quota_future_leases: Quota = -1
    quota_reserved_hosts: Quota = -1
    quota_reserved_instances: Quota = -1
    quota_reserved_vcpus: Quota = -1
    lease_check_url: str | None = None
    lease_check_token: str | None = None
    lease_check_timeout_s: Seconds = 5.0
    lease_check_fails_open: bool = False
    lease_webhook_url: str | None = None
    lease_webhook_secret: str | None = None
    lease_event_retries_max: Few = 10
    lease_healing_interval_min: Annotated[int, msgspec.Meta(ge=0, le=366 * 24 * 60)] = 60
    lease_resource_types: tuple[str, ...] = RESOURCE_TYPES
    allow_preemptible_servers: bool = False
    preemption_grace_s: Annotated[int, msgspec.Meta(ge=0, le=YEAR_S)] = 120


class Zoning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of this zone, the keys of its build plans, and its place in a tree of zones.

    The first ``build_plan_encryption_key`` encrypts the entries of build plans, and every key can
    decrypt entries. Without a key, this zone makes no plans for other zones. Entries expire after
    ``build_plan_lifetime_s``.

    ``allow_admin_api`` serves the routes for child zones and zone parents. With
    ``enable_zone_routing``, boots consider child zones, and requests about a server in a child zone
    go to that zone. A request goes down at most ``zone_hops_max`` levels of zones. Child zones must
    offer hosts within ``zone_select_timeout_s``, and answer other requests within
    ``zone_request_timeout_s``. At most ``zone_requests_max`` requests to one child run at once.
    Each child is polled every ``zone_poll_interval_s``. A child is inactive after
    ``zone_failures_to_offline`` failed polls in a row. A boot makes at most
    ``zone_boot_attempts_max`` plans.
    """

    zone_name: str = "nova"
    build_plan_encryption_key: tuple[str, ...] = ()
    build_plan_lifetime_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 600.0
    allow_admin_api: bool = False
    enable_zone_routing: bool = False
    zone_hops_max: Annotated[int, msgspec.Meta(ge=1, le=8)] = 3
    zone_select_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 2.0
    zone_request_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 30.0
    zone_requests_max: Few = 16
    zone_poll_interval_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 10.0
    zone_failures_to_offline: Few = 3
    zone_boot_attempts_max: Few = 3

    @property
    def has_secrets(self) -> bool:
        """Whether this zone may have child zones or zone parents, whose secrets it encrypts."""
        return self.allow_admin_api or self.enable_zone_routing


class Placing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The search for allocation candidates, and retries of writes.

    The settings have the same names as in OpenStack's Placement. A search stops after
    ``max_allocation_candidates`` candidates. The strategy ``depth-first`` returns all candidates of
    one tree before those of the next tree. The strategy ``breadth-first`` returns one candidate of
    each tree in turn. ``allocation_conflict_retry_count`` includes the first attempt.
    """

    max_allocation_candidates: Many = 100_000
    allocation_candidates_generation_strategy: Literal["depth-first", "breadth-first"] = (
        "breadth-first"
    )
    randomize_allocation_candidates: bool = False
    allocation_conflict_retry_count: Few = 10


class Settings(msgspec.Struct, frozen=True):
    """All settings. Each setting is in exactly one slice."""

    serving: Serving = Serving()
    peering: Peering = Peering()
    storing: Storing = Storing()
    authenticating: Authenticating = Authenticating()
    scheduling: Scheduling = Scheduling()
    placing: Placing = Placing()
    computing: Computing = Computing()
    volumes: Volumes = Volumes()
    dedicating: Dedicating = Dedicating()
    leasing: Leasing = Leasing()
    zoning: Zoning = Zoning()
    podding: Podding = Podding()

    @property
    def is_one_of_several(self) -> bool:
        """Whether other processes may write rows that this process caches.

        By default, a database server counts as shared, and a database file does not.
        """
        is_shared = self.storing.database_is_shared
        if is_shared is None:
            is_shared = not self.storing.is_file
        return is_shared or self.serving.workers > 1

    @property
    def has_pods(self) -> bool:
        """Whether this service administers pods."""
        return "pods" in self.serving.apis


SLICES: dict[str, type[msgspec.Struct]] = {
    field.name: type(field.default) for field in msgspec.structs.fields(Settings)
}
