from heedful.serve.metrics import Metrics


def numbers(metrics: Metrics) -> dict[str, float]:
    lines = metrics.page().decode().splitlines()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"
    }


def test_a_batch_is_counted_in_all_its_sizes():
    metrics = Metrics(lambda: 0.0)
    metrics.record_batch(sentences=3, tokens=40, seconds=0.2)
    metrics.record_batch(sentences=5, tokens=60, seconds=0.01)
    found = numbers(metrics)
    assert found["heedful_sentences_total"] == 8
    assert found["heedful_source_tokens_total"] == 100
    assert found["heedful_batch_sentences_count"] == 2
    assert found['heedful_batch_sentences_bucket{le="4.0"}'] == 1
    assert found['heedful_batch_seconds_bucket{le="0.1"}'] == 1


def test_the_queue_is_asked_when_the_page_is_read_and_servers_share_nothing():
    waiting = [7.0]
    first, second = Metrics(lambda: waiting[0]), Metrics(lambda: 0.0)
    first.requests.labels("/translate", "200").inc()
    assert numbers(first)["heedful_queue_sentences"] == 7
    waiting[0] = 2.0
    assert numbers(first)["heedful_queue_sentences"] == 2
    assert 'heedful_requests_total{route="/translate",status="200"}' not in numbers(second)
