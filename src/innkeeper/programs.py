"""Creates the child processes of a service, which are its workers and the demo agent.

Always true: secrets are passed in the environment, because everybody on the machine can see command
lines.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from innkeeper.domain.slices import Settings
from innkeeper.engine import metrics
from innkeeper.entrypoints.api import certificates
from innkeeper.entrypoints.worker.child import Child
from innkeeper.settings import ENV_PREFIX, environment_of
from innkeeper.wiring import Service, environment_without

PROGRAM = (sys.executable, "-m", "innkeeper.main")
STOP_BESIDE_S = 10.0
"""The seconds that a worker may take to stop, in addition to the grace period for requests."""


def demo_agent(service: Service, address: str, hosts: int) -> Child:
    """Create a child process that runs an agent with fake hosts."""
    settings = service.settings
    command = [*PROGRAM, "agent", "--driver", "fake"]
    command += ["--hosts", str(hosts), "--name", "demo"]
    command += ["--with-parent", str(os.getpid())]
    command += [
        "--url",
        certificates.certified(settings.serving, address) + settings.serving.compute_prefix,
    ]
    command += ["--state-dir", str(Path(settings.storing.data_dir) / "agent")]
    environ = environment_without("OS_", ENV_PREFIX)
    if settings.serving.tls_cert is not None:
        environ["OS_CACERT"] = os.environ.get("OS_CACERT", settings.serving.tls_cert)
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
        command += ["--token-file", str(service.keep_agent_token())]
    return Child(command, environ, name="agent")


def with_port(settings: Settings, port: int) -> Settings:
    """Return the settings with another port, such as the port that the system has chosen."""
    serving = msgspec.structs.replace(settings.serving, port=port)
    return msgspec.structs.replace(settings, serving=serving)


def worker(settings: Settings, metrics_folder: Path, number: int) -> Child:
    """Create a child process that serves the port together with other workers.

    All workers share ``metrics_folder``.

    The settings are passed in the environment, because the settings file may have changed when a
    worker is restarted.
    """
    environ = environment_without(ENV_PREFIX) | environment_of(settings)
    environ[metrics.FOLDER_VARIABLE] = str(metrics_folder)
    return Child(
        [*PROGRAM, "serve", "--with-parent", str(os.getpid())],
        environ,
        name=f"worker-{number}",
        stop_s=settings.serving.shutdown_grace_s + STOP_BESIDE_S,
        died=lambda pid: metrics.forget(pid, metrics_folder),
        silence_max_s=settings.serving.worker_timeout_s,
    )
