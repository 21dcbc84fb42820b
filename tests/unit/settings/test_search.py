import re

import pytest
from annotated_types import Ge, Le

from heedful.config.schema import setting_fields
from heedful.errors import SettingError
from heedful.search.length import LengthPenalty
from heedful.search.settings import PEERS_SEARCH, SearchOptions
from heedful.serve.request_schemas import SearchRequest
from heedful.settings import search

SHARED = ("beam", "length_penalty", "coverage_penalty", "max_length", "min_length")


@pytest.mark.parametrize("name", SHARED)
def test_a_setting_has_one_text_and_one_range_wherever_it_is_written(name):
    setting = getattr(search, name.upper())
    recipe, option = setting_fields()[f"search.{name}"], SearchOptions.__dataclass_fields__[name]
    assert recipe.description == option.metadata["help"] == setting.text
    least = [bound.ge for bound in recipe.metadata if isinstance(bound, Ge)]
    most = [bound.le for bound in recipe.metadata if isinstance(bound, Le)]
    assert (*least, *most) == tuple(n for n in setting[1:] if n is not None)
    if name in SearchRequest.model_fields:
        assert SearchRequest.model_fields[name].description.startswith(setting.text)


@pytest.mark.parametrize(
    ("name", "kind"), [("beam", int), ("coverage_penalty", float), ("min_length", int)]
)
def test_the_options_refuse_what_is_out_of_range(name, kind):
    setting = getattr(search, name.upper())
    for value in [n for n in (setting.least, setting.most) if n is not None]:
        step = 1 if value == setting.most else -1
        SearchOptions(**{name: kind(value)})
        with pytest.raises(SettingError, match=name.replace("_", "-")):
            SearchOptions(**{name: kind(value + step)})


@pytest.mark.parametrize("text", ["none", "gnmt:0.6", "power:10", "power:10.0", "gnmt:0"])
def test_the_form_of_a_penalty_is_what_a_search_parses(text):
    assert re.fullmatch(search.PENALTY_FORM, text)
    LengthPenalty.parse(text)


def test_measurements_search_as_other_toolkits_do():
    assert (PEERS_SEARCH.size, str(PEERS_SEARCH.penalty)) == (4, "power:1.0")
    assert PEERS_SEARCH.stop == "as-ctranslate2"
