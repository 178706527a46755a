"""The address at which a process takes forwarded writes. The leader's row stores it as text."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import msgspec

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SOCKET_PATH_MAX = 107
"""The maximum length of the path of a Unix socket, in bytes. Source: ``unix(7)``."""
ID_CHARS = 12
"""The number of characters in the file name of a socket. These are the last characters of the
process's random id, because the first characters encode a time."""
SUFFIX = ".sock"


class PeerAddress(msgspec.Struct, frozen=True):
    """The ways to reach one process.

    ``path`` is a Unix socket on ``machine``. On ``host`` and ``port``, the process listens with
    TLS. ``certificate`` is the SHA-256 digest of its certificate, in hexadecimal digits.
    """

    machine: str
    path: str
    host: str = ""
    port: int = 0
    certificate: str = ""

    def text(self) -> str:
        """Return the address as text, for the leader's row."""
        return msgspec.json.encode(self).decode()


_DECODER = msgspec.json.Decoder(PeerAddress)


def parsed(text: str) -> PeerAddress | None:
    """Return the address in the text of a row, or ``None`` if another version wrote the text."""
    try:
        return _DECODER.decode(text)
    except msgspec.MsgspecError:
        return None


def listens(path: str) -> bool:
    """Return whether a process seems to listen on a Unix socket. Does not wait for an answer."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        return probe.connect_ex(path) not in {errno.ECONNREFUSED, errno.ENOENT}


def this_machine() -> str:
    """Return an id of this machine. The id changes when the machine restarts."""
    try:
        boot = BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()}/{boot}"


def socket_path(folder: Path, holder: str) -> Path | None:
    """Return the path of a new process's socket, or ``None`` if it would be too long."""
    path = (folder / f"{holder[-ID_CHARS:]}{SUFFIX}").absolute()
    return path if len(bytes(path)) <= SOCKET_PATH_MAX else None
