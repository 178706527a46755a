"""Names: one word for each thing, no catch-all modules, and small folders."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.exceptions import judge
from tests.tidy.tree import ROOT, File, Finding, finding, python_files, walk

SOURCE = "src/innkeeper"
DRAWERS = re.compile(r"util|helper|common|manager|^base\.py$", re.IGNORECASE)
BANNED = frozenset(
    {"util", "utils", "helper", "helpers", "common", "misc", "manager", "base"}
    | {"data", "info", "process"}
)
"""These words say nothing about the content."""
BANNED_VERB = "handle"
PACKAGES_PER_FOLDER_MAX = 7
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def test_there_are_no_catch_all_modules() -> None:
    """A file that could hold anything will (smell 5)."""
    paths = [path for path in walk(ROOT / SOURCE) if DRAWERS.search(path.name)]
    folders = {p for path in walk(ROOT / SOURCE) for p in path.parents if ROOT in p.parents}
    paths += [folder for folder in folders if DRAWERS.search(folder.name)]
    drawers = [Finding(p.relative_to(ROOT).as_posix(), 1, "the name of a drawer") for p in paths]
    judge("drawer", drawers)


def test_names_are_specific() -> None:
    judge("banned-name", (hit for file in python_files(SOURCE) for hit in banned_names(file)))


def banned_names(file: File) -> Iterator[Finding]:
    """Find definitions whose name has a banned part, and variables that are a banned word."""
    # The HTTP framework requires the name "data" for a handler's body parameter.
    variables = BANNED - {"data"} if "api" in file.folders else BANNED
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            words = [word.lower() for word in WORD.findall(node.name)]
            if BANNED & set(words) or words[:1] == [BANNED_VERB]:
                yield finding(file, node, f"def {node.name}")
        elif isinstance(node, ast.arg) and node.arg in variables:
            yield finding(file, node, f"argument {node.arg}")
        elif (
            isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in variables
        ):
            yield finding(file, node, f"variable {node.id}")


PRIVATE = frozenset(
    {"asker", "bell", "desk", "intake", "keeper", "landlord", "lessor", "lives", "means"}
    | {"mending", "mirror", "news", "party", "parties", "pulse", "reception", "safe", "settling"}
    | {"speaker", "standing", "surveyor", "terms", "wish", "wishes"}
)
"""Words with a private meaning in this project. The field has another word for each."""
PRIVATE_MODULES = PRIVATE | {"runs", "several"}
"""Functions may have these two words in their names, where they are plain English."""
WORD_OF_MODULE = re.compile(r"[a-z0-9]+")


@pytest.mark.parametrize("place", [SOURCE, "tests", "benchmarks"])
def test_names_are_words_of_the_field(place: str) -> None:
    """A reader must not learn a private language."""
    judge("private-word", (hit for file in python_files(place) for hit in private_words(file)))


def private_words(file: File) -> Iterator[Finding]:
    """Find modules, definitions and variables whose name has one of the private words."""
    is_named_so = file.name.removesuffix(".py") in PRIVATE_MODULES
    if is_named_so or PRIVATE & set(WORD_OF_MODULE.findall(file.name)):
        yield Finding(file.path, 1, f"module {file.name}")
    for node in ast.walk(file.tree()):
        name, words = "", PRIVATE
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # The names of tests are sentences.
            name = "" if node.name.startswith("test_") else node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            # What is safe may be called so.
            name, words = node.id, PRIVATE - {"safe"}
        if words & {word.lower() for word in WORD.findall(name)}:
            yield finding(file, node, f"name {name}")


def test_a_class_name_has_one_meaning() -> None:
    """Two public classes with one name could be distinguished only by their modules."""
    first: dict[str, str] = {}
    hits = []
    for file, node in public_classes():
        if node.name in first:
            hits.append(finding(file, node, f"{node.name} is in {first[node.name]} as well"))
        first.setdefault(node.name, file.path)
    judge("class-name", hits)


def public_classes() -> Iterator[tuple[File, ast.ClassDef]]:
    """Yield the public classes of modules."""
    for file in python_files(SOURCE):
        for node in file.tree().body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield file, node


CLASS_OF = re.compile(r"`([A-Z]\w+)` of `([\w/.]+)`")


def test_a_class_called_by_a_word_of_the_glossary_is_that() -> None:
    """The glossary says which class has one of its words as a name."""
    listed = dict(CLASS_OF.findall((ROOT / "docs/reference/glossary.md").read_text("utf-8")))
    found = {
        node.name: file.path.removeprefix(f"{SOURCE}/")
        for file, node in public_classes()
        if node.name in glossary_words()
    }
    assert found == listed


def glossary_words() -> set[str]:
    """Return the words that the glossary explains, spelt as class names."""
    lines = (ROOT / "docs/reference/glossary.md").read_text("utf-8").splitlines()
    first = [line.split("|")[1] for line in lines if line.startswith("| ")]
    words = [word for cell in first for word in re.split("[;,]", cell)]
    return {"".join(part.capitalize() for part in re.split("[ -]", word)) for word in words}


def test_an_alias_keeps_the_modules_name() -> None:
    """``servers as server_rows`` adds a word; ``servers as rows`` would hide one."""
    hits = [
        finding(file, node, f"{alias.name} as {alias.asname}")
        for place in (SOURCE, "tests", "benchmarks")
        for file in python_files(place)
        for node in ast.walk(file.tree())
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS)
        for alias in node.names
        if alias.asname and not alias.name.isupper() and not says(alias.name, alias.asname)
    ]
    judge("hidden-module", hits)


OURS = ("innkeeper", "tests", "benchmarks")


def says(name: str, alias: str) -> bool:
    """Whether an alias has all words of a name, in the singular or in the plural."""
    words, of_alias = (
        {re.sub(r"(ies|y|s)$", "", word.lower()) for word in WORD.findall(each)}
        for each in (name, alias)
    )
    return words <= of_alias


def test_package_files_import_nothing() -> None:
    """An import in ``__init__.py`` adds a hidden dependency to every module of the package."""
    hits = [
        finding(file, node, ast.unparse(node))
        for file in python_files(SOURCE)
        if file.name == "__init__.py"
        for node in ast.walk(file.tree())
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    ]
    judge("import-in-package", hits)


def test_modules_have_docstrings() -> None:
    hits = [
        Finding(file.path, 1, "no docstring")
        for file in python_files(SOURCE)
        if file.name != "__init__.py" and not ast.get_docstring(file.tree())
    ]
    judge("silent-module", hits)


def test_folders_hold_few_packages() -> None:
    packages = {file.folders for file in python_files(SOURCE) if file.name == "__init__.py"}
    crowded = []
    for folder in packages:
        children = [other for other in packages if other[:-1] == folder]
        if len(children) > PACKAGES_PER_FOLDER_MAX:
            crowded.append(Finding("/".join(folder), 1, "more than seven packages"))
    judge("crowded-folder", crowded)


def test_tests_follow_the_layout_of_the_source() -> None:
    """The path of a module determines the path of its tests."""
    mirrors = (("tests/unit", SOURCE), ("tests/systems", f"{SOURCE}/systems"))
    lost = {
        "/".join(file.folders)
        for tests, source in mirrors
        for file in python_files(tests)
        if not (ROOT / source / "/".join(file.folders).removeprefix(tests).lstrip("/")).is_dir()
    }
    assert lost == set()


def test_a_unit_test_is_in_the_folder_of_its_modules() -> None:
    """A test whose modules are all in one sub-package belongs into the folder of that one."""
    hits = []
    for file in python_files("tests/unit"):
        mirrored = "/".join((SOURCE, *file.folders[2:]))
        modules = {each for each in imported(file) if each.startswith(f"{mirrored}/")}
        below = {each.removeprefix(f"{mirrored}/").partition("/")[0] for each in modules}
        if len(below) == 1 and (ROOT / mirrored / below.pop()).is_dir() and not is_mixed(file):
            hits.append(Finding(file.path, 1, "its modules are in a sub-package"))
    judge("misplaced-test", hits)


def is_mixed(file: File) -> bool:
    """Whether a test may compare filters or weighers with each other."""
    return file.folders[2:] == ("scheduling",)


def imported(file: File) -> Iterator[str]:
    """Give the modules of the service that a file imports, as paths without an ending."""
    for node in ast.walk(file.tree()):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("innkeeper"):
            path = "src/" + (node.module or "").replace(".", "/")
            is_module = (ROOT / f"{path}.py").is_file()
            yield from [path] if is_module else [f"{path}/{each.name}" for each in node.names]


def test_systems_are_tested_without_the_apis() -> None:
    """A system has a meaning of its own, which no handler should be needed to see."""
    hits = [
        Finding(file.path, 1, path.removeprefix(f"{SOURCE}/"))
        for place in ("tests/systems", "tests/support")
        for file in python_files(place)
        if place == "tests/systems" or file.name.endswith("_operator.py")
        for path in imported(file)
        if path.startswith(f"{SOURCE}/entrypoints/api")
    ]
    judge("system-through-api", hits)
