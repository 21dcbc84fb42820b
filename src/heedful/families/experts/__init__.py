"""Mixtures of experts, a part of Transformers and of recurrent models (Shazeer et al. 2017)."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from heedful.families.experts.clashes import experts_clashes
from heedful.families.experts.config import ExpertsConfig, layers_with_mixtures
from heedful.families.experts.recipes import EXPERTS_RECIPES
from heedful.families.family import Family
from heedful.settings.conditions import ActsIf
from heedful.settings.model import SIDES, ModelSettings


class Experts(Family):
    """Mixtures of experts, in feed-forward networks or between recurrent layers."""

    settings = ExpertsConfig
    condition = ActsIf(SIDES, families_with="networks")
    token_shares: ClassVar = {"experts": "running_load"}
    recipes = EXPERTS_RECIPES
    builder = "heedful.families.experts.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """List invalid settings."""
        del memory
        return experts_clashes(model)

    def part_layers(self, model: ModelSettings, side: str) -> tuple[int, ...]:
        """List the layers with a mixture."""
        return layers_with_mixtures(model, side)

    def module_counts(self, model: ModelSettings) -> Mapping[str, int]:
        """Return the number of experts by its dotted setting name."""
        return {"model.experts.count": model.part(ExpertsConfig).count or 0}

    def beyond_transformer(self, model: ModelSettings) -> list[tuple[str, object]]:
        """List the number of experts, if there are mixtures."""
        return model.part(ExpertsConfig).changed()

    def training_notes(self, model: ModelSettings, ranks: int) -> Iterable[str]:
        """Note that the balance of experts depends on the size of micro-batches."""
        if model.part(ExpertsConfig).count is not None:
            saved = "" if ranks == 1 else "; only the running load of rank 0 is saved"
            yield (
                "experts: their load is balanced within each micro-batch, so the result depends "
                f"on train.micro_batch_tokens{saved}"
            )


FAMILY = Experts()
