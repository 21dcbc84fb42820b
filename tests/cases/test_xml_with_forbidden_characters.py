"""XML with forbidden characters or entities: the unit is lost, and not the file."""

import pytest

from heedful.errors import TextError
from heedful.text.corpus import Corpus, expand, one_file, read_lines
from heedful.text.skipped_rows import SkippedRows

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header/><body>\n'
END = "</body></tmx>"


def unit(text: str) -> str:
    return (
        f'<tu><tuv xml:lang="en"><seg>{text}</seg></tuv>'
        '<tuv xml:lang="fr"><seg>un</seg></tuv></tu>\n'
    )


@pytest.mark.parametrize(
    "bad", ["a &#x02; b", "&#xFFFE;", "a \x0c b", "Q&A", "caf&eacute;", "a & b", "&#55296;"]
)
def test_the_unit_is_skipped_with_its_number(tmp_path, bad):
    path = tmp_path / "m.tmx"
    path.write_text(HEAD + unit("good") * 3 + unit(bad) + unit("fine") * 3 + END, encoding="utf-8")
    skipped = SkippedRows()
    assert list(read_lines(one_file(f"{path}:en"), skipped)) == ["good"] * 3 + ["fine"] * 3
    (note,) = skipped.notes()
    assert "1 row was skipped (unit 4 has a character or a reference that XML does not" in note
    corpus = Corpus(expand([f"{path}:en"]), expand([f"{path}:fr"]))
    assert len(list(corpus.pairs())) == 6


def test_markup_that_does_not_close_is_named_with_a_command_that_repairs(tmp_path):
    path = tmp_path / "m.tmx"
    broken = '<tuv xml:lang="en"><seg>x</seg></tuv></tu>\n'
    path.write_text(HEAD + unit("good") * 3 + broken + unit("fine") + END, encoding="utf-8")
    with pytest.raises(TextError) as caught:
        list(read_lines(one_file(f"{path}:en")))
    assert "line 6, column 40 is not (mismatched tag)" in str(caught.value)
    assert f"xmllint --recover {path} > repaired.tmx" in str(caught.value)


def test_a_segment_of_a_test_set_is_skipped_on_every_side(tmp_path):
    path = tmp_path / "set.xml"
    sides = [("src", "a", "b&#1;"), ("ref", "c", "d"), ("hyp", "e", "f")]
    path.write_text(
        '<dataset><doc id="x">'
        + "".join(
            f'<{side}><p><seg id="1">{first}</seg><seg id="2">{second}</seg></p></{side}>'
            for side, first, second in sides
        )
        + "</doc></dataset>"
    )
    assert [list(read_lines(one_file(f"{path}:{side[0]}"))) for side in sides] == [
        ["a"],
        ["c"],
        ["e"],
    ]
