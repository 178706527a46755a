"""A calendar that is changed host by host equals one that was read as a whole."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from innkeeper.domain.ids import ProviderId, ProviderUuid
from innkeeper.domain.leases import CalendarHost, HeldWindow
from innkeeper.snapshot.calendar import Calendar
from tests.support.clouds import NOW

HOSTS, STEPS = 5, 60
SLOT = {"VCPU": 2, "MEMORY_MB": 64}
Held = dict[ProviderId, list[HeldWindow]]


def host(number: int, cpus: int = 8, **facts: str) -> CalendarHost:
    provider = ProviderId(100 + number)
    name = ProviderUuid(f"host-{number}")
    return CalendarHost(provider, number, name, None, facts, {"VCPU": cpus, "MEMORY_MB": 512})


def hold(number: int, reservation: int, units: int = 1, *, is_whole: bool = False) -> HeldWindow:
    start = NOW + timedelta(hours=reservation)
    amounts = None if is_whole else SLOT
    provider = ProviderId(100 + number)
    return HeldWindow(provider, reservation, start, start + timedelta(hours=1), units, amounts)


def whole(hosts: dict[ProviderId, CalendarHost], held: Held) -> Calendar:
    made = Calendar()
    made.replace_all([*hosts.values()], [each for own in held.values() for each in own])
    return made


def test_a_host_that_leaves_does_not_move_the_holds_of_others() -> None:
    calendar = Calendar()
    calendar.replace_all(
        [host(number) for number in range(3)], [hold(1, 1, 2), hold(2, 2, is_whole=True)]
    )
    calendar.replace([ProviderId(100)], [], [])
    found = calendar.by_host()
    assert [provider for provider, (_, holds) in found.items() if holds] == [101, 102]
    assert [holds[0][0] for _, holds in found.values()] == [1, 2]
    assert calendar.index_of == {101: 0, 102: 1}


@pytest.mark.parametrize("seed", range(5))
def test_steps_are_like_reading_everything_again(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    calendar, hosts, held = Calendar(), dict[ProviderId, CalendarHost](), Held()
    for _ in range(STEPS):
        touched = dice.sample(range(HOSTS), dice.randint(1, 3))
        providers = [ProviderId(100 + each) for each in touched]
        for number, provider in zip(touched, providers, strict=True):
            hosts.pop(provider, None)
            held.pop(provider, None)
            if dice.random() < 0.7:
                hosts[provider] = host(number, dice.randint(1, 8), rack=str(dice.randint(1, 3)))
                held[provider] = [
                    hold(
                        number, dice.randint(1, 9), dice.randint(1, 3), is_whole=dice.random() < 0.3
                    )
                    for _ in range(dice.randint(0, 3))
                ]
        calendar.replace(
            providers,
            [hosts[each] for each in providers if each in hosts],
            [one for each in providers for one in held.get(each, [])],
        )
        assert in_order(calendar) == in_order(whole(hosts, held))


def in_order(calendar: Calendar) -> dict[ProviderId, tuple[CalendarHost, list[object]]]:
    """Return each host with its holds, in an order of their own."""
    return {
        provider: (calendar.hosts[calendar.index_of[provider]], sorted(holds, key=str))
        for provider, (_, holds) in calendar.by_host().items()
    }
