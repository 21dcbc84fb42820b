"""Prometheus metrics."""

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """
    Counts of requests, sentences and batches.

    Each server has its own registry, so that several servers can share a process. Labels never
    contain texts, addresses or keys.
    """

    def __init__(
        self, waiting: Callable[[], float], loaded: Callable[[], float] = lambda: 0
    ) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.requests = counter(
            "heedful_requests", "Requests that were answered.", ["route", "status"]
        )
        self.seconds = histogram(
            "heedful_request_seconds",
            "Seconds from a request to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
        )
        self.gone = counter(
            "heedful_clients_gone", "Clients that disconnected before they received an answer."
        )
        self.open = gauge("heedful_requests_open", "Requests being answered.")
        self.connections = gauge("heedful_connections_open", "Open connections of clients.")
        self.sentences = counter("heedful_sentences", "Sentences that were translated.")
        self.tokens = counter(
            "heedful_source_tokens", "Source subwords of the translated sentences."
        )
        self.batch = histogram(
            "heedful_batch_sentences", "Sentences translated together.", buckets=_SENTENCES
        )
        self.batch_seconds = histogram(
            "heedful_batch_seconds", "Seconds per batch.", buckets=_SECONDS
        )
        self.reloads = counter("heedful_reloads", "Reloads of the models.", ["result"])
        queue = gauge("heedful_queue_sentences", "Sentences that are waiting for a batch.")
        queue.set_function(waiting)
        gauge("heedful_models_loaded", "Models in memory.").set_function(loaded)

    def record_batch(self, sentences: int, tokens: int, seconds: float) -> None:
        """Count a batch; the worker thread calls this method."""
        self.sentences.inc(sentences)
        self.tokens.inc(tokens)
        self.batch.observe(sentences)
        self.batch_seconds.observe(seconds)

    def page(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
