"""The deliberate differences from the original: each with its reason.

docs/reference/placement.md tells operators the same.
"""

from __future__ import annotations

import re

DIFFERENCES = {
    "capitals": "A media type is the same in capitals; the original refuses it (415).",
    "case of uuids": "A uuid is the same in all its forms: in capitals, without dashes, in "
    "braces. The original takes most of them in bodies, and then does not know them in paths.",
    "dates": "Every answer that shows something has a date. The original gives none for an "
    "empty list of inventories, nor for some changes of providers that have a parent.",
    "digits": "An amount is written in digits; the original also takes 1_0 for 10.",
    "empty name": "A provider has a name; the original lets one be taken away.",
    "empty token": "An empty token is none (401); in the original it is somebody's without a "
    "name and without a role (403).",
    "first write of nothing": "A consumer that holds nothing is not there. After a first write "
    "of nothing, or of an unknown provider, the original keeps one that no request shows or "
    "removes, and refuses the next first write.",
    "head": "An answer to HEAD has the type that one to GET would have.",
    "huge amount": "An amount that no number of the database holds is found nowhere; the "
    "original fails (500).",
    "inventory keys": "A name that no class can have is refused before generations are "
    "compared; the original compares first.",
    "line end": "A name has no line in it; the original takes one that ends with a line's end.",
    "literally": "The beginning of a trait's name is taken literally; in the original, percent "
    "signs and underscores in it stand for anything.",
    "named twice": "A provider that is named twice in a list of allocations is refused; the "
    "original forgets the first mention.",
    "not a number": "NaN is no JSON; the original takes it for a number.",
    "nothing there yet": "A path that is not there at a version is not there, whatever is sent "
    "to it; the original may complain of the media type first.",
    "nul": "A NUL is nowhere in a name; not every database can keep it.",
    "operators": "A way to compare names that is not known is refused; the original passes it "
    "over and lists all traits.",
    "order of joining": "A provider's aggregates come in the order in which it joined them. In "
    "the original they come in the order in which any provider first joined them, and those of "
    "one request in an order of chance.",
    "semicolon": "A semicolon is a character; in the original it separates parameters.",
    "step": "An amount of exactly min_unit is allowed, whatever the step.",
    "types beginning with all": "A consumer type is wholly made of capitals, or is all or "
    "unknown; the original also takes what begins with all.",
    "utf-8": "What is beyond ASCII in a path is UTF-8, as in bodies; the original reads it as "
    "Latin-1.",
    "whose": "The refusal of an unknown class says whose allocations it is in.",
}

SAID_OTHERWISE = (
    # The same sentence twice, once from each of two layers.
    (r"(No resource provider with uuid .* found) ?: \1", r"\1"),
    (r"(No inventory of class \S+ found for delete): .*", r"\1"),
    (r"Resource provider '.*' not found: (No resource provider)", r"\1"),
    # Messages of the database or of Python, which clients should not see.
    (r"Update conflict: \(.*", "Update conflict"),
    (r"(invalid version string: .*?); (?:invalid literal|Version\.).*?( </|$)", r"\1\2"),
    (r"Invalid query string parameters: 'utf-8' codec.*", "The query string is not UTF-8."),
    # A rule's bare name, where the token is for the whole system.
    (r"(resource\.) (placement:\S+)$", r"\1 Policy does not allow \2 to be performed."),
    # A pattern with a mistake in it: see "types beginning with all".
    (r"\^all\|\^unknown\$", "^all$|^unknown$"),
)
"""Patterns of the original's texts, and our replacements."""


def otherwise_said(detail: str) -> str:
    """The original's text with our replacements."""
    for pattern, replacement in SAID_OTHERWISE:
        detail = re.sub(pattern, replacement, detail)
    return detail
