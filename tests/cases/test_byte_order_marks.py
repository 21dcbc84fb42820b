"""A byte order mark at the start of a later line becomes a letter."""

import pytest

from heedful.config.recipes import recipe
from heedful.preparation.corpora_file import CorpusPart
from heedful.preparation.raw_text import RawText
from heedful.text.corpus import Corpus


def test_a_mark_at_any_line_is_dropped(translate):
    forms = ["the big red dog", "\ufeffthe big red dog", "the \ufeffbig red dog"]
    assert len({*translate(forms)}) == 1


@pytest.mark.parametrize("reading", ["exact", "text"])
def test_training_text_is_read_without_marks(tmp_path, reading):
    lines = ["the dog sleeps", "\ufeffa\u00a0cat  re\u00adads", "cafe\u0301 dog"]
    for language in ("en", "fr"):
        (tmp_path / f"t.{language}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    corpus = Corpus([tmp_path / "t.en"], [tmp_path / "t.fr"])
    settings = {"data.reading": reading, "data.vocabulary_size": 40}
    subwords = RawText((CorpusPart("", corpus),)).learn(recipe("tiny").with_settings(settings))
    spelled = set("".join(subwords.pieces_source(range(subwords.source_size))))
    odd = {"\ufeff", "\u00ad", "\u0301"}
    assert spelled & odd == (odd if reading == "exact" else set())
    # A target keeps a no-break space, which a model learns to write.
    read = corpus.with_characters_read()
    assert list(read.pairs())[1] == ("a cat reads", "a\u00a0cat reads")
