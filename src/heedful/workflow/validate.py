"""Validation: the loss on held-out pairs, and scores of translations made by real decoding."""

from collections.abc import Callable, Sequence

import torch

from heedful.data.batch import Collator
from heedful.data.tokenizer import PAD, START, Tokenizer
from heedful.evaluation.validation import ValidationScorer
from heedful.model.output import token_log_probabilities
from heedful.model.transformer import Transformer
from heedful.search.greedy import greedy_search
from heedful.search.length import LengthLimit, LengthPenalty
from heedful.search.rules import Allowed
from heedful.training.progress import perplexity
from heedful.training.state import Validation
from heedful.workflow.group import by_length

Ids = Sequence[int]
_BATCH_TOKENS = 4096


def validator(
    model: Transformer,
    tokenizer: Tokenizer,
    collator: Collator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    max_length: int,
    limit: LengthLimit,
    penalty: LengthPenalty,
    language: str = "",
    best_by: str = "bleu",
    samples: int = 0,
) -> Callable[[], Validation]:
    """
    Prepare a validation on some pairs.

    Parameters
    ----------
    model : Transformer
        Looked at anew in each call; must be in evaluation mode then.
    tokenizer : Tokenizer
        Of the run.
    collator : Collator
        Of the run.
    sources, references : sequence of str
        The held-out pairs.
    max_length : int
        Subwords a side that the loss is computed on; longer ones are cut.
    limit : LengthLimit
        Of the translations.
    penalty : LengthPenalty
        For their scores.
    language : str, default ""
        Code of the target language, which chooses BLEU's tokeniser.
    best_by : str, default 'bleu'
        Computed besides BLEU and the loss.
    samples : int, default 0
        How many sentences come with their translations.

    Returns
    -------
    callable
        Without arguments; returns `valid_loss`, `valid_perplexity`, `bleu` with its signature, the
        number that `best_by` names, and `samples`.

    Notes
    -----
    The loss is the mean negative log-probability of a target token, without smoothing and without
    dropout. BLEU is sacreBLEU, cased, of greedy translations: cheaper than a beam and close enough
    to tell checkpoints apart.
    """
    source_ids = [ids[:max_length] for ids in tokenizer.encode_source(sources)]
    target_ids = [ids[:max_length] for ids in tokenizer.encode_target(references)]

    names = dict.fromkeys(("bleu", best_by))
    scorer = ValidationScorer(references, language, [name for name in names if name != "loss"])
    samples = min(samples, len(references))
    shown = [index * len(references) // samples for index in range(samples)]

    def validate() -> Validation:
        loss = mean_loss(model, collator, source_ids, target_ids)
        translations = _translate(model, tokenizer, collator, source_ids, limit, penalty)
        found: Validation = {
            "valid_loss": loss,
            "valid_perplexity": perplexity(loss),
            **scorer(translations),
        }
        if shown:
            texts = {"source": sources, "reference": references, "translation": translations}
            found["samples"] = [
                {name: lines[index] for name, lines in texts.items()} for index in shown
            ]
        return found

    return validate


def mean_loss(
    model: Transformer, collator: Collator, sources: Sequence[Ids], targets: Sequence[Ids]
) -> float:
    """
    Compute the mean negative log-probability of a target token.

    Parameters
    ----------
    model : Transformer
        In evaluation mode.
    collator : Collator
        Of the run.
    sources, targets : sequence of sequence of int
        Ids of the pairs, without special symbols.

    Returns
    -------
    float
        Natural logarithm; its exponential is the perplexity per subword.

    Notes
    -----
    The paper's Table 3 reports this perplexity for newstest2013.
    """
    total, tokens = 0.0, 0
    lengths = [len(s) + len(t) for s, t in zip(sources, targets, strict=True)]
    for rows in by_length(lengths, _BATCH_TOKENS):
        some = [sources[i] for i in rows], [targets[i] for i in rows]
        for log_probabilities in pair_log_probabilities(model, collator, *some):
            total -= sum(log_probabilities)
            tokens += len(log_probabilities)
    return total / tokens


@torch.inference_mode()
def pair_log_probabilities(
    model: Transformer, collator: Collator, sources: Sequence[Ids], targets: Sequence[Ids]
) -> list[list[float]]:
    """
    Compute the log-probability of every target token of given pairs.

    Parameters
    ----------
    model : Transformer
        In evaluation mode.
    collator : Collator
        Of the run.
    sources, targets : sequence of sequence of int
        Ids of the pairs, without special symbols.

    Returns
    -------
    list of list of float
        For each pair its tokens' log-probabilities, the end symbol's last.

    Notes
    -----
    One pass over the known target; equal to what a search that chose these tokens reports.
    """
    batch = collator.batch(sources, targets).to(model.device)
    states = model(batch.source, batch.target_in)
    real = batch.target_out != model.padding
    flat = token_log_probabilities(states[real], batch.target_out[real], *model.output())
    return [part.tolist() for part in flat.split([len(target) + 1 for target in targets])]


def _translate(
    model: Transformer,
    tokenizer: Tokenizer,
    collator: Collator,
    sources: Sequence[Ids],
    limit: LengthLimit,
    penalty: LengthPenalty,
) -> list[str]:
    """Translate greedily, in order."""
    translations = [""] * len(sources)
    for rows in by_length([len(ids) for ids in sources], _BATCH_TOKENS):
        source = collator.source([sources[i] for i in rows]).to(model.device)
        found = greedy_search(
            model,
            source,
            [limit.tokens(len(sources[i])) for i in rows],
            penalty=penalty,
            rules=[Allowed(tokenizer.target_size, (PAD, START))],
        )
        for i, hypothesis in zip(rows, found, strict=True):
            translations[i] = tokenizer.decode(hypothesis.tokens)
    return translations
