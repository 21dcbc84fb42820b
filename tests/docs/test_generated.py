"""The pages that are made from the program name every command, option and setting."""

import runpy

import pytest
import typer.main
from tests.support.pages import DOCS

from heedful.cli.main import app
from heedful.config.schema import setting_fields


@pytest.fixture(scope="module")
def generate():
    return runpy.run_path(str(DOCS / "generate.py"))


def test_every_command_is_there_with_every_option(generate):
    page = generate["commands_page"]()
    sections = dict(part.split("`\n", 1) for part in page.split("\n## `")[1:])

    def check(name, command):
        for key, inner in getattr(command, "commands", {}).items():
            check(f"{name} {key}", inner)
        if hasattr(command, "commands"):
            return
        for option in command.params:
            rows = [line for line in sections[name].splitlines() if line.startswith("| `")]
            word = option.opts[0] if option.param_type_name == "option" else option.metavar
            word = word or option.name.upper()
            found = [row for row in rows if f"`{word}`" in row.split("|")[1]]
            for row in found:
                assert all(cell.strip() for cell in row.replace("\\|", "").split("|")[1:5]), row
            assert found, (name, word)

    check("heedful", typer.main.get_command(app))
    assert "| `--trials` | whole number, ≥ 100 | `10000` |" in sections["heedful evaluate"]
    assert "`randomization`, `bootstrap`" in sections["heedful evaluate"]


def test_every_setting_is_there_with_type_range_and_default(generate):
    page = generate["settings_page"]()
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if "| `" in line}
    assert rows.keys() >= setting_fields().keys()
    assert "| whole number | ≥ 0; < 2^63 | `1` |" in rows["train.seed"]
    assert "| number or none | ≥ 1 | `none` |" in rows["data.max_length_ratio"]
    assert "| text | auto, cpu, cuda or cuda:N | `auto` |" in rows["train.device"]
    assert "`bleu`, `chrf`, `loss`" in rows["train.best_by"]
    assert rows["train.momentum"].endswith("Applies only if `train.optimizer` is sgd. |")
    assert "Applies only" not in rows["train.warmup"]
