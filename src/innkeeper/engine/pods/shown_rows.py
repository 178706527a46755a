"""Change the rows of a list into rows of the door, as :mod:`innkeeper.engine.pods.shown` does.

A list has up to a thousand rows with the same fields. So what depends only on the names of the
fields, or on an address without the id of its resource, is found out once.

Always true: a row is changed as :meth:`DoorView.change` changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from innkeeper.domain.door import MARK, Json
from innkeeper.engine.pods.shown import (
    DEPTH_MAX,
    HIDDEN,
    HOSTS,
    OF_USERS,
    PROJECTS,
    TEXTS,
    WHOLE,
    ZONES,
    DoorView,
)

LINKS, METADATA = "links", "metadata"
CONTAINERS = frozenset({dict, list})
NOTHING = "\0"
"""The id of a resource in an address that is known already. No address has this character."""
KNOWN_MAX = 10_000


@dataclass(frozen=True, slots=True)
class _Form:
    """Which fields of a row are dropped or null, and which are changed even if they are texts."""

    dropped: tuple[str, ...]
    hidden: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(slots=True)
class RowView:
    """Changes rows that have the same view."""

    view: DoorView
    _forms: dict[tuple[str, ...], _Form] = field(default_factory=dict)
    _texts: dict[tuple[str, str], str] = field(default_factory=dict)
    _links: dict[tuple[str, str], dict[str, str] | None] = field(default_factory=dict)

    def change(self, row: dict[str, Json]) -> dict[str, Json]:
        """Change a row in place, and return it. Raises :class:`PodSilent` for one too deep."""
        names = tuple(row)
        form = self._forms.get(names)
        if form is None:
            form = self._form(names)
        for name in form.dropped:
            del row[name]
        for name in form.texts:
            value = row[name]
            if type(value) is str:
                row[name] = self._text(name, value)
        for name in form.hidden:
            row[name] = None
        for name, value in row.items():
            # Empty containers are the usual ones, and stay as they are.
            if (value or name in WHOLE) and type(value) in CONTAINERS:
                row[name] = self._container(name, value, row["id"])
        return row

    def _form(self, names: tuple[str, ...]) -> _Form:
        is_dropped = [
            not self.view.is_admin and name.startswith(HOSTS) and name not in OF_USERS
            for name in names
        ]
        shown = [name for name, dropped in zip(names, is_dropped, strict=True) if not dropped]
        form = _Form(
            tuple(name for name, dropped in zip(names, is_dropped, strict=True) if dropped),
            tuple(name for name in shown if name in HIDDEN),
            tuple(
                name
                for name in shown
                if name in TEXTS or name in ZONES or name.rpartition(":")[2] in PROJECTS
            ),
        )
        if len(self._forms) < KNOWN_MAX:
            self._forms[names] = form
        return form

    def _text(self, name: str, value: str) -> str:
        key = (name, value)
        made = self._texts.get(key)
        if made is None:
            made = self.view.text(name, value)
            if len(self._texts) < KNOWN_MAX:
                self._texts[key] = made
        return made

    def _container(self, name: str, value: Json, uuid: str) -> Json:
        if name == METADATA and type(value) is dict:
            value.pop(MARK, None)
            return value
        if name == LINKS and type(value) is list:
            return [moved for each in value if (moved := self._link(each, uuid)) is not None]
        return value if self._is_plain(name, value) else self.view.field(name, value)

    def _is_plain(self, name: str, value: Json, depth: int = 0) -> bool:
        """Return whether nothing in a container can be changed."""
        if name in WHOLE or depth > DEPTH_MAX:
            return False
        inside = value
        if type(value) is dict:
            names = tuple(value)
            form = self._forms.get(names) or self._form(names)
            if form.dropped or form.hidden or form.texts:
                return False
            inside = value.items()
        else:
            inside = [("", each) for each in value]
        return all(
            self._is_plain(key, each, depth + 1)
            for key, each in inside
            if (each or key in WHOLE) and type(each) in CONTAINERS
        )

    def _link(self, link: Json, uuid: str) -> dict[str, str] | None:
        href, rel = (link.get("href"), link.get("rel")) if type(link) is dict else (0, 0)
        if type(href) is not str or type(rel) is not str or NOTHING in href:
            return None
        key = (rel, href.replace(uuid, NOTHING))
        if key not in self._links:
            if len(self._links) >= KNOWN_MAX:
                return self.view.link(link)
            self._links[key] = self.view.link({"rel": rel, "href": key[1]})
        made = self._links[key]
        return None if made is None else {"rel": rel, "href": made["href"].replace(NOTHING, uuid)}
