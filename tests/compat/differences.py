"""The deliberate differences from the original: each with its reason.

docs/reference/placement.md has the same list for operators.
"""

from __future__ import annotations

import re

DIFFERENCES = {
    "capitals": "A media type in upper case is accepted; the original refuses it (415).",
    "case of uuids": "A uuid is accepted in every form: in upper case, without dashes, in braces. "
    "The original accepts most forms in bodies, but then does not find the resource by its path.",
    "dates": "Every answer with content has a date. The original has none for an empty list of "
    "inventories, nor for some changes of providers that have a parent.",
    "digits": "An amount contains only digits; the original also accepts 1_0 for 10.",
    "empty name": "A provider's name cannot be removed; the original allows it.",
    "empty token": "An empty token counts as missing (401). In the original it belongs to a user "
    "without a name and without a role (403).",
    "first write of nothing": "A write of empty allocations creates no consumer, nor does a write "
    "for an unknown provider. The original keeps a consumer that no request shows or removes, "
    "and refuses the next first write.",
    "head": "An answer to HEAD has the media type that the answer to GET would have.",
    "huge amount": "An amount that is too large for the database matches nothing; the original "
    "fails (500).",
    "inventory keys": "A name that no class can have is refused before generations are "
    "compared; the original compares generations first.",
    "line end": "A name cannot end with a line break; the original accepts such a name.",
    "literally": "The beginning of a trait's name is matched literally; in the original, percent "
    "signs and underscores are wildcards.",
    "named twice": "A list of allocations that names a provider twice is refused; the original "
    "ignores the first entry.",
    "not a number": "NaN is refused, because it is not valid JSON; the original accepts it.",
    "nothing there yet": "A path that does not exist at a version gets a 404, whatever the request "
    "contains; the original may refuse the media type first.",
    "nul": "A name cannot contain a NUL, because some databases cannot store it.",
    "operators": "An unknown operator for names of traits is refused; the original ignores it, "
    "and lists all traits.",
    "order of joining": "A provider's aggregates are listed in the order in which the provider "
    "joined them. The original lists them in the order in which any provider first joined them, "
    "and those of one request in a random order.",
    "semicolon": "A semicolon is an ordinary character; in the original it separates parameters.",
    "step": "An amount equal to min_unit is allowed, even if the step does not divide it.",
    "types beginning with all": "A consumer type has only capitals, or is all or unknown; "
    "the original also accepts a type that begins with all.",
    "utf-8": "Bytes beyond ASCII in a path are UTF-8, as in bodies; the original reads them as "
    "Latin-1.",
    "whose": "The refusal of an unknown class names the consumer whose allocations have it.",
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
    # The bare name of a rule, if the token is for the whole system.
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
