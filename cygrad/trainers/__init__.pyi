# Written by tools/make_stubs.py; do not edit.

from cygrad.trainers.loss_scaling import DynamicLossScalingUpdater as DynamicLossScalingUpdater
from cygrad.trainers.evaluator import Evaluator as Evaluator
from cygrad.trainers.history import History as History
from cygrad.trainers.naive import NaiveClassificationTrainer as NaiveClassificationTrainer
from cygrad.trainers.naive import NaiveRegressionTrainer as NaiveRegressionTrainer
from cygrad.trainers.trainer import Trainer as Trainer
from cygrad.trainers.updater import Updater as Updater
__all__ = ['DynamicLossScalingUpdater', 'Evaluator', 'History', 'NaiveClassificationTrainer', 'NaiveRegressionTrainer', 'Trainer', 'Updater']
