import pytest

from heedful.config.recipes import describe, recipe, recipe_names
from heedful.config.sequence_recipes import SEQUENCE_RECIPES


@pytest.mark.parametrize("name", SEQUENCE_RECIPES)
def test_a_recipe_differs_from_tiny_in_what_it_says(name):
    summary, settings = SEQUENCE_RECIPES[name]
    built = recipe(name)
    assert built == recipe("tiny").with_settings({"recipe": name, **settings})
    assert describe(name) == summary
    assert built.train.best_by == "exact_match"
    assert name in recipe_names()[recipe_names().index("tiny") :]  # among the small ones
