"""Words that the project's files must not have: the place and tools of the work on them.

Some patterns below hold a class of one letter, so that they do not match themselves.
"""

from __future__ import annotations

import re

from tests.tidy.exceptions import judge
from tests.tidy.tree import File, files, search

PLACES_TO_DOWNLOAD_FROM = "|".join(
    (
        r"py[p]i\.(org|python)",
        r"python[h]osted",
        r"registry\.(npmjs|yarnpkg)",
        r"static\.crates|index\.crates|crates[.]io",
        r"ruby[g]ems\.",
        r"\b(ghcr|quay|gcr)[.]io\b|docker[.]io\b",
        r"index[-]url|find[-]links",
        r"/sim[p]le/",
    )
)
PLACES_ON_A_MACHINE = r"file[:]//|(?<![\w}.])/(wor[k]|hom[e]|roo[t]|User[s])/"
WORK_IN_PROGRESS = "|".join(
    (
        r"\b(this|last|next|previous|earlier|work|working|coding) session\b",
        r"\bissue #?\d",
        r"\b(as an? )?(AI|language model|assistant)\b (wrote|model|assistant)",
    )
)


def our_texts() -> tuple[File, ...]:
    """All files but the licence, whose text is not ours."""
    return tuple(file for file in files() if file.path != "LICENSE")


def test_no_registry_is_named() -> None:
    """Builds must work anywhere, with any package index."""
    judge("registry-address", search(PLACES_TO_DOWNLOAD_FROM, our_texts(), re.IGNORECASE))


def test_no_machine_is_named() -> None:
    judge("machine-path", search(PLACES_ON_A_MACHINE, our_texts()))


def test_files_speak_of_the_project_alone() -> None:
    judge("work-in-progress", search(WORK_IN_PROGRESS, our_texts(), re.IGNORECASE))


def test_open_ends_have_a_reason() -> None:
    """A note about future work needs a sentence with a reason."""
    code = [file for file in our_texts() if file.name == "Makefile" or "." in file.name]
    code = [file for file in code if not file.path.endswith(".md")]
    note = r"\b(TOD[O])\b(?!: (\S+ ){5,})|\b(FIXM[E]|XX[X])\b"
    judge("bare-to-do", search(note, code))
