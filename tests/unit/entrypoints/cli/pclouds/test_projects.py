"""Project names and ids in commands, with and without lookup rights."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from keystoneauth1.exceptions import EndpointNotFound
from keystoneauth1.token_endpoint import Token
from openstack.exceptions import ForbiddenException
from osc_lib.exceptions import CommandError

from innkeeper.entrypoints.cli.pclouds.projects import project_id
from tests.support.commands import Identity, Service, connected, run

LOG = logging.getLogger("tests")
MINE, LAB, UNKNOWN = "1" * 32, "2" * 32, "a1" * 16
DASHED = "11111111-2222-4333-8444-555555555555"
PROJECTS = {MINE: "ours", LAB: "lab", "odd-one": "old", "3" * 32: "two", "4" * 32: "two"}
NO = ForbiddenException("no")
P = f"/os-pclouds/{DASHED}"


def meant(text: str, *, may_be_gone: bool = False, **refusals: Any) -> str:
    connection = connected(Service(), MINE, Identity(PROJECTS, **refusals))
    return project_id(connection, text, LOG, may_be_gone=may_be_gone)


def closed(refusal: Exception = NO) -> dict[str, Any]:
    return {"unshown": refusal, "unlisted": refusal}


@pytest.mark.parametrize(
    ("text", "expected"), [("lab", LAB), (LAB, LAB), ("odd-one", "odd-one"), ("old", "odd-one")]
)
def test_a_project_that_the_caller_may_look_up_is_found(
    text: str, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert meant(text) == expected
    assert caplog.text == ""


@pytest.mark.parametrize("text", ["guest", UNKNOWN, DASHED, "", ".", "..", "?name=lab", "a/b"])
def test_an_unknown_project_is_rejected(text: str) -> None:
    with pytest.raises(CommandError, match="No project has the name or ID"):
        meant(text)


@pytest.mark.parametrize("text", [".", "..", "?name=lab", "x/../y", "a b", "50%", "ä"])
def test_only_possible_ids_are_looked_up_as_ids(text: str) -> None:
    identity = Identity(PROJECTS)
    with pytest.raises(CommandError):
        project_id(connected(Service(), MINE, identity), text, LOG)
    assert identity.asked == [text], "the list alone"


@pytest.mark.parametrize("refusal", [NO, EndpointNotFound("nowhere")])
@pytest.mark.parametrize("text", [UNKNOWN, UNKNOWN.upper(), LAB, DASHED])
def test_an_id_that_cannot_be_checked_is_sent_with_a_warning(
    text: str, refusal: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    assert meant(text, **closed(refusal)) == text
    assert f"Project {text} was not checked" in caplog.text


@pytest.mark.parametrize("may_be_gone", [False, True])
@pytest.mark.parametrize("text", ["guest", "lab", "12345", UNKNOWN + "0", f"{UNKNOWN}\n"])
def test_a_name_that_cannot_be_looked_up_is_rejected(text: str, may_be_gone: bool) -> None:
    with pytest.raises(CommandError, match="does not have the form of a project's ID"):
        meant(text, may_be_gone=may_be_gone, **closed())


def test_lookups_with_partial_rights() -> None:
    # A name can be looked up, even if the login may not show foreign ids.
    assert meant("lab", unshown=NO) == LAB
    assert meant(UNKNOWN, unshown=NO) == UNKNOWN
    with pytest.raises(CommandError, match="No project has the name or ID"):
        meant("guest", unshown=NO)
    assert meant(LAB, unlisted=NO) == LAB
    with pytest.raises(CommandError, match="No project has the name or ID"):
        meant(UNKNOWN, unlisted=NO)


def test_an_id_may_be_of_a_project_that_is_gone() -> None:
    assert meant(UNKNOWN, may_be_gone=True) == UNKNOWN
    with pytest.raises(CommandError, match="No project has the name or ID 'guest'"):
        meant("guest", may_be_gone=True)


def test_an_ambiguous_project_name_is_rejected() -> None:
    with pytest.raises(CommandError, match=f"2 projects are called 'two'.*: {'3' * 32}, "):
        meant("two")


def test_the_own_project_is_known_by_the_token(caplog: pytest.LogCaptureFixture) -> None:
    for text in ("ours", MINE):
        assert meant(text, **closed(AssertionError("nobody asks"))) == MINE
    assert caplog.text == ""


def test_a_login_without_identity_names_projects_by_id(caplog: pytest.LogCaptureFixture) -> None:
    connection = connected(Service(), MINE, Identity(None, **closed()))
    connection.session.auth = Token("http://cloud/compute", "token")
    assert project_id(connection, UNKNOWN, LOG) == UNKNOWN
    assert "was not checked" in caplog.text
    for text in ("guest", "ours"):
        with pytest.raises(CommandError, match="does not have the form"):
            project_id(connection, text, LOG)


# -- removed from a pcloud ---------------------------------------------------------------------


@pytest.mark.parametrize("text", ["guest", "ours", UNKNOWN])
def test_a_listed_text_is_removed_literally(text: str) -> None:
    pcloud = {"id": DASHED, "name": "web", "owner": MINE, "tenants": [MINE, text]}
    service = Service((200, {"pcloud": pcloud}), (204, None))
    identity = Identity(PROJECTS, **closed())
    run(f"pcloud project remove {DASHED} {text}", service, MINE, identity)
    assert service.asked[-1] == ("DELETE", f"{P}/tenants/{text}", None)


def test_a_guest_can_leave_without_lookup_rights() -> None:
    # A guest does not see which projects may use another project's pcloud.
    service = Service((200, {"pcloud": {"id": DASHED, "name": "web"}}), (204, None))
    run(f"pcloud project remove {DASHED} {MINE}", service, MINE, Identity({}, **closed()))
    assert service.asked[-1] == ("DELETE", f"{P}/tenants/{MINE}", None)


def test_an_unlisted_name_is_not_removed() -> None:
    pcloud = {"id": DASHED, "name": "web", "owner": MINE, "tenants": [MINE]}
    service = Service((200, {"pcloud": pcloud}), (204, None))
    with pytest.raises(CommandError, match="No project has the name"):
        run(f"pcloud project remove {DASHED} guest", service, MINE, Identity(PROJECTS))
    assert [method for method, _, _ in service.asked] == ["GET"]
