"""The README is followed as it stands, in an empty folder, and prints what it shows."""

from tests.support.commands import run_shell
from tests.support.readme import is_like, shown_commands


def test_the_commands_of_the_readme_print_what_it_shows(zygote, tmp_path):
    for command, lines in shown_commands():
        printed = run_shell(zygote, command, tmp_path)
        # another processor sums in another order, and may choose another precision
        assert not lines or is_like(printed, lines, numbers_within=1.5), printed
    assert (tmp_path / "attention.html").is_file()
