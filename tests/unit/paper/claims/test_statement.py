import json

from heedful.paper.claims.statement import Checked
from heedful.visualise.size_curves import SizeCurve, SizePanel


def test_it_is_read_as_it_was_written():
    curves = (
        SizeCurve("one", (1.0, 2.5)),
        SizeCurve("two", (0.001, 1e6)),
        SizeCurve("BLEU", (1020.0, 3.0)),
    )
    panels = (
        SizePanel("n", (8, 1024), curves[:2], "seconds"),
        SizePanel("words", (3, 4), curves[2:], "BLEU", "none"),
    )
    checked = Checked(True, "So it is.", panels)
    assert Checked.of(json.loads(json.dumps(checked.to_dict()))) == checked
    assert checked.tables == [
        [
            ("n", "seconds: one", "seconds: two"),
            ("8", "1", "0.001"),
            ("1,024", "2.5", "1e+06"),
        ],
        [("words", "BLEU"), ("3", "1,020"), ("4", "3")],
    ]
