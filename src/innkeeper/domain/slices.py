"""The settings in typed slices, one for each part of the service.

``innkeeper.settings`` reads them, and ``wiring`` passes each slice to the rooms that need it.

Always true: every number has a minimum and a maximum, which also rejects ``nan``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from innkeeper.domain.amounts import UNIT_MAX

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
YEAR_S = 366 * 24 * 3600
Seconds = Annotated[float, msgspec.Meta(gt=0, le=YEAR_S)]
"""At most a year. A longer time is probably a typo, and may overflow a datetime."""
Days = Annotated[int, msgspec.Meta(ge=0, le=100 * 366)]
"""How long rows are kept; 0 keeps them forever."""
FEW_MAX = 1000
MANY_MAX = 1_000_000
Few = Annotated[int, msgspec.Meta(ge=1, le=FEW_MAX)]
"""Threads, processes and attempts."""
Many = Annotated[int, msgspec.Meta(ge=1, le=MANY_MAX)]
"""Rows, hosts, servers and files."""
Bytes = Annotated[int, msgspec.Meta(ge=1, le=2**30)]
"""Sizes of objects that are held in memory."""
Quota = Annotated[int, msgspec.Meta(ge=-1, le=UNIT_MAX)]
Multiplier = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Serving(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The HTTP server and its limits.

    Each of the ``apis`` has a prefix; one of the prefixes may be empty. ``public_url`` replaces
    the URL of the request in links. ``tls_cert`` and ``tls_key`` enable TLS; ``tls_client_ca``
    also requires client certificates signed by that CA. ``X-Forwarded-For`` is accepted only from
    the networks in ``trusted_proxies``.

    ``image_bytes_max`` limits uploads of images, which are measured and not stored.
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
    apis: tuple[str, ...] = ("identity", "placement", "compute", "image", "reservation")
    identity_prefix: str = "/identity"
    placement_prefix: str = "/placement"
    compute_prefix: str = "/compute"
    image_prefix: str = "/image"
    reservation_prefix: str = "/reservation"
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
    file in that directory. ``database_is_shared`` says whether other processes use the same
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

    ``auth`` is ``none`` (the token itself names the caller), ``builtin`` (the Identity API of
    this service) or ``keystone``. With ``keystone``, the Keystone at ``keystone_url`` validates
    tokens, and this service logs in to it as ``keystone_user``.

    Without ``enforce_new_defaults``, the legacy defaults of policy rules also grant access.
    Without ``enforce_scope``, rules about projects also accept tokens for the whole system. After
    ``login_failures_free`` failed logins in a row, each further attempt must wait. The wait
    doubles every time, up to ``login_wait_max_s``.
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


DecisionWish = Literal["off", "brief", "full"]
"""How much of a decision's explanation is stored with a server."""
RecordWish = Literal["none", "failed", "all"]
"""Which decisions are recorded in files."""


class Scheduling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scheduler. Higher weights win.

    Drivers, filters, weighers and sets of weighers are given by their names in the catalogues.
    Plugins are given as ``package.module:name``. ``build_attempts_max`` includes the first
    attempt. ``explain_decisions`` controls how much of an explanation is stored with a server.
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
    explain_decisions: DecisionWish = "brief"
    record_decisions: RecordWish = "none"
    recordings_max: Many = 100
    claim_attempts_max: Few = 10
    servers_per_request_max: Many = 1000
    cpu_allocation_ratio: Ratio = 4.0
    ram_allocation_ratio: Ratio = 1.0
    disk_allocation_ratio: Ratio = 1.0


class Computing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Default quotas (-1 is unlimited), timeouts of agents, and server actions.

    A shelved server keeps its host for ``shelved_offload_time`` seconds; -1 is forever.
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


class Dedicating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Dedicated hosts.

    The default quotas of a project are ``quota_pcloud_units`` units of hosts and
    ``quota_pclouds`` pclouds, each shared with ``quota_pcloud_projects`` projects; -1 is
    unlimited. An allocation tries up to ``host_allocation_attempts`` free hosts. With
    ``show_free_hosts``, all users may see the number of free hosts by host flavor and
    availability zone. Actions on pclouds are kept for ``pcloud_actions_kept_days``; 0 is forever.
    """

    quota_pcloud_units: Quota = 10
    quota_pclouds: Quota = 10
    quota_pcloud_projects: Quota = 100
    host_allocation_attempts: Few = 5
    show_free_hosts: bool = True
    pcloud_actions_kept_days: Days = 90


class Zoning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of this zone, and the keys of its build plans.

    The first ``build_plan_encryption_key`` seals entries, and every key opens entries. Without a
    key, this zone makes no plans for other zones. Entries expire after ``build_plan_lifetime_s``.
    """

    zone_name: str = "nova"
    build_plan_encryption_key: tuple[str, ...] = ()
    build_plan_lifetime_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 600.0


class Placing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Search for allocation candidates, and retries. The names are those of OpenStack's Placement.

    A search stops at ``max_allocation_candidates``. ``depth-first`` returns all candidates of one
    tree before those of the next. ``breadth-first`` returns one candidate of each tree in turn.
    ``allocation_conflict_retry_count`` includes the first attempt.
    """

    max_allocation_candidates: Many = 100_000
    allocation_candidates_generation_strategy: Literal["depth-first", "breadth-first"] = (
        "breadth-first"
    )
    randomize_allocation_candidates: bool = False
    allocation_conflict_retry_count: Few = 10


class Settings(msgspec.Struct, frozen=True):
    """All settings. Each key belongs to exactly one slice."""

    serving: Serving = Serving()
    storing: Storing = Storing()
    authenticating: Authenticating = Authenticating()
    scheduling: Scheduling = Scheduling()
    placing: Placing = Placing()
    computing: Computing = Computing()
    dedicating: Dedicating = Dedicating()
    zoning: Zoning = Zoning()

    @property
    def is_one_of_several(self) -> bool:
        """Whether other processes may write rows that this one caches.

        By default, a database server counts as shared, and a database file does not.
        """
        is_shared = self.storing.database_is_shared
        if is_shared is None:
            is_shared = not self.storing.is_file
        return is_shared or self.serving.workers > 1


SLICES: dict[str, type[msgspec.Struct]] = {
    field.name: type(field.default) for field in msgspec.structs.fields(Settings)
}
