"""The command ``audit``: tells what is broken, and repairs what can be repaired safely.

Always true: looking writes nothing. A repair looks again, in its own short transaction, which
queues as every write does; so a service may run beside it. What is tried out (``--dry-run``)
is done and undone in the same way, and tells exactly what would be done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from innkeeper.domain.auditing import Finding, Repaired
from innkeeper.domain.errors import Refusal
from innkeeper.domain.ids import Clock
from innkeeper.entrypoints.care.invariants import AT_ONCE, REPAIRS, findings
from innkeeper.store import soundness
from innkeeper.store.transactions import Store

AT_ONCE_MAX = 100
"""Findings that are repaired in one transaction, for which all other writers wait."""
ROUNDS_MAX = 3
"""What was repaired can show what else is broken, as a consumer that holds nothing any more."""
SOUND, BROKEN = 0, 1
Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of an audit."""

    is_json: bool = False
    repairs: bool = False
    is_dry: bool = False


class _Undone(Exception):
    """Ends a transaction that was only tried."""


def run(store: Store, clock: Clock, say: Say, wish: Wish) -> int:
    """Audit a database; gives the exit status. ``say`` is given the lines one by one."""
    found = look(store)
    repaired: list[Repaired] = []
    if not wish.is_json:
        _say_all(say, found)
    if wish.repairs or wish.is_dry:
        for each in mend(store, found, clock, is_dry=wish.is_dry):
            repaired.append(each)
            if not wish.is_json:
                say(f"would have {each}\n" if wish.is_dry else f"{each}\n")
        left = found if wish.is_dry else look(store)
    else:
        left = found
    if wish.is_json:
        say(_as_json(found, repaired, left))
    elif wish.repairs and not wish.is_dry:
        say(f"{len(repaired)} repairs\n")
        _say_all(say, left)
    return BROKEN if left else SOUND


def look(store: Store) -> list[Finding]:
    """All that is broken at one moment."""
    with store.read() as tx:
        soundness.expect_much(tx)
        return findings(tx)


def mend(
    store: Store,
    found: Sequence[Finding],
    clock: Clock,
    *,
    is_dry: bool = False,
) -> Iterator[Repaired]:
    """Repair what can be, and tell of each thing when it is done."""
    for _ in range(1 if is_dry else ROUNDS_MAX):
        done = 0
        for each in _mend_once(store, found, clock, is_dry=is_dry):
            done += 1
            yield each
        if not done:
            return
        found = look(store)


def _mend_once(
    store: Store, found: Sequence[Finding], clock: Clock, *, is_dry: bool
) -> Iterator[Repaired]:
    # In the order of the repairs: consumers are there again before somebody counts on them.
    for kind, repair in REPAIRS.items():
        keys = list(dict.fromkeys(e.key for e in found if e.invariant.kind == kind))
        at_once = AT_ONCE.get(kind, AT_ONCE_MAX)
        for start in range(0, len(keys), at_once):
            part = keys[start : start + at_once]
            told: list[str] = []
            # A refusal: somebody came between; or something cannot be read. It is found again,
            # and told at the end.
            with suppress(_Undone, Refusal, *soundness.UNREAD), store.write() as tx:
                told = repair(tx, part, clock())
                if is_dry:
                    raise _Undone
            yield from (Repaired(kind, text) for text in told)


def _say_all(say: Say, found: Sequence[Finding]) -> None:
    for each in found:
        say(f"{each}\n")
    say(f"{len(found)} findings\n")


def _as_json(
    found: Sequence[Finding], repaired: Sequence[Repaired], left: Sequence[Finding]
) -> str:
    return (
        json.dumps(
            {
                "findings": [each.as_mapping() for each in found],
                "repairs": [{"kind": each.kind, "text": each.text} for each in repaired],
                "left": [each.as_mapping() for each in left],
            },
            indent=2,
        )
        + "\n"
    )
