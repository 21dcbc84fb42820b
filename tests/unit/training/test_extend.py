import pytest
import torch

from heedful.config.recipes import recipe
from heedful.errors import RunFolderError, SettingError, TextError, TokenizerError
from heedful.exchange.convert import export_model, import_model
from heedful.exchange.formats import ReadOptions
from heedful.model.initialize import initialize
from heedful.runs.checkpoint import save_checkpoint
from heedful.runs.folder import RunFolder
from heedful.runs.machine_settings import ONE_THREAD
from heedful.runs.run import Run, write_config
from heedful.tokenization.tokenizer import Tokenizer
from heedful.training.extend import NewLanguage, extend
from heedful.translation.translator import Translator
from tests.support.bart import make as make_bart
from tests.support.marian import TAGS, make, text

SMALL = {
    "model.d_model": 16,
    "model.d_ff": 24,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.norm_epsilon": 1e-5,
    "model.output_bias": True,
    "data.source_language": "en",
    "data.target_language": "fr",
    "data.vocabulary_size": 203,
    "search.max_length": "12",
}
GERMAN = ["der große Hund schläft nicht", "die Katzen schlafen und der Hund lacht"] * 20
ENGLISH, FRENCH = ([pair[side] for pair in text()[:300]] for side in (0, 1))


def random_run(folder, tag=">>fr<< ", **settings):
    folder.mkdir()
    config = recipe("paper-base").with_settings(SMALL | settings)
    files = []
    for side, lines in (("en", [tag + line for line in ENGLISH]), ("fr", FRENCH)):
        files.append(folder.parent / f"{folder.name}.{side}")
        files[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    tokenizer = Tokenizer.train(
        files[:1],
        files[1:],
        kind=config.data.subwords,
        vocabulary_size=config.data.vocabulary_size,
        shared=config.data.shared_vocabulary,
        source_language="en",
        target_language="fr",
        seed=1,
        threads=1,
    )
    tokenizer.save(folder)
    run = Run(RunFolder(folder), config, tokenizer)
    write_config(run.folder, config, ONE_THREAD, {}, {})
    model = run.build()
    initialize(model, 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    state = {"step": 1, **run.signature}
    save_checkpoint(run.folder.checkpoint(1), dict(model.named_parameters()), None, state)
    return run


@pytest.fixture
def files(tmp_path):
    paths = {}
    for name, lines in (("de", GERMAN), ("en", ENGLISH), ("fr", FRENCH)):
        paths[name] = tmp_path / f"text.{name}"
        paths[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def language(files, **more):
    keep = [files["en"], files["fr"]]
    return NewLanguage(**{"target": files["de"], "tag": "de", "pieces": 30, "keep": keep, **more})


SHAPES = {
    "one table": {},
    "tied output": {"model.tie_embeddings": "output"},
    "unigram": {"data.subwords": "unigram"},
    "two vocabularies": {
        "model.tie_embeddings": "none",
        "data.shared_vocabulary": False,
        "data.vocabulary_size": 120,
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_new_rows_are_means_of_old_ones_and_old_rows_stay(shape, tmp_path, files):
    old = random_run(tmp_path / "run", **SHAPES[shape])
    extended = extend(tmp_path / "run", tmp_path / "longer", language(files))
    new = Run.open(tmp_path / "longer")
    assert any("all 600 lines of --keep" in note for note in extended.notes)
    assert new.tokenizer.encode_source(ENGLISH) == old.tokenizer.encode_source(ENGLISH)
    assert new.tokenizer.encode_target(FRENCH) == old.tokenizer.encode_target(FRENCH)
    assert new.tokenizer.tags == (">>fr<<", ">>de<<")
    before, after = (run.load_checkpoint(run.checkpoint_folder()).model for run in (old, new))
    assert before.keys() == after.keys()
    sizes = {
        "embed_source.weight": (old.tokenizer.source_size, new.tokenizer.source_size),
        **dict.fromkeys(
            ("embed_target.weight", "output.weight", "output.bias"),
            (old.tokenizer.target_size, new.tokenizer.target_size),
        ),
    }
    for name, table in before.items():
        if name not in sizes:
            assert torch.equal(table, after[name])
            continue
        first, last = sizes[name]
        assert torch.equal(table[:first], after[name][:first])
        side = 0 if name == "embed_source.weight" else 1
        model = new.tokenizer.models[side]
        pieces = {model.piece(number): number for number in range(first)}
        for number in range(first, last):
            piece = model.piece(number)
            if piece == ">>de<<":
                expected = table[pieces[">>fr<<"]]
            else:  # what old subwords the new one's text had, unknown letters left out
                whole = old.tokenizer.models[side].encode([piece.replace("\u2581", " ").strip()])[0]
                if not piece.startswith("\u2581") or 1 in whole:
                    continue
                expected = table[whole].mean(0)
            torch.testing.assert_close(after[name][number], expected)
        assert len(after[name]) % new.config.data.vocabulary_multiple == 0
        assert all(torch.equal(row, table[0]) for row in after[name][last:])


def test_an_extended_run_translates_old_text_and_goes_to_other_toolkits(tmp_path, files):
    old = random_run(tmp_path / "run", tag="")
    extend(tmp_path / "run", tmp_path / "longer", language(files, tag=""))
    longer = Translator.load(tmp_path / "longer", device="cpu", precision="fp32")
    assert len(longer.translate(ENGLISH[:3])) == 3
    for kind in ("marian", "ctranslate2"):
        parity, _ = export_model(
            tmp_path / "longer", kind, tmp_path / kind, sentences=[*ENGLISH[:5], *GERMAN[:2]]
        )
        assert parity.same_tokens == parity.same_outputs == parity.sentences
    assert Run.open(old.folder.path).tokenizer.fingerprint == old.tokenizer.fingerprint


def test_a_model_of_the_hub_goes_back_with_more_rows(tmp_path, files):
    make(tmp_path / "theirs", tags=TAGS, generation={"max_length": 12})
    tagged = [f"{TAGS[0]} {line}" for line in ENGLISH[:5]]
    import_model("marian", tmp_path / "theirs", tmp_path / "run", sentences=tagged)
    extend(tmp_path / "run", tmp_path / "longer", language(files, source=files["de"]))
    old, new = Run.open(tmp_path / "run"), Run.open(tmp_path / "longer")
    assert new.tokenizer.encode_source(tagged) == old.tokenizer.encode_source(tagged)
    sentences = [*tagged, f">>de<< {ENGLISH[0]}", f">>de<< {GERMAN[0]}"]
    parity, _ = export_model(tmp_path / "longer", "marian", tmp_path / "back", sentences=sentences)
    assert parity.same_tokens == parity.same_outputs == parity.sentences
    (line,) = new.tokenizer.encode_source([f">>de<< {GERMAN[0]}"])
    assert line[0] == old.tokenizer.source_size


def test_a_tag_alone_needs_no_text(tmp_path):
    random_run(tmp_path / "run")
    extended = extend(tmp_path / "run", tmp_path / "longer", NewLanguage(tag=">>de<<", pieces=0))
    assert "203 entries become 204" in str(extended)


def test_what_cannot_be_added_is_refused(tmp_path, files):
    random_run(tmp_path / "run")
    empty, other = tmp_path / "empty.de", tmp_path / "latin.de"
    empty.write_text(" \n\n")
    other.write_bytes("größer\n".encode("latin-1"))
    once = tmp_path / "once.de"
    once.write_text("ж\n", encoding="utf-8")
    for change, error, word in (
        ({"tag": "fr"}, SettingError, "--tag must be new.*>>fr<<"),
        ({"tag": "a b"}, SettingError, "--tag must be a code"),
        ({"target": None}, TextError, "--pieces 0 for the tag alone"),
        ({"tag": "", "pieces": 0}, SettingError, "adds nothing"),
        ({"target": empty}, TextError, "empty.de is empty"),
        ({"target": other}, TextError, "UTF-8"),
        ({"target": tmp_path / "missing.de"}, TextError, "missing.de"),
        ({"target": once}, TokenizerError, "absent from --keep, but it contains none"),
        ({"target": files["fr"]}, TokenizerError, "absent from --keep"),
        ({"keep": empty}, TextError, "empty.de is empty"),
    ):
        with pytest.raises(error, match=word):
            extend(tmp_path / "run", tmp_path / "longer", language(files, **change))
        assert not (tmp_path / "longer").exists()
    (tmp_path / "longer").mkdir()
    with pytest.raises(RunFolderError, match="--out must be a new folder"):
        extend(tmp_path / "run", tmp_path / "longer", language(files))


@pytest.mark.parametrize(
    ("kind", "tag", "piece"),
    [
        ("nllb", "nds_Latn", "nds_Latn"),
        ("m2m100", "nds", "__nds__"),
        ("mbart", "nds_DE", "nds_DE"),
        ("mbart50", "nds_DE", "nds_DE"),
    ],
)
def test_a_model_with_tokens_of_languages_gets_one_more(kind, tag, piece, tmp_path, files):
    make_bart(tmp_path / "theirs", kind)
    options = ReadOptions("en", "fr")
    import_model("huggingface", tmp_path / "theirs", tmp_path / "run", options=options)
    old = Run.open(tmp_path / "run")
    with pytest.raises(
        SettingError, match="--tag must be a new language, but deu is the same language as de"
    ):
        extend(tmp_path / "run", tmp_path / "longer", language(files, tag="deu"))
    extend(tmp_path / "run", tmp_path / "longer", language(files, tag=tag))
    new = Run.open(tmp_path / "longer")
    assert new.tokenizer.languages == (*old.tokenizer.languages, tag)
    assert new.tokenizer.encode_source(ENGLISH) == old.tokenizer.encode_source(ENGLISH)
    number = new.tokenizer.frame.token(tag)
    assert new.tokenizer.pieces_target([number]) == [piece]
    before, after = (
        run.load_checkpoint(run.checkpoint_folder()).model["embed_source.weight"]
        for run in (old, new)
    )
    others = torch.tensor([*old.tokenizer.frame.languages.values()])
    torch.testing.assert_close(after[number], before[others].mean(0))
    translator = Translator.load(tmp_path / "longer", device="cpu", precision="fp32")
    assert len(translator.translate(ENGLISH[:2], to_language=tag)) == 2
    plain, still = (
        Translator.load(tmp_path / name, device="cpu", precision="fp32").score(
            ENGLISH[0], FRENCH[0]
        )
        for name in ("run", "longer")
    )
    assert len(plain) == len(still)
    with pytest.raises(SettingError, match="--tag must be new"):
        extend(tmp_path / "longer", tmp_path / "again", language(files, tag=tag))
