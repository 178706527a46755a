"""What can go wrong, as the rooms say it; ``api/faults.py`` turns it into statuses.

Always true: the message of a :class:`Refusal` is a full sentence that may be shown to
whoever asked, and holds nothing that they may not see.
"""

from __future__ import annotations

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
"""What is raised at import by a package that is not there, damaged, or made for another one."""


class Refusal(Exception):
    """A request that was understood and is not carried out. Nothing was changed."""

    code = "undefined_code"
    """Stable word for programs, as Placement's errors carry it from 1.23 on."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class Invalid(Refusal):
    """The request itself is wrong, whatever the state of the cloud."""


class Unauthenticated(Refusal):
    """Nobody vouches for the caller: no token, or one that is wrong, expired or revoked."""


class Forbidden(Refusal):
    """The caller is known and may not do this."""


class QuotaExceeded(Forbidden):
    """The project's quota does not allow as much."""


class NotFound(Refusal):
    """There is no such thing, or none that the caller may know of."""


class Conflict(Refusal):
    """The request does not fit the present state."""


class WrongState(Conflict):
    """A server is not in a state in which that can be done to it.

    ``fact`` is the field of the server that is in the way, and ``value`` what it is.
    """

    def __init__(self, server_uuid: str, fact: str, value: str | None) -> None:
        super().__init__(f"Server {server_uuid} does not allow that: its {fact} is {value}.")
        self.server_uuid = server_uuid
        self.fact = fact
        self.value = value


class Locked(Conflict):
    """A server is locked against changes."""


class AlreadyExists(Conflict):
    """A thing with that name or id is there already."""

    code = "duplicate_name"


class InUse(Conflict):
    """The thing is still used by others and cannot go."""


class CapacityExceeded(Conflict):
    """A provider has not enough left, or does not give out such amounts."""


class ConcurrentUpdate(Conflict):
    """Somebody else was faster: a generation is not what the caller believed."""

    code = "concurrent_update"


class Overtaken(ConcurrentUpdate):
    """Another writer came between the look and the write. Whoever looks again, in a
    transaction of its own, may find everything in order."""


class ProviderChanged(Overtaken):
    """A provider moved on since it was looked at. Look again and repeat the claim."""

    def __init__(self, provider_id: int, seen: int) -> None:
        super().__init__(f"Resource provider {provider_id} is no longer at generation {seen}.")
        self.provider_id = provider_id
        self.seen = seen


class TooLarge(Refusal):
    """The request's body is larger than is accepted."""


class TooManyAttempts(Refusal):
    """Somebody tried too often; after a while they may try again."""

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(Refusal):
    """Something this service needs does not answer at the moment; trying again may help."""

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class PluginFailed(Refusal):
    """A filter, weigher or driver of the operator's own raised an error or gave no answer.

    Nothing was decided. ``plugin`` is its ``NAME``; ``why`` is for operators alone.
    """

    code = "plugin_failed"

    def __init__(self, noun: str, plugin: str, why: str) -> None:
        super().__init__(f"The {noun} {plugin} failed. The operator finds the error in the log.")
        self.noun = noun
        self.plugin = plugin
        self.why = why


class Doubtful(Unavailable):
    """A commit was asked for, and its answer never came: it happened, or it did not.

    Nobody repeats it but who can recognize their own work: what is found done is refused.
    """


class Busy(Unavailable):
    """Others were in the way for as long as it was worth waiting."""


class Collided(Busy):
    """Another write was in the way. Nothing happened, and the same may be tried at once."""


class NotLetIn(Unavailable):
    """The database is there and does not know who asks, or what is asked for: a wrong password,
    no such user or database. That does not pass by itself."""


class Unreachable(Unavailable):
    """The database was not there to be asked. Nothing happened, and the same may be tried
    again on another connection."""
