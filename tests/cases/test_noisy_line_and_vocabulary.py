"""One noisy line, or a text that is too small, refuses a whole corpus."""

import io
import re

import pytest
import sentencepiece

from heedful.config.load import load_config
from heedful.data.toy_grammar.corpus import sample_pairs
from heedful.errors import TokenizerError
from heedful.preparation.find_training_data import find_text
from heedful.preparation.prepare import prepare
from heedful.tokenization.tokenizer import UNKNOWN

# 2,500 Hangul syllables and 300 arrows and boxes, as a broken crawler leaves them.
NOISE = "".join(map(chr, [*range(0xAC00, 0xAC00 + 2500), *range(0x2190, 0x2190 + 300)]))
KINDS = ("bpe", "unigram", "character", "word")


def write(folder, pairs):
    """Write pairs as text; return the files."""
    for side, language in enumerate(("en", "fr")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"text.{language}").write_text(lines, encoding="utf-8")
    return {"source": folder / "text.en", "target": folder / "text.fr"}


@pytest.fixture
def noisy(tmp_path):
    """A clean text with one noisy line among 300."""
    pairs = sample_pairs(300, seed=7)
    return write(tmp_path, [*pairs[:200], (NOISE, "du bruit"), *pairs[200:]])


def learned(files, recipe, *settings):
    """Learn subwords as a training does; return them and what is said."""
    said = []
    text = find_text(**files)
    return text.learn(text.configure(load_config(recipe, settings)), said.append), said


@pytest.mark.parametrize("kind", KINDS)
def test_one_noisy_line_costs_only_itself(noisy, tmp_path, kind):
    tokenizer, said = learned(noisy, "tiny", f"data.subwords={kind}")
    assert tokenizer.source_size <= 1000
    rows = tokenizer.encode_source((tmp_path / "text.en").read_text("utf-8").splitlines())
    assert UNKNOWN in rows[200] and not any(UNKNOWN in row for row in rows[:200] + rows[201:])
    assert "2,800 characters are left out, because only 1 of 602 lines hold them" in said[0]
    assert "line 201 of " in said[0] and "text.en (가 각" not in said[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_noisy_lines_cost_only_themselves(tmp_path, kind):
    pairs = sample_pairs(400, seed=7)
    pairs[20] = ("a ŵ", "un ẅ")  # rare, but there is room for it
    noise = [(NOISE[700 * n : 700 * n + 700], "du bruit") for n in range(4)]
    files = write(tmp_path, [*pairs[:200], *noise, *pairs[200:]])
    tokenizer, said = learned(files, "tiny", f"data.subwords={kind}")
    # characters alone may fill the vocabulary, so the last of the lines has room there
    lost = 4 if kind in ("bpe", "unigram") else 3
    words = f"{700 * lost:,} characters are left out, because only {lost} of 808 lines"
    assert words in said[0]
    assert "line 201 of " in said[0] and f"line {200 + lost} of " in said[0]
    assert UNKNOWN not in tokenizer.encode_source(["a ŵ"])[0]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_the_refusal_of_a_recipe_that_covers_all_names_lines_and_a_way_out(noisy, kind):
    with pytest.raises(TokenizerError, match="must be at least") as caught:
        learned(noisy, "paper-base", f"data.subwords={kind}", "data.vocabulary_size=900")
    message = str(caught.value)
    assert re.search(r"\(2,800, found in only 1 of 602 lines\): line 201 of \S*text.en", message)
    setting = re.search(r"data\.character_coverage=[0-9.]+", message)[0]
    size = "data.vocabulary_size=" + {"unigram": "300"}.get(kind, "900")
    learned(noisy, "paper-base", f"data.subwords={kind}", setting.rstrip("."), size)


def test_another_script_is_no_noise_that_a_coverage_takes_away(tmp_path):
    lines = [NOISE[10 * n : 10 * n + 10] for n in range(250)]
    files = write(tmp_path, list(zip(lines, lines[::-1], strict=True)))
    with pytest.raises(TokenizerError, match="must be at least 25") as caught:
        learned(files, "tiny")
    assert "character_coverage" not in str(caught.value)


def test_dropped_pairs_do_not_decide_the_vocabulary(noisy, tmp_path):
    rule = ("data.min_script_share=0.4",)
    tokenizer, said = learned(noisy, "tiny", *rule, "data.subwords=character")
    assert said == []
    clean = tmp_path / "clean"
    clean.mkdir()
    pairs = sample_pairs(300, seed=7)
    same, _ = learned(write(clean, pairs), "tiny", *rule, "data.subwords=character")
    assert tokenizer.fingerprint == same.fingerprint


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_small_text_gives_the_vocabulary_that_it_allows(tmp_path, kind, shared):
    files = write(tmp_path, sample_pairs(50, seed=3))
    settings = [f"data.subwords={kind}", f"data.shared_vocabulary={str(shared).lower()}"]
    settings += [] if shared else ["model.tie_embeddings=output"]
    tokenizer, said = learned(files, "multi30k", *settings)
    assert 20 < tokenizer.source_size < 1500
    assert len(said) == (0 if kind == "character" else 2 - shared)
    for sentence in said:
        assert re.fullmatch(
            r"vocabulary: [\d,]+ subwords instead of 8,000 \(data\.vocabulary_size\), because the "
            r".* has no more subwords",
            sentence,
        )
    # the size that was said is accepted
    size = f"data.vocabulary_size={tokenizer.source_size}"
    if shared:
        assert learned(files, "multi30k", *settings, size)[0].source_size == tokenizer.source_size


def test_a_preparation_and_a_dry_run_say_so(heedful_cli, tmp_path):
    files = write(tmp_path, sample_pairs(50, seed=3))
    said = []
    prepare("small", **files, out=tmp_path / "out", processes=1, say=said.append)
    assert any("subwords instead of 8,000" in line for line in said)
    done = heedful_cli(
        "train", "small", "--source", files["source"], "--target", files["target"], "--dry-run"
    )
    assert done.returncode == 0, done.stderr
    assert "subwords instead of 8,000" in done.stderr


@pytest.mark.parametrize("recipe", ["paper-base", "t2t-base", "table3-base", "dates", "questions"])
@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_recipes_with_fixed_values_learn_the_same_bytes_from_every_line(tmp_path, recipe, kind):
    pairs = [
        *sample_pairs(200, seed=5),
        (NOISE[:90], "du bruit"),
        ("", "rien ŵ"),
        *[("a", "b")] * 3,
    ]
    files = write(tmp_path, pairs)
    settings = (f"data.subwords={kind}", "data.vocabulary_size=500", "data.drop_duplicates=true")
    tokenizer, said = learned(files, recipe, *settings)
    assert said == []
    lines = [line for pair in zip(*pairs, strict=True) for line in pair if line]
    characters = sorted(set("".join(lines)) - {" "})
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type={"bpe": "bpe", "character": "char"}[kind],
        vocab_size=500,
        required_chars="".join(characters),
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=True,
        character_coverage=1.0,
        byte_fallback=False,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        max_sentence_length=80_000,
        num_threads=4,
        minloglevel=2,
    )
    assert tokenizer.models[0].files() == {"model": model.getvalue()}


def test_every_recipe_of_a_paper_or_task_covers_every_character():
    from heedful.config.recipes import recipe, recipe_names

    partly = {name for name in recipe_names() if recipe(name).data.character_coverage < 1}
    own = {"tiny", "small", "multi30k"}
    assert own <= partly
    assert all(name in own or name.endswith("-small") for name in partly)
    assert not any(name.startswith("parsing") for name in partly)
