# Written by tools/make_stubs.py; do not edit.

from cygrad.trainers.loss_scaling import DynamicLossScalingUpdater as DynamicLossScalingUpdater
from cygrad.trainers.updater import Updater as Updater
__all__ = ['DynamicLossScalingUpdater', 'Updater']
