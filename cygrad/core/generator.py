"""The class that generators pickled by version 0.1 name. New pickles name core/pickling.py."""

from cygrad.core.execute.generator import Generator

__all__ = ["Generator"]
