"""The settings as the rooms are handed them: typed slices, without a trace of files.

``innkeeper.settings`` reads them, ``wiring`` hands them down; whoever needs some takes their
slice as a value.

Always true: every number has a least and a greatest value, which refuses ``nan`` as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from innkeeper.domain.amounts import UNIT_MAX

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
YEAR_S = 366 * 24 * 3600
Seconds = Annotated[float, msgspec.Meta(gt=0, le=YEAR_S)]
"""More than a year is a slip of the pen, and sooner or later more than a clock can show."""
Days = Annotated[int, msgspec.Meta(ge=0, le=100 * 366)]
"""How long something is kept; without an end where that is 0."""
FEW_MAX = 1000
MANY_MAX = 1_000_000
Few = Annotated[int, msgspec.Meta(ge=1, le=FEW_MAX)]
"""Threads, and how often something is tried."""
Many = Annotated[int, msgspec.Meta(ge=1, le=MANY_MAX)]
"""Rows, hosts, servers and files: more than this is more than there are."""
Bytes = Annotated[int, msgspec.Meta(ge=1, le=2**30)]
"""Of something that is held in memory."""
Quota = Annotated[int, msgspec.Meta(ge=-1, le=UNIT_MAX)]
Multiplier = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Serving(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the service is reached, and what it accepts.

    ``apis`` names the APIs to serve; each has a prefix, which may be empty for one of them.
    ``public_url`` is the address that clients use, where it is not the one they called.
    With ``tls_cert`` and ``tls_key`` TLS is spoken, and with ``tls_client_ca`` to those only
    who have a certificate of that authority. ``trusted_proxies`` are the networks of whoever
    may say, in ``X-Forwarded-For``, for whom they call.
    ``image_bytes_max`` is for uploads of images, which are measured and not kept; every other
    body ends at ``body_bytes_max``. ``requests_max``, ``bodies_bytes_max`` and
    ``connections_max`` bound what one process holds at a time. ``client_timeout_s`` is for the
    head of a request, and for each wait for more of a body. ``cors_allowed_origins`` opens the
    APIs to pages of these origins; the settings beside it say how. With several ``workers``, so
    many processes serve the same port; one that does nothing for ``worker_timeout_s`` is killed
    and started again.
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
    """Where the store is. Without ``database_url`` it is a SQLite file in ``data_dir``; without
    ``encryption_key_file`` that one lies there too. ``database_is_shared`` says whether other
    processes serve the same database. ``busy_timeout_s`` is how long the database is waited
    for; a transaction in which a process has asked nothing for ``idle_timeout_s`` is ended by
    the database's server. A start waits ``database_wait_s`` for a database that is not there.
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
        """Whether the database is a file of this machine."""
        return self.database_url is None or self.database_url.startswith("sqlite")


class Authenticating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who is believed.

    ``auth`` is ``none`` (the token itself names the caller), ``builtin`` (the Identity API of
    this service) or ``keystone`` (tokens are validated by a Keystone at ``keystone_url``,
    asked as ``keystone_user``). Without ``enforce_new_defaults`` the legacy defaults of policy
    rules let in as well, and without ``enforce_scope`` a token for the whole system does.
    After ``login_failures_free`` wrong passwords in a row, the next attempt has to wait, each
    time twice as long, up to ``login_wait_max_s``.
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
"""How much is kept with a server of what the scheduler thought of it."""
RecordWish = Literal["none", "failed", "all"]
"""Which decisions are written into files."""


class Scheduling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How hosts are chosen; higher weights win.

    ``scheduler_driver``, filters and weighers are named as the catalogues name them, or as
    ``package.module:name`` where they are one's own; a set of weighers goes by its name.
    ``weigher_multipliers`` weigh the weighers, ``capability_multipliers`` what agents report.
    ``build_attempts_max`` counts the first attempt too. ``explain_decisions`` is about what is
    kept with servers, ``record_decisions`` about files from which decisions can be replayed.
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
    """Quotas' defaults (-1 is without limit), how agents are listened to, and what may be done
    to servers.

    A shelved server keeps its host for ``shelved_offload_time`` seconds; with -1 for good.
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
    """How whole hosts are given to projects.

    A project may hold ``quota_pcloud_units`` units of hosts unless it has a quota of its own,
    own ``quota_pclouds`` pclouds, and let ``quota_pcloud_projects`` projects into each (-1 is
    without limit). ``host_allocation_attempts`` is how many free hosts are tried for one
    that is wanted. With ``show_free_hosts`` everybody may see how many are left, by host flavor
    and availability zone. What was done to pclouds can be read for
    ``pcloud_actions_kept_days``; with 0 for good.
    """

    quota_pcloud_units: Quota = 10
    quota_pclouds: Quota = 10
    quota_pcloud_projects: Quota = 100
    host_allocation_attempts: Few = 5
    show_free_hosts: bool = True
    pcloud_actions_kept_days: Days = 90


class Zoning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What this zone is called, and how the entries of its build plans are sealed.

    The first of ``build_plan_encryption_key`` seals, all of them open; without any, no plans
    are made for others. An entry can be carried out for ``build_plan_lifetime_s``.
    """

    zone_name: str = "nova"
    build_plan_encryption_key: tuple[str, ...] = ()
    build_plan_lifetime_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 600.0


class Placing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How allocation candidates are searched for, and allocations written; names are those of
    OpenStack's Placement.

    A search ends at ``max_allocation_candidates``. ``depth-first`` takes all that one tree
    gives before it looks at the next, ``breadth-first`` one of each tree before the second of
    any. ``allocation_conflict_retry_count`` counts the first attempt too.
    """

    max_allocation_candidates: Many = 100_000
    allocation_candidates_generation_strategy: Literal["depth-first", "breadth-first"] = (
        "breadth-first"
    )
    randomize_allocation_candidates: bool = False
    allocation_conflict_retry_count: Few = 10


class Settings(msgspec.Struct, frozen=True):
    """All settings, by slice. Each key belongs to exactly one slice."""

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
        """Whether other processes write what this one remembers.

        Unless it is said, a database server is there for several, and a file for one.
        """
        said = self.storing.database_is_shared
        if said is not None:
            return said or self.serving.workers > 1
        return self.serving.workers > 1 or not self.storing.is_file


SLICES: dict[str, type[msgspec.Struct]] = {
    "serving": Serving,
    "storing": Storing,
    "authenticating": Authenticating,
    "scheduling": Scheduling,
    "placing": Placing,
    "computing": Computing,
    "dedicating": Dedicating,
    "zoning": Zoning,
}
