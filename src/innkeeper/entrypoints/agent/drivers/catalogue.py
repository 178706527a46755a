"""Lists all drivers, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from innkeeper.entrypoints.agent.drivers import fake
from innkeeper.entrypoints.agent.drivers.driver import Driver

Wait = Callable[[float], Any]
Maker = Callable[[Mapping[str, Any], Path, Wait], Driver]
"""A function that creates a driver from the program's options, a state folder, and a function that
waits."""


SIZES = ("hosts", "host_prefix", "vcpus", "memory_mb", "disk_gb")
BEHAVIOR = ("build_time_s", "move_time_s", "fail_builds_on")
"""Options of the program that are also options of the fake driver."""


def _fake(options: Mapping[str, Any], state_dir: Path, wait: Wait) -> Driver:
    fake_options = fake.FakeOptions(
        zones=options["az"],
        traits=(*fake.TRAITS, *options["traits"]),
        **{name: options[name] for name in SIZES + BEHAVIOR},
    )
    return fake.FakeDriver(fake_options, state_dir, wait)


DRIVERS: Mapping[str, Maker] = {fake.NAME: _fake}
