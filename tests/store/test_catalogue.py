"""Pages of flavors and images continue where the last one ended, in every order."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

import pytest

from innkeeper.domain.compute import Flavor
from innkeeper.domain.errors import AlreadyExists, ConcurrentUpdate
from innkeeper.domain.images import Image
from innkeeper.domain.keypairs import Keypair
from innkeeper.domain.listing import FlavorSelection, ImageSelection
from innkeeper.store.queries.compute import flavors, images, keypairs, quotas
from innkeeper.store.queries.compute.flavors import SORT_COLUMNS
from innkeeper.store.transactions import Store

NOW = datetime(2030, 1, 1)  # noqa: DTZ001 - all timestamps are naive
COUNT = 7


def flavor(number: int) -> Flavor:
    """Flavors that share most of their values, so that ties must be broken."""
    return Flavor(
        id=0,
        flavor_id=f"id-{number}",
        name=f"name-{COUNT - number}",
        vcpus=1 + number % 2,
        memory_mb=64 * (1 + number % 3),
        disk_gb=number,
        is_public=number % 2 == 0,
        description=None if number % 3 else "d",
    )


def image(number: int) -> Image:
    """Images that share most of their values."""
    return Image(
        id=f"00000000-0000-0000-0000-00000000000{number}",
        name=None if number % 3 == 0 else f"name-{number % 2}",
        owner=f"project-{number % 2}",
        visibility=("private", "public", "community")[number % 3],
        status="queued",
        disk_format=None,
        container_format=None,
        min_ram_mb=0,
        min_disk_gb=0,
        size_bytes=None if number % 2 else number,
        checksum=None,
        sha512=None,
        is_protected=False,
        is_hidden=False,
        tags=("even",) if number % 2 == 0 else (),
        properties={"number": str(number)},
        created_at=NOW + timedelta(microseconds=number),
        updated_at=NOW,
    )


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("sort_key", sorted(SORT_COLUMNS))
def test_flavors_in_pages(store: Store, sort_key: str, is_descending: bool) -> None:
    with store.write() as tx:
        for number in range(COUNT):
            flavors.insert(tx, flavor(number), NOW)
    wanted = FlavorSelection(is_public=None, sort_key=sort_key, is_descending=is_descending)
    with store.read() as tx:
        whole = flavors.page(tx, wanted, None, COUNT + 1)
        paged: list[Flavor] = []
        while page := flavors.page(tx, wanted, paged[-1] if paged else None, 2):
            paged += page
    assert paged == whole
    assert len(whole) == COUNT
    values = [getattr(each, sort_key) for each in whole]
    shown = ["" if value is None else value for value in values]
    assert shown == sorted(shown, reverse=is_descending)


def test_private_flavors_come_with_their_project(store: Store) -> None:
    with store.write() as tx:
        made = [flavors.insert(tx, flavor(number), NOW) for number in range(3)]
        flavors.add_project(tx, made[1].id, "lab")
        of_lab = flavors.page(tx, FlavorSelection(project_id="lab"), None, COUNT)
        of_shop = flavors.page(tx, FlavorSelection(project_id="shop"), None, COUNT)
        assert [each.flavor_id for each in of_lab] == ["id-0", "id-1", "id-2"]
        assert [each.flavor_id for each in of_shop] == ["id-0", "id-2"]
        assert flavors.projects_of(tx, made[1].id) == ["lab"]
        flavors.delete(tx, made[1].id)
        assert flavors.projects_of(tx, made[1].id) == []


def test_extra_specs_are_replaced_by_compare_and_update(store: Store) -> None:
    with store.write() as tx:
        made = flavors.insert(tx, flavor(0), NOW)
        flavors.replace_extra_specs(tx, made, {"a": "b"}, NOW + timedelta(seconds=1))
        with pytest.raises(ConcurrentUpdate):
            flavors.replace_extra_specs(tx, made, {}, NOW + timedelta(seconds=2))
        found = flavors.by_public_ids(tx, ["id-0", "none"])
    assert found["id-0"].extra_specs == {"a": "b"}


def test_an_id_inserted_in_between_is_a_conflict(store: Store) -> None:
    with store.write() as tx:
        flavors.insert(tx, flavor(0), NOW)
        images.insert(tx, image(0))
        keypairs.insert(tx, Keypair("ann", "key", "ssh", "text", "print", NOW))
    with pytest.raises(AlreadyExists), store.write() as tx:
        flavors.insert(tx, dataclasses.replace(flavor(1), name=flavor(0).name), NOW)
    with pytest.raises(AlreadyExists), store.write() as tx:
        images.insert(tx, image(0))
    with pytest.raises(AlreadyExists), store.write() as tx:
        keypairs.insert(tx, Keypair("ann", "key", "ssh", "text", "print", NOW))


@pytest.mark.parametrize("key", ["name", "size_bytes", "owner", "created_at", "visibility"])
@pytest.mark.parametrize("is_descending", [False, True])
def test_images_in_pages(store: Store, key: str, is_descending: bool) -> None:
    with store.write() as tx:
        for number in range(COUNT):
            images.insert(tx, image(number))
    sort = ((key, is_descending), ("id", not is_descending))
    for selection in (
        ImageSelection(sort=sort),
        ImageSelection(sort=sort, viewer="project-0"),
        ImageSelection(sort=sort, accepts=lambda each: "even" in each.tags),
    ):
        with store.read() as tx:
            whole = images.page(tx, selection, None, COUNT + 1)
            paged: list[Image] = []
            while page := images.page(tx, selection, paged[-1] if paged else None, 2):
                paged += page
        assert paged == whole
        assert whole


def test_projects_see_their_own_and_shared_images(store: Store) -> None:
    with store.write() as tx:
        for number in range(COUNT):
            images.insert(tx, image(number))

    def seen(selection: ImageSelection) -> set[str]:
        with store.read() as tx:
            return {each.id[-1] for each in images.page(tx, selection, None, COUNT)}

    assert seen(ImageSelection()) == set("0123456")
    # Public images (1, 4) and the project's own (0, 2, 4, 6).
    assert seen(ImageSelection(viewer="project-0")) == set("01246")
    # Other projects' community images (5) on request.
    assert seen(ImageSelection(viewer="project-0", with_community=True)) == set("012456")
    assert seen(ImageSelection(exact={"owner": ("project-1",)})) == set("135")
    assert seen(ImageSelection(size_bytes_min=2, size_bytes_max=4)) == set("24")


def test_quotas_are_set_one_by_one(store: Store) -> None:
    with store.write() as tx:
        quotas.replace(tx, "lab", {"servers": 1, "vcpus": 2})
        quotas.replace(tx, "lab", {"vcpus": -1})
        quotas.replace(tx, "lab", {})
        assert quotas.of_projects(tx, ["lab", "shop"]) == {
            "lab": {"servers": 1, "vcpus": -1},
            "shop": {},
        }
        quotas.delete(tx, "lab", ["vcpus", "keypairs"])
        assert quotas.of_projects(tx, ["lab"]) == {"lab": {"servers": 1}}


def test_keypairs_are_each_users_own(store: Store) -> None:
    with store.write() as tx:
        for user, name in (("ann", "b"), ("ann", "a"), ("bob", "a")):
            keypairs.insert(tx, Keypair(user, name, "ssh", "text", "print", NOW))
        assert [each.name for each in keypairs.page(tx, "ann", None, COUNT)] == ["a", "b"]
        assert [each.name for each in keypairs.page(tx, "ann", "a", COUNT)] == ["b"]
        assert keypairs.count(tx, "ann") == 2
        assert keypairs.delete(tx, "ann", "a")
        assert not keypairs.delete(tx, "ann", "a")
        assert keypairs.get(tx, "bob", "a") is not None
