"""Prometheus metrics."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """
    Counts of requests, sentences and batches.

    Each server has its own registry, so that several can share a process. No text, address or key
    is ever a label.
    """

    def __init__(
        self, waiting: Callable[[], float], loaded: Callable[[], float] = lambda: 0
    ) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "heedful_requests",
            "Requests that were answered.",
            ["route", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "heedful_request_seconds",
            "Seconds from a request to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.gone = Counter(
            "heedful_clients_gone",
            "Clients that disconnected before their answer.",
            registry=registry,
        )
        self.open = Gauge("heedful_requests_open", "Requests being answered.", registry=registry)
        self.connections = Gauge(
            "heedful_connections_open", "Connections of clients.", registry=registry
        )
        self.sentences = Counter(
            "heedful_sentences", "Sentences that were translated.", registry=registry
        )
        self.tokens = Counter(
            "heedful_source_tokens", "Subwords of these sentences.", registry=registry
        )
        self.batch = Histogram(
            "heedful_batch_sentences",
            "Sentences translated together.",
            buckets=_SENTENCES,
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "heedful_batch_seconds", "Seconds per batch.", buckets=_SECONDS, registry=registry
        )
        self.reloads = Counter(
            "heedful_reloads", "Reloads of the models.", ["result"], registry=registry
        )
        queue = Gauge(
            "heedful_queue_sentences", "Sentences that are waiting for a batch.", registry=registry
        )
        queue.set_function(waiting)
        models = Gauge("heedful_models_loaded", "Models in memory.", registry=registry)
        models.set_function(loaded)

    def record_batch(self, sentences: int, tokens: int, seconds: float) -> None:
        """Count a batch; called in the worker thread."""
        self.sentences.inc(sentences)
        self.tokens.inc(tokens)
        self.batch.observe(sentences)
        self.batch_seconds.observe(seconds)

    def page(self) -> bytes:
        """Write all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
