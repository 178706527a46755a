"""How Sphinx builds the documentation. A warning is an error: see ``make docs``."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "Innkeeper"
author = "The Innkeeper maintainers"
project_copyright = "The Innkeeper maintainers; Apache License 2.0"
release = installed_version("innkeeper")
version = release

extensions = ["myst_parser", "sphinx.ext.doctest"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

nitpicky = True

html_theme = "furo"
html_title = f"Innkeeper {release}"
html_show_sourcelink = False
