"""
Beam search.

::

    extend   every open hypothesis by every token; keep the 2 x beam best extensions
    prune    the `beam` best extensions without the end symbol stay open
    finish   extensions with the end symbol are complete, if they are among the best
    stop     a sentence is done when no open hypothesis can win any more (`heedful.search.stopping`)

Searches differ in how many of the best candidates count for `finish`: `beam` in most toolkits, 2 x
beam in the authors' code. The paper does not give the number. Many sentences are decoded together.
Finished sentences leave the batch once they make up a quarter of it, so later steps cost less. The
search does not depend on the architecture: it uses the model through `heedful.model.contracts`.
Other beam searches (`heedful.search.diverse`, `heedful.search.constrained`) use the same loop with
another `extend`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.model.contracts import DecodingState, Seq2Seq
from heedful.search.coverage import check_coverage, cover, coverage_penalties
from heedful.search.hypothesis import Hypothesis, OpenHypothesis
from heedful.search.length import LengthPenalty
from heedful.search.observer import Candidate, SearchObserver, StepDecision
from heedful.search.rules import DecodingRule, apply_all
from heedful.search.settings import PAPER_SEARCH, SearchOptions
from heedful.search.step import (
    COMPACT_SHARE,
    Candidates,
    Extend,
    NextLogProbabilities,
    extend,
    start_decoding,
)
from heedful.search.stopping import BeamProgress, StoppingPolicy, StoppingRule

Missing = Callable[[Sequence[int]], Sequence[object]]
"""Lists what must occur in a translation but is not in its tokens."""


def prune(ended: Bool[Tensor, "beams candidates"], beam: int) -> Int[Tensor, "beams beam"]:
    """
    Choose the candidates that stay open: the best without the end symbol, best first.

    A stable sort by “ended or not” keeps the order of the scores. Each open hypothesis has one
    extension that ends. So at least `beam` of the 2 x beam candidates do not end, unless the
    vocabulary is tiny.
    """
    return ended.int().sort(dim=1, stable=True).indices[:, :beam]  # (beams, beam)


@dataclass
class _Beam:
    """
    The open and complete hypotheses of one sentence, or of one of its groups.

    A finished beam may stay in the batch for a while; its rows are dead.
    """

    limit: int
    missing: Missing
    open: list[OpenHypothesis] = field(default_factory=lambda: [OpenHypothesis([], [], 0.0)])
    complete: list[Hypothesis] = field(default_factory=list)
    may_win: bool = True
    done: bool = False
    closed: set[int] = field(default_factory=set)
    """Positions in the beam where a hypothesis has ended, for rules that count them."""

    def finish(self, hypothesis: Hypothesis, keep: int) -> None:
        """Insert a complete hypothesis and keep the best; those that miss nothing come first."""
        self.complete.append(hypothesis)
        self.complete.sort(key=lambda h: (bool(self.missing(h.tokens)), -h.score))
        del self.complete[keep:]


@torch.inference_mode()
def beam_search(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    settings: SearchOptions = PAPER_SEARCH,
    rules: Sequence[DecodingRule] = (),
    observer: SearchObserver | None = None,
) -> list[list[Hypothesis]]:
    """
    Translate a batch of sentences by beam search; return n-best lists, best first.

    By default the search is that of section 6.1: beam 4, alpha 0.6, early termination. A hypothesis
    at its limit ends if its extension by the end symbol is among the beam's best candidates.
    Otherwise it is cut, and counts only if too few hypotheses have ended. A step costs one forward
    pass of `beam` rows per sentence. `limits`: maximum number of target tokens of each sentence,
    not counting the end symbol. `observer`: called for every sentence after every step.
    """
    check_coverage(settings.coverage_penalty, [model])
    return search(
        *start_decoding(model, source),
        limits,
        settings,
        end_token=model.end_token,
        rules=rules,
        observer=observer,
    )


def search(
    next_log_probabilities: NextLogProbabilities,
    state: DecodingState,
    tokens: Int[Tensor, " beams"],
    limits: Sequence[int],
    settings: SearchOptions,
    *,
    end_token: int,
    rules: Sequence[DecodingRule] = (),
    extend_by: Extend | None = None,
    missing: Sequence[Missing] | None = None,
    observer: SearchObserver | None = None,
) -> list[list[Hypothesis]]:
    """
    Run beam search on any source of next-token log-probabilities.

    Tests call this function with tables of probabilities and compare its results with an exhaustive
    search. `next_log_probabilities` maps the newest tokens (rows,) and the state to
    log-probabilities (rows, vocabulary) and the next state. `state` has one row per group, and
    `tokens` are the input of the first step. The beam is divided among `diverse_groups`: separate
    beams that stay in the batch together. `extend_by` chooses the continuations of each beam
    (`extend` if None). `missing` has a function for each sentence; hypotheses that miss something
    come last. Returns for each group its best hypotheses, best first; the groups of a sentence are
    adjacent.
    """
    groups, beam, eos_candidates = settings.diverse_groups, settings.width, settings.eos_ranks
    stopping, rule = settings.stopping, settings.stopping.rule
    extend_beams = extend_by or partial(_extend_plainly, candidates=2 * beam)
    # Number of complete hypotheses to keep: the n-best list, or a whole beam if the rule fills it.
    # The lists of groups are interleaved later, so each group keeps its whole beam.
    keep = beam if rule.fills_beam or groups > 1 else settings.n_best
    penalty = rule.counted(settings.penalty)
    active = beams = [
        _Beam(*beam_of)
        for beam_of in zip(limits, missing or [_nothing] * len(limits), strict=True)
        for _ in range(groups)
    ]
    # sentence of each beam: (beams,)
    sentences = torch.arange(len(limits), device=tokens.device).repeat_interleave(groups)
    sentence_of_row, first_rows = _rows_of(sentences, 1)
    # Candidates are chosen with tensors; the lists in `_Beam` contain the results.
    totals = torch.zeros(len(beams), 1, device=tokens.device)  # (beams, width), width 1 at first
    prefixes = tokens.new_empty(len(beams), 0)  # (beams * width, length)
    length, beta = 0, settings.coverage_penalty or 0.0
    next_log_probabilities, state = cover(next_log_probabilities, state, beta, len(tokens))
    while active:
        # 1. extend: log-probabilities of the next token, then the best continuations of each beam
        scores, state = next_log_probabilities(tokens, state)  # (beams * width, vocabulary)
        width = totals.size(1)
        scores = apply_all(rules, scores, prefixes, sentence_of_row)
        by_beam = scores.view(len(active), width, -1)  # (beams, width, vocabulary)
        candidates = extend_beams(totals, by_beam, prefixes, sentence_of_row)  # (beams, 2 * beam)

        # 2. prune: choose the columns that stay open, before step 3 clears end symbols
        is_eos = candidates.tokens == end_token  # (beams, candidates)
        pruned = rule.prune(candidates, is_eos, prefixes, beam, end_token)
        if pruned is None:
            columns = prune(is_eos, beam)
            # with fewer than `beam` candidates without EOS, the remaining rows are dead
            totals = candidates.totals.masked_fill(is_eos, float("-inf")).gather(1, columns)
        else:
            columns, totals, is_eos = pruned

        # 3. finish: an end symbol counts only among the best `eos_candidates` candidates
        is_eos[:, eos_candidates:] = False
        length += 1
        step = _BeamUpdate(
            length,
            end_token,
            penalty,
            keep,
            rule,
            stopping,
            eos_candidates,
            coverage_penalties(state, beta, len(active), width)
            if beta
            else [[0.0] * width] * len(active),
        )
        before = [] if observer is None else [[] if b.done else b.open for b in active]
        step.advance(active, candidates, is_eos, columns)

        # 4. stop: groups of one sentence end together, because later groups depend on earlier
        # groups
        alive_sentences = [
            row for row in range(0, len(active), groups) if _goes_on(active, row, groups)
        ]
        if observer is not None:
            where = [(sentence, row % groups) for row, sentence in enumerate(sentences.tolist())]
            beams_now = zip(where, active, before, strict=True)
            step.record(observer, beams_now, candidates, is_eos, columns)
        if not alive_sentences:
            break

        # 5. reorder: every open hypothesis continues the row that its parent had in this step
        rows, tokens = (  # (beams, beam)
            part.gather(1, columns) for part in (first_rows + candidates.parents, candidates.tokens)
        )

        # 6. compact: beams whose sentences are done leave the batch
        staying = _staying(alive_sentences, groups, len(active))
        if staying is not None:
            staying_rows = torch.tensor(staying, device=tokens.device)  # (staying,)
            active = [active[row] for row in staying]
            rows, tokens, totals, sentences = (
                part[staying_rows] for part in (rows, tokens, totals, sentences)
            )
        if staying is not None or totals.size(1) != width:
            sentence_of_row, first_rows = _rows_of(sentences, totals.size(1))
        _close_finished(totals, active)
        rows, tokens = rows.flatten(), tokens.flatten()  # (staying * beam,)
        # the first beam of each sentence gives the index of the sentence in the state
        state = state.select(rows, None if staying is None else staying_rows[::groups] // groups)
        # (staying * beam, length)
        prefixes = torch.cat([prefixes.index_select(0, rows), tokens.unsqueeze(1)], dim=1)
    return [row_beam.complete[: keep if groups > 1 else settings.n_best] for row_beam in beams]


def _nothing(tokens: Sequence[int]) -> tuple[()]:
    """Miss nothing in any hypothesis."""
    del tokens
    return ()


def _rows_of(sentences: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the sentence of each row (beams * width,), and the first row of each beam."""
    first = torch.arange(0, len(sentences) * width, width, device=sentences.device)
    return sentences.repeat_interleave(width), first.unsqueeze(1)


def _staying(alive_sentences: list[int], groups: int, beams: int) -> list[int] | None:
    """List the beams that stay in the batch; None until a quarter of the beams are done."""
    if len(alive_sentences) * groups > (1 - COMPACT_SHARE) * beams:
        return None
    return [row + group for row in alive_sentences for group in range(groups)]


def _close_finished(totals: Tensor, active: list[_Beam]) -> None:
    """Mark hypotheses of finished beams as dead; these beams may stay in the batch for a while."""
    done = [row for row, beam in enumerate(active) if beam.done]
    if done:
        totals[done] = float("-inf")


def _goes_on(active: list[_Beam], row: int, groups: int) -> bool:
    """Return whether any group of a sentence may still improve; if not, mark all groups done."""
    beams = active[row : row + groups]
    if any(beam.may_win for beam in beams):
        return True
    for beam in beams:
        beam.done = True
    return False


def _extend_plainly(
    totals: Tensor, scores: Tensor, prefixes: Tensor, sentence_of_row: Tensor, *, candidates: int
) -> Candidates:
    """Extend as plain beam search does; prefixes and sentences do not matter."""
    del prefixes, sentence_of_row
    return extend(totals, scores, candidates)


class _BeamUpdate(NamedTuple):
    """Inputs of a beam update other than the candidates."""

    length: int
    end_token: int
    penalty: LengthPenalty
    keep: int
    """Number of complete hypotheses that each beam keeps."""
    rule: StoppingRule
    stopping: StoppingPolicy
    eos_candidates: int
    costs: list[list[float]]
    """Coverage penalty of each open hypothesis of each beam, including this step's attention."""

    def advance(
        self, active: list[_Beam], candidates: Candidates, is_eos: Tensor, columns: Tensor
    ) -> None:
        """Update each beam that is not done: finish hypotheses, keep others open, set `may_win`."""
        parts = (candidates.parents, candidates.log_probabilities, candidates.tokens)
        parents, scores, tokens = (part.tolist() for part in parts)
        ends, open_columns = is_eos.tolist(), columns.tolist()
        for row, beam in enumerate(active):
            if beam.done:
                continue
            of_beam = list(zip(parents[row], scores[row], tokens[row], strict=True))
            last = self.stopping.length_limit_policy == "keep" and self.length >= beam.limit
            for column, (parent, score, token) in enumerate(of_beam):
                if ends[row][column] or (last and column < self.eos_candidates):
                    self._finish(beam, beam.open[parent], score, token, self.costs[row][parent])
            self._open(
                beam, [of_beam[column] for column in open_columns[row]], last, self.costs[row]
            )

    def record(
        self,
        observer: SearchObserver,
        beams: Iterable[tuple[tuple[int, int], _Beam, list[OpenHypothesis]]],
        candidates: Candidates,
        is_eos: Tensor,
        columns: Tensor,
    ) -> None:
        """Report the step of each active beam; `beams` has their hypotheses before the step."""
        of_step = (candidates.parents, candidates.log_probabilities, candidates.tokens)
        rows = zip(*(part.tolist() for part in (*of_step, is_eos, columns)), strict=True)
        for (*of_beam, ends, open_columns), (where, beam, before), costs in zip(
            rows, beams, self.costs, strict=True
        ):
            if not before:
                continue
            past_limit = self.length > beam.limit
            last = self.stopping.length_limit_policy == "keep" and self.length >= beam.limit
            counted = self.eos_candidates if last else 0
            finished = (c for c, end in enumerate(ends) if end or c < counted)
            cut = {h.tokens for h in beam.complete if past_limit and not h.ended}
            weighed = StepDecision(
                *where,
                self.length,
                [(past.tokens, self._log_probability(past)) for past in before],
                [*map(Candidate, *of_beam)],
                frozenset(finished),
                frozenset(open_columns),
                frozenset(i for i, past in enumerate(before) if tuple(past.tokens) in cut),
                "limit" if last or past_limit else self.rule.drop_reason if beam.done else "",
                costs,
                [past.coverage for past in before],
            )
            observer(weighed.snapshot(self.end_token, self.penalty))

    def _log_probability(self, past: OpenHypothesis) -> float:
        """Return the log-probability of an open hypothesis; minus infinity if it has ended."""
        return float("-inf") if self.end_token in past.tokens else past.log_probability

    def _finish(
        self, beam: _Beam, past: OpenHypothesis, score: float, token: int, cost: float
    ) -> None:
        """Complete a hypothesis, unless it is dead or has already ended."""
        total = past.log_probability + score
        if total > float("-inf") and self.end_token not in past.tokens:
            ended = token == self.end_token
            tokens = tuple(past.tokens) if ended else (*past.tokens, token)
            scored = total / self.penalty.divisor(self.length) + cost
            log_probabilities = (*past.log_probabilities, score)
            beam.finish(Hypothesis(tokens, log_probabilities, scored, ended), self.keep)

    def _open(
        self,
        beam: _Beam,
        extensions: Sequence[tuple[int, float, int]],
        last: bool,
        costs: Sequence[float],
    ) -> None:
        """Keep the best unfinished candidates open, and decide whether to continue."""
        before, beam.open = beam.open, []
        for parent, score, token in extensions:
            past = before[parent]
            dead = token == self.end_token and not self.rule.extends_ended
            total = float("-inf") if dead else past.log_probability + score
            text, log_probabilities = [*past.tokens, token], [*past.log_probabilities, score]
            beam.open.append(OpenHypothesis(text, log_probabilities, total, costs[parent]))
        if self.length > beam.limit:
            to_cut = [past for past in before if self.end_token not in past.tokens]
            _cut(beam, to_cut, self.penalty, self.keep)
        # one step more than the limit, which does not count the end symbol
        last_length = beam.limit + 1
        progress = BeamProgress(
            beam.open,
            beam.complete,
            self.keep,
            self.length,
            last_length,
            self.penalty,
            self.end_token,
            beam.closed,
        )
        below_limit = not last and self.length < last_length
        beam.may_win = below_limit and self.rule.goes_on(progress)


def _cut(beam: _Beam, open_before: list[OpenHypothesis], penalty: LengthPenalty, keep: int) -> None:
    """Fill the list of complete hypotheses with hypotheses cut at the length limit."""
    ended = {hypothesis.tokens for hypothesis in beam.complete}
    for past, log_probabilities, total, coverage in open_before:
        missing = len(beam.complete) < keep
        if missing and tuple(past) not in ended and total > float("-inf"):
            score = total / penalty.divisor(max(1, len(past))) + coverage
            cut = Hypothesis(tuple(past), tuple(log_probabilities), score, ended=False)
            beam.complete.append(cut)
