"""Models leave memory while nobody uses them."""

import asyncio
import shutil
import weakref

import pytest

from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.schema import RunConfig
from heedful.search.settings import SearchOptions
from heedful.serve.batch_queue import Search
from heedful.serve.limits import HttpError
from heedful.serve.models import ModelLoader, Models, ModelSpec
from heedful.serve.worker import Worker

LINES = random_lines(20, 12, 12, seed=6)
SMALL = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "search.max_length": "8",
}
GREEDY = Search(SearchOptions(beam=1))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    make_random_run(tmp_path / "run", RunConfig().with_settings(SMALL), 50)
    return tmp_path / "run"


@pytest.fixture
def model(folder):
    models = Models([ModelSpec.parse(f"en:de={folder}")], ModelLoader(device="cpu", threads=1))
    models.load()
    assert models.loaded == 1
    return models.current[0]


def test_an_unloaded_model_leaves_no_weight_behind(model):
    weights = [weakref.ref(weight) for weight in model.translator.models[0].parameters()]
    assert len(weights) > 10
    model.translator.translate(LINES, SearchOptions(beam=2))
    model.resident.unload(0)
    assert not model.resident.is_loaded
    assert [weight() for weight in weights if weight() is not None] == []
    assert model.lengths(LINES)[0] > 0
    assert not model.no_attention
    assert not model.resident.is_loaded


def test_a_model_in_use_stays(model):
    model.resident.unload(1000)
    assert model.resident.is_loaded


def test_requests_during_unloading_are_answered_alike(model):
    async def main():
        worker = Worker()
        worker.start()
        try:
            before = await worker.translate(model, LINES, GREEDY)
            jobs = []
            for line in LINES:
                jobs.append(worker.translate(model, [line], GREEDY))
                jobs.append(worker.call(lambda: model.resident.unload(0)))
            answers = await asyncio.wait_for(asyncio.gather(*jobs), 240)
        finally:
            worker.stop()
            worker.join()
        return before, [answer[0] for answer in answers[::2]]

    before, answers = asyncio.run(main())
    assert [answer.text for answer in answers] == [answer.text for answer in before]


def test_a_model_that_is_gone_is_refused_until_it_is_there_again(model, folder):
    model.resident.unload(0)
    shutil.move(folder, folder.with_name("away"))
    with pytest.raises(HttpError) as caught:
        model.translator.translate(LINES)
    assert caught.value.status == 503
    shutil.move(folder.with_name("away"), folder)
    assert model.translator.translate(LINES)
