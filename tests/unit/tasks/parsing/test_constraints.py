"""The rule by which a search writes only trees."""

import functools
import itertools

import pytest
import torch

from heedful.model.initialize import initialize
from heedful.search.beam import beam_search
from heedful.search.ensemble import Ensemble
from heedful.search.greedy import greedy_search
from heedful.search.settings import SearchOptions
from heedful.tasks.parsing.constraints import (
    CLOSE,
    OPEN,
    OTHER,
    WORD,
    TreeSymbols,
    WellFormedTrees,
    fewest_symbols,
)
from heedful.tasks.parsing.next_word import NextWord
from heedful.tasks.parsing.trees.linearize import delinearize
from heedful.tasks.parsing.trees.read import DEEPEST
from tests.support.exhaustive_search import PENALTIES, RULES, is_close, tiny
from tests.support.models import FAMILIES

PIECES = ("<pad>", "<unk>", "<s>", "</s>", "XX", "(A", ")A", "(B", ")B")
END = 3
SYMBOLS = TreeSymbols(
    (OTHER, OTHER, OTHER, OTHER, WORD, OPEN, CLOSE, OPEN, CLOSE),
    (-1, -1, -1, -1, -1, 0, 0, 1, 1),
)


def allowed_after(written, words, limit, chain=3):
    """List the ids that may follow."""
    rule = WellFormedTrees(SYMBOLS, [words], [limit], END, chain)
    rows = torch.tensor([written], dtype=torch.long).view(1, -1)
    scores = rule(torch.zeros(1, len(PIECES) + 3), rows, torch.tensor([0]))
    return (scores[0] == 0).nonzero().flatten().tolist()


def all_outputs(words, limit, chain):
    """Write everything that the rule allows."""
    found, rest = [], [[]]
    while rest:
        written = rest.pop()
        following = allowed_after(written, words, limit, chain)
        assert following, f"dead end after {written}"
        for token in following:
            if token == END:
                found.append(tuple(written))
            else:
                rest.append([*written, token])
    return set(found)


def test_a_number_that_no_symbol_has_may_be_any():
    symbols = TreeSymbols(SYMBOLS.kinds, (*SYMBOLS.labels[:4], 0, *SYMBOLS.labels[5:]), numbers=3)
    rule = WellFormedTrees(symbols, [3], [20], END, 3)
    for written, allowed in (([5], True), ([5, 4], True)):
        rows = torch.tensor([written])
        scores = rule(torch.zeros(1, len(PIECES)), rows, torch.tensor([0]))
        assert (scores[0, 4] == 0).item() is allowed


def is_wanted(written, words, chain):
    """Whether these ids are a tree of the words, checked by the reader of trees."""
    pieces = [PIECES[token] for token in written]
    runs = [
        len(list(run)) for opens, run in itertools.groupby(pieces, lambda p: p[0] == "(") if opens
    ]
    leaves = [str(number) for number in range(words)]
    tree = delinearize(pieces, leaves, "vinyals")
    return tree is not None and max(runs, default=0) <= chain


@pytest.mark.parametrize(("words", "limit", "chain"), [(1, 5, 2), (2, 6, 2), (2, 8, 1), (3, 7, 3)])
def test_exactly_the_trees_of_the_words_can_be_written(words, limit, chain):
    every = (
        {
            written
            for length in range(1, limit + 1)
            for written in itertools.product(range(4, len(PIECES)), repeat=length)
            if is_wanted(written, words, chain)
        }
        if limit < 8
        else None
    )
    found = all_outputs(words, limit, chain)
    assert all(is_wanted(written, words, chain) and len(written) <= limit for written in found)
    if every is not None:
        assert found == every


def test_the_smallest_trees_fit_their_limit():
    for words in (1, 2, 4):
        limit = fewest_symbols(words)
        assert {len(written) for written in all_outputs(words, limit, 2)} == {limit}


def test_nothing_is_nested_deeper_than_a_tree_is_read():
    assert allowed_after([5] * (DEEPEST - 1), 1, 1000, 300) == [4, 5, 7]
    assert allowed_after([5] * DEEPEST, 1, 1000, 300) == [4]


def test_rows_have_stacks_of_their_own():
    rule = WellFormedTrees(SYMBOLS, [2, 1], [20, 20], END, 3)
    written = torch.tensor([[5, 7, 4], [5, 4, 6], [5, 4, 4]])  # (A (B XX / (A XX )A / (A XX XX
    scores = rule(torch.zeros(3, len(PIECES)), written, torch.tensor([0, 1, 0]))
    rows = [(row == 0).nonzero().flatten().tolist() for row in scores]
    assert rows == [[4, 5, 7, 8], [END], [6]]


# ---------------------------------------------------------------- in searches

WORDS, LIMIT = 2, 6


def rule(sentences=1):
    return WellFormedTrees(SYMBOLS, [WORDS] * sentences, [LIMIT] * sentences, END, 3)


@functools.cache
def trees_of(model):
    """Every tree of two words, with the scores of `every_sequence`."""
    found = []
    for length in range(1, LIMIT + 1):
        texts = [
            tokens
            for tokens in itertools.product(range(4, len(PIECES)), repeat=length)
            if is_wanted(tokens, WORDS, 3)
        ]
        if texts:
            inputs = torch.tensor([[model.start_token, *tokens] for tokens in texts])
            tables = model.log_probabilities(model.states(SOURCE.expand(len(texts), -1), inputs))
            for tokens, table in zip(texts, tables.tolist(), strict=True):
                each = [table[i][token] for i, token in enumerate([*tokens, END])]
                found.append((sum(each) / PENALTY.divisor(length + 1), tokens, each))
    return sorted(found, reverse=True)


SOURCE = torch.tensor([[4, 5, 3]])
PENALTY = PENALTIES[1]


# Behind the Transformer alone where that family is not here.
READERS = [name for name in ("transformer", "recurrent") if name in FAMILIES]
NAMES = [*FAMILIES, *(f"{name} with the next word" for name in READERS), "ensemble"]


def models():
    found = {
        name: tiny(seed, len(PIECES), **settings, tie_embeddings="none")
        for seed, (name, settings) in enumerate(FAMILIES.items())
    }
    for family in READERS:
        name = f"{family} with the next word"
        found[name] = tiny(1, len(PIECES), **FAMILIES[family], tie_embeddings="none")
        kinds = torch.tensor(SYMBOLS.kinds)
        begins = torch.tensor([False] * 4 + [True] * 5)
        next_word = NextWord(found[name].encoder.width, 8, begins, kinds == WORD)
        found[name].read_with("next_word", next_word)
        initialize(found[name], 1)
    members = [found["transformer with the next word"], found[READERS[-1]]]
    return found | {"ensemble": Ensemble(members)}


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_a_wide_beam_finds_the_best_trees(name):
    model = models()[name]
    expected = trees_of(model)
    settings = SearchOptions(beam=200, n_best=5, length_penalty=str(PENALTY))
    (found,) = beam_search(model, SOURCE, [LIMIT], settings, [rule()])
    is_close(found, expected[:5])


@pytest.mark.parametrize("name", NAMES)
def test_greedy_search_is_free_where_the_free_output_is_a_tree(name):
    model, settings = models()[name], SearchOptions(beam=1)
    with torch.no_grad():
        # a model that mostly writes a tree by itself, at first
        sources = torch.randint(4, len(PIECES), (40, 3), generator=torch.manual_seed(1))
        free = greedy_search(model, sources, [LIMIT] * 40, settings, RULES)
        bound = greedy_search(model, sources, [LIMIT] * 40, settings, [rule(40)])
    for one, other in zip(free, bound, strict=True):
        assert is_wanted(other.tokens, WORDS, 3)
        assert other.ended
        if one.ended and is_wanted(one.tokens, WORDS, 3):
            assert one == other
