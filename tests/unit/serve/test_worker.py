"""Sentences of several requests share batches in the worker thread."""

import asyncio
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.schema import RunConfig
from heedful.search.settings import SearchOptions
from heedful.serve.batch_queue import Queue, Search, TranslationJob
from heedful.serve.limits import HttpError
from heedful.serve.models import ModelLoader, Models, ModelSpec
from heedful.serve.worker import Worker

GREEDY = Search(SearchOptions(beam=1))
LINES = random_lines(20, 12, 30, seed=6)
SMALL = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "search.max_length": "8",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worker") / "run"
    folder.mkdir()
    make_random_run(folder, RunConfig().with_settings(SMALL), 50)
    models = Models([ModelSpec.parse(f"en:de={folder}")], ModelLoader(device="cpu", threads=1))
    models.load()
    return models.current[0]


def run(work, **options):
    """Run a coroutine with a worker."""

    async def main():
        worker = Worker(**options)
        worker.start()
        try:
            return await asyncio.wait_for(work(worker), 240)
        finally:
            worker.stop()
            worker.join()

    return asyncio.run(main())


@asynccontextmanager
async def busy(worker):
    """Keep the worker at something else, so that all that is asked for meanwhile waits."""
    begun, ended = threading.Event(), threading.Event()
    held = asyncio.ensure_future(worker.call(lambda: begun.set() or ended.wait(60)))
    assert await asyncio.to_thread(begun.wait, 60)
    try:
        yield
        await asyncio.sleep(0)  # what is asked for begins to wait
    finally:
        ended.set()
        assert await held


async def at_once(worker, *asked):
    """Ask for all of these before the first is begun."""
    async with busy(worker):
        answers = asyncio.gather(*asked, return_exceptions=True)
    return await answers


def test_answers_come_in_the_order_of_the_sentences(model):
    async def work(worker):
        return await worker.translate(model, LINES, GREEDY)

    expected = model.translator.translate(LINES, beam=1)
    assert [one.tokens for one in run(work)] == [one.tokens for one in expected]


def test_a_long_text_does_not_keep_a_short_one_waiting(model):
    done = []

    async def work(worker):
        def tell(name):
            return lambda number, translation: done.append((name, number))

        long = worker.translate(model, LINES, GREEDY, on_sentence=tell("long"))
        short = worker.translate(model, ["w1 w2"], GREEDY, on_sentence=tell("short"))
        await at_once(worker, long, short)

    run(work, batch_tokens=1, gather_seconds=0.0)
    assert done.index(("short", 0)) <= 5
    assert [number for name, number in done if name == "long"] == list(range(len(LINES)))


def test_sentences_of_similar_length_go_together(model):
    batches = []
    texts = ["w1 " * 40, "w1", "w2", "w1 " * 39]

    async def work(worker):
        asked = [worker.translate(model, [text.strip()], GREEDY) for text in texts]
        await at_once(worker, *asked)

    def tell(sentences, tokens, seconds):
        batches.append((sentences, tokens))

    run(work, batch_tokens=80, on_batch=tell)
    assert sorted(batches) == [(2, 2), (2, 79)]


def test_who_was_just_answered_joins_those_that_wait(model):
    batches = []
    workers = []
    begun, waits = threading.Event(), threading.Event()

    def tell(sentences, *_):
        batches.append(sentences)
        # As of a slow model, and long ago: only the end of the batch is a reason to wait.
        workers[0]._last_seconds, workers[0]._arrived = 1e4, -1e4

    def hold(*_):
        begun.set()
        waits.wait(60)

    async def work(worker):
        workers.append(worker)
        first = asyncio.ensure_future(worker.translate(model, ["w1 w2"], GREEDY, observer=hold))
        assert await asyncio.to_thread(begun.wait, 60)
        second = asyncio.ensure_future(worker.translate(model, ["w1"], GREEDY))
        await asyncio.sleep(0)
        waits.set()
        await first
        # Time enough to begin without it; one that waits has time without end.
        await asyncio.sleep(0.05)
        await asyncio.gather(second, worker.translate(model, ["w2"], GREEDY))

    run(work, batch_tokens=2, gather_seconds=0.001, on_batch=tell)
    assert batches == [1, 2]


def test_nobody_waits_for_clients_of_long_ago(model):
    async def work(worker):
        worker._last_seconds, worker._ended = 1e6, -1e9
        return await worker.translate(model, ["w1"], GREEDY)

    assert len(run(work, gather_seconds=0.001)) == 1


def test_searches_that_differ_do_not_mix(model):
    batches = []

    async def work(worker):
        searches = [
            GREEDY,
            Search(SearchOptions(beam=2)),
            GREEDY,
        ]
        await at_once(worker, *(worker.translate(model, ["w1"], one) for one in searches))

    run(work, on_batch=lambda sentences, *_: batches.append(sentences))
    assert sorted(batches) == [1, 2]


def test_what_nobody_waits_for_is_dropped(model):
    translated = []

    async def work(worker):
        async with busy(worker):
            first = asyncio.ensure_future(worker.translate(model, LINES, GREEDY))
            await asyncio.sleep(0)
            assert worker.waiting == len(LINES)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert worker.waiting == 0
        return await worker.translate(model, ["w1"], GREEDY)

    found = run(work, on_batch=lambda count, *_: translated.append(count))
    assert len(found) == 1
    assert translated == [1]


def test_a_queue_has_an_end_but_takes_one_request_of_any_length(model):
    async def work(worker):
        long = worker.translate(model, LINES, GREEDY)
        short = worker.translate(model, ["w1"], GREEDY)
        return await at_once(worker, long, short)

    answers, refused = run(work, queue=5, batch_tokens=1)
    assert len(answers) == len(LINES) > 5
    assert isinstance(refused, HttpError)
    assert refused.status == 429
    assert refused.retry_after >= 1


def test_other_work_has_its_turn_and_its_errors_come_back(model):
    async def work(worker):
        assert await worker.call(lambda: 5) == 5
        with pytest.raises(ZeroDivisionError):
            await worker.call(lambda: 1 // 0)
        with pytest.raises(ValueError, match="watched"):
            await worker.translate(model, ["w1"], GREEDY, observer=_fail)
        return await worker.translate(model, ["w1"], GREEDY)

    assert len(run(work)) == 1


def _fail(number, snapshot):
    raise ValueError("watched")


def test_one_that_fails_does_not_spoil_the_others(model):
    async def work(worker):
        asked = [
            worker.translate(model, ["w1"], GREEDY, observer=_fail),
            worker.translate(model, ["w2"], GREEDY),
        ]
        return await at_once(worker, *asked)

    failed, good = run(work)
    assert isinstance(failed, ValueError)
    assert len(good) == 1


def test_who_waits_at_the_stop_is_told(model):
    async def work(worker):
        async with busy(worker):
            asked = asyncio.ensure_future(worker.translate(model, LINES, GREEDY))
            await asyncio.sleep(0)
            worker.stop()
            with pytest.raises(HttpError):
                await asked
            with pytest.raises(HttpError):
                await worker.translate(model, ["w1"], GREEDY)

    run(work)


@pytest.mark.parametrize(
    "text",
    ["en=a", "en:=a", ":de=a", "en:de:fr=a", "en:de,=a", "en:de=", "a+", "en:de=+a", "a++b"],
)
def test_what_is_no_name_of_a_run_is_refused(text):
    from heedful.errors import SettingError

    with pytest.raises(SettingError, match="en:fr=runs/mine"):
        ModelSpec.parse(text)


def test_a_run_is_named_with_or_without_its_languages():
    assert ModelSpec.parse("runs/a").pairs == ()
    assert ModelSpec.parse("zh-Hans:en,de:en=runs/a").pairs == (("zh-Hans", "en"), ("de", "en"))


def test_runs_with_a_plus_between_are_an_ensemble(tmp_path):
    assert ModelSpec.parse("en:de=a+b").paths == (Path("a"), Path("b"))
    assert str(ModelSpec.parse("a+b+c")) == "a+b+c"
    for name in ("a+b", "en:de=a"):
        (tmp_path / name).mkdir()
        assert ModelSpec.parse(str(tmp_path / name)) == ModelSpec((tmp_path / name,))


def test_a_short_request_waits_for_no_more_than_two_long_ones(model):
    queue = Queue(batch_tokens=4)
    loop = asyncio.new_event_loop()
    done = loop.create_future()
    loop.close()

    def waits(name, sentences):
        search = Search(
            SearchOptions(beam=name)
        )  # of no two alike, so that each has batches of its own
        one = TranslationJob(model, search, [""] * sentences, [4] * sentences, done)
        queue.put(one)
        return one

    names = {waits(name, 10): name for name in range(1, 9)}
    names[waits(9, 1)] = 9
    taken = [names[queue.take()[0].sentences] for _ in range(20)]
    assert taken[1] == 9
    assert set(taken) == set(range(1, 10))  # nor do the long ones wait forever
