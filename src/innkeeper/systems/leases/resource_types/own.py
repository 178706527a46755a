"""Catch failures of an operator's own resource types, and store the resolved demands.

Always true: the demand of a reservation is stored with the reservation. So leases are moved,
healed, ended and deleted without a call of the operator's own type, even if the type fails or no
longer exists.

If ``resolve`` or ``changed`` fails, :class:`PluginFailed` is raised, and nothing is written. If
``shown`` fails, the failure is logged, and the stored parameters are shown instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.errors import Conflict, Invalid, PluginFailed, Refusal
from innkeeper.domain.leases import UNITS_MAX, Demand, Reservation, ReservationState
from innkeeper.scheduling.leases import requirements
from innkeeper.store.transactions import DATABASE_ERRORS, Tx
from innkeeper.systems.compute.boot import plugins
from innkeeper.systems.compute.boot.plugins import WrongAnswer
from innkeeper.systems.leases import capabilities
from innkeeper.systems.leases.resource_types.resource_type import (
    SHOWN_MAX,
    OwnType,
    ResolvedDemand,
    with_numbers,
)
from innkeeper.systems.leases.resource_types.slots import made

NOUN = "resource type"
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:-]{0,63}")
CLASS = re.compile(r"[A-Z0-9_]{1,255}")
OWN = "own"
"""The name of the stored parameter that contains the parameters of the operator's own type."""
PARAMETERS_MAX = 16_384
"""The maximum number of characters of a reservation's parameters, as JSON."""
PASSED_ON = (Refusal, *DATABASE_ERRORS)
"""Errors by which a type rejects a request. They do not count as failures of the type."""
SHAPE_FIXED = "The units of an active reservation cannot be changed."
TRIAL_ID = "00000000-0000-0000-0000-000000000000"


class GuardedType:
    """An operator's own resource type. Each call and each result is checked."""

    def __init__(self, own: OwnType) -> None:
        self.NAME = str(own.NAME)
        self.EXAMPLE = own.EXAMPLE
        self._own = own
        self._guard = plugins.Guard(NOUN, self.NAME, PASSED_ON)

    def resolve(self, tx: Tx, given: Mapping[str, Any], project_id: str) -> ResolvedDemand:
        """Convert a request to a demand. Raises :class:`PluginFailed` if the type fails."""
        with self._guard:
            return _kept(_checked("resolve", self._own.resolve(tx, given, project_id)))

    def changed(
        self, tx: Tx, reservation: Reservation, given: Mapping[str, Any], project_id: str
    ) -> ResolvedDemand:
        """Return the demand of a reservation after a change.

        Raises :class:`PluginFailed` if the type fails. Raises :class:`Conflict` if the change would
        alter the units of an active reservation.
        """
        present = stored(reservation)
        if not given:
            return present
        with self._guard:
            found = self._own.changed(tx, _unpacked(reservation), given, project_id)
            result = _kept(_checked("changed", found))
        if reservation.is_live and _shape(result.demand) != _shape(present.demand):
            raise Conflict(SHAPE_FIXED)
        return result

    def shown(self, reservation: Reservation) -> Mapping[str, Any]:
        """Return the keys that this type adds to a response.

        If the type fails, return the stored parameters.
        """
        try:
            with self._guard:
                found = _plain("shown", self._own.shown(_unpacked(reservation)))
        except PluginFailed as failure:
            # The API and notifications must be able to show the lease even if the type fails.
            plugins.log(failure)
            return _stored_parameters(reservation)
        return {**found, **_made(reservation)}

    def queried(self, query: Mapping[str, str], amount: int | None) -> Mapping[str, Any]:
        """Convert a query about availability to the parameters of a request.

        If the type has no such method, digits are converted to numbers.
        """
        convert = getattr(self._own, "queried", None)
        if convert is None:
            found = with_numbers(query, query)
            return found if amount is None else {**found, "amount": amount}
        with self._guard:
            return _plain("queried", convert(query, amount))


class UnloadedType:
    """A type of existing reservations that is no longer in the settings."""

    EXAMPLE: Mapping[str, Any] = {}

    def __init__(self, name: str) -> None:
        self.NAME = name

    def resolve(self, tx: Tx, given: Mapping[str, Any], project_id: str) -> ResolvedDemand:
        """Raise :class:`Invalid`, because the type is not loaded."""
        raise not_supported(self.NAME)

    def changed(
        self, tx: Tx, reservation: Reservation, given: Mapping[str, Any], project_id: str
    ) -> ResolvedDemand:
        """Return the stored demand. Raises :class:`Invalid` if parameters are changed."""
        if given:
            raise not_supported(self.NAME)
        return stored(reservation)

    def shown(self, reservation: Reservation) -> Mapping[str, Any]:
        """Return the stored parameters."""
        return _stored_parameters(reservation)

    def queried(self, query: Mapping[str, str], amount: int | None) -> Mapping[str, Any]:
        """Raise :class:`Invalid`, because the type is not loaded."""
        raise not_supported(self.NAME)


def not_supported(name: object) -> Invalid:
    """Return the error for a resource type that does not exist, or is not loaded."""
    return Invalid(f"The {str(name)[:SHOWN_MAX]} resource type is not supported")


def stored(reservation: Reservation) -> ResolvedDemand:
    """Return the stored demand of a reservation."""
    required = tuple(each for each in capabilities.texts(reservation.parameters) if each)
    demand = Demand(
        reservation.units_min,
        reservation.units_max,
        reservation.unit_amounts,
        reservation.affinity,
        required,
    )
    return ResolvedDemand(demand, reservation.parameters)


def _kept(found: ResolvedDemand) -> ResolvedDemand:
    """Return a demand with the parameters to store. They include the requirements of the demand."""
    kept = {capabilities.OF_FLAVORS: list(found.demand.requirements), OWN: found.parameters}
    return ResolvedDemand(found.demand, kept)


def _unpacked(reservation: Reservation) -> Reservation:
    """Return a reservation with only the parameters that the operator's type has returned."""
    return msgspec.structs.replace(reservation, parameters=reservation.parameters.get(OWN, {}))


def _stored_parameters(reservation: Reservation) -> Mapping[str, Any]:
    parameters = reservation.parameters.get(OWN, reservation.parameters)
    return {**parameters, **_made(reservation)}


def _made(reservation: Reservation) -> Mapping[str, Any]:
    return {} if reservation.is_whole else made(reservation)


def _shape(demand: Demand) -> tuple[dict[str, int] | None, bool | None]:
    amounts = demand.unit_amounts
    return None if amounts is None else dict(amounts), demand.affinity


# -- answers -----------------------------------------------------------------------------------


def _checked(method: str, found: Any) -> ResolvedDemand:
    """Return the result of a method of the operator's type, after checks.

    Raises :class:`WrongAnswer` for a wrong result. Raises :class:`Invalid` for malformed
    requirements, because they may come from the client.
    """
    if not isinstance(found, ResolvedDemand) or not isinstance(found.demand, Demand):
        raise WrongAnswer(f"{method} returned {type(found).__name__}, not a demand")
    demand = found.demand
    wrong = [name for name, is_right in _facts(demand).items() if not is_right]
    if wrong:
        raise WrongAnswer(f"{method} returned a demand with a wrong {wrong[0]}")
    for text in demand.requirements:
        requirements.parse(text)
    amounts = None if demand.unit_amounts is None else dict(demand.unit_amounts)
    demand = replace(demand, unit_amounts=amounts, requirements=tuple(demand.requirements))
    return ResolvedDemand(demand, _plain(method, found.parameters))


def _facts(demand: Any) -> dict[str, bool]:
    """Return whether each field of a demand is valid, by the field's name."""
    least, most, amounts = demand.units_min, demand.units_max, demand.unit_amounts
    return {
        "units_min": _is_whole(least, UNITS_MAX),
        "units_max": _is_whole(most, UNITS_MAX) and _is_whole(least, most),
        "unit_amounts": amounts is None or _are_amounts(amounts),
        "affinity": demand.affinity is None
        or (isinstance(demand.affinity, bool) and amounts is not None),
        "requirements": isinstance(demand.requirements, tuple | list)
        and all(isinstance(each, str) for each in demand.requirements),
    }


def _are_amounts(amounts: Any) -> bool:
    if not isinstance(amounts, Mapping) or not amounts:
        return False
    return all(
        isinstance(name, str) and CLASS.fullmatch(name) and _is_whole(amount, UNIT_MAX)
        for name, amount in amounts.items()
    )


def _is_whole(given: Any, most: int) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= most


def _plain(method: str, found: Any) -> Mapping[str, Any]:
    """Return a mapping after a conversion to JSON and back. Raises :class:`WrongAnswer`."""
    if not isinstance(found, Mapping) or not all(isinstance(each, str) for each in found):
        raise WrongAnswer(f"{method} returned {type(found).__name__}, not parameters by name")
    text = json.dumps(dict(found), allow_nan=False)
    if len(text) > PARAMETERS_MAX:
        raise WrongAnswer(f"{method} returned more than {PARAMETERS_MAX} characters of parameters")
    plain: Mapping[str, Any] = json.loads(text)
    return plain


# -- at start ----------------------------------------------------------------------------------


def why_unusable(tx: Tx, own: Any) -> str | None:
    """Return why a resource type cannot be used, or ``None`` if the type is usable.

    The methods of the type are called with the type's ``EXAMPLE``. A refusal is allowed, but any
    other error makes the type unusable. The result continues a sentence that begins with the type's
    name.
    """
    if not isinstance(own.NAME, str) or not NAME.fullmatch(own.NAME):
        return "has a NAME that is not a text of at most 64 letters, digits and . _ : -"
    if not isinstance(own.EXAMPLE, Mapping) or not own.EXAMPLE:
        return "has no EXAMPLE with the parameters of a request"
    try:
        _try(tx, own)
    except PluginFailed as failure:
        return f"fails on its EXAMPLE ({failure.why})"
    return None


def _try(tx: Tx, own: OwnType) -> None:
    guarded = GuardedType(own)
    try:
        found = guarded.resolve(tx, own.EXAMPLE, "project")
        reservation = _trial(guarded.NAME, found)
        guarded.changed(tx, reservation, own.EXAMPLE, "project")
    except Refusal as refusal:
        if isinstance(refusal, PluginFailed):
            raise
        return
    with plugins.Guard(NOUN, guarded.NAME):
        _plain("shown", own.shown(_unpacked(reservation)))


def _trial(name: str, found: ResolvedDemand) -> Reservation:
    demand = found.demand
    return Reservation(
        id=0,
        uuid=TRIAL_ID,
        resource_type=name,
        state=ReservationState.PENDING,
        units_min=demand.units_min,
        units_max=demand.units_max,
        unit_amounts=demand.unit_amounts,
        affinity=demand.affinity,
        parameters=found.parameters,
        is_missing=False,
        is_changed=False,
        aggregate_id=None,
        group_uuid=None,
        created_at=datetime.min,  # noqa: DTZ901 - naive and in UTC, like all times of the core
        updated_at=datetime.min,  # noqa: DTZ901
    )
