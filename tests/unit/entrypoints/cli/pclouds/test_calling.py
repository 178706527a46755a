"""The shared behavior of the pcloud commands: lists, names, refusals and several items."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any
from urllib.parse import unquote

import pytest
import requests
from osc_lib.exceptions import CommandError

from innkeeper.entrypoints.cli import calling
from tests.support.commands import COMMANDS, Answer, Service, made, run

UUID = "11111111-2222-4333-8444-555555555555"
P = f"/os-pclouds/{UUID}"
PCLOUD = {"id": UUID, "name": "web", "tenants": ["mine"], "size_policy": None}
HOST = {
    **{"name": "left", "host_flavor": "big", "availability_zone": "nova", "state": "enabled"},
    **{"health": "available", "maintenance": None, "units": 2, "allocated_at": "then"},
    **{"resources": {"VCPU": {"total": 8, "capacity": 32, "used": 40}}, "over_capacity": True},
    "servers": [{"id": "some-server", "project_id": "theirs"}],
}
FLAVOR = {"id": "big", "description": "", "units": 2}
OWN = (200, {"pcloud": PCLOUD})
NOBODYS: Answer = (200, {"pclouds": []})


# -- lists -------------------------------------------------------------------------------------


def page(names: str, marker: str | None) -> Answer:
    """A page of host flavors, with a link as a service behind a proxy writes it."""
    body: dict[str, Any] = {"host_flavors": [{**FLAVOR, "id": name} for name in names]}
    if marker is not None:
        href = f"http://inside:1/v2.1/os-host-flavors?limit=2&marker={marker}"
        body["host_flavors_links"] = [{"rel": "next", "href": href}]
    return 200, body


def test_all_pages_are_read_from_the_original_address() -> None:
    service = Service(page("ab", "b%20c"), page("cd", "d"), page("e", None))
    _, listed = run("host flavor list", service)
    assert [row[0] for row in listed] == list("abcde")
    assert [url for _, url, _ in service.asked] == [
        "/os-host-flavors",
        "/os-host-flavors?limit=2&marker=b+c",
        "/os-host-flavors?limit=2&marker=d",
    ]


def test_an_endless_list_is_an_error() -> None:
    with pytest.raises(CommandError, match="without end"):
        run("host flavor list", Service(page("ab", "b")))


def test_a_limit_also_limits_the_pages() -> None:
    action = {"created_at": "", "action": "enable", "host": None, "detail": None}
    link = [{"rel": "next", "href": "http://cloud/x?limit=2&marker=1"}]
    pages = (200, {"actions": [action, action], "actions_links": link})
    service = Service(OWN, pages)
    _, listed = run(f"pcloud action list {UUID} --limit 2", service)
    assert (len(listed), len(service.asked)) == (2, 2)


def test_the_actions_of_a_deleted_pcloud_are_listed_by_its_id() -> None:
    gone = (404, {"itemNotFound": {"code": 404, "message": "gone"}})
    action = {"created_at": "", "action": "delete", "host": None, "detail": None}
    service = Service(gone, NOBODYS, NOBODYS, (200, {"actions": [action]}))
    _, listed = run(f"pcloud action list {UUID}", service)
    assert [row[1] for row in listed] == ["delete"]
    assert service.asked[-1][1] == f"{P}/actions"
    with pytest.raises(CommandError, match="owns no pcloud with the name or ID 'web'"):
        run("pcloud action list web", Service((200, {"pclouds": []})))


def test_usage_of_a_project_on_two_pages_is_added_up() -> None:
    def told(*hours: float, marker: str | None) -> Answer:
        run_ = {"pcloud_id": UUID, "name": "left", "host_flavor": "big", "units": 2}
        run_ |= {"started_at": "then", "ended_at": None}
        usage = {
            "project_id": "mine",
            "host_hours": sum(hours),
            "unit_hours": 2 * sum(hours),
            "hosts": [{**run_, "hours": each} for each in hours],
        }
        link = [{"rel": "next", "href": f"http://cloud/x?marker={marker}"}]
        more = {} if marker is None else {"pcloud_usages_links": link}
        return 200, {"pcloud_usages": [usage], **more}

    answers = (told(1.0, 2.0, marker="2"), told(0.5, marker=None))
    assert run("pcloud usage show", Service(*answers))[1] == [("mine", 3, 3.5, 7.0)]
    _, listed = run("pcloud usage show --long", Service(*answers))
    assert [row[-1] for row in listed] == [1.0, 2.0, 0.5]


# -- names -------------------------------------------------------------------------------------


def test_a_pcloud_is_found_by_its_name() -> None:
    service = Service((200, {"pclouds": [PCLOUD]}), (204, None))
    run("pcloud delete web", service)
    urls = [url for _, url, _ in service.asked]
    assert urls == ["/os-pclouds?name=web&project_id=mine", P]


SHOWN = {"id": UUID, "name": "web", "auto_placement": False, "auto_placement_accepted": False}
"""A pcloud as its guests see it."""
WHOLE = {**SHOWN, "owner": "lab"}
OTHERS = (200, {"pclouds": [SHOWN]})
OWNERS = [
    "set web --name x",
    "delete web",
    "project list web",
    "project add web lab",
    "project remove web lab",
    "host list web",
    "host show web left",
    "host add web left --host-flavor big",
    "host set web left --enable",
    "host remove web left",
    "host replace web left",
    "action list web",
]
GUESTS = ["show web", "accept web", "decline web", "project remove web mine"]


@pytest.mark.parametrize("words", OWNERS)
def test_commands_of_owners_ignore_other_projects_pclouds(words: str) -> None:
    service = Service(NOBODYS, OTHERS)
    with pytest.raises(CommandError, match="The project owns no pcloud with the name"):
        run(f"pcloud {words}", service)
    assert [url for _, url, _ in service.asked] == [
        "/os-pclouds?name=web&project_id=mine",
        "/os-pclouds?name=web&all_projects=true",
    ]


@pytest.mark.parametrize("words", [*OWNERS, *GUESTS])
def test_an_own_pcloud_comes_first(words: str) -> None:
    service = Service((200, {"pclouds": [{**PCLOUD, "owner": "mine"}]}), (418, None))
    with pytest.raises(CommandError, match="HTTP 418") if words != "show web" else nullcontext():
        run(f"pcloud {words}", service)
    urls = [url for _, url, _ in service.asked]
    assert not [url for url in urls[1:] if not url.startswith(P)]


@pytest.mark.parametrize("words", GUESTS)
def test_commands_of_guests_use_the_only_pcloud_with_the_name(words: str) -> None:
    service = Service(NOBODYS, OTHERS, (204, None))
    run(f"pcloud {words}", service)
    with pytest.raises(CommandError, match="2 pclouds are called 'web'"):
        run(f"pcloud {words}", Service(NOBODYS, (200, {"pclouds": [SHOWN, SHOWN]})))


def test_another_projects_pcloud_is_shown_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        run("pcloud show web", Service((200, {"pclouds": [{**PCLOUD, "owner": "mine"}]})))
        assert caplog.text == ""
        run("pcloud show web", Service(NOBODYS, OTHERS))
    assert f"Pcloud {UUID} belongs to another project." in caplog.text


def test_administrators_find_all_by_their_names() -> None:
    service = Service(NOBODYS, (200, {"pclouds": [WHOLE]}), (204, None))
    run("pcloud delete web", service)
    assert service.asked[-1][:2] == ("DELETE", P)
    # A login without a project has no pclouds of its own.
    service = Service((200, {"pclouds": [SHOWN, WHOLE]}), (204, None))
    run("pcloud delete web", service, project=None)
    assert service.asked[0][1] == "/os-pclouds?name=web&all_projects=true"


def test_a_name_may_look_like_an_id() -> None:
    there = {**PCLOUD, "id": "other", "name": UUID}
    gone = (404, {"itemNotFound": {"code": 404, "message": "gone"}})
    service = Service(gone, (200, {"pclouds": [there]}))
    assert run(f"pcloud show {UUID}", service)[1][0] == "other"


@pytest.mark.parametrize(
    ("there", "complaint"),
    [
        ([], "No pcloud has the name or ID 'web'."),
        ([PCLOUD, {**PCLOUD, "id": "b"}], f"2 pclouds .* by its ID: {UUID}, b."),
    ],
)
def test_an_unknown_or_ambiguous_name_is_rejected(there: list[Any], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        run("pcloud show web", Service((200, {"pclouds": there})))


def compute(service: Service) -> calling.ApiClient:
    """Return a fake service as the commands call it."""
    return calling.ComputeClient(service)


@pytest.mark.parametrize("name", ["a b", "50%", "what?", "left#1", "door~1", "ä"])
def test_a_name_is_one_part_of_a_path(name: str) -> None:
    service = Service((204, None))
    calling.call(compute(service), "DELETE", ("os-pclouds", UUID, "hosts", name))
    ((_, url, _),) = service.asked
    assert unquote(url) == f"{P}/hosts/{name}"
    sent = requests.Request("DELETE", f"http://cloud{url}").prepare().url
    assert sent is not None
    assert unquote(sent) == f"http://cloud{P}/hosts/{name}"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_change_the_path_are_rejected(name: str) -> None:
    with pytest.raises(CommandError, match="is not a valid name or ID"):
        calling.call(compute(Service((204, None))), "DELETE", ("os-pclouds", UUID, "hosts", name))


def test_a_login_for_no_project_has_no_quota() -> None:
    with pytest.raises(CommandError, match="Name a project"):
        run("pcloud quota show", Service((200, {})), project=None)


# -- refusals ----------------------------------------------------------------------------------


def test_a_refusal_shows_the_services_message() -> None:
    refused = (409, {"conflictingRequest": {"code": 409, "message": "It is in use."}})
    with pytest.raises(CommandError) as raised:
        run("host flavor show big", Service(refused))
    assert str(raised.value) == "It is in use. (HTTP 409) (Request-ID: req-1)"


def test_a_failed_delete_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    refused = (409, {"conflictingRequest": {"code": 409, "message": "It has hosts."}})
    service = Service((204, None), refused, (204, None))
    with caplog.at_level(logging.ERROR), pytest.raises(CommandError, match="1 of 3 failed"):
        run("host flavor delete a b c", service)
    assert [url for _, url, _ in service.asked] == [f"/os-host-flavors/{x}" for x in "abc"]
    assert "b: It has hosts. (HTTP 409)" in caplog.text


def test_a_single_item_fails_with_the_services_message() -> None:
    refused = (409, {"conflictingRequest": {"code": 409, "message": "It has hosts."}})
    for words in ("host flavor delete a", "host flavor host add a host-1"):
        with pytest.raises(CommandError, match=r"^It has hosts"):
            run(words, Service(refused))


def test_hosts_that_cannot_be_allocated_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    failure = {"name": "up", "code": "no_free_host", "message": "There is none."}
    service = Service(OWN, (201, {"hosts": [HOST], "failures": [failure]}))
    command = made(COMMANDS["pcloud host add"], service)
    words = [UUID, "left", "up", "--host-flavor", "big"]
    told = command.take_action(command.get_parser("add").parse_args(words))
    assert [row[0] for row in told[1]] == ["left"]
    assert command.refused == 1
    assert "up: There is none." in caplog.text


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("host flavor set big", "Give --units, --description, or both."),
        (f"pcloud set {UUID}", "Give at least one option to change."),
        (f"pcloud set {UUID} --min-hosts 1", "needs --max-hosts and --size-host-flavor"),
        (f"pcloud host set {UUID} left", "Give --enable, --disable or --name."),
        (f"pcloud action list {UUID} --limit 0", "--limit must be at least 1."),
    ],
)
def test_commands_without_changes_are_rejected_locally(words: str, complaint: str) -> None:
    service = Service(OWN)
    with pytest.raises(CommandError, match=complaint):
        run(words, service)
    assert not [method for method, _, _ in service.asked if method != "GET"]


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "four", "1e999"])
@pytest.mark.parametrize("option", ["--cpu-ratio", "--ram-ratio"])
def test_an_invalid_ratio_is_not_sent(
    option: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(OWN)
    with pytest.raises(SystemExit) as ended:
        run(f"pcloud set {UUID} {option}={word}", service)
    assert ended.value.code == 2
    assert f"argument {option}: must be a number, not '{word}'" in capsys.readouterr().err
    assert service.asked == []


def test_omitted_fields_of_a_size_policy_stay() -> None:
    present = {"min_hosts": 1, "max_hosts": 3, "host_flavor": "big", "min_free_vcpus": 1}
    service = Service((200, {"pcloud": {**PCLOUD, "size_policy": present}}))
    run(f"pcloud set {UUID} --max-hosts 5", service)
    assert service.asked[-1][2] == {"pcloud": {"size_policy": {**present, "max_hosts": 5}}}
    run(f"pcloud set {UUID} --no-size-policy", service)
    assert service.asked[-1][2] == {"pcloud": {"size_policy": None}}
