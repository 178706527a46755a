"""``innkeeper serve``: listen, answer, and stop cleanly."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn

from innkeeper.domain.slices import Settings
from innkeeper.entrypoints.api.identity import opening
from innkeeper.entrypoints.worker.child import Child
from innkeeper.settings import SettingsError
from innkeeper.wiring.logs import set_up_logs
from innkeeper.wiring.service import Service

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the interpreter from others that want it. Python's 5 ms would be
the waiting time of most answers, since deciding and answering are two threads."""


def address_of(host: str, port: int) -> str:
    """An address at which clients on this machine reach a service that listens there."""
    # Who listens everywhere is not reached at "everywhere".
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not listening
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def demo_agent(service: Service, address: str, hosts: int) -> Child:
    """An agent with made-up hosts, in a process of its own beside this one."""
    settings = service.settings
    command = [sys.executable, "-m", "innkeeper.main", "agent", "--driver", "fake"]
    command += ["--hosts", str(hosts), "--name", "demo", "--with-parent"]
    command += ["--url", address + settings.serving.compute_prefix]
    command += ["--state-dir", str(Path(settings.storing.data_dir) / "agent")]
    # Logins go by the environment: command lines are seen by everybody on the machine.
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OS_", "INNKEEPER_"))
    }
    authenticating = settings.authenticating
    if authenticating.auth == "keystone":
        environ |= {
            "OS_AUTH_URL": str(authenticating.keystone_url),
            "OS_USERNAME": str(authenticating.keystone_user),
            "OS_PASSWORD": str(authenticating.keystone_password),
            "OS_PROJECT_NAME": authenticating.keystone_project,
            "OS_USER_DOMAIN_NAME": authenticating.keystone_domain,
            "OS_PROJECT_DOMAIN_NAME": authenticating.keystone_domain,
        }
    else:
        environ["OS_TOKEN"] = service.agent_token()
    return Child(command, environ)


def serve(settings: Settings, options: Mapping[str, Any]) -> int:
    """Serve until told to stop; requests in flight are answered first."""
    if options["demo_hosts"] < 0:
        raise SettingsError("--demo-hosts is a number of hosts.")
    if options["demo_hosts"] and "compute" not in settings.serving.apis:
        raise SettingsError("--demo-hosts needs the Compute API, which is not served.")
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    set_up_logs(settings)
    service = Service(settings)
    service.start()
    serving = settings.serving
    config = uvicorn.Config(
        service.app,
        host=serving.host,
        port=serving.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=int(serving.shutdown_grace_s),
        server_header=False,
    )
    server = uvicorn.Server(config)
    # Bound here, so that the port is known where the settings leave it to the system.
    listener = config.bind_socket()
    service.site.bells.is_stopping = lambda: server.should_exit
    for number in (signal.SIGTERM, signal.SIGINT):
        # The server raises what stopped it once more when it is done; there is more to do then.
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    agent: Child | None = None
    try:
        address = address_of(*listener.getsockname()[:2])
        login = service.prepare_logins(address)
        sys.stderr.write(f"Innkeeper serves on {address}\n")
        if login is not None:
            sys.stderr.write(opening.how_to_log_in(login))
        if options["demo_hosts"]:
            agent = demo_agent(service, address, options["demo_hosts"])
            agent.start()
        server.run(sockets=[listener])
    finally:
        if agent is not None:
            agent.stop()
        service.stop()
        listener.close()
    return 0
