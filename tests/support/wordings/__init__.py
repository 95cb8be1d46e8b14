"""The wordings of all errors, in a file for each subject: CASES, a list of (what raises, the error, what it says).

<*> in a wording stands for any text. Programs of more than a line are in wrong.py."""

import importlib
import pkgutil

CASES = []
for found in pkgutil.iter_modules(__path__, "wordings."):
    CASES += importlib.import_module(found.name).CASES
