import json
import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.search.beam import beam_search, prune, search
from heedful.search.greedy import greedy_search
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthPenalty
from heedful.search.rules import AllowedTokens
from heedful.search.settings import SearchOptions
from heedful.search.step import extend, extend_plainly
from heedful.search.stopping import can_still_win
from tests.support.exhaustive_search import (
    END,
    PENALTIES,
    RULES,
    alone,
    batch_of_five,
    by_score,
    every_text,
    is_close,
)
from tests.support.families import cases

RECURRENT = {
    "encoder": "recurrent",
    "decoder": "recurrent",
    "recurrent": {"initial_range": 1.0},
}
BYTENET = {
    "encoder": "bytenet",
    "decoder": "bytenet",
    "decoder_layers": 2,
    "bytenet": {"unfolding_factor": 1.0},  # hypotheses outgrow it
}
CONVS2S = {
    "encoder": "convs2s",
    "decoder": "convs2s",
    "convs2s": {"encoder_layers": "(8,3)", "decoder_layers": "2x(8,3)"},
}

ADDITIVE = {"attention": {"score": "additive"}}
FAMILIES = cases(
    {
        "transformer": {},
        "recurrent": RECURRENT,
        "convs2s": CONVS2S,
        "additive": ADDITIVE,
        "bytenet": BYTENET,
        "window": {"attention": {"window": 2}},
        "fastformer": {"attention": {"decoder": "fastformer-linear"}},
        "average": {"encoder": "average"},
        "noisy experts": {"experts": {"count": 3}},
        "balanced experts": {"experts": {"count": 3, "gating": "balanced"}},
    }
)
# Models of the other families cannot be recorded, so both ways would be the same.
RECORDED = [name for name in ("transformer", "average") if name in FAMILIES]
WAYS = [("plain", name) for name in FAMILIES] + [("recorded", name) for name in RECORDED]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("tiny", "name"), WAYS, indirect=["tiny"], scope="module")
def test_a_wide_beam_finds_the_best_of_all_sequences(tiny, name, seed):
    model = tiny(seed, **FAMILIES[name])
    source = torch.tensor([[4, 5, END]])
    texts = every_text(model, source, 3)
    for penalty in PENALTIES:
        expected = by_score(texts, penalty)[:4]
        options = SearchOptions(beam=200, length_penalty=str(penalty), n_best=4)
        (found,) = beam_search(model, source, [3], options, rules=RULES)
        is_close(found, expected)


@pytest.mark.parametrize(
    ("tiny", "names"),
    [("plain", [*FAMILIES]), ("recorded", RECORDED)],
    indirect=["tiny"],
    ids=["plain", "recorded"],
    scope="module",
)
@settings(max_examples=16)
@given(
    st.integers(0, 50),
    st.integers(1, 5),
    st.sampled_from(PENALTIES),
    st.data(),
)
def test_many_sentences_together_are_found_as_each_alone(tiny, names, seed, beam, penalty, data):
    name = data.draw(st.sampled_from(names))
    model = tiny(seed, vocabulary=12, **FAMILIES[name])
    source, limits = batch_of_five(seed)
    options = {
        "settings": SearchOptions(beam=beam, length_penalty=str(penalty), n_best=min(beam, 2)),
        "rules": RULES,
    }
    together = beam_search(model, source, limits, **options)
    for row, limit in enumerate(limits):
        (single,) = beam_search(model, alone(source, row), [limit], **options)
        assert [h.tokens for h in together[row]] == [h.tokens for h in single]
        for one, other in zip(together[row], single, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)


@dataclass
class RowsOfTables:
    """A state that stores only the table row of each hypothesis."""

    step: int
    sentences: list[int]

    def select(self, rows, sentences=None):
        del rows
        kept = self.sentences if sentences is None else [self.sentences[i] for i in sentences]
        return RowsOfTables(self.step, kept)


@pytest.mark.parametrize("case", [0, 1])
def test_the_hypotheses_of_fairseqs_table_are_found(corpora, case):
    fixture = json.loads((corpora / "fixtures-beam" / "fairseq-beam.json").read_text())
    table, wanted = fixture["beam_probs"], fixture["cases"][case]
    columns = fixture["columns"]

    def next_log_probabilities(tokens, state):
        width = len(tokens) // len(state.sentences)
        rows = [table[state.step][2 * s + i] for s in state.sentences for i in range(width)]
        return torch.tensor(rows).log(), RowsOfTables(state.step + 1, state.sentences)

    penalty = LengthPenalty("power", wanted["lenpen"]) if wanted["normalize"] else PENALTIES[0]
    found = search(
        next_log_probabilities,
        RowsOfTables(0, [0, 1]),
        torch.tensor([0, 0]),
        [len(table) - 1] * 2,
        SearchOptions(beam=wanted["beam"], length_penalty=str(penalty), n_best=wanted["beam"]),
        end_token=columns.index("eos"),
    )
    for hypotheses, expected in zip(found, wanted["expected"], strict=True):
        for hypothesis, answer in zip(hypotheses, expected, strict=True):
            tokens = [columns[token] for token in hypothesis.tokens]
            assert [*tokens, "eos"] == answer["tokens"]
            logs = [math.log(p) for p in answer["probs"]]
            assert hypothesis.log_probabilities == pytest.approx(logs, abs=1e-5)
            assert hypothesis.score == pytest.approx(
                sum(logs) / penalty.divisor(len(logs)), abs=1e-5
            )


def test_extend_finds_the_best_continuations():
    totals = torch.tensor([[-1.0, -2.0]])
    scores = torch.tensor([[[-0.5, -3.0, -1.0], [-0.1, -9.0, -0.2]]])
    found = extend(totals, scores, 4)
    torch.testing.assert_close(found.totals, torch.tensor([[-1.5, -2.0, -2.1, -2.2]]))
    assert found.parents.tolist() == [[0, 0, 1, 1]]
    assert found.tokens.tolist() == [[0, 2, 0, 2]]


@pytest.mark.parametrize(
    ("width", "vocabulary", "wanted"), [(1, 3, 8), (4, 8000, 8), (4, 2, 8), (3, 130, 1)]
)
def test_compiled_functions_and_torch_extend_alike(width, vocabulary, wanted):
    torch.manual_seed(4)
    scores = torch.randn(5, width, vocabulary).log_softmax(2)
    totals = -3 * torch.rand(5, width)
    totals[2, 1:] = float("-inf")  # dead
    scores[3, :, 1] = float("-inf")  # forbidden
    fast, plain = (one(totals, scores, wanted) for one in (extend, extend_plainly))
    torch.testing.assert_close(fast.totals, plain.totals, rtol=0, atol=0)
    alive = plain.totals > float("-inf")
    for name in ("log_probabilities", "parents", "tokens"):
        assert torch.equal(getattr(fast, name)[alive], getattr(plain, name)[alive])


def test_of_equal_continuations_the_first_is_taken():
    scores = torch.tensor([[[-2.0, -1.0, -1.0], [-1.0, -2.0, -1.0]]])
    found = extend(torch.zeros(1, 2), scores, 3)
    assert found.parents.tolist() == [[0, 0, 1]]
    assert found.tokens.tolist() == [[1, 2, 0]]


def test_prune_keeps_the_best_that_have_not_ended():
    ended = torch.tensor([[True, False, True, False]])
    assert prune(ended, 2).tolist() == [[1, 3]]


def test_a_sentence_is_done_when_nothing_open_can_win():
    complete = [Hypothesis((4,), (-1.0, -1.0), -2.0, True)]
    none, gnmt = PENALTIES[0], PENALTIES[1]
    assert can_still_win(-1.9, 10, none, complete, 1)
    assert not can_still_win(-2.0, 10, none, complete, 1)
    # a long hypothesis gains by the penalty, so a worse one may still win
    assert can_still_win(-2.5, 10, gnmt, complete, 1)
    assert not can_still_win(-2.0 * gnmt.divisor(10), 10, gnmt, complete, 1)
    assert can_still_win(-99.0, 10, none, complete, 2)
    assert not can_still_win(float("-inf"), 10, none, [], 1)


def never_ending(model):
    """Make the end symbol improbable everywhere."""
    with torch.no_grad():
        bias = model.output.bias
        bias[END] = -50.0
    return model


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_output_is_cut_at_the_limit_and_an_end_is_not_forced(tiny, limit):
    model = never_ending(tiny(1, output_bias=True))
    source = torch.tensor([[4, 5, END]])
    (found,) = beam_search(
        model,
        source,
        [limit],
        SearchOptions(beam=2, length_penalty=str(PENALTIES[1]), n_best=2),
        rules=RULES,
    )
    assert all(len(h.tokens) == limit and not h.ended for h in found)
    assert all(len(h.log_probabilities) == limit for h in found)
    (greedy,) = greedy_search(
        model, source, [limit], SearchOptions(length_penalty=str(PENALTIES[1])), rules=RULES
    )
    assert (len(greedy.tokens), greedy.ended) == (limit, False)


def test_forbidden_and_filling_ids_are_never_generated(tiny):
    for seed in range(6):
        model = tiny(seed, vocabulary=12)
        source = torch.tensor([[4, 5, END]])
        wide = SearchOptions(beam=4, length_penalty=str(PENALTIES[1]), n_best=4)
        rules = [AllowedTokens(9, (0, 2, 4))]
        found = beam_search(model, source, [9], wide, rules)[0]
        found += greedy_search(model, source, [9], wide, rules)
        assert {token for h in found for token in h.tokens} <= {1, 5, 6, 7, 8}


def test_greedy_takes_the_most_probable_token_each_time(tiny):
    model = tiny(2, vocabulary=12)
    source = torch.tensor([[4, 5, END, 0], [6, 7, 8, END]])
    found = greedy_search(
        model, source, [6, 2], SearchOptions(length_penalty=str(PENALTIES[0])), rules=RULES
    )
    for row, hypothesis in enumerate(found):
        tokens = [model.start_token]
        for position, log_probability in enumerate(hypothesis.log_probabilities):
            with torch.no_grad():
                logits = model.project(model.states(source[row : row + 1], torch.tensor([tokens])))[
                    0, -1
                ]
            table = torch.log_softmax(logits, -1)
            table[[0, 2]] = float("-inf")
            best = int(table.argmax())
            wanted = hypothesis.tokens[position] if position < len(hypothesis.tokens) else END
            assert best == wanted
            assert float(table[best]) == pytest.approx(log_probability, abs=1e-4)
            tokens.append(best)


def test_ends_among_twice_the_beam_may_count_as_in_the_authors_code():
    # the end is the third best continuation: outside a beam of 2, inside 2 x 2
    table = torch.tensor([[0.1, 0.4, 0.3, 0.2]]).log()

    def next_log_probabilities(tokens, state):
        return table.expand(len(tokens), -1), state

    def run(eos_candidates):
        return search(
            next_log_probabilities,
            RowsOfTables(0, [0]),
            torch.tensor([0]),
            [1],
            SearchOptions(
                beam=2, length_penalty=str(PENALTIES[0]), n_best=2, eos_candidates=eos_candidates
            ),
            end_token=3,
        )[0]

    assert () not in [h.tokens for h in run("beam")]
    assert run(None) == run("beam")
    assert run("twice")[0].tokens == ()
