"""The patterns in schemas of the Compute API, and their descriptions for error messages.

Always true: every pattern in a schema of this API has a description here. A test checks this.
"""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.names import NAME_PATTERN
from innkeeper.domain.pclouds import HOST_NAME_PATTERN

# Python's "$" also matches before a trailing newline.
END = r"$(?!\n)"

SPACED_NAME_PATTERN = r"^(?=.*\S)[^\u0000-\u001f\u007f-\u009f]+" + END
# A colon separates zone and host in "zone:host".
ZONE_PATTERN = r"^(?!\s)[^:\u0000-\u001f\u007f-\u009f]+(?<!\s)" + END
AGENT_ZONE_PATTERN = r"^[^:\s\u0000-\u001f]+" + END

# Multi-line text. Some databases reject NUL.
TEXT_PATTERN = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$"
NO_NUL_PATTERN = r"^[^\u0000]*$"
ANY_LINES_PATTERN = r"^[^\x00]*" + END
VISIBLE_PATTERN = r"^[\x21-\x7e]+" + END

# Host names are parts of addresses and of "zone:host", so they contain no colons and no spaces.
HOST_PATTERN = r"^[a-zA-Z0-9][a-zA-Z0-9._-]*" + END
AGGREGATE_HOST_PATTERN = r"^[a-zA-Z0-9._-]*" + END
DESTINATION_PATTERN = "^[a-zA-Z0-9-._]*" + END
PATTERN_HOSTS = r"^[a-zA-Z0-9*?][a-zA-Z0-9._*?-]*" + END
HOSTNAME_PATTERN = r"^[a-zA-Z0-9][a-zA-Z0-9\-.]*[a-zA-Z0-9]" + END
LABEL_PATTERN = r"^[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9]" + END

# Nova also accepts an empty text, and then chooses a name.
DEVICE_NAME_PATTERN = r"(^/dev/x{0,1}[a-z]{0,1}d{0,1})([a-z]+)[0-9]*" + END + r"|^$(?!\n)"
FLAVOR_ID_PATTERN = r"^(?! )[a-zA-Z0-9. _-]+(?<! )" + END
# The id is a part of an aggregate's name. It is also a part of a path, where "." and ".." have a
# meaning.
HOST_FLAVOR_ID_PATTERN = r"^(?! )(?!\.{1,2}$)[a-zA-Z0-9. _-]*(?<! )" + END
SPACED_KEY_NAME_PATTERN = "^(?! )[a-zA-Z0-9_ -]+(?<! )" + END
DOTTED_KEY_NAME_PATTERN = "^(?! )[a-zA-Z0-9_ @.-]+(?<! )" + END
METADATA_KEY_PATTERN = r"^[a-zA-Z0-9\-_:. ]{1,255}" + END
FACT_NAME_PATTERN = r"^[a-zA-Z][a-zA-Z0-9_.:-]{0,254}" + END
CONSTANT_PATTERN = r"^[A-Z0-9_]{1,255}" + END
TAG_PATTERN = r"^[^,/\x00]*" + END
BATCH_PATTERN = "^r-[a-zA-Z0-9-]+" + END
ENTRY_PATTERN = "^[A-Za-z0-9_-]+" + END
PLAIN_UUID_PATTERN = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}" + END

DIGITS_PATTERN = "^[0-9]+" + END
DIGITS_OR_NOTHING_PATTERN = "^[0-9]*" + END
NUMBER_PATTERN = "^[0-9]{1,18}" + END
AMOUNT_PATTERN = "^[0-9]{1,10}" + END
LIMIT_PATTERN = "^-?[0-9]{1,10}" + END
INTEGER_PATTERN = "^-?[0-9]+" + END
FACTOR_PATTERN = r"^[0-9]{1,39}(\.[0-9]{1,20})?" + END

IP_PATTERN = r"^[0-9a-fA-F.:]+" + END
RANGE_PATTERN = "^/[0-9a-f.:]+" + END
MOMENT_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z" + END

_PRINTABLE = "It must consist of printable characters"
_NO_SPACE = "must not begin or end with a space"
_NO_WHITE_SPACE = "must not begin or end with white space"
_NO_NUL = "It must not contain a NUL character."
_WHOLE = "It must be a whole number"
_LETTERS = "It must consist of the letters a-z and A-Z, digits"

WORDS: Mapping[str, str] = {
    NAME_PATTERN: f"{_PRINTABLE}, and {_NO_WHITE_SPACE}.",
    SPACED_NAME_PATTERN: f"{_PRINTABLE}, at least one of which is not white space.",
    ZONE_PATTERN: f"{_PRINTABLE} without a colon, and {_NO_WHITE_SPACE}.",
    AGENT_ZONE_PATTERN: f"{_PRINTABLE} without colons and white space.",
    HOST_NAME_PATTERN: (
        f"{_PRINTABLE} without a colon or a slash, {_NO_WHITE_SPACE}, and must not be one or "
        "two dots alone."
    ),
    TEXT_PATTERN: "It must not contain control characters other than tabs and line breaks.",
    NO_NUL_PATTERN: _NO_NUL,
    ANY_LINES_PATTERN: _NO_NUL,
    VISIBLE_PATTERN: "It must consist of visible ASCII characters, without spaces.",
    HOST_PATTERN: (
        f"{_LETTERS}, dots, underscores and hyphens, and must begin with a letter or a digit."
    ),
    AGGREGATE_HOST_PATTERN: f"{_LETTERS}, dots, underscores and hyphens.",
    DESTINATION_PATTERN: f"{_LETTERS}, dots, underscores and hyphens.",
    PATTERN_HOSTS: (
        f"{_LETTERS}, dots, underscores, hyphens and the placeholders * and ?, and must not "
        "begin with a dot, an underscore or a hyphen."
    ),
    HOSTNAME_PATTERN: (
        f"{_LETTERS}, dots and hyphens, and must begin and end with a letter or a digit."
    ),
    LABEL_PATTERN: (f"{_LETTERS} and hyphens, and must begin and end with a letter or a digit."),
    DEVICE_NAME_PATTERN: "It must be the path of a device, such as /dev/vdb.",
    FLAVOR_ID_PATTERN: f"{_LETTERS}, spaces, dots, underscores and hyphens, and {_NO_SPACE}.",
    HOST_FLAVOR_ID_PATTERN: (
        f"{_LETTERS}, spaces, dots, underscores and hyphens, {_NO_SPACE}, and must not be one "
        "or two dots alone."
    ),
    SPACED_KEY_NAME_PATTERN: f"{_LETTERS}, spaces, underscores and hyphens, and {_NO_SPACE}.",
    DOTTED_KEY_NAME_PATTERN: (
        f"{_LETTERS}, spaces, dots, underscores, hyphens and @, and {_NO_SPACE}."
    ),
    METADATA_KEY_PATTERN: (
        f"{_LETTERS}, spaces, dots, colons, underscores and hyphens, 1 to 255 of them."
    ),
    FACT_NAME_PATTERN: (
        f"{_LETTERS}, dots, colons, underscores and hyphens, 1 to 255 of them, and must begin "
        "with a letter."
    ),
    CONSTANT_PATTERN: (
        "It must consist of the letters A-Z, digits and underscores, 1 to 255 of them."
    ),
    TAG_PATTERN: "It must not contain commas, slashes or NUL characters.",
    BATCH_PATTERN: f"It must begin with r-. After that it {_LETTERS[3:]} and hyphens.",
    ENTRY_PATTERN: f"{_LETTERS}, underscores and hyphens.",
    PLAIN_UUID_PATTERN: "It must be a UUID in lower case, with hyphens.",
    DIGITS_PATTERN: f"{_WHOLE}, not below zero.",
    DIGITS_OR_NOTHING_PATTERN: f"{_WHOLE}, not below zero.",
    NUMBER_PATTERN: f"{_WHOLE} of at most 18 digits, not below zero.",
    AMOUNT_PATTERN: f"{_WHOLE} of at most 10 digits, not below zero.",
    LIMIT_PATTERN: f"{_WHOLE} of at most 10 digits.",
    INTEGER_PATTERN: f"{_WHOLE}.",
    FACTOR_PATTERN: (
        "It must be a number such as 2 or 2.5, with at most 39 digits before the point and 20 "
        "after it."
    ),
    IP_PATTERN: "It must be an IPv4 or IPv6 address.",
    RANGE_PATTERN: "It must be a slash and a prefix length or a netmask, such as /24.",
    MOMENT_PATTERN: "It must be a time in UTC, such as 2030-01-31T12:30:00Z.",
}
"""The description of each pattern, for error messages."""
