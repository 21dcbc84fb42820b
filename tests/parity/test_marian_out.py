import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import safetensors.torch
import torch
from tests.support.marian import TAGS, make, text

from heedful.config.recipes import recipe
from heedful.errors import ExchangeError, RunFolderError
from heedful.exchange.convert import export_model, import_model
from heedful.model.initialize import initialize
from heedful.runs.checkpoint import save_checkpoint
from heedful.runs.folder import RunFolder
from heedful.runs.machine_settings import ONE_THREAD
from heedful.runs.run import Run, write_config
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.translator import Translator

PAIRS = text()
SENTENCES = [pair[0] for pair in text(3)]
SHORT = {"max_length": 12}
TAGGED = [f"{TAGS[0]} {line}" for line in SENTENCES]
SMALL = {
    "model.d_model": 32,
    "model.d_ff": 40,
    "model.heads": 4,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.norm_epsilon": 1e-5,
    "data.source_language": "en",
    "data.target_language": "fr",
    "data.vocabulary_size": 300,
    "data.vocabulary_multiple": 8,
}


@cache
def subwords(size, shared):
    """Subwords of the embedded corpus, learned once."""
    with TemporaryDirectory() as folder:
        files = [Path(folder, f"side{side}.txt") for side in (0, 1)]
        for side, file in enumerate(files):
            file.write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
        return Tokenizer.train(
            files[:1],
            files[1:],
            kind="bpe",
            vocabulary_size=size,
            shared=shared,
            source_language="en",
            target_language="fr",
            seed=1,
            threads=1,
        )


def random_run(folder, name="paper-base", **settings):
    """A run with random weights and subwords of the embedded corpus."""
    folder.mkdir()
    config = recipe(name).with_settings(SMALL | settings)
    tokenizer = subwords(config.data.vocabulary_size, config.data.shared_vocabulary)
    tokenizer.save(folder)
    run = Run(RunFolder(folder), config, tokenizer)
    write_config(run.folder, config, ONE_THREAD, {}, {})
    model = run.build()
    initialize(model, 1)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    save_checkpoint(run.folder.checkpoint(1), dict(model.named_parameters()), None, {"step": 1})
    return run


ODD = {
    "the paper's": {},
    "odd sizes": {"data.vocabulary_size": 301, "model.encoder_layers": 1, "model.decoder_heads": 2},
    "no bias": {"model.projection_bias": False, "model.output_bias": True},
    "tied output": {"model.tie_embeddings": "output"},
    "untied": {"model.tie_embeddings": "none", "model.activation": "gelu_tanh"},
    "two vocabularies": {
        "model.tie_embeddings": "output",
        "data.shared_vocabulary": False,
        "data.vocabulary_size": 120,
    },
    "grouped": {
        "model.positions": "grouped",
        "model.decoder_start": "pad",
        "search.stop": "when-beam-finished",
    },
}


@pytest.mark.parametrize("odd", ODD)
def test_a_run_is_the_same_in_transformers(odd, tmp_path):
    from transformers import MarianMTModel, MarianTokenizer

    run = random_run(tmp_path / "run", **ODD[odd], **{"search.max_length": "10"})
    out = tmp_path / "out"
    parity, notes = export_model(run.folder.path, "marian", out, sentences=SENTENCES)
    assert parity.difference < 1e-4
    assert (parity.same_tokens, parity.same_outputs) == (len(SENTENCES), len(SENTENCES)), parity
    assert any("length_penalty = power:0.6" in note for note in notes)
    theirs, tokenizer = MarianMTModel.from_pretrained(out), MarianTokenizer.from_pretrained(out)
    source = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    written = tokenizer.batch_decode(theirs.generate(**source), skip_special_tokens=True)
    assert len(written) == len(SENTENCES)
    ids = [row[: row.index(3)] for row in source.input_ids.tolist()]
    assert ids == run.tokenizer.encode_source(SENTENCES)


SHAPES = [{"tags": TAGS}, {"separate": True}, {"tie_word_embeddings": False}]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_came_from_marian_goes_back_as_it_came(shape, tmp_path):
    make(tmp_path / "theirs", generation=SHORT, **shape)
    sentences = TAGGED if "tags" in shape else SENTENCES
    import_model("marian", tmp_path / "theirs", tmp_path / "run", sentences=sentences)
    parity, notes = export_model(tmp_path / "run", "marian", tmp_path / "back", sentences=sentences)
    assert notes == ()
    assert parity.same_outputs == parity.sentences
    before, after = (
        safetensors.torch.load_file(tmp_path / name / "model.safetensors")
        for name in ("theirs", "back")
    )
    for name in after:
        assert after[name].equal(before[name]), name
    for name in ("vocab.json", "target_vocab.json"):
        if (tmp_path / "theirs" / name).exists():
            first, second = (
                json.loads((tmp_path / folder / name).read_text()) for folder in ("theirs", "back")
            )
            assert first == second
    for name in ("source.spm", "target.spm"):
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("theirs", "back"))
        assert first == second


def test_what_the_class_cannot_express_is_told_all_at_once(tmp_path):
    run = random_run(
        tmp_path / "run",
        "t2t-base",
        **{"model.norm_epsilon": 1e-6, "model.norm": "pre", "model.d_v": 4, "model.d_k": 8},
    )
    with pytest.raises(ExchangeError) as caught:
        export_model(run.folder.path, "marian", tmp_path / "out")
    for part in ("norm must be post", "norm_epsilon must be 1e-05", "positions", "start", "d_v"):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    run = random_run(tmp_path / "run")
    with pytest.raises(RunFolderError, match="new folder"):
        export_model(run.folder.path, "marian", tmp_path)


def test_a_model_that_is_exported_translates_as_before(tmp_path):
    make(tmp_path / "theirs", generation=SHORT)
    import_model("marian", tmp_path / "theirs", tmp_path / "run", sentences=SENTENCES[:1])
    export_model(tmp_path / "run", "marian", tmp_path / "back", sentences=SENTENCES[:1])
    import_model("marian", tmp_path / "back", tmp_path / "again", sentences=SENTENCES[:1])
    first, second = (
        Translator.load(tmp_path / name, device="cpu", precision="fp32").translate(SENTENCES)
        for name in ("run", "again")
    )
    assert first == second
