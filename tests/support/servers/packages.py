"""Database servers and proxies for tests, from Debian's packages.

As root, the first test that needs a server installs it. Otherwise the test is skipped, and its
message says what to install. If ``CI`` is set, the test fails instead.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import run_folders

INSTALL_WITHIN_S = 600
LOCK = run_folders.place() / f"innkeeper-packages-{os.geteuid()}.lock"
MAKERS = {"mysql": "mariadb-server", "postgres": "postgresql"}
"""The packages that create the users of the servers."""
PLACES = ("/usr/local/bin", "/usr/bin", "/usr/sbin", "/bin", "/sbin")


def find(program: str, package: str, *, beside: str = "") -> Path:
    """Return the path of a server's program; ``beside`` is a glob pattern for other places.

    Fails or skips the test if there is none, and none can be installed.
    """
    with _alone():
        found = _look(program, beside)
        if found is None and _can_install():
            _install(package)
            found = _look(program, beside)
    if found is not None:
        return found
    message = f"{program} is not here; install it with: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for other processes that install packages.

    Only one process can install at a time. A program is installed before its user is created, so
    the installation may still be running when the program exists.
    """
    with LOCK.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _look(program: str, beside: str) -> Path | None:
    found = shutil.which(program, path=os.pathsep.join(PLACES))
    if found is not None:
        return Path(found)
    # The newest version last: its folder's name has more digits or greater ones.
    others = sorted(Path("/").glob(f"{beside}/{program}")) if beside else []
    return others[-1] if others else None


def _can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(package: str) -> None:
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    for command in (["apt-get", "update", "-qq"], words):
        done = subprocess.run(
            command,
            env=quiet,
            check=False,
            capture_output=True,
            text=True,
            timeout=INSTALL_WITHIN_S,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


def account(name: str) -> dict[str, object]:
    """Return arguments for a subprocess that runs as this user, which a package creates.

    Servers refuse to run as root. Any other user runs them directly.
    """
    if os.geteuid() != 0:
        return {}
    user = _user(name)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def folder(place: Path, name: str) -> Path:
    """Create a folder for the user of :func:`account`."""
    place.mkdir()
    hand_over(place, name)
    return place


def hand_over(folder: Path, name: str) -> None:
    """Give a folder to the user of :func:`account`."""
    if os.geteuid() == 0:
        user = _user(name)
        os.chown(folder, user.pw_uid, user.pw_gid)


def _user(name: str) -> pwd.struct_passwd:
    with _alone():
        try:
            return pwd.getpwnam(name)
        except KeyError:
            _install(MAKERS[name])
            return pwd.getpwnam(name)
