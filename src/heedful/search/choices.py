"""
Beam search and greedy search that make all their choices with tensors on the device.

`BeamChoices.choose` is a step of `heedful.search.beam.search` without Python lists, and
`GreedyChoices.choose` is a step of `heedful.search.greedy.decode_stepwise`. So a graph can record
the step, and the host reads the choices only at the end. The sums of log-probabilities and the
final scores are fp64 like Python's floats, so the results are the same numbers. At the end the host
computes all other results, such as the tokens of a hypothesis, from the history of the candidates.

Letters in shapes: B sentences, K open hypotheses of each, C = 2 K candidates, N complete
hypotheses, T steps, V tokens in the vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.model.static_cache import Lane, StepBuffers
from heedful.search.beam import prune
from heedful.search.compat import AsTransformers, WhenBeamFinished
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthPenalty
from heedful.search.rules import (
    AllowedTokens,
    DecodingRule,
    ForcedEos,
    MinLength,
    Renormalization,
)
from heedful.search.settings import SearchOptions
from heedful.search.step import extend
from heedful.search.stopping import StoppingRule

# Rules that do not depend on earlier tokens, and stopping rules that need only tensors.
_RULES = (AllowedTokens, MinLength, ForcedEos, Renormalization)
_STOPPING = (StoppingRule, WhenBeamFinished, AsTransformers)


History = list[np.ndarray]
"""Parents, tokens and log-probabilities of candidates (T, B, C); columns kept open (T, B, K)."""


@dataclass(frozen=True)
class ChoicePlan:
    """The settings by which a search chooses; searches with the same plan use the same graphs."""

    beam: int
    """Number of open hypotheses; 0 in greedy search."""
    complete: int
    """Number of complete hypotheses that each sentence keeps."""
    end_ranks: int
    """Number of best candidates among which the end symbol finishes a hypothesis."""
    stop: str
    """Name of the stopping rule."""
    limit_policy: str
    """Treatment of hypotheses at the length limit (`StoppingPolicy`)."""
    penalty: LengthPenalty
    end_token: int
    rules: tuple[tuple[type, object], ...]
    """The type of each rule, in order, with its settings except the limits."""
    steps: int
    """Maximum number of steps."""

    @classmethod
    def of(
        cls,
        settings: SearchOptions,
        rules: Sequence[DecodingRule],
        end_token: int,
        vocabulary: int,
        steps: int,
        greedy: bool,
    ) -> "ChoicePlan | None":
        """Return the plan of a search; None if the host must make the choices."""
        rule = settings.stopping.rule
        beam = settings.width
        is_plain = not settings.coverage_penalty and settings.diverse_groups == 1
        # a vocabulary smaller than 2 x beam would leave the beam narrower after the first step
        is_known = type(rule) in _STOPPING and 2 * beam <= vocabulary and is_plain
        if not (greedy or is_known) or any(type(part) not in _RULES for part in rules):
            return None
        return cls(
            0 if greedy else beam,
            beam if rule.fills_beam else settings.n_best,
            settings.eos_ranks,
            rule.name,
            settings.stopping.length_limit_policy,
            settings.penalty if greedy else rule.counted(settings.penalty),
            end_token,
            tuple((type(part), _dependence(part)) for part in rules),
            steps,
        )


def _forbidden_ids(rule: AllowedTokens, vocabulary: int) -> Int[Tensor, " others"]:
    """List the ids that a rule never allows."""
    written, sentences = torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, dtype=torch.long)
    row = rule(torch.zeros(1, vocabulary), written, sentences)
    return row[0].isneginf().nonzero().squeeze(1)


def _dependence(rule: DecodingRule) -> object:
    """Return a rule's settings without its limits, as a hashable object."""
    if isinstance(rule, ForcedEos):
        return rule.is_free
    return None if isinstance(rule, Renormalization) else rule


class Choices(ABC):
    """Buffers for the choices in one lane; rows without a sentence have arbitrary values."""

    def __init__(
        self, plan: ChoicePlan, lane: Lane, rules: Sequence[DecodingRule], vocabulary: int
    ) -> None:
        self.plan, self._rules = plan, rules
        self.device, self.sentences = lane.slot.device, lane.sizes.sentences
        self._forbidden = {
            place: _forbidden_ids(rule, vocabulary).to(self.device)
            for place, rule in enumerate(rules)
            if isinstance(rule, AllowedTokens)
        }
        self.positions: Tensor | None = None
        """The positional encodings of all steps, (T, d_model)."""
        self.length = self._zeros(1, dtype=torch.long)
        """Number of steps so far."""
        self.limits = self._zeros(self.sentences, dtype=torch.long)
        self.done = self._zeros(self.sentences, dtype=torch.bool)
        """Whether each sentence is finished."""
        self.history: list[Tensor] = []
        """Choices of all steps, (T, B, ...)."""
        self.now: list[Tensor] = [self.limits, self.done]
        """State of each sentence after the newest step, (B, ...)."""

    def _zeros(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Allocate a buffer."""
        return torch.zeros(*shape, dtype=dtype, device=self.device)

    def _history(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Allocate a buffer with room for all steps: (T, B, ...)."""
        self.history.append(self._zeros(self.plan.steps, self.sentences, *shape, dtype=dtype))
        return self.history[-1]

    def reset(self, limits: Sequence[int]) -> None:
        """Begin a search; `limits`: maximum number of target tokens of each sentence."""
        self.length.zero_()
        self.done.zero_()
        self.limits[: len(limits)].copy_(torch.tensor(limits))

    def move(self, old: "Choices", chosen: Int[Tensor, " sentences"]) -> None:
        """Copy the choices for the `chosen` sentences from `old`, which may be in another lane."""
        count = len(chosen)
        for before, after in zip(old.now, self.now, strict=True):
            after[:count].copy_(before.index_select(0, chosen))
        for before, after in zip(old.history, self.history, strict=True):
            after[:, :count].copy_(before.index_select(1, chosen))
        self.length.copy_(old.length)

    def apply_rules(
        self, scores: Float[Tensor, "rows vocabulary"]
    ) -> Float[Tensor, "rows vocabulary"]:
        """Apply the rules as `heedful.search.rules` does, with this object's length and limits."""
        end, width = self.plan.end_token, len(scores) // self.sentences
        for place, rule in enumerate(self._rules):
            if isinstance(rule, AllowedTokens):
                scores = scores.index_fill_(1, self._forbidden[place], float("-inf"))
            elif isinstance(rule, MinLength):
                scores[:, end].masked_fill_(self.length < rule.tokens, float("-inf"))
            elif isinstance(rule, ForcedEos):
                is_full = self.limits <= self.length  # (B,)
                forced = rule.forced(scores)
                scores = torch.where(is_full.repeat_interleave(width)[:, None], forced, scores)
            elif isinstance(rule, Renormalization):
                scores = rule.normalized(scores)
        return scores

    @abstractmethod
    def choose(self, lane: Lane, step: StepBuffers) -> None:
        """Choose tokens by the scores of a step, and write the inputs of the next step."""

    @abstractmethod
    def results(
        self, rows: Sequence[int], limits: Sequence[int], steps: int, n_best: int
    ) -> list[list[Hypothesis]]:
        """Copy the hypotheses of finished sentences to the host; `limits`: their length limits."""


class GreedyChoices(Choices):
    """Choice of the most probable token at each step (`heedful.search.greedy`)."""

    def __init__(
        self, plan: ChoicePlan, lane: Lane, rules: Sequence[DecodingRule], vocabulary: int
    ) -> None:
        super().__init__(plan, lane, rules, vocabulary)
        self.tokens = self._history(dtype=torch.long)
        self.scores = self._history(dtype=torch.float32)

    def choose(self, lane: Lane, step: StepBuffers) -> None:
        assert step.scores is not None
        scores = self.apply_rules(step.scores)  # (B, V)
        tokens = scores.argmax(dim=1)  # (B,)
        self.tokens.index_copy_(0, self.length, tokens.unsqueeze(0))
        self.scores.index_copy_(0, self.length, scores.gather(1, tokens.unsqueeze(1)).T)
        self.done |= (tokens == self.plan.end_token) | (self.limits == self.length)
        step.tokens.copy_(tokens.unsqueeze(1))
        self.length += 1
        lane.slot += 1

    def results(
        self, rows: Sequence[int], limits: Sequence[int], steps: int, n_best: int
    ) -> list[list[Hypothesis]]:
        where = torch.tensor(rows, device=self.device)
        tokens, scores = (
            part[:steps].index_select(1, where).T.tolist() for part in (self.tokens, self.scores)
        )
        return [
            [self._hypothesis(*columns)] for columns in zip(tokens, scores, limits, strict=True)
        ]

    def _hypothesis(self, tokens: list[int], scores: list[float], limit: int) -> Hypothesis:
        """Build a hypothesis; drop the tokens after the end symbol or the limit."""
        ended = self.plan.end_token in tokens[: limit + 1]
        length = tokens.index(self.plan.end_token) if ended else limit
        log_probabilities = tuple(scores[: length + ended])
        score = sum(log_probabilities) / self.plan.penalty.divisor(max(1, len(log_probabilities)))
        return Hypothesis(tuple(tokens[:length]), log_probabilities, score, ended)


class BeamChoices(Choices):
    """Choice of the best continuations of each beam (`heedful.search.beam`)."""

    def __init__(
        self, plan: ChoicePlan, lane: Lane, rules: Sequence[DecodingRule], vocabulary: int
    ) -> None:
        super().__init__(plan, lane, rules, vocabulary)
        beam, candidates = plan.beam, 2 * plan.beam
        self.totals = self._zeros(self.sentences, beam, dtype=torch.float32)
        """Fp32 log-probabilities of open hypotheses, for ranking; -inf in finished sentences."""
        self.sums = self._zeros(self.sentences, beam, dtype=torch.float64)
        """Log-probability of each open hypothesis."""
        self.listed = self._zeros(self.sentences, plan.complete, dtype=torch.float64)
        """Scores of the complete hypotheses, best first; minus infinity for missing hypotheses."""
        self.places = self._zeros(self.sentences, plan.complete, dtype=torch.long)
        """Last step (from 0) and candidate of each complete hypothesis: step * C + candidate."""
        self.lived = torch.zeros_like(self.limits)
        """Number of steps until each sentence was finished."""
        self.now += [self.totals, self.sums, self.listed, self.places, self.lived]
        self.parents = self._history(candidates, dtype=torch.long)
        self.tokens = self._history(candidates, dtype=torch.long)
        self.scores = self._history(candidates, dtype=torch.float32)
        self.columns = self._history(beam, dtype=torch.long)
        divisors = [plan.penalty.divisor(max(1, length)) for length in range(plan.steps + 2)]
        self.divisors = torch.tensor(divisors, dtype=torch.float64, device=self.device)

    def reset(self, limits: Sequence[int]) -> None:
        super().reset(limits)
        # only a beam of 1 reads `totals` and `sums` in its first step
        self.totals.zero_()
        self.sums.zero_()
        self.listed.fill_(float("-inf"))
        self.lived.zero_()

    def choose(self, lane: Lane, step: StepBuffers) -> None:
        assert step.scores is not None
        plan, beam = self.plan, self.plan.beam
        width = step.tokens.size(1)  # 1 in the first step, then K
        totals, sums = self.totals, self.sums
        if width != beam:
            totals, sums = torch.zeros_like(totals[:, :1]), torch.zeros_like(sums[:, :1])

        # 1. extend and prune, (B, C) and (B, K)
        scores = self.apply_rules(step.scores).view(self.sentences, width, -1)
        best = extend(totals, scores, 2 * beam)
        is_end = best.tokens == plan.end_token
        columns = prune(is_end, beam)
        candidates = (self.parents, best.parents), (self.tokens, best.tokens)
        written = (*candidates, (self.scores, best.log_probabilities), (self.columns, columns))
        for buffer, newest in written:
            buffer.index_copy_(0, self.length, newest.unsqueeze(0))

        # 2. finish: a stable sort keeps hypotheses with equal scores in their order of completion
        sums = sums.gather(1, best.parents) + best.log_probabilities.double()  # (B, C)
        ranks = torch.arange(plan.end_ranks, device=self.device)
        ends = is_end[:, : plan.end_ranks]
        length = self.length + 1
        is_last = length > self.limits
        if plan.limit_policy == "keep":
            is_last = length >= self.limits
            ends = ends | is_last.unsqueeze(1)
        ends = ends & ~self.done.unsqueeze(1)  # (B, E)
        divisor = self.divisors.index_select(0, length)
        scored = (sums[:, : plan.end_ranks] / divisor).masked_fill_(~ends, float("-inf"))
        places = (ranks + self.length * (2 * beam)).expand(len(ends), -1)
        listed, order = torch.cat((self.listed, scored), dim=1).sort(
            dim=1, descending=True, stable=True
        )
        self.listed.copy_(listed[:, : plan.complete])
        order = order[:, : plan.complete]
        self.places.copy_(torch.cat((self.places, places), dim=1).gather(1, order))

        # 3. stop
        self.sums.copy_(sums.gather(1, columns))
        self.lived += ~self.done
        self.done |= is_last | ~self._goes_on(divisor)
        open_totals = best.totals.gather(1, columns)
        self.totals.copy_(open_totals.masked_fill_(self.done.unsqueeze(1), float("-inf")))

        # 4. reorder: each open hypothesis continues the row of its parent
        after = lane.of_width(beam)
        parents = best.parents.gather(1, columns)  # (B, K)
        slots = step.table.size(2)
        after.table.copy_(step.table.gather(1, parents.unsqueeze(2).expand(-1, -1, slots)))
        after.tokens.copy_(best.tokens.gather(1, columns))
        self.length += 1
        lane.slot += width

    def _goes_on(self, divisor: Tensor) -> Tensor:
        """Return for each sentence whether the stopping rule lets its search continue, (B,)."""
        best, worst = self.sums.amax(dim=1), self.listed[:, -1]  # minus infinity if missing
        if self.plan.stop == WhenBeamFinished.name:
            return (best > float("-inf")) & (worst == float("-inf"))
        if self.plan.stop == StoppingRule.name:
            divisor = self.divisors.index_select(0, self.limits + 1)
        return best / divisor > worst

    def results(
        self, rows: Sequence[int], limits: Sequence[int], steps: int, n_best: int
    ) -> list[list[Hypothesis]]:
        where = torch.tensor(rows, device=self.device)
        listed, places = (
            part.index_select(0, where).cpu().numpy() for part in (self.listed, self.places)
        )
        history = [part[:steps].index_select(1, where).cpu().numpy() for part in self.history]
        hypotheses: list[list[Hypothesis]] = [[] for _ in rows]
        # 1. complete hypotheses, best first
        rows_of, ranks = np.nonzero(listed > -np.inf)
        last, columns = np.divmod(places[rows_of, ranks], 2 * self.plan.beam)
        paths = zip(
            rows_of.tolist(),
            listed[rows_of, ranks].tolist(),
            *_trace(history, rows_of, last, columns),
            strict=True,
        )
        for row, score, tokens, log_probabilities in paths:
            ended = tokens[-1] == self.plan.end_token
            text = tuple(tokens[:-1] if ended else tokens)
            hypotheses[row].append(Hypothesis(text, tuple(log_probabilities), score, ended))
        # 2. hypotheses cut at the limit, for sentences in which too few hypotheses have ended
        lived = self.lived.index_select(0, where).tolist()
        for row, limit in enumerate(limits):
            if lived[row] > limit:
                self._cut(hypotheses[row], history, row, limit)
        return [complete[:n_best] for complete in hypotheses]

    def _cut(self, complete: list[Hypothesis], history: History, row: int, limit: int) -> None:
        """Fill the list of complete hypotheses with hypotheses cut at the length limit."""
        paths: Iterable[tuple[list[int], list[float]]] = [([], [])]
        if limit:
            columns = history[3][limit - 1, row]  # (K,)
            paths = zip(
                *_trace(history, *np.broadcast_arrays(row, limit - 1, columns)), strict=True
            )
        ended = {hypothesis.tokens for hypothesis in complete}
        for tokens, log_probabilities in paths:
            total = 0.0
            for score in log_probabilities:
                total += score
            missing = len(complete) < self.plan.complete
            if missing and tuple(tokens) not in ended and total > float("-inf"):
                score = total / self.plan.penalty.divisor(max(1, len(tokens)))
                complete.append(
                    Hypothesis(tuple(tokens), tuple(log_probabilities), score, ended=False)
                )


def _trace(
    history: History, rows: np.ndarray, last: np.ndarray, columns: np.ndarray
) -> tuple[list[list[int]], list[list[float]]]:
    """Trace hypotheses back from their last candidates to tokens and log-probabilities."""
    parents, tokens, scores, open_columns = history
    steps = int(last.max(initial=-1)) + 1
    row = np.zeros_like(columns)  # row of the parent in the beam
    traced = np.empty((2, steps, len(rows)))
    for step in range(steps - 1, -1, -1):
        column = np.where(step == last, columns, open_columns[step, rows, row])
        traced[0, step], traced[1, step] = tokens[step, rows, column], scores[step, rows, column]
        row = np.where(step <= last, parents[step, rows, column], row)
    lengths = (last + 1).tolist()
    texts = traced[0].astype(np.int64).T.tolist()
    listed = traced[1].T.tolist()
    return (
        [text[:length] for text, length in zip(texts, lengths, strict=True)],
        [part[:length] for part, length in zip(listed, lengths, strict=True)],
    )
