"""Training loops: the updaters, which run the passes, the reduction over processes and the solver of one update; the
Evaluator; and the Trainer, which runs epochs of both, with checkpoints and a history."""

from cygrad.trainers.evaluator import Evaluator
from cygrad.trainers.history import History
from cygrad.trainers.loss_scaling import DynamicLossScalingUpdater
from cygrad.trainers.naive import NaiveClassificationTrainer, NaiveRegressionTrainer
from cygrad.trainers.trainer import Trainer
from cygrad.trainers.updater import Updater

__all__ = [
    "DynamicLossScalingUpdater", "Evaluator", "History", "NaiveClassificationTrainer", "NaiveRegressionTrainer",
    "Trainer", "Updater",
]


def __dir__(): return __all__
