"""Distinct values: their order, compared with Python's, is computed once."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from innkeeper.snapshot.vocabulary import FALSE, FEW, OTHERS_MAX, TRUE, Vocabulary, in_one_order

KINDS: list[Any] = ["b", 1, True, "", "a", 2.5, False, ["a"], {"b": 1}, "ä", "B"]


class Counted(str):
    """A text that counts how often such texts are compared."""

    __slots__ = ()
    compared = 0

    def __lt__(self, other: str) -> bool:
        Counted.compared += 1
        return str.__lt__(self, other)


def words(dice: random.Random, count: int) -> list[str]:
    letters = "abcdeä"
    made = {"".join(dice.choices(letters, k=dice.randrange(0, 5))) for _ in range(count)}
    return sorted(made, key=lambda _: dice.random())


def test_texts_and_truths_have_ranks_and_nothing_else_has() -> None:
    ranks = Vocabulary(KINDS).ranks().tolist()
    by_text = {word: rank for word, rank in zip(KINDS, ranks, strict=False) if rank >= 0}
    assert by_text == {"": 0, "B": 1, "a": 2, "b": 3, "ä": 4}
    assert (ranks[2], ranks[6]) == (TRUE, FALSE)
    assert [np.isnan(ranks[code]) for code in (1, 5, 7, 8, -1)] == [True] * 5


def test_ranks_are_of_what_there_is_now() -> None:
    vocabulary = Vocabulary()
    assert vocabulary.ranks().shape == (1,)
    vocabulary.values += ["m", 7, "z"]
    assert vocabulary.ranks()[[0, 2]].tolist() == [0, 1]
    vocabulary.values += [1, 2]
    assert vocabulary.ranks()[[0, 2]].tolist() == [0, 1]
    vocabulary.values.append("a")
    assert vocabulary.ranks()[[5, 0, 2]].tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(6))
def test_two_orders_come_together_as_python_has_it(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - must be repeatable, not secret
    one, other = (Vocabulary(words(dice, dice.choice([1, 30, 200]))) for _ in range(2))
    for _ in range(3):
        mine, its = in_one_order(one, other)
        pairs = list(product(range(len(one.values)), range(len(other.values))))
        for here, there in dice.sample(pairs, min(3000, len(pairs))):
            a, b = one.values[here], other.values[there]
            assert (mine[here] < its[there], mine[here] == its[there]) == (a < b, a == b)
        dice.choice([one, other]).values.append(f"more {dice.random()}")


def test_the_same_is_in_order_with_itself() -> None:
    vocabulary = Vocabulary(KINDS)
    mine, its = in_one_order(vocabulary, vocabulary)
    assert mine is its


def test_a_text_is_found_without_looking_at_all() -> None:
    vocabulary = Vocabulary(Counted(f"x{number:04}") for number in range(2000))
    vocabulary.ranks()
    Counted.compared = 0
    for number in range(10):
        in_one_order(vocabulary, Vocabulary((f"x{number}",)))
    # A binary search in two thousand values takes eleven or twelve steps.
    assert Counted.compared <= 120


@pytest.mark.parametrize("count", [80, 100, 200])
def test_two_columns_are_put_in_one_order_once(count: int) -> None:
    one = Vocabulary(Counted(f"x{number}") for number in range(100))
    other = Vocabulary(Counted(f"y{number}") for number in range(count))
    first, _ = in_one_order(one, other)
    its, _ = in_one_order(other, one)
    Counted.compared = 0
    assert in_one_order(one, other)[0] is first
    assert in_one_order(other, one)[1] is first
    assert in_one_order(other, one)[0] is its
    assert Counted.compared == 0


def test_the_cache_of_orders_is_bounded() -> None:
    one = Vocabulary(f"x{number}" for number in range(100))
    others = [Vocabulary(f"y{number}" for number in range(101)) for _ in range(OTHERS_MAX + 1)]
    firsts = [in_one_order(one, each)[0] for each in others]
    assert in_one_order(one, others[-1])[0] is firsts[-1]
    assert in_one_order(one, others[0])[0] is not firsts[0]


LISTS: list[Any] = [["a", 1, True], [1.0, "b", None, ["a"]], "a", [], [2**60, float("nan")], [0]]


@pytest.mark.parametrize("sought", ["a", "b", "c", 1, 1.0, True, False, 0, 2**60, 2.5])
@pytest.mark.parametrize("is_many", [False, True])
def test_lists_are_found_by_their_items(sought: Any, *, is_many: bool) -> None:
    vocabulary = Vocabulary(LISTS[:2])
    vocabulary.having("a")
    vocabulary.values += LISTS[2:]
    if is_many:
        vocabulary.values.append([*range(5, 5 + FEW), 1, 2.5])

    def has(value: Any) -> bool:
        return isinstance(value, list) and any(
            isinstance(each, bool) == isinstance(sought, bool) and each == sought for each in value
        )

    assert vocabulary.having(sought).tolist() == [*map(has, vocabulary.values), False]


def test_lists_are_marked() -> None:
    assert Vocabulary(["a", 1]).are_lists() is None
    found = Vocabulary(["a", []]).are_lists()
    assert found is not None
    assert found.tolist() == [False, True, False]
