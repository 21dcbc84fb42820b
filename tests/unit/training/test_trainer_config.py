from dataclasses import fields

from heedful.config.load import load_config
from heedful.training.schedule import Schedule
from heedful.training.trainer_config import TrainerConfig


def test_settings_of_the_trainer_are_those_of_the_recipe() -> None:
    settings = {
        "train.minutes": 3.0,
        "train.clip_norm": 0.5,
        "train.checkpoint_steps": 7,
        "train.checkpoint_minutes": 2.0,
        "train.validate_steps": 11,
        "train.patience": 4,
        "train.smoothing_target": "others",
        "train.best_by": "loss",
    }
    config = load_config("tiny", settings)
    found = TrainerConfig.of(config, schedule_steps=5)
    of_others = {"schedule": Schedule.of(config, earlier_steps=5)}
    for name in (field.name for field in fields(TrainerConfig)):
        assert getattr(found, name) == of_others.get(name, getattr(config.train, name, None)), name
