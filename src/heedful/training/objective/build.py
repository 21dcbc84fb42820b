"""Construction of the objective that the settings of a run select."""

from typing import Any

from heedful.errors import PluginError
from heedful.evaluation.reward_metrics import reward_metric
from heedful.kernels.api import PairFactors
from heedful.runs.machine_settings import MachineSettings
from heedful.runs.run import Run
from heedful.search.settings import SearchOptions
from heedful.settings.registries import OBJECTIVES
from heedful.training.objective.candidates import Judge
from heedful.training.objective.guidance import GuidedAttention
from heedful.training.objective.likelihood import Likelihood, Objective
from heedful.training.objective.reward import ExpectedReward
from heedful.training.objective.risk import MinimumRisk
from heedful.training.objective.two_passes import TwoPasses


def build_objective(run: Run, machine: MachineSettings) -> Objective:
    """Build the objective that `train.objective` names."""
    name = run.config.train.objective
    objective = OBJECTIVES[name](run, machine)
    if not isinstance(objective, Objective):
        raise PluginError(
            f"the objective {name!r} must build an object with `figure`, `describe` and `parts`, "
            f"but builds {objective!r}."
        )
    return objective


def build_likelihood(run: Run, machine: MachineSettings) -> Likelihood:
    """Build the likelihood of the references."""
    del machine
    settings = run.config.train
    guide = None
    if settings.guided_attention:
        guide = GuidedAttention(settings.guided_attention, settings.guided_steps)
    return Likelihood(settings.label_smoothing, settings.smoothing_target, guide=guide)


def build_simcut(run: Run, machine: MachineSettings) -> TwoPasses:
    """Build SimCut."""
    settings = run.config.train
    return TwoPasses(
        "SimCut",
        PairFactors(1.0, 0.0, settings.simcut_weight, 0.0),
        build_likelihood(run, machine),
        settings.simcut_share,
        settings.single_pass_steps,
    )


def build_rdrop(run: Run, machine: MachineSettings) -> TwoPasses:
    """Build R-Drop."""
    settings = run.config.train
    quarter = settings.rdrop_weight / 4  # half of the paper's loss, see `two_passes`
    return TwoPasses(
        "R-Drop",
        PairFactors(0.5, 0.5, quarter, quarter),
        build_likelihood(run, machine),
        single_pass_steps=settings.single_pass_steps,
    )


def build_reward(run: Run, machine: MachineSettings) -> ExpectedReward:
    """Build the expected reward of samples."""
    settings = run.config.train
    return ExpectedReward(
        candidates=settings.samples, seed=settings.seed, **_over_candidates(run, machine)
    )


def build_risk(run: Run, machine: MachineSettings) -> MinimumRisk:
    """Build the risk over n-best lists."""
    settings = run.config.train
    wide = SearchOptions(beam=settings.n_best, n_best=settings.n_best)
    return MinimumRisk(
        candidates=settings.n_best,
        search=wide.over(run.config.search),
        sharpness=settings.risk_sharpness,
        with_reference=settings.risk_reference,
        **_over_candidates(run, machine),
    )


def _over_candidates(run: Run, machine: MachineSettings) -> dict[str, Any]:
    """Collect the shared parameters of objectives over the model's own translations."""
    settings = run.config.train
    metric = reward_metric(settings.reward_metric, run.config.data.target_language)
    return {
        "judge": Judge(run.tokenizer.decode, metric),
        "likelihood_weight": settings.likelihood_weight,
        "limit": SearchOptions().over(run.config.search).limit,
        "allowed": run.allowed,
        "micro_batch_tokens": machine.micro_batch_tokens,
    }
