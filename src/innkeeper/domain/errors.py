"""Errors for rejected requests. ``api/faults.py`` maps them to HTTP statuses.

Always true: the message of a :class:`Refusal` is a full sentence for the client, and contains
nothing that the client may not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BROKEN_IMPORT = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    SystemError,
    TypeError,
    ValueError,
    Warning,
)
"""The errors that Python raises when it imports a missing, damaged or incompatible package."""


class Refusal(Exception):
    """The request is rejected, and nothing was changed."""

    code = "undefined_code"
    """Stable identifier for programs, as in Placement's errors since 1.23."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class Invalid(Refusal):
    """The request is malformed, regardless of the state of the cloud."""


class UnknownPlace(Invalid):
    """This zone does not have the availability zone or the host that the request names."""


class Unauthenticated(Refusal):
    """The caller has no token, or an invalid, expired or revoked one."""


class Forbidden(Refusal):
    """The caller is authenticated but not authorized."""


class QuotaExceeded(Forbidden):
    """The request exceeds a quota of the project."""


class VolumeQuotaExceeded(QuotaExceeded):
    """The request exceeds a quota of volumes. The Block Storage API has its own status for this."""


class NotFound(Refusal):
    """The object does not exist, or the caller may not see it."""


class Conflict(Refusal):
    """The request conflicts with the present state."""


class NotEnough(Conflict):
    """There is too little capacity in a window of time. ``details`` has the numbers."""

    def __init__(self, message: str, *, code: str, details: Mapping[str, Any]) -> None:
        super().__init__(message, code=code)
        self.details = details


class WrongState(Conflict):
    """The state of a server forbids the action. ``fact`` names the field that forbids it."""

    def __init__(self, server_uuid: str, fact: str, value: str | None) -> None:
        super().__init__(
            f"Server {server_uuid} does not allow the action while its {fact} is {value}."
        )
        self.server_uuid = server_uuid
        self.fact = fact
        self.value = value


class Locked(Conflict):
    """The server is locked."""


class AlreadyExists(Conflict):
    """An object with that name or id already exists."""

    code = "duplicate_name"


class InUse(Conflict):
    """The object is in use and cannot be deleted."""


class CapacityExceeded(Conflict):
    """A provider has too little capacity left, or its unit rules forbid the amount."""


class ConcurrentUpdate(Conflict):
    """Another writer changed the object, so the generation in the request is outdated."""

    code = "concurrent_update"


class Overtaken(ConcurrentUpdate):
    """Another writer committed between the read and the write. Retry in a new transaction."""


class ProviderChanged(Overtaken):
    """A provider changed after the caller read it. Read the provider again and retry the claim."""

    def __init__(self, provider_id: int, seen: int) -> None:
        super().__init__(f"Resource provider {provider_id} is no longer at generation {seen}.")
        self.provider_id = provider_id
        self.seen = seen


class TooLarge(Refusal):
    """The body of the request exceeds the limit."""


class TooManyAttempts(Refusal):
    """The caller failed too often or asked for too much, and must wait before trying again."""

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(Refusal):
    """A dependency of the service does not answer; a retry may succeed."""

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ClientLeft(Refusal):
    """The client closed the connection before its request was processed."""

    def __init__(self) -> None:
        super().__init__("The client closed the connection before its request was processed.")


class PluginFailed(Refusal):
    """An operator's own filter, weigher or driver raised an error or returned no result.

    No decision was made. ``plugin`` is the ``NAME`` of the plugin. Only operators may see ``why``.
    """

    code = "plugin_failed"

    def __init__(self, noun: str, plugin: str, why: str) -> None:
        super().__init__(f"The {noun} {plugin} failed. The operator can find the error in the log.")
        self.noun = noun
        self.plugin = plugin
        self.why = why


class Doubtful(Unavailable):
    """The database did not acknowledge a commit. The commit may or may not have happened.

    If the commit happened, a retry is rejected. A caller that retries must therefore recognize the
    result of its first attempt.
    """


class Unanswered(Unavailable):
    """The leader may have carried the request out, but it did not answer."""

    def __init__(self) -> None:
        super().__init__(
            "The process that writes did not answer. The request may have been carried out. Check "
            "the result before you retry."
        )


class Busy(Unavailable):
    """Other writers kept the database locked for longer than the timeout."""


class Collided(Busy):
    """A conflict with another writer rolled the transaction back. Retry at once."""


class NotLetIn(Unavailable):
    """The database rejects the login (user, password or database name). A retry does not help."""


class Unreachable(Unavailable):
    """There is no connection to the database. Nothing was written; retry on a new connection."""
