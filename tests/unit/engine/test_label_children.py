"""The child of a metric for given labels is looked up only once."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, generate_latest

from innkeeper.engine.label_children import LabelChildren


def test_a_child_is_the_same_for_equal_values_and_shows_them_as_texts() -> None:
    registry = CollectorRegistry()
    counter = Counter("asked", "Requests.", ("zone", "status"), registry=registry)
    children = LabelChildren(counter)
    children.of("east", 200).inc()
    children.of("east", 200).inc()
    children.of("west", 404).inc()
    assert children.of("east", 200) is children.of("east", 200)
    shown = generate_latest(registry).decode()
    assert 'asked_total{status="200",zone="east"} 2.0' in shown
    assert 'asked_total{status="404",zone="west"} 1.0' in shown
