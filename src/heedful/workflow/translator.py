"""
A trained run as an object that translates, scores and shows its attention.

::

    translator = Translator.load("runs/en-de")
    translator.translate(["A dog runs."])[0].text
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from heedful.data.tokenizer import PAD, START
from heedful.data.unknown import input_warning
from heedful.errors import HeedfulError
from heedful.machine import resolve_device, resolve_precision, resolve_threads
from heedful.model.transformer import Transformer
from heedful.search.beam import beam_search
from heedful.search.greedy import greedy_search
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthLimit, LengthPenalty
from heedful.search.rules import Allowed
from heedful.workflow.aligned import Aligner, Alignment, Note
from heedful.workflow.group import by_length
from heedful.workflow.run import Run
from heedful.workflow.validate import pair_log_probabilities

_BATCH_TOKENS = 2048
# Sentences x beam x vocabulary: what a step of the search may hold at once, a quarter gibibyte.
_STEP_LOGITS = 1 << 26
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Attention:
    """
    Hold the attention weights of every layer and head for one sentence pair.

    Attributes
    ----------
    source_tokens : tuple of str
        Subwords of the source, the end symbol included.
    target_tokens : tuple of str
        Subwords that the decoder predicts at each position, the end symbol last.
    encoder : ndarray of float, shape (layers, heads, source, source)
        Self-attention of the encoder.
    decoder : ndarray of float, shape (layers, heads, target, target)
        Masked self-attention of the decoder; its columns are the decoder's inputs, which are the
        target tokens moved right by one.
    cross : ndarray of float, shape (layers, heads, target, source)
        Attention of the decoder to the source.

    Notes
    -----
    Row i of `cross` is where the decoder looked when it predicted target token i.
    """

    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    encoder: Float[np.ndarray, "layers heads source source"]
    decoder: Float[np.ndarray, "layers heads target target"]
    cross: Float[np.ndarray, "layers heads target source"]


@dataclass(frozen=True)
class Translation:
    """
    Hold one translated line.

    Attributes
    ----------
    text : str
        The translation.
    score : float
        Log-probability divided by the length penalty; 0 for an empty line.
    tokens : tuple of str
        Its subwords, without special symbols.
    log_probability : float
        Natural logarithm of the probability of the whole translation.
    alternatives : tuple of Translation
        The next best ones, if more than one was asked for.
    attention : Attention, optional
        Only if it was asked for.
    alignment : Alignment, optional
        Its words and those of the source, and which translates which; only if it was asked for.

    Notes
    -----
    A hypothesis that was cut at the length limit ends without an end symbol.
    """

    text: str
    score: float
    tokens: tuple[str, ...]
    log_probability: float
    alternatives: tuple["Translation", ...] = ()
    attention: Attention | None = field(default=None, repr=False)
    alignment: Alignment | None = field(default=None, repr=False)


class Translator:
    """
    Translate with one trained run.

    Parameters
    ----------
    run : Run
        Settings and tokenizer.
    model : Transformer
        In evaluation mode, on its device.

    Notes
    -----
    Made by `Translator.load`. Not safe for use from several threads at once.
    """

    def __init__(self, run: Run, model: Transformer) -> None:
        self.run, self.model = run, model
        self.tokenizer = run.tokenizer
        self.collator = run.collator(model)
        self.aligner = Aligner(run, model)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        weights: str = "default",
        device: str = "auto",
        precision: str = "auto",
        threads: int = 0,
    ) -> "Translator":
        """
        Open a run folder.

        Parameters
        ----------
        path : str or Path
            The folder that `heedful train` made.
        weights : str, default 'default'
            ``average``, ``best``, ``last`` or ``step-N``; by default the average if there is one,
            else the best, else the last.
        device : str, default 'auto'
            ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        precision : {'auto', 'fp32', 'bf16'}, default 'auto'
            `auto` takes bf16 where this machine is clearly faster with it.
        threads : int, default 0
            Of the processor; 0 for all.

        Returns
        -------
        Translator
            Ready to use.

        Notes
        -----
        Checksums are checked; nothing in a run folder is ever executed.
        """
        run = Run.open(path)
        place = resolve_device(device)
        resolve_threads(threads)
        model = run.load_model(weights, place, resolve_precision(precision, place))
        return cls(run, model)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        length_penalty: str | None = None,
        max_length: str | None = None,
        n_best: int = 1,
        attention: bool = False,
        alignments: bool = False,
        align_by: str = "",
        replace_unknown: bool | Mapping[str, str] = False,
        batch_tokens: int = _BATCH_TOKENS,
        warn: Warn | None = None,
    ) -> list[Translation]:
        """
        Translate some lines.

        Parameters
        ----------
        texts : sequence of str
            One sentence each.
        beam : int, optional
            Open hypotheses, 1 for greedy search; the recipe's when absent.
        length_penalty : str, optional
            ``gnmt:0.6``, ``power:1.0`` or ``none``; the recipe's when absent.
        max_length : str, optional
            ``input+50`` or a number of tokens; the recipe's when absent.
        n_best : int, default 1
            How many translations of each line; the beam is at least as wide.
        attention : bool, default False
            Whether to return attention weights with the best translation.
        alignments : bool, default False
            Whether to return which word translates which.
        align_by : str, optional
            How that is read off attention, such as ``layer=2,shift`` (`Extraction.parse`).
        replace_unknown : bool or mapping of str to str, default False
            Whether to write, for an unknown word, the source word that it stands for; or that
            word's translation, if it is among the given ones.
        batch_tokens : int, default 2048
            Source tokens, padding included, that are searched together.
        warn : callable, optional
            Told in a sentence about lines that had to be cut, and about unknown subwords.

        Returns
        -------
        list of Translation
            One a line, in order. An empty line stays empty.

        Notes
        -----
        Lines of similar length are searched together; the order of the result is that of `texts`.
        """
        search = self.run.config.search
        beam = max(search.beam if beam is None else beam, n_best)
        penalty = LengthPenalty.parse(length_penalty or search.length_penalty)
        limit = LengthLimit.parse(max_length or search.max_length)
        rules = [Allowed(self.tokenizer.target_size, (PAD, START))]
        by = self.aligner.extraction(align_by)
        ids = self._source_ids(texts, warn)
        results = [Translation("", 0.0, (), 0.0)] * len(texts)
        written: list[list[tuple[int, ...]]] = [[()] for _ in texts]
        filled = [index for index, row in enumerate(ids) if row]
        most_rows = max(1, _STEP_LOGITS // (beam * self.run.vocabularies[1]))
        for group in by_length([len(ids[index]) for index in filled], batch_tokens, most_rows):
            rows = [filled[position] for position in group]
            source = self.collator.source([ids[row] for row in rows]).to(self.model.device)
            limits = [limit.tokens(len(ids[row])) for row in rows]
            if beam == 1:
                greedy = greedy_search(self.model, source, limits, penalty=penalty, rules=rules)
                found = [[hypothesis] for hypothesis in greedy]
            else:
                found = beam_search(
                    self.model,
                    source,
                    limits,
                    beam=beam,
                    penalty=penalty,
                    n_best=n_best,
                    finish_among=beam if search.finish_among == "beam" else 2 * beam,
                    rules=rules,
                )
            for row, hypotheses in zip(rows, found, strict=True):
                if not hypotheses or not math.isfinite(hypotheses[0].score):
                    raise HeedfulError(
                        f"the model must give numbers, but for line {row + 1} it gives none: these "
                        "weights have diverged. Use earlier ones with --weights, or train again."
                    )
                weights = self._attention(ids[row], hypotheses[0]) if attention else None
                results[row] = self._translation(hypotheses, weights)
                written[row] = [hypothesis.tokens for hypothesis in hypotheses]
        if not alignments and replace_unknown is False:
            return results
        notes = self.aligner.note(texts, ids, written, by, alignments, replace_unknown)
        return [_noted(*pair) for pair in zip(results, notes, strict=True)]

    def align(
        self, sources: Sequence[str], targets: Sequence[str], align_by: str = ""
    ) -> list[Alignment]:
        """
        Find which word of given translations translates which.

        Parameters
        ----------
        sources : sequence of str
            One sentence each.
        targets : sequence of str
            Their translations, in order.
        align_by : str, optional
            How it is read off attention, such as ``layer=2,shift`` (`Extraction.parse`).

        Returns
        -------
        list of Alignment
            In order.

        Notes
        -----
        Many pairs are computed at once. `Aligner.rate` finds the best layer with gold links.
        """
        return self.aligner.align(sources, targets, self.aligner.extraction(align_by))

    def score(
        self, sources: Sequence[str], targets: Sequence[str], batch_tokens: int = _BATCH_TOKENS
    ) -> list[list[float]]:
        """
        Compute the log-probabilities of given translations.

        Parameters
        ----------
        sources : sequence of str
            One sentence each.
        targets : sequence of str
            Their translations, in order.
        batch_tokens : int, default 2048
            Places of either side, padding included, that are computed together.

        Returns
        -------
        list of list of float
            For each pair its subwords' log-probabilities, the end symbol's last.

        Notes
        -----
        Their sum agrees with the score of a search that found the same subwords.
        """
        source_ids, target_ids = self.aligner.pair_ids(sources, targets)
        lengths = [max(len(s), len(t)) + 1 for s, t in zip(source_ids, target_ids, strict=True)]
        results: list[list[float]] = [[] for _ in sources]
        for rows in by_length(lengths, batch_tokens):
            scored = pair_log_probabilities(
                self.model,
                self.collator,
                [source_ids[row] for row in rows],
                [target_ids[row] for row in rows],
            )
            for row, log_probabilities in zip(rows, scored, strict=True):
                results[row] = log_probabilities
        return results

    def attend(self, source: str, target: str | None = None) -> Attention:
        """
        Show where every head of every layer looks.

        Parameters
        ----------
        source : str
            A sentence.
        target : str, optional
            A translation of it; the model's own when absent.

        Returns
        -------
        Attention
            Subwords and weights.

        Notes
        -----
        Figures 3 to 5 of the paper show such weights.
        """
        if target is None:
            found = self.translate([source], attention=True)[0].attention
            if found is not None:
                return found
        target_ids = self.tokenizer.encode_target([target or ""])[0]
        tokens = Hypothesis(tuple(target_ids), (), 0.0, ended=True)
        return self._attention(self._source_ids([source], None)[0], tokens)

    def _source_ids(self, texts: Sequence[str], warn: Warn | None) -> list[list[int]]:
        """Encode the lines; cut what is longer than `search.max_source`."""
        limit = self.run.config.search.max_source
        ids = self.tokenizer.encode_source([text if text.strip() else "" for text in texts])
        if warn is not None and (warning := input_warning(texts, ids, self.tokenizer)):
            warn(warning)
        for number, row in enumerate(ids, start=1):
            if len(row) > limit:
                if warn is not None:
                    warn(
                        f"line {number} has {len(row):,} subwords and was cut to the first "
                        f"{limit:,} (search.max_source)."
                    )
                del row[limit:]
        return ids

    def _translation(
        self, hypotheses: Sequence[Hypothesis], attention: Attention | None
    ) -> Translation:
        """Turn the hypotheses of a line into text."""
        best, *others = (
            Translation(
                self.tokenizer.decode(hypothesis.tokens),
                hypothesis.score,
                tuple(self.tokenizer.pieces_target(hypothesis.tokens)),
                hypothesis.log_probability,
            )
            for hypothesis in hypotheses
        )
        return Translation(
            best.text, best.score, best.tokens, best.log_probability, tuple(others), attention
        )

    @torch.inference_mode()
    def _attention(self, source: Sequence[int], hypothesis: Hypothesis) -> Attention:
        """Compute all weights of one pair."""
        batch = self.collator.batch([source], [hypothesis.tokens]).to(self.model.device)
        weights = self.model.attention(batch.source, batch.target_in)
        end = [self.collator.end_token]
        ending = end if self.collator.source_end else []
        layers = (weights.encoder, weights.decoder, weights.cross)
        return Attention(
            tuple(self.tokenizer.pieces_source([*source, *ending])),
            tuple(self.tokenizer.pieces_target([*hypothesis.tokens, *end])),
            *(torch.stack([w[0] for w in kind]).float().cpu().numpy() for kind in layers),
        )


def _noted(translation: Translation, notes: Sequence[Note]) -> Translation:
    """Complete a translation and its alternatives."""
    first, *others = notes
    return replace(
        translation,
        text=translation.text if first.text is None else first.text,
        alignment=first.alignment,
        alternatives=tuple(
            _noted(other, [note])
            for other, note in zip(translation.alternatives, others, strict=True)
        ),
    )
