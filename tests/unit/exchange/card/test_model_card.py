import json
import shutil
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt

from heedful.errors import ExchangeError, RunFolderError, StorageError
from heedful.exchange.card.model_card import CARD, CardFacts, model_card, write_card
from heedful.runs.run import Run

RUN = Path(__file__).parents[3] / "formats" / "1" / "run"
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


@pytest.fixture
def run(tmp_path):
    shutil.copytree(RUN, tmp_path / "run")
    return Run.open(tmp_path / "run")


def change_config(run, **content):
    path = run.folder.config
    path.write_text(json.dumps({**json.loads(path.read_text()), **content}))


@pytest.mark.parametrize("library", ["transformers", "ctranslate2", "onnx", "heedful"])
def test_the_hub_reads_the_front_matter(run, library, tmp_path):
    scores = tmp_path / "newstest.json"
    scores.write_text(json.dumps({"bleu": {"score": 21.5, "signature": SIGNATURE}}))
    facts = CardFacts("cc-by-4.0", ("wmt/wmt14",), (scores,))
    (tmp_path / CARD).write_text(model_card(run, "me/en-fr", library, facts=facts))
    data = ModelCard.load(tmp_path / CARD).data
    assert data.license == "cc-by-4.0"
    assert (data.library_name, data.pipeline_tag) == (library, "translation")
    assert data.datasets == ["wmt/wmt14"]
    assert "heedful" in data.tags
    result = data.eval_results[0]
    assert (result.task_type, result.dataset_name) == ("translation", "newstest")
    assert (result.metric_type, result.metric_value) == ("bleu", 21.5)
    assert result.metric_args == {"signature": SIGNATURE}
    assert data.model_name == "en-fr"


def test_a_fine_tuned_model_names_its_base(run, tmp_path):
    origin = {"run": f"Helsinki-NLP/opus-mt-en-de@{'a' * 40}"}
    (run.folder.path / "origin.json").write_text(json.dumps(origin))
    (tmp_path / CARD).write_text(model_card(run, "me/en-fr", "transformers"))
    assert ModelCard.load(tmp_path / CARD).data.base_model == "Helsinki-NLP/opus-mt-en-de"


def test_nothing_is_made_up(run):
    run.folder.log.unlink()
    change_config(run, corpus={})
    shutil.rmtree(run.folder.data, ignore_errors=True)
    card = model_card(run, "model", "transformers")
    front = yaml.safe_load(card.split("---")[1])
    assert not {"license", "datasets", "model-index", "base_model"} & front.keys()
    for line in ("## Scores\n\nNot measured.", "## License\n\nNot stated.", "Not recorded: "):
        assert line in card


def test_files_pairs_and_settings_are_listed(run):
    run = Run(
        run.folder, run.config.with_settings({"search.beam": 7, "train.seed": 99}), run.tokenizer
    )
    entry = {"file": "train.en", "bytes": 12345, "digest": "ab12", "part": "3"}
    change_config(run, corpus={"source": [entry], "weight": [{"weight": 2.0}], "exclude": []})
    (run.folder.path / "origin.json").write_text(json.dumps({"run": "/secret/place/parent"}))
    card = model_card(run, "model", "transformers")
    assert "- `source`: `train.en`, 12,345 bytes, digest `ab12`, part `3`\n" in card
    assert "- `weight`: weight `2.0`\n" in card
    assert "`exclude`" not in card
    assert "search.beam = 7\n" in card
    assert "train.seed = 99\n" in card
    assert "fine-tuned from the run `parent`" in card
    assert "secret" not in card
    pairs = json.loads(next(run.folder.data.rglob("meta.json")).read_text())
    assert f"- {pairs['pairs']:,} pairs after cleaning" in card


HOSTILE = 'x"\n---\nlicense: mit\n# <script>alert(1)</script> `b` ![i](http://e.org)'


def test_hostile_names_stay_text(run, tmp_path):
    change_config(run, corpus={"source": [{"file": HOSTILE, "bytes": 1}]}, heedful=HOSTILE)
    scores = tmp_path / f"{HOSTILE.replace('/', ' ')}.json"
    scores.write_text(json.dumps({"bleu": {"score": 1.0, "signature": HOSTILE}}))
    facts = CardFacts(scores=(scores,))
    card = model_card(run, HOSTILE.replace("/", " "), "transformers", facts=facts)
    (tmp_path / CARD).write_text(card)
    front = ModelCard.load(tmp_path / CARD)
    assert front.data.license is None
    assert front.data.eval_results[0].metric_args == {"signature": HOSTILE}
    rendered = MarkdownIt("commonmark", {"html": True}).render(front.text)
    assert "<script" not in rendered
    assert "<img" not in rendered
    assert rendered.count("<h1>") == 1


def test_a_damaged_list_of_files_is_refused(run):
    change_config(run, corpus={"source": 3})
    with pytest.raises(RunFolderError, match="it was changed, damaged or"):
        model_card(run, "model", "transformers")


@pytest.mark.parametrize("name", ["", "a/b/c", "../x", "a b", "x" * 97, "a\n"])
def test_a_data_set_is_a_name_of_the_hub(name):
    with pytest.raises(ExchangeError, match="--dataset must be the name"):
        CardFacts(datasets=(name,)).check()


def test_an_edited_card_is_kept(tmp_path):
    assert write_card(tmp_path, "first\n")
    assert write_card(tmp_path, "first\n")
    (tmp_path / CARD).write_text("edited\n")
    assert not write_card(tmp_path, "second\n")
    assert (tmp_path / CARD).read_text() == "edited\n"
    (tmp_path / CARD).unlink()
    (tmp_path / CARD).symlink_to(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="cannot be read"):
        write_card(tmp_path, "second\n")
    assert not (tmp_path / "nowhere").exists()
