"""The `sh` and `python` blocks of every how-to page are executed, in the order of the page."""

import pytest

from tests.support.pages import HOWTO, follow, follow_tutorial, write_old_models


@pytest.fixture(scope="module")
def begun(zygote, tmp_path_factory):
    """The folder that the tutorial leaves, and old models; copied for each page."""
    folder = tmp_path_factory.mktemp("docs")
    follow_tutorial(zygote, folder)
    write_old_models(folder / "old")
    return folder


# A page that trains tables takes ten minutes where other work shares the cores.
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", HOWTO)
def test_the_commands_of_a_page_work(page, zygote, begun, corpora, tmp_path):
    follow(page, zygote, begun, corpora, tmp_path)
