"""All drivers by name: the one place that lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from innkeeper.entrypoints.agent.drivers import fake
from innkeeper.entrypoints.agent.drivers.driver import Driver

Wait = Callable[[float], Any]
Maker = Callable[[Mapping[str, Any], Path, Wait], Driver]
"""Makes a driver of the program's options, a folder for its state, and a way to wait."""


def _fake(options: Mapping[str, Any], state_dir: Path, wait: Wait) -> Driver:
    return fake.FakeDriver(
        fake.FakeOptions(
            hosts=options["hosts"],
            host_prefix=options["host_prefix"],
            zones=options["az"],
            vcpus=options["vcpus"],
            memory_mb=options["memory_mb"],
            disk_gb=options["disk_gb"],
            build_time_s=options["build_time_s"],
            move_time_s=options["move_time_s"],
            fail_builds_on=options["fail_builds_on"],
            traits=(*fake.TRAITS, *options["traits"]),
        ),
        state_dir,
        wait,
    )


DRIVERS: Mapping[str, Maker] = {fake.NAME: _fake}
