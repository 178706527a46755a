"""Spans of requests reach a collector, and continue the caller's trace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.running import running

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"


class Collector(ThreadingHTTPServer):
    """Receives spans as OpenTelemetry's own collector does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.taken: list[ExportTraceServiceRequest] = []


class Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        """Store the request."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.taken.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_spans_of_requests_are_sent(tmp_path: Path, collector: Collector) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    traceparent = f"00-{TRACE_ID}-{PARENT_ID}-01"
    with running(tmp_path, trace_endpoint=endpoint) as service:
        answer = service.call(
            "GET", "/placement/traits/CUSTOM_NONE", headers={"traceparent": traceparent}
        )
    spans = [
        span
        for sent in collector.taken
        for resource in sent.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    (span,) = [each for each in spans if "traits" in each.name]
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE_ID, PARENT_ID)
    assert span.name == "GET /placement/traits/{name}"
    facts = {each.key: each.value for each in span.attributes}
    assert facts["http.response.status_code"].int_value == answer.status_code
    request_id = answer.headers["x-openstack-request-id"]
    assert facts["openstack.request_id"].string_value == request_id
