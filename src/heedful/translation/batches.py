"""Parallel search of batches of sentences, and scores of pairs averaged over ensemble members."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import torch

from heedful.machine.threads import map_in_threads
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.inference import is_compiled
from heedful.runs.run import Run
from heedful.search.ensemble import Ensemble
from heedful.search.hypothesis import Hypothesis
from heedful.search.observer import SearchObserver
from heedful.search.scoring import pair_log_probabilities
from heedful.translation.result import divergence_error


def search_batches(
    search: Callable[[list[int]], list[list[Hypothesis]]],
    batches: Sequence[list[int]],
    models: Sequence[EncoderDecoder],
    observer: SearchObserver | None,
) -> Iterator[list[list[Hypothesis]]]:
    """
    Run a search on each batch, several at a time if that does not change results.

    The Python code of one batch then overlaps with the matrix products of another. All threads are
    divided equally among the batches. If the last batches are too few to share the threads, they
    run one after the other with all threads.
    """
    threads = torch.get_num_threads()
    most = min(threads, len(batches))
    workers = max((n for n in range(1, most + 1) if threads % n == 0), default=1)
    if workers < 2 or observer is not None or not all(map(is_compiled, models)):
        return map(search, batches)
    divisible = len(batches) - len(batches) % workers
    together = map_in_threads(search, batches[:divisible], workers)
    return chain(together, map(search, batches[divisible:]))


def mean_scores(
    run: Run,
    model: EncoderDecoder | Ensemble,
    members: Sequence[EncoderDecoder],
    sources: Sequence[list[int]],
    targets: Sequence[list[int]],
) -> list[list[float]]:
    """
    Score pairs with every member and average the probabilities of each token.

    Raises `HeedfulError` if a score is not finite.
    """
    scored = [pair_log_probabilities(m, run.collator(m), sources, targets) for m in members]
    means = scored[0]
    if isinstance(model, Ensemble):
        means = [
            model.mean(torch.tensor(by_member, device=model.device).T).tolist()  # (target,)
            for by_member in zip(*scored, strict=True)
        ]
    for source, log_probabilities in zip(sources, means, strict=True):
        if not math.isfinite(score := sum(log_probabilities)):
            text = run.tokenizer.decode_source(source)
            raise divergence_error(f"the score of “{text[:60]}” is {score}")
    return means
