"""T5 models that transformers makes: the same here, and the same again where they go out."""

import json
import shutil
from functools import cache

import numpy as np
import pytest
import safetensors.torch
import torch
from tests.support.t5 import GATED, PREFIX, make, text

from heedful.exchange.convert import HeedfulReference, export_model, import_model
from heedful.exchange.formats import ReadOptions
from heedful.exchange.huggingface.engine import TransformersReference
from heedful.exchange.parity import DoublePrecisionReference, compare
from heedful.exchange.t5.read import read
from heedful.runs.run import Run
from heedful.training.train import train
from heedful.translation.translator import Translator

pytestmark = pytest.mark.family("relative_buckets", "rms_norm")
SENTENCES = [pair[0] for pair in text(4)]
TASK = ReadOptions(task="translation_en_to_fr")
# Each with something odd in the model; they have learned a little.
ODD = {
    "1.0": {},
    "1.1": {"own_head": True, **GATED},
    "relu, few buckets, fewer layers behind": {
        "num_decoder_layers": 1,
        "relative_attention_num_buckets": 4,
        "relative_attention_max_distance": 3,
        "search": {"num_beams": 3, "length_penalty": 0.6, "early_stopping": "never"},
    },
    "gated silu, tied and not scaled": {
        "feed_forward_proj": "gated-silu",
        "tie_word_embeddings": False,
        "d_kv": 16,
        "num_heads": 2,
        "layer_norm_epsilon": 1e-3,
    },
    "no sentinels, own head, scaled": {"own_head": True, "extra_ids": 0, "rows": 1},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Write a model that has learned a little; models of equal settings are trained once."""
    made = {}

    def write(folder, **settings):
        key = json.dumps(settings, sort_keys=True)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("trained")
            make(made[key], **{"steps": 40, "spread": 0.02} | settings)
        shutil.copytree(made[key], folder)

    return write


@pytest.fixture(scope="module")
def folder_of(trained, tmp_path_factory):
    """Import a model of a kind, once; return the folder of the original and the run."""

    @cache
    def folder_of(kind):
        folder = tmp_path_factory.mktemp("imported")
        theirs, run = folder / "theirs", folder / "run"
        trained(theirs, **ODD[kind])
        options = None if "search" in ODD[kind] else TASK
        report, _ = import_model("t5", theirs, run, options=options, sentences=SENTENCES)
        count = len(SENTENCES)
        assert report.parity.difference < 1e-5
        assert (report.parity.same_tokens, report.parity.same_outputs) == (count, count)
        return folder

    return folder_of


@pytest.mark.parametrize(
    "odd",
    [pytest.param(odd, marks=[] if odd.startswith("1.") else pytest.mark.soak) for odd in ODD],
)
def test_a_model_is_the_same_here_and_again_in_transformers(odd, folder_of, tmp_path):
    folder, out = (folder_of(odd) / name for name in ("theirs", "run"))
    _same_in_double(folder, out)
    parity, _ = export_model(out, "t5", tmp_path / "back", sentences=SENTENCES)
    assert parity.difference < 1e-5 and parity.same_outputs == len(SENTENCES)
    _same_again(folder, tmp_path / "back")


def _same_in_double(folder, out):
    run = Run.open(out)
    classes = ("T5ForConditionalGeneration", "T5Tokenizer")
    more = {"use_cache": False, "num_beams": 2, "max_length": 9}
    ours = HeedfulReference(run)
    theirs = TransformersReference(folder, run.tokenizer, *classes, more)
    assert isinstance(theirs, DoublePrecisionReference)
    precise = compare(ours.in_double(), theirs.in_double(), SENTENCES, 1e-9)
    assert 0 < precise.difference < 1e-9


def _same_again(folder, back):
    """What comes back has the same tensors, ids and greedy translations, loaded as it stands."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    both = [safetensors.torch.load_file(place / "model.safetensors") for place in (folder, back)]
    rest = both[0].keys() - both[1].keys()
    assert rest <= {"lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    for name, tensor in both[1].items():
        # the row that became the start symbol is there, too
        assert tensor.equal(both[0][name]), name
    models = [AutoModelForSeq2SeqLM.from_pretrained(place).eval() for place in (folder, back)]
    tokenizers = [AutoTokenizer.from_pretrained(place) for place in (folder, back)]
    lines = [PREFIX + line for line in SENTENCES]
    rows = [tokenizer(lines, return_tensors="pt", padding=True) for tokenizer in tokenizers]
    assert rows[0].input_ids.equal(rows[1].input_ids)
    plain = {"num_beams": 1, "max_length": 12, "use_cache": False, "bad_words_ids": [[0]]}
    written = [model.generate(**rows[0], **plain) for model in models]
    assert written[0].equal(written[1])


TEXTS = [
    "the big dog sees the cat .",
    "  Two   spaces\tand a tab ",
    "Ünknown ☃☃ signs, ﬁne ligatures and １２３",
    "the <extra_id_0> sees <extra_id_1>.",
    "<extra_id_19><extra_id_3> the dog",
    "<extra_id_20> is none of 20, <extra_id_x> neither",
    "",
    "a",
    "no-break and　wide spaces",
]


def test_text_becomes_the_same_ids(tmp_path):
    from transformers import T5Tokenizer

    make(tmp_path / "theirs", search={"max_length": 8})
    own = "to French: "  # of no task, so the search is that of the model
    options = ReadOptions(source_prefix=own)
    import_model("t5", tmp_path / "theirs", tmp_path / "run", options=options)
    theirs, run = T5Tokenizer.from_pretrained(tmp_path / "theirs"), Run.open(tmp_path / "run")
    id_mapping = run.tokenizer.models[0].id_mapping
    for prefix, encode in (
        (own, run.tokenizer.encode_source),
        ("", run.tokenizer.encode_target),
    ):
        lines = [line for line in [*TEXTS, *SENTENCES] if line]
        wanted = [
            id_mapping.to_ours(row[:-1]) for row in theirs([prefix + x for x in lines]).input_ids
        ]
        assert encode(lines) == wanted
    assert run.tokenizer.encode_source([""]) == [[]]


@pytest.mark.parametrize("kind", ["1.0", "1.1"])
def test_attention_is_that_of_transformers(kind, folder_of):
    from transformers import T5ForConditionalGeneration

    folder = folder_of(kind)
    model = T5ForConditionalGeneration.from_pretrained(
        folder / "theirs", attn_implementation="eager"
    ).eval()
    translator = Translator.load(folder / "run", device="cpu", precision="fp32")
    attention = translator.attend(SENTENCES[0], target="le chien voit")
    id_mapping = translator.tokenizer.models[0].id_mapping
    source = id_mapping.to_theirs([*translator.tokenizer.encode_source(SENTENCES[:1])[0], 3])
    target = id_mapping.to_theirs([0, *translator.tokenizer.encode_target(["le chien voit"])[0]])
    with torch.inference_mode():
        wanted = model(
            input_ids=torch.tensor([source]),
            decoder_input_ids=torch.tensor([target]),
            output_attentions=True,
        )
    for name, theirs in (
        ("encoder", wanted.encoder_attentions),
        ("decoder", wanted.decoder_attentions),
        ("cross", wanted.cross_attentions),
    ):
        ours = getattr(attention, name)
        stacked = torch.cat(theirs).numpy()
        assert ours.shape == stacked.shape
        np.testing.assert_allclose(ours, stacked, atol=1e-5)
    assert "".join(attention.source_tokens).startswith("▁translate▁English▁to▁French:")


def test_the_task_decides_prefix_languages_and_search(trained, tmp_path):
    trained(tmp_path / "theirs", steps=0)
    known = ReadOptions(source_language="en", target_language="fr")
    for options in (TASK, known, ReadOptions(source_prefix=PREFIX)):
        model = read(tmp_path / "theirs", options)
        assert model.tokenizer.source_prefix == PREFIX
        assert (model.tokenizer.source_language, model.tokenizer.target_language) == ("en", "fr")
        assert (model.config.search.beam, model.config.search.max_length) == (4, "29")
        assert model.config.search.stop == "when-beam-finished"
        assert not any("--task" in note for note in model.notes)
    place = tmp_path / "theirs/generation_config.json"
    rule = json.loads(place.read_text(encoding="utf-8"))
    del rule["max_length"]
    place.write_text(json.dumps(rule), encoding="utf-8")
    theirs, plain = tmp_path / "theirs", tmp_path / "plain"
    _, notes = import_model("t5", theirs, plain, sentences=SENTENCES[:1])
    assert any("generate, 20 subwords, is used" in note for note in notes)
    run = Run.open(tmp_path / "plain")
    assert (run.tokenizer.source_prefix, run.config.search.beam) == ("", 1)
    assert any("--task (summarization, translation_en_to_fr)" in n for n in notes)


def test_alignments_count_the_words_of_the_line_alone(folder_of):
    translator = Translator.load(folder_of("1.0") / "run", device="cpu", precision="fp32")
    (found,) = translator.translate(["the big dog"], alignments=True)
    assert found.alignment.source_words == ("the", "big", "dog")
    assert all(source < 3 for source, _ in found.alignment.links)


def test_a_model_is_fine_tuned_and_goes_out_again(folder_of, tmp_path):
    before = folder_of("1.1") / "run"
    files = {}
    for side, column, language in (("source", 0, "en"), ("target", 1, "fr")):
        files[side] = tmp_path / f"train.{language}"
        lines = [pair[column] for pair in text(24)]
        files[side].write_text("\n".join(lines) + "\n", encoding="utf-8")
    train(
        "tiny",
        **files,
        valid_source=files["source"],
        valid_target=files["target"],
        out=tmp_path / "tuned",
        finetune_from=before,
        settings=["train.steps=3", "train.batch_tokens=400", "train.device=cpu"],
    )
    tuned = Run.open(tmp_path / "tuned")
    assert tuned.tokenizer.source_prefix == PREFIX
    weights = [
        run.load_checkpoint(run.checkpoint_folder("last")).model["encoder.score_bias.weight"]
        for run in (Run.open(before), tuned)
    ]
    assert not weights[0].equal(weights[1])
    parity, _ = export_model(tmp_path / "tuned", "t5", tmp_path / "out", sentences=SENTENCES)
    assert parity.difference < 1e-5
    assert (parity.same_tokens, parity.same_outputs) == (len(SENTENCES), len(SENTENCES))
    settings = json.loads((tmp_path / "out/config.json").read_text(encoding="utf-8"))
    assert settings["task_specific_params"] == {"translation_en_to_fr": {"prefix": PREFIX}}


def test_mt5_is_the_same_class_without_a_scaled_output(trained, tmp_path):
    trained(tmp_path / "theirs", own_head=True, **GATED)
    place = tmp_path / "theirs/config.json"
    settings = json.loads(place.read_text(encoding="utf-8"))
    settings |= {"model_type": "mt5", "architectures": ["MT5ForConditionalGeneration"]}
    del settings["scale_decoder_outputs"]
    place.write_text(json.dumps(settings), encoding="utf-8")
    report, _ = import_model(
        "t5", tmp_path / "theirs", tmp_path / "run", options=TASK, sentences=SENTENCES
    )
    assert report.parity.difference < 1e-5
    assert report.parity.same_outputs == len(SENTENCES)
    assert not Run.open(tmp_path / "run").config.model.scale_output


def test_a_folder_that_transformers_5_saved_has_no_other_tokenizer_file(folder_of, tmp_path):
    from transformers import T5Tokenizer

    folder, run = tmp_path / "theirs", folder_of("1.0") / "run"
    shutil.copytree(folder_of("1.0") / "theirs", folder)
    tokenizer = T5Tokenizer.from_pretrained(folder)
    for name in ("spiece.model", "tokenizer_config.json"):
        (folder / name).unlink()
    tokenizer.save_pretrained(folder)
    assert not (folder / "spiece.model").exists()
    report, _ = import_model("t5", folder, tmp_path / "run", options=TASK, sentences=SENTENCES)
    assert report.parity.difference < 1e-5
    assert (report.parity.same_tokens, report.parity.same_outputs) == (4, 4)
    before, after = (Run.open(place).tokenizer for place in (run, tmp_path / "run"))
    lines = [line for line in TEXTS if line]
    assert before.encode_source(lines) == after.encode_source(lines)
    export_model(tmp_path / "run", "t5", tmp_path / "back", sentences=SENTENCES[:1])
