"""Traces requests with OpenTelemetry. This module needs the packages of the extra "tracing".

A span covers a request from its arrival to its answer. If the request has the header
``traceparent``, the span continues the client's trace. Spans are sent in the background. If the
collector is unavailable, spans are lost, and requests go on without delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

SERVER_ERROR = 500


class OpenTelemetryTracer:
    """Sends a span for each request to the collector at ``endpoint`` (OTLP over HTTP)."""

    def __init__(self, endpoint: str) -> None:
        self._provider = TracerProvider(resource=Resource.create({SERVICE_NAME: "innkeeper"}))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
        self._tracer = self._provider.get_tracer("innkeeper.api")

    @contextmanager
    def request(
        self, method: str, route: str, headers: Mapping[str, str]
    ) -> Iterator[Callable[[int, str], None]]:
        """Trace a request; see :meth:`innkeeper.entrypoints.api.site.Tracer.request`."""
        with self._tracer.start_as_current_span(
            f"{method} {route}",
            context=extract(dict(headers)),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route},
        ) as span:

            def answered(status: int, request_id: str) -> None:
                span.set_attribute("http.response.status_code", status)
                span.set_attribute("openstack.request_id", request_id)
                if status >= SERVER_ERROR:
                    span.set_status(Status(StatusCode.ERROR))

            yield answered

    def stop(self) -> None:
        """Send the remaining spans."""
        self._provider.shutdown()
