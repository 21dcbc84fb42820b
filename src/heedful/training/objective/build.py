"""The objective that a run's settings name."""

from heedful.config.train import TrainConfig
from heedful.evaluation.reward_metrics import reward_metric
from heedful.runs.machine_settings import MachineSettings
from heedful.runs.run import Run
from heedful.search.settings import SearchOptions
from heedful.training.objective.candidates import CandidateObjective, Judge
from heedful.training.objective.likelihood import Likelihood
from heedful.training.objective.reward import ExpectedReward
from heedful.training.objective.risk import MinimumRisk


def build_objective(run: Run, machine: MachineSettings) -> Likelihood | CandidateObjective:
    """Build the objective of `train.objective`."""
    settings = run.config.train
    if settings.objective == "likelihood":
        return Likelihood(settings.label_smoothing, settings.smoothing_target)
    return _over_candidates(run, settings, machine.micro_batch_tokens)


def _over_candidates(
    run: Run, settings: TrainConfig, micro_batch_tokens: int
) -> CandidateObjective:
    """Build the objective over the model's own translations."""
    metric = reward_metric(settings.reward_metric, run.config.data.target_language)
    judge, weight = Judge(run.tokenizer.decode, metric), settings.likelihood_weight
    search = SearchOptions().over(run.config.search)
    if settings.objective == "reward":
        return ExpectedReward(
            judge=judge,
            candidates=settings.samples,
            likelihood_weight=weight,
            limit=search.limit,
            allowed=run.allowed,
            micro_batch_tokens=micro_batch_tokens,
            seed=settings.seed,
        )
    wide = SearchOptions(beam=settings.n_best, n_best=settings.n_best)
    return MinimumRisk(
        judge=judge,
        candidates=settings.n_best,
        likelihood_weight=weight,
        limit=search.limit,
        allowed=run.allowed,
        micro_batch_tokens=micro_batch_tokens,
        search=wide.over(run.config.search),
        sharpness=settings.risk_sharpness,
        with_reference=settings.risk_reference,
    )
