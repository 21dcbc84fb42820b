"""Mutants: small faults that the tests should find."""

import ast
import json
import shutil
from pathlib import Path

import pytest
from tools import mutants

ROOT = Path(__file__).parents[2]


def faulty(text):
    """Make each change that a text can have."""
    return [mutants.apply(text, change) for change in mutants.changes_of(text)]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("a < b", ["(a <= b)"]),
        ("a == b >= c", ["(a != b >= c)", "(a == b > c)"]),
        ("a is None", ["(a is not None)"]),
        ("a not in b", ["(a in b)"]),
        ("a - b * c", ["(a + b * c)", "a - (b / c)"]),
        ("a // b % c", ["(a // b // c)", "(a * b) % c"]),
        ("a @ b", []),
        ("'%s' % a", []),
        ("a and b and c", ["(a or b or c)"]),
        ("x[1:]", ["x[(2):]", "x[(0):]"]),
        ("f(x=0.5)", ["f(x=(1.5))", "f(x=(-0.5))"]),
        ("f(True)", ["f(False)"]),
        ("f(9.6e18)", []),  # one more is the same number
        ("raise E('text')", ["pass"]),
        ("f(a, b)", ["(f(b, a))"]),
        ("f(a.b, c.d)", ["(f(c.d, a.b))"]),
        ("f('x', 'y')", ["(f('y', 'x'))"]),
        ("f(a, 'y'); f(a, a); f(a, b, c); f(a, b, c=d); f(*a, b)", []),
        ("a if b else c", ["a if (not (b)) else c"]),
        ("[a for a in b if c]", ["[a for a in b if (not (c))]"]),
        ("while a:\n    f()", ["while (not (a)):\n    f()"]),
        ("if a:  # why\n    pass", ["if (not (a)):  # why\n    pass"]),
        ("é = '…'; a < b", ["é = '…'; (a <= b)"]),
        ("f(a\n  < b)", ["f((a <= b))"]),
    ],
)
def test_a_fault_is_made_where_it_belongs(text, changed):
    assert faulty(text) == changed


@pytest.mark.parametrize(
    "text",
    [
        '"""Head with 1 < 2."""',
        "def f(a: Literal[1]) -> Between[1, 2]: 'And 3 > 2.'",
        "x: Annotated[int, 1]",
        "if TYPE_CHECKING:\n    X = 1 + 1",
        "if typing.TYPE_CHECKING:\n    X = 1",
        "if __name__ == '__main__':\n    f(1)",
        "_log.warning('%d', n + 1)",
        "logging.info(a, b)",
        "f'{a + 1}'",
    ],
)
def test_what_no_test_should_notice_has_no_fault(text):
    assert faulty(text) == []


def test_the_value_of_a_field_and_the_other_branch_have_faults():
    assert faulty("x: Annotated[int, 1] = 2") == [
        "x: Annotated[int, 1] = (3)",
        "x: Annotated[int, 1] = (1)",
    ]


def test_every_fault_of_the_package_is_python_and_another_program(tmp_path):
    for file in sorted((ROOT / mutants.SOURCE).rglob("*.py"))[::8]:  # all would take long
        copied = tmp_path / file.relative_to(ROOT)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copied)
    drawn = mutants.draw(tmp_path, seed=3, count=200)
    assert len(drawn) == 200
    for module, change in drawn:
        text = (ROOT / module).read_text("utf-8")
        assert ast.dump(ast.parse(mutants.apply(text, change))) != ast.dump(ast.parse(text))


def test_a_seed_draws_the_same_and_a_larger_count_goes_on(tmp_path):
    shutil.copytree(ROOT / "src" / "heedful" / "search", tmp_path / "src" / "heedful" / "search")
    few, many = mutants.draw(tmp_path, 1, 9), mutants.draw(tmp_path, 1, 40)
    assert many[:9] == few != mutants.draw(tmp_path, 2, 9)
    kinds = [mutant.change.operator for mutant in many]
    assert len({kinds.count(kind) for kind in kinds}) == 1  # as many of each


@pytest.mark.parametrize(
    ("module", "tests"),
    [
        ("a/b.py", ["tests/unit/a/test_b.py", "tests/unit/a/test_b_more.py"]),
        ("a/other.py", ["a/test_b.py", "a/test_b_more.py", "a/test_c.py"]),
        ("a/__init__.py", ["a/test_b.py", "a/test_b_more.py", "a/test_c.py"]),
        ("a/c/d.py", ["a/test_c.py"]),  # its folder has no tests
        ("top.py", ["test_top.py"]),
        ("cli/run.py", ["tests/cli/test_run.py"]),
        ("cli/main.py", ["tests/cli/test_run.py", "tests/cli/test_usage.py"]),
    ],
)
def test_a_module_has_its_tests(module, tests, tmp_path):
    for name in ("a/test_b", "a/test_b_more", "a/test_c", "a/deep/test_b", "test_top", "test_x"):
        file = tmp_path / "tests" / "unit" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / "tests" / "cli").mkdir()
    for name in ("run", "usage"):
        (tmp_path / "tests" / "cli" / f"test_{name}.py").touch()
    names = [name if name.startswith("tests/") else f"tests/unit/{name}" for name in tests]
    assert mutants.tests_of(f"src/heedful/{module}", tmp_path) == names


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose tests find one of its faults, and one that loops."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # importing plugins takes seconds
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\nmarkers = ["soak: x"]',
        "src/heedful/__init__.py": "",
        "src/heedful/a/__init__.py": "",
        "src/heedful/a/b.py": "def f(n):\n    while n > 3:\n        n -= 1\n    return n\n",
        "tests/unit/a/test_b.py": "from heedful.a.b import f\ndef test_f(): assert f(4) == 3\n",
        "src/heedful/a/c.py": "X = 1\n",
        "tests/unit/a/test_c.py": "def test_wrong(): assert False\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def fault(package, module, old, new):
    """The mutant of a module with an expression in place of another."""
    text = (package / module).read_text("utf-8")
    changes = mutants.changes_of(text)
    wanted = text.replace(old, new)
    (change,) = [change for change in changes if mutants.apply(text, change) == wanted]
    return mutants.Mutant(module, change)


B, C = "src/heedful/a/b.py", "src/heedful/a/c.py"


def test_verdicts_are_recorded_and_a_run_goes_on_after_them(package, tmp_path, capsys):
    records, run = tmp_path / "records.jsonl", {"commit": "0", "seed": 1}
    drawn = [
        fault(package, B, "n > 3", "(n >= 3)"),  # returns 2
        mutants.Mutant(B, mutants.Change("number", 3, 0, 0, "# no fault\n")),
        fault(package, C, "1", "(2)"),
    ]
    text = (package / B).read_text("utf-8")
    first = mutants.judge_all(drawn[:2], package, run, records)
    result = mutants.judge_all(drawn, package, run, records)
    assert result[:2] == first
    assert [record["verdict"] for record in result] == ["killed", "survived", "none"]
    assert [json.loads(line) for line in records.read_text("utf-8").splitlines()] == result
    assert (package / B).read_text("utf-8") == text
    table = "\n".join(mutants.report(result))
    assert "all                  1         1           1" in table
    assert f"survived {B}:3 number:" in table
    # Another commit is another run.
    mutants.judge_all(drawn[2:], package, {**run, "commit": "1"}, records)
    assert len(records.read_text("utf-8").splitlines()) == 4
    assert "1 of 2: killed" in capsys.readouterr().out


def test_a_mutant_that_loops_is_killed(package):
    loop = fault(package, B, "1", "(0)")
    record = mutants.judge(loop, package, {("tests/unit/a/test_b.py",): 0.3})
    assert record["verdict"] == "killed"
    assert record["seconds"] >= mutants.LOOPS * 0.3
