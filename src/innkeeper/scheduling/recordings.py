"""Read and write recordings, which are files with a decision and all of its inputs.

The file is a ZIP archive. ``recording.json`` has the request, the configuration and the plan. Every
other member is one column of the host table in NumPy's format.

Always true: a file that :func:`read` accepts can be replayed. For any other file, :func:`read`
raises :class:`Invalid`. No code in a file is executed.
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

from innkeeper.domain.converters import converter_to
from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import BuildPlan, RequestSpec
from innkeeper.scheduling import expressions
from innkeeper.snapshot import recording
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.recording import Column, Moment

FORMAT = "innkeeper-recording"
VERSION = 5
"""The version of the format. It is incremented when older programs cannot read new files."""
HEAD = "recording.json"
SUFFIX = ".npy"
DENSITY = 3
"""The compression level. Higher levels take several times as long and save a few percent."""
MB = 2**20
BYTES_MAX = 512 * MB
"""The maximum size of a file, and of all its unpacked members, as a protection against ZIP bombs.
With all standard classes and traits, the columns of 100,000 hosts take 123 MiB. If as many custom
classes and traits are added, the size doubles."""
HEAD_BYTES_MAX = 256 * MB
"""The maximum size of the archive's file ``HEAD``. The limit is more than twice the size for
100,000 hosts that each have servers of 20 projects."""
COLUMN_BYTES_MAX = 16 * MB
"""The maximum size of a column: two million rows. For 100,000 hosts, a column has under 1 MB."""
NUMBERS = "biuf"
"""The kinds of NumPy types in columns: booleans, integers and floats."""
FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The date of all files in the archive. It is fixed, so that equal recordings have equal bytes."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The configuration of a scheduler, with the names that are used in the settings."""

    driver: str
    filters: tuple[str, ...]
    weighers: tuple[tuple[str, float], ...]
    subset_size: int
    attempts_max: int


_recipe, _read_spec = converter_to(Recipe), converter_to(RequestSpec)
_plan = converter_to(BuildPlan, strict=False)


@dataclass(frozen=True, slots=True)
class Recording:
    """A decision with its inputs. ``recorded_at`` is a UTC time as text; ``label`` is a remark."""

    moment: Moment
    spec: RequestSpec
    recipe: Recipe
    plan: BuildPlan
    recorded_at: str
    label: str


@dataclass(frozen=True, slots=True)
class Reopened:
    """A recording that was read from a file, with a complete host table."""

    table: HostTable
    spec: RequestSpec
    recipe: Recipe
    plan: BuildPlan
    recorded_at: str
    label: str


def write(decision: Recording) -> bytes:
    """Return the bytes of a recording's file."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "recorded_at": decision.recorded_at,
        "label": decision.label,
        "recipe": msgspec.to_builtins(decision.recipe),
        "spec": _plain_spec(decision.spec),
        "plan": msgspec.to_builtins(decision.plan, str_keys=True),
        "table": recording.plain(decision.moment.state),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        # Other programs must be able to read the file, and JSON has neither nan nor infinity.
        text = json.dumps(head, indent=1, allow_nan=False)
        archive.writestr(_member(HEAD), text, zipfile.ZIP_DEFLATED, DENSITY)
        for path, column in decision.moment.columns.items():
            whole = io.BytesIO()
            np.lib.format.write_array(whole, column, allow_pickle=False)
            member = _member(path + SUFFIX)
            archive.writestr(member, whole.getvalue(), zipfile.ZIP_DEFLATED, DENSITY)
    return packed.getvalue()


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, FIRST_DAY)
    # Only the owner may read unpacked files, because they contain names of hosts and projects.
    member.external_attr = 0o600 << 16
    return member


def read(packed: bytes) -> Reopened:
    """Read a recording. Raises :class:`Invalid` for damaged files and for other versions."""
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
        raise Invalid(f"The recording is damaged: {_text(error)} is missing.") from error
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        MemoryError,
        # Raised for unknown compression methods and for too deep nesting.
        RuntimeError,
        TypeError,
        ValueError,
        msgspec.MsgspecError,
        tokenize.TokenError,
        zlib.error,
    ) as error:
        raise Invalid(f"The recording is damaged: {_text(error)}.") from error


def _text(error: BaseException) -> str:
    reason = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(reason).rstrip(".") or type(error).__name__


class _TooLarge(Exception):
    """Raised if a file or member exceeds its size limit. The message has the size and the limit."""


def check_file_size(size: int) -> None:
    """Raise :class:`Invalid` for a file that is too large to read."""
    if size > BYTES_MAX:
        raise Invalid(
            f"The recording is too large: the file has {_mebibytes(size)}; the limit is "
            f"{_mebibytes(BYTES_MAX)}."
        )


def _check_size(archive: zipfile.ZipFile) -> None:
    for each in archive.infolist():
        most = HEAD_BYTES_MAX if each.filename == HEAD else COLUMN_BYTES_MAX
        if each.file_size > most:
            raise _TooLarge(
                f"unpacked, {each.filename} has {_mebibytes(each.file_size)}; the limit is "
                f"{_mebibytes(most)}"
            )
    whole = sum(each.file_size for each in archive.infolist())
    if whole > BYTES_MAX:
        raise _TooLarge(
            f"unpacked, it has {_mebibytes(whole)}; the limit is {_mebibytes(BYTES_MAX)}"
        )


def _mebibytes(size: int) -> str:
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
        raise ValueError(f"its version is {version!r}, not a whole number above 0")
    if version < VERSION:
        raise Invalid(
            f"The recording has version {version}, and this program reads only version {VERSION}. "
            "Replay it with the older Innkeeper that wrote it."
        )
    if version > VERSION:
        raise Invalid(
            f"The recording has version {version}, and this program reads only version {VERSION}. "
            "Replay it with the newer Innkeeper that wrote it."
        )
    return head


def _columns(archive: zipfile.ZipFile) -> dict[str, Column]:
    found: dict[str, Column] = {}
    for name in archive.namelist():
        if name.endswith(SUFFIX):
            # The member is read completely, because its checksum is verified at the end.
            found[name.removesuffix(SUFFIX)] = _column(name, archive.read(name))
    return found


def _column(name: str, packed: bytes) -> Column:
    """Parse one column, and check the number of rows in its header."""
    whole = io.BytesIO(packed)
    if np.lib.format.read_magic(whole) != (1, 0):
        raise ValueError(f"{name} has an unsupported version of NumPy's format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(whole)
    values = whole.read()
    if dtype.kind not in NUMBERS or len(shape) != 1:
        raise ValueError(f"{name} is not a column of numbers")
    if shape[0] * dtype.itemsize != len(values):
        raise ValueError(f"the header of {name} has a wrong number of rows")
    found: Column = np.frombuffer(values, dtype=dtype)
    return found


def _reopened(head: Mapping[str, Any], columns: Mapping[str, Column]) -> Reopened:
    return Reopened(
        table=recording.table_of(columns, head["table"]),
        spec=_spec(head["spec"]),
        recipe=_recipe(head["recipe"]),
        plan=_plan(head["plan"]),
        recorded_at=str(head["recorded_at"]),
        label=str(head["label"]),
    )


def _plain_spec(spec: RequestSpec) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(spec)
    if math.isinf(spec.rules.capabilities_max_age_s):
        plain["rules"]["capabilities_max_age_s"] = None
    return plain


def _spec(plain: Mapping[str, Any]) -> RequestSpec:
    rules, query = dict(plain["rules"]), plain["query"]
    if rules["capabilities_max_age_s"] is None:
        rules["capabilities_max_age_s"] = math.inf
    if query is not None:
        # The query is parsed again, because JSON has no tuples.
        try:
            query = expressions.read(query)
        except Invalid as error:
            raise ValueError(error.message) from error
    return _read_spec({**plain, "rules": rules, "query": query})
