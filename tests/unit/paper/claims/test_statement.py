import json

from heedful.paper.claims.statement import Checked
from heedful.visualise.size_curves import SizeCurve, SizePanel


def test_it_is_read_as_it_was_written():
    curves = (SizeCurve("one", (1.0, 2.5)), SizeCurve("two", (0.001, 1e6)))
    checked = Checked(True, "So it is.", SizePanel("n", (8, 1024), curves, "seconds"))
    assert Checked.of(json.loads(json.dumps(checked.to_dict()))) == checked
    assert checked.rows == [
        ("n", "one", "two"),
        ("8", "1", "0.001"),
        ("1,024", "2.5", "1e+06"),
    ]
