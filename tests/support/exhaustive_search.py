"""Tiny models, and an exhaustive reference for every search, without a cache."""

import itertools

import torch

from heedful.config.model import ModelConfig
from heedful.families.build import build_model
from heedful.model.initialize import initialize
from heedful.search.length import LengthPenalty
from heedful.search.rules import AllowedTokens
from tests.support.models import draw_gates

END = 3
FORBIDDEN = (0, 2)
RULES = [AllowedTokens(forbidden=FORBIDDEN)]
PENALTIES = [LengthPenalty("none"), LengthPenalty("gnmt", 0.6), LengthPenalty("power", 1.0)]


def tiny(seed, vocabulary=6, **changes):
    values = {"d_model": 8, "d_ff": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    model = build_model(ModelConfig(**{**values, **changes}), vocabulary, vocabulary, max_length=9)
    initialize(model, seed)
    draw_gates(model, seed)
    with torch.no_grad():  # livelier than a fresh model, so that ends are probable now and then
        model.embed_target.weight.mul_(3.0)
    return model.eval()


def log_probabilities(model, source, target_in):
    """Log-probabilities (rows, target, vocabulary) of one source's next tokens, all at once."""
    with torch.no_grad():
        states = model.states(source.expand(len(target_in), -1), target_in)
        return torch.log_softmax(model.project(states), dim=-1)


def every_text(model, source, limit, table_of=log_probabilities):
    """List every complete sequence up to the limit, with the log-probability of each token."""
    vocabulary = table_of(model, source, torch.tensor([[model.start_token]])).size(-1)
    allowed = [token for token in range(vocabulary) if token not in (*FORBIDDEN, END)]
    found = []
    for length in range(limit + 1):
        texts = list(itertools.product(allowed, repeat=length))
        tables = table_of(model, source, torch.tensor([[model.start_token, *t] for t in texts]))
        for tokens, table in zip(texts, tables.tolist(), strict=True):
            found.append((tokens, [table[i][token] for i, token in enumerate([*tokens, END])]))
    return found


def by_score(texts, penalty):
    """Score the sequences of `every_text`; best first, as (score, tokens, each)."""
    scored = ((sum(each) / penalty.divisor(len(each)), tokens, each) for tokens, each in texts)
    return sorted(scored, reverse=True)


def every_sequence(model, source, limit, penalty, table_of=log_probabilities):
    """Score every complete sequence up to the limit; best first, as (score, tokens, each)."""
    return by_score(every_text(model, source, limit, table_of), penalty)


def batch_of_five(seed, vocabulary=12):
    """Five sources of different length, and limits."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, vocabulary, (5, 6), generator=generator)
    for row, length in enumerate([6, 3, 1, 5, 2]):
        source[row, length:] = 0
    return source, [8, 3, 5, 0, 2]


def alone(source, row):
    """One source of a batch, without its padding."""
    return source[row : row + 1, : int((source[row] != 0).sum())]


def contains(tokens, phrase):
    """Count the places where a phrase stands."""
    width = len(phrase)
    return sum(tuple(tokens[i : i + width]) == tuple(phrase) for i in range(len(tokens)))


def is_close(found, expected):
    """Compare hypotheses with the entries of `every_sequence`."""
    assert [h.tokens for h in found] == [tokens for _, tokens, _ in expected]
    for hypothesis, (score, _, each) in zip(found, expected, strict=True):
        assert hypothesis.ended
        assert abs(hypothesis.score - score) < 1e-4
        torch.testing.assert_close(
            torch.tensor(hypothesis.log_probabilities), torch.tensor(each), atol=1e-4, rtol=0
        )
