"""A decision with all that it was made of, as the bytes of a file, and back.

The file is a ZIP archive: ``recording.json`` says what was asked, who decided and what came
out; every other member is one column of the host table, in NumPy's own format.

Always true: what :func:`read` accepts can be decided again. Whatever else it is given, it
raises :class:`Invalid` and says what is wrong; nothing in a file is run.
"""

from __future__ import annotations

import io
import json
import math
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import BuildPlan, Expression, RequestSpec
from innkeeper.scheduling import expressions
from innkeeper.snapshot import recording
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.recording import Column, Moment

FORMAT = "innkeeper-recording"
VERSION = 4
"""Counts up when an older program could not read, or would misread, what is written."""
HEAD = "recording.json"
SUFFIX = ".npy"
DENSITY = 3
"""How hard is packed. More takes several times as long and gives a few percent."""
MB = 2**20
BYTES_MAX = 512 * MB
"""Of all members, unpacked, and of the file. A small file can claim to hold more. With all
classes and traits that there are by themselves, 100,000 hosts are 123 MiB of columns, and twice
as much with as many again of their own."""
HEAD_BYTES_MAX = 256 * MB
"""100,000 hosts with servers of 20 projects on each are less than half of it."""
COLUMN_BYTES_MAX = 16 * MB
"""Two million rows; a column of 100,000 hosts is less than 1 MB."""
NUMBERS = "biuf"
"""The kinds of NumPy's types that columns have: truths, whole numbers and doubles."""
FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""Archives date their members. The same recording is the same bytes, so these have one date."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a scheduler is made of, by the names that settings have for it."""

    driver: str
    filters: tuple[str, ...]
    weighers: tuple[tuple[str, float], ...]
    subset_size: int
    attempts_max: int


@dataclass(frozen=True, slots=True)
class Recording:
    """One decision. ``recorded_at`` is a moment in UTC as text; ``label`` tells which decision
    it was, for people."""

    moment: Moment
    spec: RequestSpec
    recipe: Recipe
    plan: BuildPlan
    recorded_at: str
    label: str


@dataclass(frozen=True, slots=True)
class Reopened:
    """A recording that was read from a file; its table is ready to be decided on."""

    table: HostTable
    spec: RequestSpec
    recipe: Recipe
    plan: BuildPlan
    recorded_at: str
    label: str


def write(made: Recording) -> bytes:
    """The bytes of a recording's file."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "recorded_at": made.recorded_at,
        "label": made.label,
        "recipe": msgspec.to_builtins(made.recipe),
        "spec": _plain_spec(made.spec),
        "plan": msgspec.to_builtins(made.plan, str_keys=True),
        "table": recording.plain(made.moment.state),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        # No ``nan`` and no infinity: other programs are to read this as well.
        text = json.dumps(head, indent=1, allow_nan=False)
        archive.writestr(_member(HEAD), text, zipfile.ZIP_DEFLATED, DENSITY)
        for path, column in made.moment.columns.items():
            whole = io.BytesIO()
            np.lib.format.write_array(whole, column, allow_pickle=False)
            member = _member(path + SUFFIX)
            archive.writestr(member, whole.getvalue(), zipfile.ZIP_DEFLATED, DENSITY)
    return packed.getvalue()


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, FIRST_DAY)
    # Whoever unpacks it: names of hosts and projects are in it.
    member.external_attr = 0o600 << 16
    return member


def read(packed: bytes) -> Reopened:
    """Open a recording again. Raises :class:`Invalid` for a file that is none, or damaged, or
    of a newer version."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            _check_size(archive)
            head = _head(archive)
            return _reopened(head, _columns(archive))
    except _TooLarge as error:
        raise Invalid(f"The recording is too large: {error}.") from error
    except zipfile.BadZipFile as error:
        raise Invalid(f"This is not a recording of a decision: {error}.") from error
    except KeyError as error:
        raise Invalid(f"The recording is damaged: {_told(error)} is missing.") from error
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        MemoryError,
        # A way of packing that is not known here is one of these, and so is too deep a nesting.
        RuntimeError,
        TypeError,
        ValueError,
        msgspec.MsgspecError,
        tokenize.TokenError,
        zlib.error,
    ) as error:
        raise Invalid(f"The recording is damaged: {_told(error)}.") from error


def _told(error: BaseException) -> str:
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(said).rstrip(".") or type(error).__name__


class _TooLarge(Exception):
    """More than is read here; the message says what, and how much would be."""


def check_file_size(size: int) -> None:
    """Refuse a file by its size, before it is read. Raises :class:`Invalid`."""
    if size > BYTES_MAX:
        raise Invalid(
            f"The recording is too large: the file has {_told_size(size)}, and at most "
            f"{_told_size(BYTES_MAX)} are read."
        )


def _check_size(archive: zipfile.ZipFile) -> None:
    for each in archive.infolist():
        most = HEAD_BYTES_MAX if each.filename == HEAD else COLUMN_BYTES_MAX
        if each.file_size > most:
            raise _TooLarge(
                f"unpacked, {each.filename} has {_told_size(each.file_size)}, and at most "
                f"{_told_size(most)} are read"
            )
    whole = sum(each.file_size for each in archive.infolist())
    if whole > BYTES_MAX:
        raise _TooLarge(
            f"unpacked it has {_told_size(whole)}, and at most {_told_size(BYTES_MAX)} are read"
        )


def _told_size(size: int) -> str:
    return f"{size / MB:.0f} MiB"


def _head(archive: zipfile.ZipFile) -> Mapping[str, Any]:
    try:
        head = json.loads(archive.read(HEAD))
    except KeyError as error:
        raise Invalid(f"This is not a recording of a decision: it has no {HEAD}.") from error
    if not isinstance(head, Mapping) or head.get("format") != FORMAT:
        raise Invalid("This is not a recording of a decision.")
    version = head["version"]
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"its version is {version!r}")
    if version < VERSION:
        raise Invalid(
            f"The recording is of version {version}, and lacks what this program keeps "
            f"with hosts from version {VERSION} on. The Innkeeper that wrote it can replay it."
        )
    if version > VERSION:
        raise Invalid(
            f"The recording is of version {version}, and this program reads those up to "
            f"{VERSION}. A newer Innkeeper wrote it, and can replay it."
        )
    return head


def _columns(archive: zipfile.ZipFile) -> dict[str, Column]:
    found: dict[str, Column] = {}
    for name in archive.namelist():
        if name.endswith(SUFFIX):
            # At once: an archive proves a member's sum only when its end was read.
            found[name.removesuffix(SUFFIX)] = _column(name, archive.read(name))
    return found


def _column(name: str, packed: bytes) -> Column:
    """One column. Its head may claim any number of rows; what counts is what is there."""
    whole = io.BytesIO(packed)
    if np.lib.format.read_magic(whole) != (1, 0):
        raise ValueError(f"{name} is of another version of NumPy's format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(whole)
    values = whole.read()
    if dtype.kind not in NUMBERS or len(shape) != 1:
        raise ValueError(f"{name} is no column of numbers")
    if shape[0] * dtype.itemsize != len(values):
        raise ValueError(f"{name} does not have the rows that it claims")
    found: Column = np.frombuffer(values, dtype=dtype)
    return found


def _reopened(head: Mapping[str, Any], columns: Mapping[str, Column]) -> Reopened:
    return Reopened(
        table=recording.table_of(columns, head["table"]),
        spec=_spec(head["spec"]),
        recipe=msgspec.convert(head["recipe"], Recipe),
        plan=msgspec.convert(head["plan"], BuildPlan, strict=False),
        recorded_at=str(head["recorded_at"]),
        label=str(head["label"]),
    )


def _plain_spec(spec: RequestSpec) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(spec)
    if math.isinf(spec.rules.capabilities_max_age_s):
        made["rules"]["capabilities_max_age_s"] = None
    return made


def _spec(told: Mapping[str, Any]) -> RequestSpec:
    rules = dict(told["rules"])
    if rules["capabilities_max_age_s"] is None:
        rules["capabilities_max_age_s"] = math.inf
    query = told["query"]
    return msgspec.convert(
        {**told, "rules": rules, "query": None if query is None else _query(query)}, RequestSpec
    )


def _query(told: Any) -> Expression:
    """An expression as it was parsed; JSON has no tuples."""
    try:
        return expressions.read(told)
    except Invalid as error:
        raise ValueError(error.message) from error
