import pytest

from heedful.errors import ExchangeError
from heedful.exchange.find_tokenizer import TextSplitter, find_splitters, read_splitter
from heedful.exchange.formats import ReadOptions

LANGUAGES = ("en", "de")


def test_without_a_file_text_is_cut_at_spaces(tmp_path):
    (tmp_path / "dict.en.txt").touch()
    assert find_splitters(tmp_path, ReadOptions(), LANGUAGES) == [TextSplitter("spaces")] * 2


def test_each_side_takes_the_file_of_its_language(tmp_path):
    (tmp_path / "spm.en.model").write_bytes(b"english")
    (tmp_path / "spm.de.model").write_bytes(b"german")
    found = find_splitters(tmp_path, ReadOptions(), LANGUAGES)
    assert found == [TextSplitter("sentencepiece", side) for side in (b"english", b"german")]
    with pytest.raises(ExchangeError, match=r"has 2: spm\.de\.model, spm\.en\.model; name"):
        find_splitters(tmp_path, ReadOptions(), ("", ""))


def test_the_named_file_serves_both_sides(tmp_path):
    named = tmp_path / "codes"
    named.write_bytes(b"#version: 0.2\nt h\n")
    (tmp_path / "other.model").touch()
    found = find_splitters(tmp_path, ReadOptions(tokenizer=named), LANGUAGES)
    assert found == [TextSplitter("codes", b"#version: 0.2\nt h\n")] * 2
    with pytest.raises(ExchangeError, match="--tokenizer must name a file or folder"):
        find_splitters(tmp_path, ReadOptions(tokenizer=tmp_path / "none"), LANGUAGES)


def test_codes_of_fastbpe_lose_their_counts(tmp_path):
    (tmp_path / "bpecodes").write_bytes(b"t h 120\nth e</w> 80\n")
    splitter = read_splitter(tmp_path / "bpecodes")
    assert splitter == TextSplitter("codes", b"#version: 0.2\nt h\nth e</w>\n")
    with pytest.raises(ExchangeError, match="must be readable"):
        read_splitter(tmp_path / "gone.model")
