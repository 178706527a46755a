"""The samples in the reference of pcloud commands are what the commands print.

The page is the script. The blocks under ``<!-- sample: LOGIN -->`` are run in the order of the
page, on one new service. The test compares the output with the page, and ``make samples`` writes it
there. Nothing is typed by hand.

Values that differ between runs are normalized: ids are numbered in order of appearance, times
become ``SOME_TIME``, and the service's address becomes ``ADDRESS``. Ids and times keep
their length, so tables stay aligned. Errors follow the output of their command, and
empty lines are left out.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.compat.openstack_command import Started, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "pcloud-commands.md"
WRITE = "WRITE_SAMPLES"
"""An environment variable: the page is written instead of compared."""
SAMPLE = re.compile(r"(<!-- sample: (\w+) -->\n```console\n)(.*?)(```\n)", re.DOTALL)
INNER = re.compile(r"\$\((openstack [^()]*)\)")
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")
TIME, SOME_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?"), "2030-01-31T12:00:00"
ADDRESS = "http://127.0.0.1:8780"
PROMPT, PROGRAM = "$ ", "openstack"
HOSTS = 3
WITHIN_S = 90.0


class Normal:
    """Replaces the values of an output that differ between runs."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._seen: dict[str, int] = {}

    def form(self, text: str) -> str:
        """The normalized text."""
        text = ID.sub(self._numbered, text.replace(self._url, ADDRESS))
        return TIME.sub(lambda found: SOME_TIME + re.sub(r"\d", "0", found[1] or ""), text)

    def _numbered(self, found: re.Match[str]) -> str:
        number = self._seen.setdefault(found[0], len(self._seen) + 1)
        digits = f"{number:032d}"
        cuts = (0, 8, 12, 16, 20, 32)
        parts = [digits[a:b] for a, b in itertools.pairwise(cuts)]
        return ("-" if "-" in found[0] else "").join(parts)


class Story:
    """Runs the commands of samples, as different users."""

    def __init__(self, service: Started, logins: Mapping[str, dict[str, str] | None]) -> None:
        self._service, self._logins = service, logins
        self._normal = Normal(service.url)

    def play(self, page: str) -> str:
        """The page with the current output of its commands."""
        return SAMPLE.sub(self._block, page)

    def _block(self, found: re.Match[str]) -> str:
        begin, login, block, end = found.groups()
        assert login in self._logins, f"There is no login {login}."
        lines = block.splitlines()
        commands = [each.removeprefix(PROMPT) for each in lines if each.startswith(PROMPT)]
        printed = "".join(self._printed(each, self._logins[login]) for each in commands)
        return f"{begin}{printed}{end}"

    def _printed(self, command: str, login: Mapping[str, str] | None) -> str:
        assert ID.search(command) is None, f"An id is another one in each run: {command}"

        def inner(found: re.Match[str]) -> str:
            return self._service.do(*shlex.split(found[1])[1:], login=login).strip()

        program, *words = shlex.split(INNER.sub(inner, command))
        assert program == PROGRAM, f"Another program's command: {command}"
        outcome = self._service.run(*words, login=login)
        reported = [*outcome.output.splitlines(), *outcome.errors.splitlines()]
        lines = [self._normal.form(each.rstrip()) for each in reported if each.strip()]
        return "".join(f"{each}\n" for each in (PROMPT + command, *lines))


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with started(tmp_path, "--demo-hosts", str(HOSTS)) as service:
        service.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
        service.do("project", "create", "lab")
        login = ("--password", "secret-of-alice", "--project", "lab")
        service.do("user", "create", *login, "alice")
        service.do("role", "add", "--user", "alice", "--project", "lab", "member")
        deadline_s = time.monotonic() + WITHIN_S
        while len(service.ask("compute", "service", "list")) < HOSTS:
            assert time.monotonic() < deadline_s, "The demonstration's hosts did not come."
        alice = service.login("alice", "secret-of-alice", "lab")
        yield Story(service, {"administrator": None, "alice": alice})


def test_the_samples_are_what_the_commands_print(story: Story) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("```console") == len(SAMPLE.findall(page)) > 0, "all are samples"
    printed = story.play(page)
    if os.environ.get(WRITE):
        PAGE.write_text(printed, encoding="utf-8")
    else:
        assert page == printed, "Run `make samples`."


def test_values_that_differ_per_run_keep_their_place() -> None:
    normal = Normal("http://127.0.0.1:41234")
    first, second = "01a203ca-9d2c-7db2-ac68-4655a4b0494d", "01a203ca97627176af5babf30978bb31"
    text = f"| {first} | {second} | 2026-11-22T15:05:39.445048 |"
    reported = normal.form(text)
    assert len(reported) == len(text)
    assert reported == (
        "| 00000000-0000-0000-0000-000000000001 | 00000000000000000000000000000002 "
        "| 2030-01-31T12:00:00.000000 |"
    )
    assert normal.form(f"Pcloud:{first} req-{first}") == (
        "Pcloud:00000000-0000-0000-0000-000000000001 req-00000000-0000-0000-0000-000000000001"
    )
    assert normal.form("at http://127.0.0.1:41234/compute") == f"at {ADDRESS}/compute"
