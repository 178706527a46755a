"""Formats the results about trees of zones as tables, and compares them with their targets.

The target for a tree with one level: a request takes at most 1.2 times as long as in one zone with
the same hosts, plus two round trips. A round trip is a request that makes a zone do nothing.
Elapsed times are compared, and processor times on the critical path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.tables import Found, at_most, shown, table, verdict

LEVELS: Mapping[str, int] = {"tree": 1, "chain": 2}
"""The shapes of trees that are compared with a single zone, and how many levels they have below the
root."""
MORE_PER_LEVEL = 0.2
ROUND_TRIPS_PER_LEVEL = 2
OPERATIONS = {"select": "plan", "create": "boot"}
TIMES = {"median": "elapsed", "path": "processor, critical path"}
DEADLINE_MAX = 1.2
"""The maximum time of the first plan after a child stopped answering, divided by the child's
deadline."""
KNOWN_MAX = 2.0
"""The maximum time of the slowest plan once the child is inactive, divided by the usual median."""


def tables(found: Found, zones: Sequence[int], counts: Iterable[int]) -> Sequence[str]:
    """Return the tables of all figures about trees of zones."""
    return [_requests(found, zones, list(counts)), _dead(found)]


def _shapes(zones: Sequence[int]) -> list[tuple[str, int]]:
    return [(shape, each) for each in zones for shape in ("flat", *LEVELS)]


def _requests(found: Found, zones: Sequence[int], counts: Sequence[int]) -> str:
    rows = []
    for operation, what in OPERATIONS.items():
        for count in counts:
            for shape, size in _shapes(zones):
                name = f"zones.{shape}.{size}.{operation}.{count}"
                if f"{name}.median" not in found:
                    continue
                rows.append(
                    (
                        f"{what} of {count:,}",
                        _words(shape, size),
                        *(shown(found, f"{name}.{each}", ",.1f") for each in ("median", "busy")),
                        *(shown(found, f"{name}.{each}", ",.1f") for each in ("path", "root")),
                        _share(found, name, shape, size, "median"),
                        _share(found, name, shape, size, "path"),
                    )
                )
    names = ("request", "zones", "median ms", "processor, all ms", "critical path ms", "root ms")
    return table((*names, "elapsed / aim", "critical path / aim"), rows)


def _words(shape: str, size: int) -> str:
    if shape == "flat":
        return f"one, with the hosts of {size}"
    return f"{size} below the root" + (", two levels" if shape == "chain" else "")


def _dead(found: Found) -> str:
    row = [
        shown(found, f"zones.dead.{each}", ",.0f") for each in ("usual", "first", "next", "known")
    ]
    late = shown(found, "zones.dead.late", ".0f")
    names = ("plan of 1, usual ms", "first after a child froze", "slowest of the next")
    return table((*names, "slowest once it is inactive", "plans that waited"), [(*row, late)])


def aim(found: Found, shape: str, size: int, request: str, time: str) -> float | None:
    """Return how many milliseconds a request to a tree may take, given those of a single zone."""
    alone = found.get(f"zones.flat.{size}.{request}.{time}")
    empty = found.get(f"zones.flat.{size}.empty.{time}")
    if alone is None or empty is None:
        return None
    more = 1 + LEVELS[shape] * MORE_PER_LEVEL
    return alone.value * more + LEVELS[shape] * ROUND_TRIPS_PER_LEVEL * empty.value


def _share(found: Found, name: str, shape: str, size: int, time: str) -> str:
    if shape not in LEVELS:
        return ""
    request = name.removeprefix(f"zones.{shape}.{size}.")
    most = aim(found, shape, size, request, time)
    return "" if most is None else f"{found[f'{name}.{time}'].value / most:.2f}"


def targets(found: Found) -> Iterable[str]:
    """Yield each target about trees of zones, its result, and whether the result meets it."""
    for name, figure in found.items():
        _, shape, *rest = f"{name}....".split(".")[:6]
        if not name.startswith("zones.") or shape not in LEVELS:
            continue
        size, operation, count, time = rest
        if time in TIMES:
            most = aim(found, shape, int(size), f"{operation}.{count}", time)
            if most is not None:
                what = f"{name}, {TIMES[time]}, ms"
                yield verdict(what, figure.value, float(f"{most:.3g}"), figure.value <= most)
    first = found.get("zones.dead.first")
    if first is not None:
        yield from _targets_of_dead(found)


def _targets_of_dead(found: Found) -> Iterable[str]:
    deadline = found["zones.dead.deadline"].value
    first = found["zones.dead.first"].value
    yield verdict(
        "zones.dead.first / deadline",
        first / deadline,
        DEADLINE_MAX,
        first <= DEADLINE_MAX * deadline,
    )
    yield from at_most(found, "zones.dead.late", 1)
    yield from at_most(found, "zones.dead.known", KNOWN_MAX, "zones.dead.usual")
