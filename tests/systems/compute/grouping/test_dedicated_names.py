"""A project names a pcloud or a reservation by its id or by a name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.compute.grouping import dedications
from tests.support.dedicated_rows import EARLIER, add_lease, add_pcloud
from tests.support.server_rows import NOON, uuid

ODD_NAMES = ["", "a\0b", "\ud800", "n" * 256, "none"]


@pytest.fixture
def tx(store: Store) -> Iterator[Tx]:
    with store.write() as found:
        yield found


def refusal(tx: Tx, named: str, project_id: str = "red") -> str:
    with pytest.raises(Invalid) as refused:
        dedications.pcloud_named(tx, named, project_id)
    return refused.value.message


def no_reservation(tx: Tx, named: str) -> str:
    with pytest.raises(Invalid) as refused:
        dedications.reservation_named(tx, named, "red", NOON)
    return refused.value.message


def test_a_text_in_the_form_of_an_id_is_an_id(tx: Tx) -> None:
    add_pcloud(tx, 1, uuid(9), "red", "red")
    add_lease(tx, 1, uuid(9), uuid(11))
    loose = uuid(9).replace("-", "").upper()
    for each in (uuid(9), loose):
        assert dedications.pcloud_named(tx, each, "red") == uuid(9)
        assert dedications.reservation_named(tx, each, "red", NOON) == uuid(9)


def test_a_project_own_pcloud_precedes_those_of_other_projects(tx: Tx) -> None:
    add_pcloud(tx, 1, "ours", "blue", "blue", "red")
    assert dedications.pcloud_named(tx, "ours", "red") == uuid(1)
    # Even if the owner has removed its own access, the name means its pcloud, as in commands.
    add_pcloud(tx, 2, "ours", "red")
    assert dedications.pcloud_named(tx, "ours", "red") == uuid(2)
    assert dedications.pcloud_named(tx, "ours", "blue") == uuid(1)


def test_an_ambiguous_pcloud_name_is_rejected_with_ids(tx: Tx) -> None:
    for number, owner in enumerate(("blue", "green", "gold"), start=1):
        add_pcloud(tx, number, "ours", owner, owner, *(("red",) if number < 3 else ()))
    message = f"Several pclouds are called 'ours'. Name one by its id: {uuid(1)}, {uuid(2)}."
    assert refusal(tx, "ours") == message
    add_pcloud(tx, 4, "ours", "red", "red")
    add_pcloud(tx, 5, "ours", "red", "red")
    assert refusal(tx, "ours").endswith(f"its id: {uuid(4)}, {uuid(5)}.")


def test_a_refusal_lists_a_limited_number_of_pclouds(tx: Tx) -> None:
    for number in range(1, 13):
        add_pcloud(tx, number, "spam", f"owner-{number}", "red")
    message = refusal(tx, "spam")
    assert uuid(10) in message
    assert uuid(11) not in message
    assert message.endswith(", and others.")


def test_other_projects_pclouds_are_unknown(tx: Tx) -> None:
    add_pcloud(tx, 1, "theirs", "blue", "blue")
    theirs, nobodys = refusal(tx, "theirs"), refusal(tx, "nobody")
    assert theirs.replace("theirs", "nobody") == nobodys
    assert nobodys == "No pcloud that this project may use has the name or id 'nobody'."


@pytest.mark.parametrize("name", ODD_NAMES)
def test_invalid_names_are_unknown(tx: Tx, name: str) -> None:
    assert refusal(tx, name).startswith("No pcloud that this project may use")
    assert no_reservation(tx, name).startswith("No reservation has the id")


def test_names_are_case_sensitive(tx: Tx) -> None:
    add_pcloud(tx, 1, "Ours", "red", "red")
    add_lease(tx, 1, "Course", uuid(11))
    assert "has the name or id 'ours'" in refusal(tx, "ours")
    assert "has the id 'course'" in no_reservation(tx, "course")


def test_a_lease_name_means_its_reservation_until_it_ends(tx: Tx) -> None:
    add_lease(tx, 1, "course", uuid(11), end_at=NOON)
    add_lease(tx, 2, "course", uuid(12), ended_at=EARLIER)
    add_lease(tx, 3, "course", uuid(13), is_deleted=True)
    add_lease(tx, 4, "course", uuid(14), owner="blue")
    gone = no_reservation(tx, "course")
    assert gone == (
        "No reservation has the id 'course', and no current or future lease of this project has "
        "that name."
    )
    assert no_reservation(tx, "nobody") == gone.replace("course", "nobody")
    add_lease(tx, 5, "course", uuid(15))
    assert dedications.reservation_named(tx, "course", "red", NOON) == uuid(15)


def test_an_ambiguous_lease_name_is_rejected_with_ids(tx: Tx) -> None:
    add_lease(tx, 1, "course", uuid(11))
    add_lease(tx, 2, "course", uuid(12))
    message = no_reservation(tx, "course")
    assert message == (
        "Several leases are called 'course'. "
        f"Use the id of one of their reservations: {uuid(11)}, {uuid(12)}."
    )


def test_a_lease_with_several_reservations_is_ambiguous(tx: Tx) -> None:
    add_lease(tx, 1, "course", uuid(11), uuid(12))
    message = no_reservation(tx, "course")
    assert message == (
        f"The lease 'course' has several reservations. Name one by its id: {uuid(11)}, {uuid(12)}."
    )
