"""What the engine is asked and answers has a type, and not only a name for ``Any``.

The type checker refuses ``Any`` in the engine. It does not see an ``Any`` that has another name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tests.tidy.exceptions import judge
from tests.tidy.tree import SOURCE, File, Finding, finding, python_files

ENGINE = "src/innkeeper/engine"
PARTS_OF_TYPES = (
    *(ast.Attribute, ast.BinOp, ast.BitOr, ast.Constant, ast.List, ast.Load, ast.Name),
    *(ast.Starred, ast.Subscript, ast.Tuple),
)
FIXTURE = """
from typing import Any, TypeAlias
import typing
Json: TypeAlias = Any
Rows = list[Json] | None
Other = typing.Any
Exact = dict[str, object]
FACTS: dict[str, Any] = {}
"""


def test_the_engine_imports_no_other_name_of_any() -> None:
    aliases = _Aliases(python_files(f"src/{SOURCE.name}"))
    judge(
        "hidden-any",
        [hit for file in python_files(ENGINE) for hit in aliases.imported_by(file)],
        remedy="Name the type, or use object and find out what it is.",
    )


def test_other_names_of_any_are_found() -> None:
    known = File("src/innkeeper/domain/known.py", FIXTURE)
    user = File("src/innkeeper/engine/user.py", "from innkeeper.domain.known import Exact, Rows\n")
    aliases = _Aliases([known])
    assert aliases.of("innkeeper.domain.known") == {"Any", "Json", "Rows", "Other"}
    assert [hit.text for hit in aliases.imported_by(user)] == ["innkeeper.domain.known.Rows"]


class _Aliases:
    """The names in modules for ``Any``, and for types with ``Any`` within."""

    def __init__(self, files: Iterable[File]) -> None:
        self._files = {_module_of(file): file for file in files}
        self._known: dict[str, set[str]] = {"typing": {"Any"}}

    def of(self, module: str) -> set[str]:
        """Return the names in a module. Each module is read once, even if imports form a circle."""
        if module not in self._known:
            self._known[module] = names = set()
            if module in self._files:
                names |= self._names(self._files[module])
        return self._known[module]

    def imported_by(self, file: File) -> list[Finding]:
        """Return the imports of these names."""
        return [
            finding(file, node, f"{node.module}.{each.name}")
            for node in ast.walk(file.tree())
            if isinstance(node, ast.ImportFrom)
            for each in node.names
            if each.name in self.of(node.module or "")
        ]

    def _names(self, file: File) -> set[str]:
        names: set[str] = set()
        for node in file.tree().body:
            if isinstance(node, ast.ImportFrom):
                known = self.of(node.module or "")
                names |= {each.asname or each.name for each in node.names if each.name in known}
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if node.value is not None and _is_type_with(names, node.value):
                    names |= {each.id for each in targets if isinstance(each, ast.Name)}
        return names


def _module_of(file: File) -> str:
    name = file.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def _is_type_with(names: set[str], value: ast.expr) -> bool:
    """Return whether a value can be a type, and one of these names is within it."""
    parts = list(ast.walk(value))
    return all(isinstance(each, PARTS_OF_TYPES) for each in parts) and any(
        (isinstance(each, ast.Name) and each.id in names)
        or (isinstance(each, ast.Attribute) and each.attr == "Any")
        for each in parts
    )
