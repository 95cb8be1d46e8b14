"""cygrad.graph, the public name of cygrad.nets."""

import sys

from cygrad import nets

sys.modules[__name__] = nets
