"""The probes of load balancers and monitoring."""

from __future__ import annotations

from pathlib import Path

from tests.support.running import running


def test_health_and_readiness(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        for path, word in (("/healthz", "ok"), ("/readyz", "ready")):
            answer = service.call("GET", path, token=None)
            assert (answer.status_code, answer.text) == (200, word)
            answer = service.call("HEAD", path, token=None)
            assert (answer.status_code, answer.content) == (200, b"")
        reported = service.call("GET", "/metrics", token=None).text
        assert "innkeeper_request_seconds" in reported
        service.service.engine.writer.stop(5.0)
        assert service.call("GET", "/readyz", token=None).status_code == 503
        assert service.call("GET", "/healthz", token=None).status_code == 200
