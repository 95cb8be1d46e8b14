"""Training loops: the updaters, which run the passes, the reduction over processes and the solver of one update."""

from cygrad.trainers.loss_scaling import DynamicLossScalingUpdater
from cygrad.trainers.updater import Updater

__all__ = ["DynamicLossScalingUpdater", "Updater"]
