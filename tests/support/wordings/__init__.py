"""The wordings of all errors, in a file for each subject: CASES, a list of (function that raises, exception, message).

<*> in a message stands for any text. Programs with more than one line are in wrong.py."""

import importlib
import pkgutil

CASES = []
for found in pkgutil.iter_modules(__path__, "wordings."):
    CASES += importlib.import_module(found.name).CASES
