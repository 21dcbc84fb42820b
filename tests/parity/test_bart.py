"""Folders of BART's classes: in, translated for several languages, and out again."""

import json
from functools import cache

import pytest
import torch
from tests.support.bart import make
from tests.support.marian import text

import heedful
from heedful.errors import ArgumentError, ExchangeError, SettingError
from heedful.exchange.convert import export_model, import_model
from heedful.exchange.formats import ReadOptions
from heedful.exchange.parity import sample_sentences
from heedful.runs.run import Run
from heedful.translation.translator import Translator

SENTENCES = [pair[0] for pair in text(6)]
CLASSES = {
    "m2m100": ("M2M100ForConditionalGeneration", "M2M100Tokenizer"),
    "nllb": ("M2M100ForConditionalGeneration", "NllbTokenizer"),
    "mbart": ("MBartForConditionalGeneration", "MBartTokenizer"),
    "mbart50": ("MBartForConditionalGeneration", "MBart50Tokenizer"),
}
# A second target language of each, as people name it and as the model does.
OTHERS = {
    "m2m100": ("de", "de"),
    "nllb": ("de", "deu_Latn"),
    "mbart": ("de", "de_DE"),
    "mbart50": ("deu", "de_DE"),
}
ODD = {
    "m2m100": {"generation": {"num_beams": 1}},
    "nllb": {"activation_function": "swish", "generation": {"length_penalty": 1.3}},
    "mbart": {"scale_embedding": True, "generation": {"early_stopping": "never"}},
    "mbart50": {"tie_word_embeddings": False, "generation": {"min_length": 7}},
}


def imported(folder, kind, options=None, sentences=SENTENCES[:1], **shape):
    make(folder / "theirs", kind, **{**ODD[kind], **shape})
    report, _ = import_model(
        "huggingface",
        folder / "theirs",
        folder / "run",
        options=options or ReadOptions(),
        sentences=sentences,
    )
    return report.parity


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """Import a model of a kind, once; return the folder of the original and the run."""

    @cache
    def folder_of(kind):
        folder = tmp_path_factory.mktemp(kind)
        parity = imported(folder, kind, sentences=SENTENCES)
        assert parity.difference < 1e-5
        assert parity.same_tokens == parity.same_outputs == parity.sentences == len(SENTENCES)
        return folder

    return folder_of


@pytest.mark.parametrize("kind", CLASSES)
def test_an_import_agrees_and_goes_out_again(folder_of, tmp_path, kind):
    run = folder_of(kind) / "run"
    parity, _ = export_model(run, "bart", tmp_path / "out", sentences=SENTENCES)
    assert parity.difference < 1e-5
    assert parity.same_tokens == parity.same_outputs == len(SENTENCES)
    made_up = sample_sentences(Run.open(run).tokenizer, 4)
    again, _ = import_model("huggingface", tmp_path / "out", tmp_path / "again", sentences=made_up)
    assert again.parity.same_outputs == again.parity.sentences == 4


@pytest.mark.parametrize(
    ("kind", "named", "meant"),
    [
        ("m2m100", "mbart", "m2m_100, but names mbart"),
        ("mbart", "nllb", "mbart, but names m2m_100"),
    ],
)
def test_a_run_of_another_class_than_is_named_is_refused(folder_of, tmp_path, kind, named, meant):
    with pytest.raises(ExchangeError, match=f"which is {meant}; use --format bart"):
        export_model(folder_of(kind) / "run", named, tmp_path / "out")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("tie", "alike"),
    [
        ("output", ("lm_head.weight", "model.decoder.embed_tokens.weight")),
        ("embeddings", ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")),
    ],
)
def test_partly_tied_tables_go_out_again(tmp_path, tie, alike):
    model = make(tmp_path / "theirs", "nllb", tie_word_embeddings=False)
    tables = dict(model.named_parameters())
    with torch.no_grad():
        tables[alike[0]].copy_(tables[alike[1]])
    model.save_pretrained(tmp_path / "theirs")
    import_model("huggingface", tmp_path / "theirs", tmp_path / "run", sentences=SENTENCES)
    assert Run.open(tmp_path / "run").config.model.tie_embeddings == tie
    parity, _ = export_model(tmp_path / "run", "nllb", tmp_path / "out", sentences=SENTENCES)
    assert parity.difference < 1e-5
    assert parity.same_tokens == parity.same_outputs == len(SENTENCES)
    settings = json.loads((tmp_path / "out" / "config.json").read_text())
    assert settings["tie_word_embeddings"] is False


@pytest.mark.parametrize("kind", CLASSES)
def test_a_call_chooses_its_languages(folder_of, kind):
    import transformers

    folder = folder_of(kind)
    name, code = OTHERS[kind]
    translator = Translator.load(folder / "run", device="cpu", precision="fp32")
    ours = translator.translate(SENTENCES, from_language="fr", to_language=name)
    run = translator.between("fr", name).run
    assert run.direction.target == code
    of_model, of_tokenizer = (getattr(transformers, part) for part in CLASSES[kind])
    model = of_model.from_pretrained(folder / "theirs", dtype=torch.float32).eval()
    tokenizer = of_tokenizer.from_pretrained(
        folder / "theirs", src_lang=run.direction.source, tgt_lang=code
    )
    number = run.tokenizer.models[0].id_mapping.origins[run.tokenizer.frame.token(code)]
    where = "decoder_start_token_id" if kind == "mbart" else "forced_bos_token_id"
    plain = translator.translate(SENTENCES)
    assert [line.text for line in plain] != [line.text for line in ours]
    for sentence, line in zip(SENTENCES, ours, strict=True):
        rows = tokenizer([sentence], return_tensors="pt")
        ids = model.generate(**rows, **{where: number}, bad_words_ids=[[0], [1]])[0].tolist()[1:]
        ids = ids[: ids.index(2)] if 2 in ids else ids
        mapped = run.tokenizer.models[0].id_mapping.to_ours(ids)
        assert tuple(run.tokenizer.pieces_target(mapped)) == line.tokens


def test_scores_of_a_target_are_those_of_the_language(tmp_path):
    imported(tmp_path, "nllb", ReadOptions("en", "fr"))
    translator = Translator.load(tmp_path / "run", device="cpu", precision="fp32")
    (source, target), *_ = text(1)
    french = translator.score(source, target)
    german = translator.between(to_language="de").score(source, target)
    assert len(french) == len(german)
    assert french != german
    attention = translator.attend(source, target)
    assert attention.source_tokens[0] == "eng_Latn"
    assert attention.target_tokens[0] == "fra_Latn"


def test_each_call_takes_languages_alike(tmp_path):
    imported(tmp_path, "mbart", ReadOptions("en", "fr"))
    load = {"device": "cpu", "precision": "fp32"}
    one = Translator.load(tmp_path / "run", **load)
    ensemble = Translator.load([tmp_path / "run"] * 2, **load)
    (source, target), *_ = text(1)
    pair = {"from_language": "fr", "to_language": "de"}
    for translator in (one, ensemble):
        chosen = translator.between("fr", "de")
        assert translator.translate(source, **pair) == chosen.translate(source)
        assert translator.score(source, target, **pair) == chosen.score(source, target)
        assert translator.score(source, target, **pair) != translator.score(source, target)
        assert translator.align(source, target, **pair) == chosen.align(source, target)
        attention = translator.attend(source, target, **pair)
        assert attention.source_tokens[-1] == "fr_XX"
        assert (attention.cross == chosen.attend(source, target).cross).all()
        named = [{"de_DE": target, "fr_XX": source}]
        (scored,) = heedful.score(translator, pairs=named, **pair)
        assert [*scored.log_probabilities] == chosen.score(source, target)
        loss = heedful.evaluate(translator, pairs=named, **pair).loss
        assert loss == pytest.approx(-scored.mean)
    (scored,) = heedful.score(tmp_path / "run", pairs=named, precision="fp32", **pair)
    assert [*scored.log_probabilities] == pytest.approx(one.score(source, target, **pair))
    for call in (heedful.score, heedful.evaluate):
        with pytest.raises(SettingError, match="to_language must be a language of this model"):
            call(one, pairs=named, to_language="tlh")
    with pytest.raises(ArgumentError, match="leave them out, or name a run"):
        heedful.evaluate(tmp_path / "a.de", tmp_path / "b.de", to_language="de")
    with pytest.raises(TypeError, match="unexpected keyword argument 'to_langauge'"):
        one.score(source, target, to_langauge="de")


def test_a_language_that_is_no_string_is_refused(folder_of):
    translator = Translator.load(folder_of("m2m100") / "run", device="cpu", precision="fp32")
    for name in ("from_language", "to_language"):
        for language in (5, None, ["fr"], b"fr"):
            must = f"`{name}` of Translator.between must be a string"
            with pytest.raises(ArgumentError, match=must):
                translator.between(**{name: language})


def test_words_are_aligned_without_the_language(folder_of):
    translator = Translator.load(folder_of("m2m100") / "run", device="cpu", precision="fp32")
    (source, target), *_ = text(1)
    links = translator.align(source, target)
    assert links.source_words == tuple(source.split())
    assert links.target_words == tuple(target.split())


def test_an_unknown_language_is_refused_with_the_near_ones(folder_of, tmp_path):
    folder = folder_of("nllb")
    translator = Translator.load(folder / "run", device="cpu", precision="fp32")
    with pytest.raises(SettingError, match="similar ones are deu_Latn"):
        translator.translate("A dog.", to_language="dex_Latn")
    with pytest.raises(SettingError, match="to_language must be a language of this model"):
        translator.translate("A dog.", to_language="tlh")
    with pytest.raises(ExchangeError, match="--target-language must be a language"):
        import_model(
            "huggingface", folder / "theirs", tmp_path / "b", options=ReadOptions("en", "tlh")
        )
    run = Run.open(folder / "run").between("", "zh-TW", ("", ""))
    assert run.direction.target == "zho_Hant"


def test_a_tokenizer_without_a_sentencepiece_model_is_read(tmp_path):
    for kind in ("nllb", "mbart50"):
        parity = imported(tmp_path / kind, kind, sentences=SENTENCES, keep_model=False)
        assert parity.same_tokens == parity.same_outputs == len(SENTENCES)


def test_legacy_behaviour_puts_the_language_behind(tmp_path):
    spelled = {"legacy_behaviour": True}
    parity = imported(tmp_path, "nllb", sentences=SENTENCES, spelled=spelled)
    assert parity.same_tokens == parity.same_outputs == len(SENTENCES)
    run = Run.open(tmp_path / "run")
    (ids,) = run.tokenizer.encode_source(["A dog."])
    assert run.tokenizer.pieces_source(ids)[-2:] == ["</s>", "eng_Latn"]
    assert run.config.model.source_end is False


def test_damaged_folders_are_refused(tmp_path):
    make(tmp_path / "theirs", "nllb")
    place = tmp_path / "theirs" / "config.json"
    settings = json.loads(place.read_text())
    for change, message in (
        ({"encoder_attention_heads": 3}, "encoder_attention_heads must divide"),
        ({"vocab_size": 10**9}, "sizes that the tensors of the weights cannot have"),
        ({"max_position_embeddings": 10**9}, "sizes that the tensors"),
        ({"activation_function": "sin"}, "activation_function must be one of"),
        ({"pad_token_id": "a"}, "pad_token_id must be"),
    ):
        place.write_text(json.dumps({**settings, **change}))
        with pytest.raises(ExchangeError, match=message):
            import_model("huggingface", tmp_path / "theirs", tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_made_up_sentences_hold_no_mask(folder_of):
    tokenizer = Run.open(folder_of("nllb") / "run").tokenizer
    assert "<mask>" in map(tokenizer.models[0].piece, range(tokenizer.source_size))
    assert "<mask>" not in " ".join(sample_sentences(tokenizer, 300))
