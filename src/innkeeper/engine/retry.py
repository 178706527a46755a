"""The table of the service's retries: what is retried, where and how often, and what follows.

Always true: if a client waits for a retry, the attempts are limited in number or in time. Work is
retried only if the previous attempt was rolled back, or after the outcome of that attempt was
looked up. Pauses are randomized, so that processes that failed together do not retry together.

Modules read their limits from the rows of the table. Modules in lower layers cannot import the
table, so they define the same limits again. A test compares the two definitions. Clients of the
service (the agent, the import of another Placement) have their own retries, which are not in the
table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from innkeeper.clients.pods import PodSilent
from innkeeper.domain.door import PodRefused
from innkeeper.domain.errors import (
    Busy,
    Collided,
    ConcurrentUpdate,
    Conflict,
    Doubtful,
    NotFound,
    Overtaken,
    ProviderChanged,
    Refusal,
    Unanswered,
    Unreachable,
)
from innkeeper.engine.retry_rows import Retry, Setting
from innkeeper.systems.compute.boot.entries import EntryStale
from innkeeper.systems.pods.pod_groups import GroupElsewhere

LOG = structlog.get_logger("innkeeper.decisions")
T = TypeVar("T")

BINDING_ATTEMPTS_MAX = 4
"""The maximum number of attempts of a write that may conflict with another write for the same
project, such as a binding to a pod. Two such writes at once are rare, and the second one finds the
first one's binding."""
GROUP_ATTEMPTS_MAX, GROUP_PAUSE_S = 40, 0.25
"""Attempts to create a server of a group while another request creates the group's first server in
another pod. With the maximum number of attempts, the pauses add up to about ten seconds. This is
enough, because a pod that refuses a server usually does so at once."""
PODS_MAX = 10
"""The maximum number of pods that are asked for one create, one after the other. Each pod may take
seconds, and clients wait for about a minute. Even two refusals are rare, because pods that are
known to be full are not asked."""
LOOK_UPS_MAX = 3
"""The maximum number of times that a boot is looked up after a commit that was not acknowledged."""
FORWARDS_MAX, FORWARD_WITHIN_S = 2, 30.0
"""A boot is forwarded at most ``FORWARDS_MAX`` times, and then carried out in the process that
received it. After ``FORWARD_WITHIN_S`` seconds, the boot is not forwarded again, because its client
may have given up."""
REPEAT_WITHIN_S = 3.0
"""A batch is not retried after this time, because other commands wait for the writer thread."""
CAUSE = "Another thread concurrently updated the resource provider data. Please retry your update"
"""Placement clients recognize by this text that they should retry after a conflict."""

# -- a conflict with another writer ------------------------------------------------------------

CLAIM = Retry(
    errors=(ProviderChanged,),
    happened="a host changed after the plan had read the host",
    repeated="the read, the plan and the claim, in the same transaction",
    where=("systems/compute/boot/boot.py",),
    attempts_max=Setting("claim_attempts_max", lambda it: it.scheduling.claim_attempts_max),
    answer="409: The chosen hosts kept changing; trying again may help.",
)
ALLOCATIONS = Retry(
    errors=(Overtaken,),
    happened="another writer changed a provider between the read and the write",
    repeated="the whole write of allocations, in a transaction of its own",
    where=("entrypoints/api/placement/allocations.py",),
    attempts_max=Setting(
        "allocation_conflict_retry_count", lambda it: it.placing.allocation_conflict_retry_count
    ),
    answer="Inventory and/or allocations changed while attempting to allocate: " + CAUSE,
)
RESHAPE = Retry(
    errors=(Overtaken,),
    happened="another writer changed a provider between the read and the write",
    repeated="the whole reshape, in a transaction of its own",
    where=("entrypoints/api/placement/allocations.py",),
    attempts_max=ALLOCATIONS.attempts_max,
    answer="update conflict: " + CAUSE,
)
WHOLE_HOSTS = Retry(
    errors=(Overtaken,),
    happened="another writer changed a host between the read and the write",
    repeated="the whole action on pclouds, host flavors, aggregates or leases, in a transaction "
    "of its own",
    where=(
        "entrypoints/api/pclouds",
        "entrypoints/api/compute/grouping/aggregates.py",
        "entrypoints/api/leases",
    ),
    # This is also the default for allocations. It is not a setting, because after this many
    # conflicts more attempts do not help.
    attempts_max=10,
    answer="Other requests changed the same hosts during each attempt. This request changed "
    "nothing. Repeat the request.",
)
BINDINGS = Retry(
    errors=(Overtaken,),
    happened="another writer changed the same project's bindings to pods, or the same routings",
    repeated="the write, and the choice of the pod if the write needs one, in a transaction of its "
    "own",
    where=(
        "engine/pods/clouds.py",
        "engine/pods/creating.py",
        "engine/pods/group_provisioning.py",
        "engine/pods/volume_parts.py",
        "entrypoints/api/pods/bindings.py",
    ),
    attempts_max=BINDING_ATTEMPTS_MAX,
    answer="Other requests kept changing the bindings of the project. Repeat the request.",
)
SERVER_GROUPS = Retry(
    errors=(GroupElsewhere,),
    happened="another request began to make the first server of the same server group in "
    "another pod",
    repeated="the plan, the choice of the pod and the request to the pod",
    where=("engine/pods/creating.py",),
    # The other pod may also refuse the group's first server. The group then goes to the next pod.
    attempts_max=GROUP_ATTEMPTS_MAX,
    pauses_s=(GROUP_PAUSE_S,),
    answer="409: The servers of a server group must be in one pod.",
)
VOLUMES = Retry(
    errors=(Overtaken,),
    happened="another writer changed a pool between the read and the write",
    repeated="the choice of the pool and the claim, in a transaction of its own",
    where=("entrypoints/api/volumes", "entrypoints/api/compute/servers/devices.py"),
    attempts_max=10,
    answer="Other requests changed the chosen pools during each attempt. This request changed "
    "nothing. Repeat the request.",
)
ALL_ELSE = Retry(
    errors=(Overtaken, ConcurrentUpdate),
    happened="another writer committed first, or the client sent an outdated generation",
    repeated="nothing; the client must read again and decide",
    where=("systems",),
    attempts_max=1,
    answer="409, with the reason",
)

# -- another host, zone or pod -------------------------------------------------------------------

BUILD = Retry(
    errors=(Exception,),
    happened="an agent failed to build a server, or did not report the result in time",
    repeated="the order to build the server, at the next alternate host",
    where=("systems/compute/servers/builds.py",),
    attempts_max=Setting("build_attempts_max", lambda it: it.scheduling.build_attempts_max),
    answer="none; the server is in ERROR",
)
ZONES = Retry(
    errors=(EntryStale, Conflict),
    happened="a zone did not build its servers of a plan, since the chosen hosts were taken",
    repeated="the plan, and the missing builds",
    where=("engine/zones/booting.py",),
    attempts_max=Setting("zone_boot_attempts_max", lambda it: it.zoning.zone_boot_attempts_max),
    answer="the same as if no host was found",
)
PODS = Retry(
    errors=(PodRefused,),
    happened="a pod refused a create for a reason that another pod may not have",
    repeated="the choice among the other pods, and the create",
    where=("engine/pods/creating.py",),
    attempts_max=PODS_MAX,
    answer="the refusal of the first pod; administrators get the reason of each pod",
)
LOST_PARTS = Retry(
    errors=(PodRefused,),
    happened="a pod refused a create, since it had lost a flavor, volume type, key pair or image",
    repeated="the create, after the lost parts were made again in the pod",
    where=("engine/pods/creating.py",),
    attempts_max=2,
    answer="the refusal of the pod",
)
UNSETTLED = Retry(
    errors=(NotFound,),
    happened="a resource is unknown, and a pod that may have made it did not answer earlier",
    repeated="the request, after the pod was asked again",
    where=("entrypoints/api/pods/door/forwarding.py",),
    attempts_max=2,
    answer="404, or 503 if the pod does not answer",
)

# -- the database ------------------------------------------------------------------------------

PASSING = Retry(
    errors=(Collided, Unreachable),
    happened="the transaction conflicted with another one, or the connection was lost before the "
    "commit was sent; nothing was changed",
    repeated="the whole batch, or the read, on another connection",
    where=("engine/batches.py", "engine/readers.py"),
    attempts_max=4,
    within_s=REPEAT_WITHIN_S,
    # After these pauses, a conflict has usually ended, and a dead connection is replaced. A
    # fail-over of the database takes longer. Then the client gets a 503, and should retry.
    pauses_s=(0.05, 0.2, 0.6),
    answer="503",
)
WAITED = Retry(
    errors=(Busy,),
    happened="other writers held the lock for busy_timeout_s",
    repeated="nothing, because each command alone would wait just as long",
    where=("engine/batches.py",),
    attempts_max=1,
    answer="503",
)
ONE_BY_ONE = Retry(
    errors=(Exception,),
    happened="a batch failed for another reason, such as a full disk or a defect in one of its "
    "commands; nothing was changed",
    repeated="each command alone, until a command finds the database unreachable or busy",
    where=("engine/batches.py",),
    attempts_max=2,
    answer="500 or 503, with the error of this command",
)
DOUBT = Retry(
    errors=(Doubtful,),
    happened="the connection was lost after the commit was sent",
    repeated="boots, which are first looked up by the ids of their servers; no other command",
    where=("engine/batches.py",),
    attempts_max=1 + LOOK_UPS_MAX,
    answer="503, which says that the outcome is unknown",
)
UNANSWERED = Retry(
    errors=(Unanswered,),
    happened="the leader did not answer a request that was forwarded to it",
    repeated="boots, which are first looked up by the ids of their servers; no other request",
    where=("entrypoints/api/leader_calls.py",),
    attempts_max=FORWARDS_MAX + 1,
    within_s=FORWARD_WITHIN_S,
    answer="503, which says that the request may have been carried out",
)
NEXT_TURN = Retry(
    errors=(Refusal,),
    happened="a periodic task failed for a reason in another row of this table",
    repeated="the task at its next turn, since its work is still due",
    where=("engine/periodic.py", "engine/leases/healing.py"),
    pauses_s=(10.0,),
    answer="none; the refusal is logged",
)
POD_CHECK = Retry(
    errors=(PodSilent,),
    happened="a pod did not answer while its resources were compared with the routings",
    repeated="the comparison",
    where=("engine/pods/reconciling.py",),
    pauses_s=(60.0,),
    answer="none; the failure is logged",
)
ORDER_LOOK = Retry(
    errors=(Refusal,),
    happened="a query for orders that other processes wrote failed",
    repeated="the query",
    where=("engine/order_watch.py",),
    pauses_s=(2.0,),
    answer="none; the refusal is logged",
)
ELECTION = Retry(
    errors=(Refusal,),
    happened="a query for the leader failed, or the leader could not renew its term",
    repeated="the step of the election",
    where=("engine/leader/election.py",),
    pauses_s=(1.0,),
    answer="none; the first refusal is logged",
)
LEADER_LINK = Retry(
    errors=(OSError, TimeoutError, ValueError),
    happened="the leader could not be reached, or the connection to it was lost",
    repeated="the connection",
    where=("engine/leader/link.py",),
    pauses_s=(0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    answer="none; until the leader is reached, this process writes to the database itself",
)
LEASE_EVENT = Retry(
    errors=(Exception,),
    happened="an event of a lease failed for an unexpected reason; nothing was changed",
    repeated="the step that failed; other leases are not affected",
    where=("engine/leases/events.py",),
    # This number excludes the first attempt.
    attempts_max=Setting("lease_event_retries_max", lambda it: it.leasing.lease_event_retries_max),
    pauses_s=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0),
    answer="none; the lease is ERROR, and can be deleted",
)
WEBHOOK = Retry(
    errors=(Exception,),
    happened="the webhook did not accept a notification about a lease",
    repeated="the post, with the same id",
    where=("engine/leases/webhook.py", "systems/leases/notifications.py"),
    attempts_max=20,
    pauses_s=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 600.0),
    answer="none; the notification is dropped, and the loss is logged",
)

# -- a start -----------------------------------------------------------------------------------

START = Retry(
    errors=(Unreachable, Busy, Doubtful),
    happened="the database was unreachable when a service started",
    repeated="the step of the start, after a check whether it is already done",
    where=("entrypoints/worker/database_wait.py",),
    within_s=Setting("database_wait_s", lambda it: it.storing.database_wait_s),
    pauses_s=(0.25, 0.5, 1.0, 2.0, 4.0, 5.0),
    answer="the program ends with status 3",
)
START_ON_FILE = Retry(
    # Waiting does not help if the file cannot be opened, or if the disk is full.
    errors=(Busy,),
    happened="another process had locked the database file when a service started",
    repeated=START.repeated,
    where=START.where,
    within_s=START.within_s,
    pauses_s=START.pauses_s,
    answer=START.answer,
)
UPGRADE = Retry(
    errors=(Busy,),
    happened="another program was upgrading the schema",
    repeated="the check whether the upgrade has ended",
    where=("store/schema.py",),
    within_s=600.0,
    pauses_s=(0.2, 0.4, 0.8, 1.6, 3.2, 5.0),
    answer="the program ends with a message",
)
GALERA_WRITER = Retry(
    errors=(Unreachable,),
    happened="several programs chose different Galera nodes as the writer at the same time",
    repeated="the search for the writer",
    where=("store/backends/galera.py",),
    attempts_max=3,
    answer="as for any unreachable database",
)

TABLE = (
    CLAIM,
    ALLOCATIONS,
    RESHAPE,
    WHOLE_HOSTS,
    BINDINGS,
    SERVER_GROUPS,
    VOLUMES,
    ALL_ELSE,
    BUILD,
    ZONES,
    PODS,
    LOST_PARTS,
    UNSETTLED,
    PASSING,
    WAITED,
    ONE_BY_ONE,
    DOUBT,
    UNANSWERED,
    NEXT_TURN,
    POD_CHECK,
    ORDER_LOOK,
    ELECTION,
    LEADER_LINK,
    LEASE_EVENT,
    WEBHOOK,
    START,
    START_ON_FILE,
    UPGRADE,
    GALERA_WRITER,
)


async def again(attempt: Callable[[], Awaitable[T]], retry: Retry, attempts_max: int) -> T:
    """Await ``attempt``, and repeat it as long as it raises one of the errors of ``retry``.

    Each attempt must be a command of its own, which reads the store again. A failed attempt is
    rolled back. Raises :class:`ConcurrentUpdate` with the answer of ``retry`` after
    ``attempts_max`` failed attempts.
    """
    for _ in range(attempts_max):
        try:
            return await attempt()
        except retry.errors as error:
            LOG.info("write_overtaken", cause=str(error))
    LOG.warning("write_given_up", attempts=attempts_max)
    raise ConcurrentUpdate(retry.answer)
