"""Read the scheduler hints of creates at a door (gateway to pods).

Always true: a create that must be beside a server or volume goes to the pod of that server or
volume. Hints to stay apart from resources in other pods are not sent, because the new resource is
apart from them anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from innkeeper.domain.door import SERVER, VOLUME, DoorCaller, DoorRequest, Json, object_of
from innkeeper.domain.errors import Invalid, NotFound
from innkeeper.store.transactions import Tx
from innkeeper.systems.pods import routings

SERVER_KEYS = ("os:scheduler_hints", "OS-SCH-HNT:scheduler_hints")
VOLUME_KEY, INNER_KEY = "OS-SCH-HNT:scheduler_hints", "scheduler_hints"
BESIDE, APART = "same_host", "different_host"
BESIDE_SERVER = "local_to_instance"
"""The hint of the Block Storage API that names the server that a volume should be near."""
NAMED_MAX = 100
"""The maximum number of resources that the hints of a create may name. It is limited because each
resource is looked up."""
NOWHERE = 0
"""A row id that no pod has."""


@dataclass(frozen=True, slots=True)
class Hinted:
    """The resources that hints name, by the row ids of their pods.

    ``homes`` has the pods of the resources that the new resource must be beside. ``places`` has the
    pods of the resources that the new resource should be apart from, by the resources' ids.
    """

    homes: frozenset[int] = frozenset()
    places: Mapping[str, int] = field(default_factory=dict)
    names_server: bool = False


def key_of(body: Mapping[str, Json]) -> str | None:
    """Return the key of the hints in the body of a server, or ``None`` if there are no hints."""
    return next((key for key in SERVER_KEYS if isinstance(body.get(key), Mapping)), None)


def group_of(body: Mapping[str, Json]) -> str | None:
    """Return the id of the server group that a body names. A list of ids is accepted, too."""
    key = key_of(body)
    wanted = None if key is None else object_of(body[key]).get("group")
    if isinstance(wanted, list):
        wanted = wanted[0] if wanted else None
    return None if wanted is None else str(wanted)


def read(tx: Tx, request: DoorRequest) -> Hinted:
    """Return the resources that the hints of a create name.

    Raises :class:`Invalid` if a resource to be beside is unknown, or if the hints name too many.
    """
    homes: set[int] = set()
    places: dict[str, int] = {}
    names_server = False
    for told in _told(request):
        if sum(len(_ids(told.get(each))) for each in (BESIDE, APART, BESIDE_SERVER)) > NAMED_MAX:
            raise Invalid(f"The scheduler hints name more than {NAMED_MAX} servers or volumes.")
        for uuid in _ids(told.get(BESIDE)):
            homes.add(_place(tx, request.caller, request.kind, uuid))
        for uuid in _ids(told.get(BESIDE_SERVER)) if request.kind == VOLUME else ():
            homes.add(_place(tx, request.caller, SERVER, uuid))
            names_server = True
        for uuid in _ids(told.get(APART)):
            try:
                places[uuid] = _place(tx, request.caller, request.kind, uuid)
            except Invalid:
                # The resource does not exist, so it is in no pod.
                places[uuid] = NOWHERE
    return Hinted(frozenset(homes), places, names_server)


def _told(request: DoorRequest) -> Iterator[Mapping[str, Json]]:
    body = object_of(request.body)
    if request.kind == SERVER:
        key = key_of(body)
        found = [] if key is None else [body[key]]
    else:
        found = [body.get(VOLUME_KEY), request.fields.get(INNER_KEY)]
    return (each for each in found if isinstance(each, Mapping))


def _ids(told: Json) -> Sequence[str]:
    if isinstance(told, str):
        return [told]
    return [each for each in told if isinstance(each, str)] if isinstance(told, list) else []


def _place(tx: Tx, caller: DoorCaller, kind: str, uuid: str) -> int:
    words = f"The {kind} {uuid[:64]} in the scheduler hints could not be found."
    try:
        found = routings.place_of(tx, uuid, kind)
    except NotFound as error:
        raise Invalid(words) from error
    if not caller.is_admin and found.project_id != caller.project_id:
        raise Invalid(words)
    return found.pod_id


def translated(body: Mapping[str, Json], kind: str, hinted: Hinted, pod_id: int) -> dict[str, Json]:
    """Return the body of a create, without the hints that have no meaning in a pod."""
    whole = dict(body)
    if not (hinted.places or hinted.names_server):
        return whole
    keys = SERVER_KEYS if kind == SERVER else (VOLUME_KEY,)
    for key in keys:
        told = whole.get(key)
        if isinstance(told, Mapping):
            whole[key] = _kept(told, hinted, pod_id)
    fields = object_of(whole[kind])
    inner = fields.get(INNER_KEY)
    if kind == VOLUME and isinstance(inner, Mapping):
        whole[kind] = {**fields, INNER_KEY: _kept(inner, hinted, pod_id)}
    return whole


def _kept(told: Mapping[str, Json], hinted: Hinted, pod_id: int) -> dict[str, Json]:
    kept = {name: each for name, each in told.items() if name != BESIDE_SERVER}
    if APART in kept:
        ids = [each for each in _ids(kept.pop(APART)) if hinted.places.get(each) == pod_id]
        kept |= {APART: ids} if ids else {}
    return kept
