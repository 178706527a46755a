"""The addresses of a database's servers in its URL."""

from __future__ import annotations

import pytest

from innkeeper.store.backends.addresses import Address, split


def test_one_address_stays_as_it_is() -> None:
    url, addresses = split("mariadb://keeper:s%2Fcret@db.example:3307/cloud?ssl_ca=/ca.pem")
    assert addresses == [Address("db.example", 3307)]
    assert url.password == "s/cret"
    assert (url.host, url.port, url.database) == ("db.example", 3307, "cloud")
    assert url.query == {"ssl_ca": "/ca.pem"}


def test_several_addresses_are_given_in_order() -> None:
    url, addresses = split("mariadb://keeper@one:3306,two,[2001:db8::3]:3308/cloud")
    assert [str(each) for each in addresses] == ["one:3306", "two", "[2001:db8::3]:3308"]
    assert (url.host, url.port, url.username) == ("one", 3306, "keeper")


def test_a_url_may_name_no_address() -> None:
    url, addresses = split("mariadb:///cloud?unix_socket=/run/mysqld/mysqld.sock")
    assert addresses == []
    assert url.database == "cloud"


@pytest.mark.parametrize(
    ("hosts", "why"),
    [
        ("one,,two", "not an address"),
        ("one,", "not an address"),
        ("one:0,two", "not an address"),
        ("one:65536,two", "not an address"),
        ("one:3306:3307,two", "not an address"),
        ("one:mysql", "not an address"),
        ("2001:db8::3", "not an address"),
        ("one:3306,one:3306", "twice"),
    ],
)
def test_an_invalid_list_of_addresses_is_rejected(hosts: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        split(f"mariadb://keeper:secret@{hosts}/cloud")
    assert "secret" not in str(refused.value)
    with pytest.raises(ValueError, match="not an address") as refused:
        split("mariadb://keeper:secret/with-a-slash@one/cloud")
    assert "secret" not in str(refused.value)


def test_an_invalid_url_is_rejected() -> None:
    with pytest.raises(ValueError, match="must have the form"):
        split("cloud:secret")
