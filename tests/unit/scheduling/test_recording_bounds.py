"""The sizes in a recording are limited; a table of 100,000 hosts is far below the limits."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import os_resource_classes
import os_traits
import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import ProviderId
from innkeeper.domain.placing import BuildPlan
from innkeeper.entrypoints.simulator import recorded_hosts
from innkeeper.main import main
from innkeeper.scheduling import recordings
from innkeeper.scheduling.recordings import (
    BYTES_MAX,
    COLUMN_BYTES_MAX,
    HEAD_BYTES_MAX,
    MB,
    Recipe,
    Recording,
)
from innkeeper.snapshot import recording
from innkeeper.snapshot.columns import HostTable
from tests.support.tables import asking, host, table_of

HOSTS = 100_000
PROJECTS = 20
SOME = 500
ENTRY = b"PK\x01\x02"
SIZE_AT = 24
"""The position of the unpacked size in an entry of an archive's directory."""


def packed(table: HostTable) -> bytes:
    recipe = Recipe("chance", (), (), 1, 1)
    plan = BuildPlan(entries=(), seen={}, hosts=1, candidates=1, removals=())
    return recordings.write(
        Recording(recording.copy_of(table), asking(), recipe, plan, "then", "r-1")
    )


def claiming(content: bytes, member: str, size: int) -> bytes:
    """Return the same archive, but its directory claims that a member has this size."""
    start = content.index(ENTRY)
    while not content[start + 46 :].startswith(member.encode()):
        start = content.index(ENTRY, start + 1)
    claim = struct.pack("<I", size)
    return content[: start + SIZE_AT] + claim + content[start + SIZE_AT + 4 :]


def with_column(content: bytes, column: bytes) -> bytes:
    """The same recording, with other bytes for one of its columns."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = column if name == "hosts/fact/is_open.npy" else old.read(name)
            new.writestr(name, data, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def column_of(head: str, rows: bytes = b"\1") -> bytes:
    padded = head.encode().ljust(118)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + rows


def refusal_of(content: bytes) -> str:
    with pytest.raises(Invalid) as refused:
        recordings.read(content)
    return refused.value.message


def test_a_hundred_thousand_hosts_with_all_columns_are_read() -> None:
    table = table_of(host("a"))
    for name in os_resource_classes.STANDARDS:
        table.ensure_class(name)
    for name in os_traits.get_traits():
        table.ensure_trait(name)
    sizes = [column.itemsize for column in table.columns().values()]
    assert HOSTS * max(sizes) < COLUMN_BYTES_MAX
    # This includes as many custom classes and traits as standard ones.
    assert 2 * HOSTS * sum(sizes) < BYTES_MAX - HEAD_BYTES_MAX


def test_the_head_of_a_hundred_thousand_full_hosts_is_read() -> None:
    table = table_of(*(host(f"compute-{number:06}.rack-17.example.org") for number in range(SOME)))
    table.knows_servers = True
    for index in range(SOME):
        servers = {f"{index:016x}{number:016x}": 3 for number in range(PROJECTS)}
        table.residents.replace(ProviderId(int(table.provider_ids[index])), servers)
    with zipfile.ZipFile(io.BytesIO(packed(table))) as archive:
        head = archive.getinfo(recordings.HEAD).file_size
    assert head * HOSTS / SOME < HEAD_BYTES_MAX / 2


def test_more_than_the_bounds_is_refused_with_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = packed(table_of(host("a")))
    assert refusal_of(claiming(content, recordings.HEAD, 300 * MB)) == (
        "The recording is too large: unpacked, recording.json has 300 MiB; the limit is 256 MiB."
    )
    assert refusal_of(claiming(content, "hosts/fact/is_open.npy", 20 * MB)) == (
        "The recording is too large: unpacked, hosts/fact/is_open.npy has 20 MiB; the limit is "
        "16 MiB."
    )
    extra = io.BytesIO(content)
    with zipfile.ZipFile(extra, "a") as archive:
        for number in range(40):
            archive.writestr(f"more/{number:02}.npy", b"")
    many = extra.getvalue()
    for number in range(40):
        many = claiming(many, f"more/{number:02}.npy", 16 * MB)
    assert "unpacked, it has 640 MiB; the limit is 512 MiB." in refusal_of(many)
    path = tmp_path / "large.zip"
    path.write_bytes(claiming(content, recordings.HEAD, 300 * MB))
    assert main(["replay", str(path)]) == 2
    assert "The recording is too large" in capsys.readouterr().err


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.zip"
    with path.open("wb") as file:
        # The file is sparse, so nothing of this size is written to the disk.
        file.truncate(BYTES_MAX + 1024 * MB)
    told = "The recording is too large: the file has 1536 MiB; the limit is 512 MiB."
    assert main(["replay", str(path)]) == 2
    assert capsys.readouterr().err == f"innkeeper replay: {told}\n"
    with pytest.raises(Invalid, match="the file has 1536 MiB"):
        recorded_hosts.load(path)


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (
            "{'descr': '|b1', 'fortran_order': False, 'shape': (1000000000000000,), }",
            "wrong number",
        ),
        ("{'descr': '|b1', 'fortran_order': False, 'shape': (1, 1), }", "not a column of numbers"),
        ("{'descr': '|V0', 'fortran_order': False, 'shape': (1,), }", "not a column of numbers"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "not a column of numbers"),
        ("{'descr': ((( 'a", "The recording is damaged"),
        ("{'descr': '|b1'}", "The recording is damaged"),
    ],
)
def test_a_column_is_what_is_there_and_not_what_is_claimed(head: str, told: str) -> None:
    content = packed(table_of(host("a")))
    assert told in refusal_of(with_column(content, column_of(head)))
    whole = column_of("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }")
    assert np.all(recordings.read(with_column(content, whole)).table.is_open)
