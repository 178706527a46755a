"""The login file: private, complete, and with its other clouds unchanged."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import yaml

from innkeeper.entrypoints.api.identity import clouds_file
from innkeeper.entrypoints.api.identity.clouds_file import CloudLogin

LOGIN = CloudLogin("http://localhost/identity/v3", "admin", "se: cret #'\"", "admin", "RegionOne")


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = clouds_file.write(tmp_path, LOGIN)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IRUSR | stat.S_IWUSR
    assert [each.name for each in tmp_path.iterdir()] == ["clouds.yaml"]


def test_a_file_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text("clouds: {}\n")
    path.chmod(0o644)
    with path.open() as held_open_by_others:
        clouds_file.write(tmp_path, LOGIN)
        assert LOGIN.password not in held_open_by_others.read()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IRUSR | stat.S_IWUSR


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (tmp_path / "clouds.yaml").symlink_to(other)
    path = clouds_file.write(tmp_path, LOGIN)
    assert not other.exists()
    assert not path.is_symlink()


def test_it_has_the_fields_that_clients_read(tmp_path: Path) -> None:
    path = clouds_file.write(tmp_path, LOGIN)
    assert yaml.safe_load(path.read_text())["clouds"]["innkeeper"] == {
        "auth_type": "password",
        "auth": {
            "auth_url": LOGIN.auth_url,
            "username": "admin",
            "password": LOGIN.password,
            "project_name": "admin",
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
        "region_name": "RegionOne",
        "identity_api_version": 3,
    }


def test_other_clouds_stay(tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text("clouds: {other: {region_name: Far}}\n")
    clouds_file.write(tmp_path, LOGIN)
    clouds = yaml.safe_load(path.read_text())["clouds"]
    assert clouds["other"] == {"region_name": "Far"}
    assert "innkeeper" in clouds


def test_only_the_address_is_updated(tmp_path: Path) -> None:
    path = clouds_file.write(tmp_path, LOGIN)
    untouched = path.stat().st_ino
    clouds_file.move(tmp_path, LOGIN.auth_url)
    assert path.stat().st_ino == untouched
    clouds_file.move(tmp_path, "http://elsewhere/v3")
    assert clouds_file.read_auth_url(tmp_path) == "http://elsewhere/v3"
    assert yaml.safe_load(path.read_text())["clouds"]["innkeeper"]["auth"]["password"] == (
        LOGIN.password
    )


def test_a_file_without_this_cloud_is_unchanged(tmp_path: Path) -> None:
    clouds_file.move(tmp_path, "http://elsewhere/v3")
    assert list(tmp_path.iterdir()) == []
    for text in ("", "[1]", "clouds: 3", "clouds: {innkeeper: 3}", "{", "clouds: {x: {}}"):
        (tmp_path / "clouds.yaml").write_text(text)
        clouds_file.move(tmp_path, "http://elsewhere/v3")
        assert (tmp_path / "clouds.yaml").read_text() == text
        assert clouds_file.read_auth_url(tmp_path) is None
