"""A project of the door uses only the project in a pod that has its name, and lifts its quotas."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from innkeeper.clients.pod_logins import PodLogin
from innkeeper.clients.pods import LoginRefused, PodAnswer, PodCall, PodSilent
from innkeeper.engine.pods.clouds import login_of
from innkeeper.engine.pods.tenants import COMPUTE, Tenants, id_of_named
from tests.support.pod_rows import pod_of

MINE = {"id": "4a1c9f0e4c4e4b3c9a3b1de6a1d5f0aa", "name": "mine"}
OTHER = {"id": "7e0b8a5c1d2f4e6fa9c0b1d2e3f4a5b6", "name": "other"}


def answer(body: Any) -> PodAnswer:
    """Return an answer of a pod."""
    return PodAnswer(200, {}, msgspec.json.encode(body))


@pytest.mark.parametrize(
    "body",
    [
        {"project": MINE},
        {"projects": [MINE]},
        {"projects": [OTHER, MINE]},
        {"projects": [3, {"name": "mine"}, {**MINE, "name": "MINE"}]},
    ],
)
def test_the_id_is_of_the_one_with_the_name(body: Any) -> None:
    assert id_of_named(answer(body), "project", "mine") == MINE["id"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"projects": []},
        {"projects": [OTHER]},
        {"project": OTHER},
        {"project": None, "projects": [MINE]},
        {"projects": {"id": MINE["id"]}},
        {"projects": [{**MINE, "name": None}]},
        {"projects": [{**MINE, "id": "../users"}]},
        {"projects": [{**MINE, "id": "-"}]},
        {"error": {"code": 500}},
    ],
)
def test_any_other_answer_gives_no_id(body: Any) -> None:
    with pytest.raises(PodSilent):
        id_of_named(answer(body), "project", "mine")


@dataclass
class PlayedPod:
    """A pod whose project "mine" can get lost. A project that is made again has another id."""

    has_project: bool = False
    made: int = 0
    lifted: list[str] = field(default_factory=list)

    async def session(self, login: PodLogin, _: float, *, is_sure: bool = False) -> Any:
        """Log in."""
        if login.project_name == "mine" and not self.has_project:
            raise LoginRefused("no")
        return SimpleNamespace(project_id=f"id-{self.made}", domain_id="default", user_id="u")

    async def send(self, _: PodLogin, call: PodCall) -> PodAnswer:
        """Answer a request."""
        if call.target == "/projects":
            self.has_project, self.made = True, self.made + 1
            return answer({"project": {"id": f"id-{self.made}", "name": "mine"}})
        if call.target.startswith("/roles"):
            return answer({"roles": [{"id": "r", "name": "member"}]})
        if call.target.startswith("/os-quota-sets/"):
            self.lifted.append(call.target.rpartition("/")[2])
            return answer({})
        return PodAnswer(204, {}, b"")

    async def own_login(self, _: object) -> PodLogin:
        """Return the administrator's login."""
        return login_of(pod_of(1), "secret")


def test_quotas_are_lifted_again_for_a_project_that_was_made_anew() -> None:
    pod = PlayedPod()
    podding = SimpleNamespace(pod_request_timeout_s=1.0)
    clouds = SimpleNamespace(client=pod, podding=podding, own_login=pod.own_login)
    tenants = Tenants(cast("Any", clouds))

    async def use() -> None:
        login = await tenants.of_project(pod_of(1), "mine")
        await tenants.lift_quota(pod_of(1), login, COMPUTE)

    for has_project in (False, True, False):
        pod.has_project = has_project
        asyncio.run(use())
    assert pod.lifted == ["id-1", "id-2"]
