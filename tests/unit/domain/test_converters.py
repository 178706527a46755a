"""Types that threads use for the first time, all at once.

Each try is a fork, because msgspec reads the fields of a type once in a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

TRIES = 40
"""With so many tries, each of 20 runs found a type that was read only at its first use."""
PROGRAM = textwrap.dedent(
    """
    import os
    import sys
    from threading import Barrier, Thread

    from innkeeper.clients import pod_logins
    from innkeeper.entrypoints.api.compute.servers import entry_bodies

    TOKEN = b'{"token": {"expires_at": "2030-01-01T00:00:00Z", "catalog": [{"type": "compute"}]}}'
    THREADS = 4


    def use(start):
        start.wait()
        pod_logins.session_of("token", TOKEN)
        entry_bodies.ids_of([])


    def in_threads():
        # Threads take turns as often as they can.
        sys.setswitchinterval(1e-6)
        start = Barrier(THREADS)
        threads = [Thread(target=use, args=(start,)) for _ in range(THREADS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


    for _ in range(int(sys.argv[1])):
        pid = os.fork()
        if pid == 0:
            in_threads()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status))
    """
)


def test_threads_use_a_type_for_the_first_time_together() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(TRIES)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert ended.stdout.split() == ["0"] * TRIES
