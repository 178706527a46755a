"""TLS with real certificates: the service's, and those of its agents."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509

from innkeeper.clients.certificates import trust_of
from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.certificates import Certificates
from innkeeper.main import main
from innkeeper.settings import SettingsError, load
from tests.support.agents import WITHIN_S, agent, eventually
from tests.support.authorities import Authority, Pair
from tests.support.forked import SOURCE

AT = "Innkeeper serves on "
ADMIN = {"x-auth-token": "admin"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextmanager
def serving(folder: Path, pair: Pair, *options: str, **environ: str) -> Iterator[str]:
    """Run the program with a certificate; yields the address that it prints."""
    command = [sys.executable, "-m", "innkeeper.main", "serve", "--port", "0", "--auth", "none"]
    command += ["--data-dir", str(folder / "data"), *options]
    ours = {name: value for name, value in os.environ.items() if name[:3] != "OS_"}
    ours |= {"INNKEEPER_TLS_CERT": str(pair.cert), "INNKEEPER_TLS_KEY": str(pair.key)}
    ours |= {"PYTHONPATH": str(SOURCE), **environ}
    with subprocess.Popen(command, env=ours, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        lines = iter(program.stderr.readline, "")
        address = next(line for line in lines if line.startswith(AT))
        try:
            yield address.removeprefix(AT).strip()
        finally:
            program.send_signal(signal.SIGTERM)
            program.communicate(timeout=WITHIN_S)


@contextmanager
def client(url: str, trust: ssl.SSLContext) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, verify=trust, trust_env=False, headers=ADMIN) as made:
        yield made


def states(asking: httpx.Client) -> dict[str, Any]:
    listed = asking.get("/compute/v2.1/os-services").json()["services"]
    return {each["host"]: each["state"] for each in listed}


def test_service_and_agents_over_tls(tmp_path: Path, authority: Authority) -> None:
    """The service's own agent trusts the service. An agent that does not know the authority never
    sends its token."""
    pair = authority.pair("service")
    ca = str(authority.file)
    with serving(tmp_path, pair, "--demo-hosts", "1", OS_CACERT=ca) as url:
        assert url.startswith("https://127.0.0.1:")
        with client(url, trust_of(ca, None, None)) as asking:
            links = asking.get("/compute/v2.1/").json()["version"]["links"]
            assert links[0]["href"].startswith(url)
            eventually(lambda: states(asking), {"host-1": "up"})
            wary = ["--name", "wary", "--host-prefix", "wary-"]
            with agent(url, tmp_path / "wary", *wary):
                bold = ["--name", "bold", "--host-prefix", "bold-", "--ca-file", ca]
                with agent(url, tmp_path / "bold", *bold):
                    wanted = {"host-1": "up", "bold-1": "up"}
                    eventually(lambda: states(asking), wanted)
        unbelieved = pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED")
        with client(url, trust_of(None, None, None)) as asking, unbelieved:
            asking.get("/healthz")
        with pytest.raises(httpx.HTTPError):
            httpx.get(url.replace("https:", "http:") + "/healthz", trust_env=False)


def test_a_client_without_a_certificate_is_refused(tmp_path: Path, authority: Authority) -> None:
    clients = Authority(tmp_path, "clients")
    strangers = Authority(tmp_path, "strangers")
    ours, theirs = clients.pair("rack"), strangers.pair("stranger")
    pair, ca = authority.pair("service"), str(authority.file)
    asked = {"INNKEEPER_TLS_CLIENT_CA": str(clients.file)}
    with serving(tmp_path, pair, **asked) as url:
        good = trust_of(ca, str(ours.cert), str(ours.key))
        with client(url, good) as asking:
            options = ["--ca-file", ca, "--host-prefix", "rack-"]
            options += ["--cert-file", str(ours.cert), "--key-file", str(ours.key)]
            with agent(url, tmp_path / "rack", *options):
                eventually(lambda: states(asking), {"rack-1": "up"})
        for wrong in (trust_of(ca, None, None), trust_of(ca, str(theirs.cert), str(theirs.key))):
            with client(url, wrong) as asking, pytest.raises(httpx.TransportError):
                asking.get("/healthz")


def shown(context: ssl.SSLContext, trust: ssl.SSLContext) -> int:
    """The serial number of the certificate for a new connection."""
    here, there = socket.socketpair()

    def answer() -> None:
        with context.wrap_socket(there, server_side=True) as wrapped:
            wrapped.recv(1)

    thread = threading.Thread(target=answer)
    thread.start()
    with trust.wrap_socket(here, server_hostname="127.0.0.1") as wrapped:
        raw = wrapped.getpeercert(binary_form=True)
        wrapped.send(b".")
    thread.join(WITHIN_S)
    assert raw is not None
    return x509.load_der_x509_certificate(raw).serial_number


def test_a_renewed_certificate_is_used_at_once(authority: Authority) -> None:
    pair = authority.pair("service")
    trust = trust_of(str(authority.file), None, None)
    certificates = Certificates(str(pair.cert), str(pair.key), None)
    first = shown(certificates.context, trust)
    assert not certificates.renew(), "nothing has changed"
    authority.pair("service")
    assert certificates.renew()
    second = shown(certificates.context, trust)
    assert first != second
    # Half of a renewal: a new key with the old certificate.
    other = authority.pair("other")
    pair.key.write_bytes(other.key.read_bytes())
    assert not certificates.renew()
    assert shown(certificates.context, trust) == second, "what was good goes on"
    pair.cert.write_bytes(other.cert.read_bytes())
    assert certificates.renew()
    assert shown(certificates.context, trust) not in (first, second)
    pair.cert.unlink()
    assert not certificates.renew()


def test_nothing_older_than_tls_1_2(authority: Authority) -> None:
    pair = authority.pair("service")
    context = Certificates(str(pair.cert), str(pair.key), None).context
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert trust_of(None, None, None).minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("wrong", ["cert", "key", "both", "missing", "client_ca"])
def test_a_certificate_that_cannot_be_used_stops_the_start(
    tmp_path: Path, authority: Authority, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    pair, other = authority.pair("service"), authority.pair("other")
    settings = {"tls_cert": str(pair.cert), "tls_key": str(pair.key)}
    if wrong == "both":
        settings["tls_key"] = str(other.key)
    elif wrong == "missing":
        settings["tls_cert"] = str(tmp_path / "nowhere")
    elif wrong == "client_ca":
        settings["tls_client_ca"] = str(pair.key)
    else:
        settings[f"tls_{wrong}"] = str(authority.file.with_suffix(".txt"))
        Path(settings[f"tls_{wrong}"]).write_text("nonsense")
    file = tmp_path / "innkeeper.toml"
    file.write_text("".join(f'{name} = "{text}"\n' for name, text in settings.items()))
    command = ["serve", "--port", "0", "--auth", "none", "--config", str(file)]
    assert main([*command, "--data-dir", str(tmp_path / "data")]) == 2
    reported = capsys.readouterr().err
    assert "innkeeper: Cannot " in reported and "Traceback" not in reported


@pytest.mark.parametrize(
    "wrong",
    [
        {"tls_cert": "a.crt"},
        {"tls_key": "a.key"},
        {"tls_client_ca": "ca.pem"},
        {"trusted_proxies": ["proxy.example.org"]},
        {"trusted_proxies": ["*"]},
    ],
)
def test_settings_that_do_not_go_together(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        load(None, environ={}, overrides=wrong)


def test_an_agent_reports_wrong_files(tmp_path: Path, authority: Authority) -> None:
    pair = authority.pair("rack")
    with pytest.raises(Invalid, match="CA bundle"):
        trust_of(str(tmp_path / "nowhere"), None, None)
    with pytest.raises(Invalid, match="certificate"):
        trust_of(None, str(pair.key), str(pair.key))
    with pytest.raises(Invalid, match="without its certificate"):
        trust_of(None, None, str(pair.key))
