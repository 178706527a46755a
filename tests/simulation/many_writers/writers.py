"""Random clients on a few hot providers: some write, some only read.

Always true: after a request without an answer, a writer reads the consumer before it writes it
again. If that request had no generation, the writer gives the consumer up: the request might still
be carried out at any later time.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.simulation.many_writers.asking import Asking
from tests.simulation.many_writers.doors import Door
from tests.simulation.many_writers.history import ConsumerUpdate, History, Kind, Operation, Outcome

OWN = 2
"""Consumers that each writer has of its own at the same time."""
SHARED = tuple(f"00000000-0000-4000-8000-0000000000c{n}" for n in range(4))
"""Consumers that all writers write. They are never released, so their generations only grow."""
PAIR_UNITS = 4
"""The sum that the two consumers of a pair hold, on any providers."""
CLAIM_MAX = 3
SIZES = (20, 44)
"""The least and greatest totals of a resize."""
BREATH_S = 0.25
"""How long a client waits after a request without an answer."""
SERVERS_EACH = 4
LISTENS_S = 60.0


@dataclass(frozen=True, slots=True)
class Places:
    """All providers, and those that clients resize."""

    all: Sequence[str]
    resized: Sequence[str]


class Client:
    """One client with a thread of its own."""

    def __init__(
        self, name: str, dice: Random, ports: Sequence[int], history: History, places: Places
    ) -> None:
        self.name = name
        self.dice = dice
        self.places = places
        self.asking = Asking(name, Door(ports, dice), history)
        self.acknowledged = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._error: BaseException | None = None

    def acts(self) -> Sequence[tuple[int, Callable[[], Operation | None]]]:
        """Its actions, and their relative frequencies."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Have it end after the current action."""
        self._is_over.set()

    def join(self) -> None:
        """Wait for its end; raises its failure."""
        self._thread.join(LISTENS_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        weights, acts = zip(*self.acts(), strict=True)
        try:
            while not self._is_over.is_set():
                (act,) = self.dice.choices(acts, weights)
                done = act()
                if done is None:
                    continue
                if done.outcome is Outcome.DONE:
                    self.acknowledged += 1
                elif done.outcome is Outcome.UNKNOWN or not done.status:
                    time.sleep(BREATH_S)
        except Exception as error:
            self._error = error
        self.asking.door.close()


class Reader(Client):
    """Reads everything."""

    def acts(self) -> Sequence[tuple[int, Callable[[], Operation | None]]]:
        """See :meth:`Client.acts`."""
        ask, dice, places = self.asking, self.dice, self.places
        return (
            (3, lambda: ask.usages(dice.choice(places.all))),
            (3, lambda: ask.given(dice.choice(places.all))),
            (1, lambda: ask.inventory(dice.choice(places.all))),
            (2, lambda: ask.consumer(dice.choice(SHARED))),
            (2, lambda: ask.project(project_of(dice.randrange(16)))),
        )


def project_of(number: int) -> str:
    """The project of a writer's pair."""
    return f"pair-{number}"


class Writer(Client):
    """Claims, moves, releases, resizes, boots and deletes; and reads."""

    def __init__(
        self, number: int, dice: Random, ports: Sequence[int], history: History, places: Places
    ) -> None:
        super().__init__(f"writer-{number}", dice, ports, history, places)
        self._project = project_of(number)
        self._pair = [self._new_consumer(), self._new_consumer()]
        self._own = [self._new_consumer() for _ in range(OWN)]
        self._known: dict[str, int | None] = dict.fromkeys((*self._pair, *self._own))
        """The generations that this writer knows; other consumers must be read first."""
        self._servers: list[str] = []

    def acts(self) -> Sequence[tuple[int, Callable[[], Operation | None]]]:
        """See :meth:`Client.acts`."""
        return (
            (6, self._claim_own),
            (3, self._claim_shared),
            (5, self._move_pair),
            (2, self._release_own),
            (2, self._hand_over),
            (2, self._resize),
            (2, self._boot_or_delete),
            (2, lambda: self.asking.consumer(self.dice.choice(self._own + self._pair))),
            (2, lambda: self.asking.usages(self.dice.choice(self.places.all))),
        )

    def _new_consumer(self) -> str:
        return str(uuid.UUID(int=self.dice.getrandbits(128), version=4))

    def _look(self, consumer: str) -> bool:
        """Read a consumer's generation, if it is unknown; returns whether it is known now."""
        if consumer in self._known:
            return True
        found = self.asking.consumer(consumer)
        if found.outcome is Outcome.DONE:
            self._known[consumer] = found.found["generation"]
        return consumer in self._known

    def _amounts(self) -> dict[str, int]:
        chosen = self.dice.sample(self.places.all, self.dice.choice((1, 1, 2, 3)))
        return {each: self.dice.randint(1, CLAIM_MAX) for each in chosen}

    def _note(self, done: Operation) -> Operation:
        """Remember the generations of a claim's consumers."""
        for each in done.updates:
            if done.outcome is Outcome.DONE:
                self._known[each.consumer] = each.generation if each.amounts else None
            else:
                self._known.pop(each.consumer, None)
        return done

    def _claim_own(self) -> Operation | None:
        consumer = self.dice.choice(self._own)
        if not self._look(consumer):
            return None
        seen = self._known[consumer]
        done = self._note(self.asking.claim([ConsumerUpdate(consumer, seen, self._amounts())]))
        if seen is None and done.outcome is Outcome.UNKNOWN:
            self._give_up(consumer)
        return done

    def _give_up(self, consumer: str, successor: str | None = None) -> None:
        fresh = successor or self._new_consumer()
        self._own[self._own.index(consumer)] = fresh
        self._known.pop(consumer, None)
        self._known.setdefault(fresh, None)

    def _hand_over(self) -> Operation | None:
        """Give one consumer's allocations to another, in whole or in part; the whole deletes it."""
        consumer = self.dice.choice(self._own)
        seen = self._known.get(consumer)
        if seen is None:
            return None
        successor = self._new_consumer()
        updates = [
            ConsumerUpdate(consumer, seen, {}),
            ConsumerUpdate(successor, None, self._amounts()),
        ]
        done = self._note(self.asking.claim(updates))
        if done.outcome is Outcome.DONE:
            self._give_up(consumer, successor)
        elif done.outcome is Outcome.UNKNOWN:
            self._give_up(consumer)
        return done

    def _claim_shared(self) -> Operation | None:
        many = self.dice.sample(SHARED, self.dice.choice((1, 1, 2)))
        updates: list[ConsumerUpdate] = []
        for each in many:
            found = self.asking.consumer(each)
            if found.outcome is not Outcome.DONE:
                return found
            updates.append(ConsumerUpdate(each, found.found["generation"], self._amounts()))
        return self.asking.claim(updates)

    def _move_pair(self) -> Operation | None:
        """Move units between two consumers, and from provider to provider.

        Every move names both consumers, and leaves units with both. So a move that is carried out
        late is rejected, since their generations grow together.
        """
        if not all([self._look(each) for each in self._pair]):
            return None
        first = self.dice.randint(1, PAIR_UNITS - 1)
        updates = [
            ConsumerUpdate(each, self._known[each], {self.dice.choice(self.places.all): units})
            for each, units in zip(self._pair, (first, PAIR_UNITS - first), strict=True)
        ]
        return self._note(self.asking.claim(updates, self._project))

    def _release_own(self) -> Operation | None:
        consumer = self.dice.choice(self._own)
        if self._known.get(consumer) is None:
            return None
        done = self.asking.release(consumer)
        if done.outcome is Outcome.DONE:
            self._known[consumer] = None
        elif done.outcome is Outcome.UNKNOWN:
            self._give_up(consumer)
        else:
            self._known.pop(consumer)
        return done

    def _resize(self) -> Operation | None:
        provider = self.dice.choice(self.places.resized)
        found = self.asking.inventory(provider)
        if found.outcome is not Outcome.DONE:
            return found
        total = self.dice.randint(*SIZES)
        return self.asking.resize(provider, found.found["generation"], total)

    def _boot_or_delete(self) -> Operation | None:
        if len(self._servers) < SERVERS_EACH:
            done = self.asking.boot()
            if done.outcome is Outcome.DONE:
                self._servers.append(done.found["server"])
            return done
        server = self._servers.pop(self.dice.randrange(len(self._servers)))
        return self.asking.delete(server)


def all_consumers(operations: Sequence[Operation]) -> list[str]:
    """All consumers of all claims."""
    return sorted(
        {
            update.consumer
            for each in operations
            if each.kind is Kind.CLAIM
            for update in each.updates
        }
    )
