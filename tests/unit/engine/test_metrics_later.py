"""Observations of the writer thread are counted later, and none is lost or counted twice."""

from __future__ import annotations

import threading

from innkeeper.engine import metrics
from innkeeper.engine.metrics import Later


def test_nothing_is_counted_before_it_is_settled() -> None:
    later, counted = Later(), list[float]()
    later.add(counted.append, 2)
    assert counted == []
    later.settle()
    later.settle()
    assert counted == [2]


def test_two_threads_count_each_observation_once() -> None:
    later, counted, amount = Later(), list[float](), 20_000
    for number in range(amount):
        later.add(counted.append, number)
    threads = [threading.Thread(target=later.settle) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(counted) == list(range(amount))


def test_metrics_are_read_with_all_that_was_left_for_later() -> None:
    metrics.LATER.add(metrics.BATCH.observe, 3)
    assert b"innkeeper_commit_steps_sum" in metrics.exposition()
    found = list[float]()
    metrics.LATER.add(found.append, 1)
    metrics.exposition()
    assert found == [1]
