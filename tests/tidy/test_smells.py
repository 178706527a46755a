"""The smells of the design that can be found line by line in the source.

The patterns are the design's own. If a pattern is easily circumvented by accident, there is a
second pattern.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.tidy.exceptions import judge
from tests.tidy.tree import ROOT, File, Finding, finding, python_files, search

SOURCE = "src/innkeeper"
FILTERS_AND_WEIGHERS = ("src/innkeeper/scheduling/filters", "src/innkeeper/scheduling/weighers")
FILE_LINES_MAX = 400
"""The longest file that is easy to read. A longer one has two subjects."""


def test_one_place_claims() -> None:
    """Only the store's compare-and-update advances a generation (smell 2)."""
    others = [f for f in python_files(SOURCE) if not f.path.endswith("/store/claims.py")]
    judge("second-claim", search(r"generation.*\+ ?1\b", others))


def test_files_are_short() -> None:
    """Files stay short (smell 3); the linter checks the functions."""
    long = [
        Finding(file.path, 1, "longer than the limit")
        for file in python_files(SOURCE)
        if len(file.text.splitlines()) > FILE_LINES_MAX
    ]
    judge("file-length", long)


TYPES_IN_THREADS = frozenset(
    {
        # Called while modules are imported.
        "converter_to",
        "decoder_of",
        # The only user of a type that it has just made.
        "RowLayout.of",
    }
)
"""Functions that may let msgspec read the fields of a type."""


def test_types_are_read_before_there_are_threads() -> None:
    """A decoder or a conversion for a type that two threads use first ends the process."""
    hits = [hit for file in python_files(SOURCE) for hit in _types_read_late(file)]
    judge("late-type", hits)


def _types_read_late(file: File) -> list[Finding]:
    """Find decoders that functions make for a type, and conversions outside of converters."""
    found = []
    for name, function in _functions(file.tree().body, ""):
        if name in TYPES_IN_THREADS:
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            keys = {each.arg for each in node.keywords}
            has_type = bool(node.args or keys) if called.endswith(".Decoder") else "type" in keys
            if called == "msgspec.convert" or (called.startswith("msgspec.") and has_type):
                found.append(finding(file, node, f"{called} in {name}"))
    return found


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for each in body:
        if isinstance(each, ast.ClassDef):
            yield from _functions(each.body, f"{prefix}{each.name}.")
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + each.name, each


def test_words_of_other_dialects_stay_in_their_api() -> None:
    """Words of other dialects stay in the API that speaks them (smell 4)."""
    inside = [file for file in python_files(SOURCE) if "api" not in file.folders]
    words = r"(?<!\w)(" + "|".join(sorted(other_words())) + r")(?!\w)"
    judge("other-dialect", search(words, inside, re.IGNORECASE))


def other_words() -> set[str]:
    """Read the words that the glossary lists as those of other dialects."""
    glossary = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in glossary.splitlines() if line[:2] == "| "]
    words = {word for row in cells for word in re.findall(r"`(\w+)`", "".join(row[2:]))}
    assert "tenant" in words, "the glossary is not read as it is written"
    return words


HIDDEN_SOURCES = "|".join(
    (
        r"datetime\.(now|utcnow|today)",
        r"time\.(time|monotonic|sleep)\(",
        r"random\.",
        r"uuid4\(",
        r"os\.environ",
        # The same effects in another form.
        r"os\.(getenv|urandom)\b",
        r"secrets\.\w+\(",
        r"from time import .*\b(time|monotonic|sleep)\b",
        r"from random import",
        r"from os import .*\b(environ|getenv|urandom)\b",
        r"uuid1\(",
    )
)


def test_clock_dice_and_environment_are_handed_in() -> None:
    """A decision that reads a clock or draws random numbers cannot be replayed (smell 6)."""
    handed_in = re.compile(r"wiring|settings|random_ids|random.Generator")
    hits = search(HIDDEN_SOURCES, python_files(SOURCE))
    judge("hidden-input", (hit for hit in hits if not handed_in.search(str(hit))))


def test_modules_of_the_core_remember_nothing() -> None:
    """State belongs to an object that can be created anew, not to a module."""
    core = [
        file
        for folder in ("domain", "store", "snapshot", "scheduling", "systems", "clients")
        for file in python_files(f"{SOURCE}/{folder}")
    ]
    containers = r"(set|dict|list|defaultdict|OrderedDict|deque|Counter|Weak\w+)(\[.*\])?\(\)"
    made = rf"^\w+(: [^=]+)? = (\{{\}}|\[\]|([\w.]+\.)?{containers})"
    judge("module-state", search(rf"{made}|^\s+global \w", core))


def test_filters_and_weighers_do_not_loop() -> None:
    """Columns, never a loop over hosts (smell 7)."""
    checked = [file for folder in FILTERS_AND_WEIGHERS for file in python_files(folder)]
    statements = search(r"^\s+(for|while) |\.tolist\(\)|vectorize", checked)
    comprehensions = (hit for file in checked for hit in loops_over_hosts(file))
    judge("loop-over-hosts", [*statements, *comprehensions])


def loops_over_hosts(file: File) -> list[Finding]:
    """Find comprehensions that iterate over the host table's rows."""
    found = []
    for node in ast.walk(file.tree()):
        if not isinstance(node, ast.comprehension):
            continue
        names = {n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name)}
        if names & {"hosts", "table"}:
            found.append(finding(file, node.iter, f"for ... in {ast.unparse(node.iter)}"))
    return found


def test_handlers_know_the_newest_version_only() -> None:
    """Older versions are translated at the edge (smell 8)."""
    handlers = [
        file
        for file in python_files("src/innkeeper/entrypoints/api")
        if "versions" not in file.folders and file.name != "microversions.py"
    ]
    judge("old-version", search(r"version\s*(<|>|==)|\.matches\(", handlers))


def test_no_error_is_swallowed_and_no_wait_is_endless() -> None:
    """Catching everything hides the next bug; a loop states its end (smell 9)."""
    pattern = (
        r"except( Exception| BaseException)?( as \w+)?:|while True|suppress\((Base)?Exception"
        r"|except \(.*\b(Base)?Exception\b"
    )
    judge("swallowed-error", search(pattern, python_files(SOURCE)))
