"""The stock client of Placement: each of its commands, at each of its microversions."""

from __future__ import annotations

import argparse
import importlib.metadata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from osc_placement.version import SUPPORTED_VERSIONS

from tests.compat import placement_scenes, placement_scenes_of_consumers
from tests.compat.openstack_shell import Shell, openstack_shell
from tests.compat.placement_client import PlacementClient
from tests.compat.placement_commands import BEGINNINGS, COMMANDS
from tests.support.following import following
from tests.support.original import original

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
GROUP = "openstack.placement.v1"
"""Where the client registers its commands."""
OWN_GROUPS = frozenset({"options", "positional arguments", None})
"""The group of a command's own arguments in its parser; other groups control
the output."""
ASKED_OF_THE_ORIGINAL = ("1.0", "1.29", "1.39")
"""A few versions, because the original is slow. All agreed when the scenes were written."""
SCENES: tuple[Callable[[PlacementClient], None], ...] = (
    placement_scenes.providers,
    placement_scenes.trees,
    placement_scenes.inventories,
    placement_scenes.aggregates,
    placement_scenes.finding,
    placement_scenes.classes,
    placement_scenes.traits,
    placement_scenes_of_consumers.allocations,
    placement_scenes_of_consumers.candidates,
    placement_scenes_of_consumers.groups,
)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with openstack_shell(tmp_path_factory.mktemp("home")) as started:
        yield started


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A process that is not the leader; it forwards all writes to the leader."""
    with following(tmp_path_factory.mktemp("service")) as service:
        yield f"{service.url}/placement"


@pytest.fixture
def client(shell: Shell, url: str, request: pytest.FixtureRequest) -> Iterator[PlacementClient]:
    with PlacementClient.at(request.param, shell, url) as client:
        yield client


def play(client: PlacementClient) -> None:
    """Use every command of the client's version, with all of its options."""
    for scene in SCENES:
        scene(client)
    expected: set[tuple[str, ...]] = set()
    for name, command in COMMANDS.items():
        if client.minor >= command.since:
            expected.add((name,))
        expected |= {(name, o) for o, since in command.options.items() if client.minor >= since}
    assert client.used - {(name, "-f") for name in COMMANDS} == expected


def own_options(parser: argparse.ArgumentParser) -> set[str]:
    """The options that control the action, not the output."""
    actions: list[Any] = parser._actions
    return {
        option
        for action in actions
        for option in action.option_strings
        if action.container.title in OWN_GROUPS and option.startswith("--")
    } - {"--help"}


@pytest.mark.filterwarnings("ignore:The osc_lib.version module:DeprecationWarning")
def test_the_client_has_exactly_these_commands_and_options() -> None:
    found = {
        entry.name.replace("_", " "): own_options(entry.load()(None, None).get_parser(""))
        for entry in importlib.metadata.entry_points(group=GROUP)
    }
    assert found == {name: set(command.options) for name, command in COMMANDS.items()}


@pytest.mark.parametrize("client", SUPPORTED_VERSIONS, indirect=True)
def test_every_command_at(client: PlacementClient) -> None:
    play(client)


@pytest.fixture(scope="module")
def original_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with original(tmp_path_factory.mktemp("original")) as service:
        yield service.url


@pytest.mark.parametrize("version", ASKED_OF_THE_ORIGINAL)
def test_the_original_does_the_same_at(shell: Shell, original_url: str, version: str) -> None:
    """The scenes get the same answers from OpenStack's own service."""
    with PlacementClient.at(version, shell, original_url) as client:
        play(client)


@pytest.mark.parametrize("client", SUPPORTED_VERSIONS, indirect=True)
def test_every_command_before_its_time_at(client: PlacementClient) -> None:
    """The client itself rejects commands that a version lacks, and names the needed version."""
    for name, command in COMMANDS.items():
        if client.minor < command.since:
            expected = f"requires at least version 1.{command.since}"
            assert expected in client.refuses(name, *command.words), name
    for words, since in BEGINNINGS.items():
        # Once, at the last version before: the client compares numbers.
        if client.minor == since - 1:
            assert f"requires at least version 1.{since}" in client.refuses(*words), words
