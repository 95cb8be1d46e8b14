"""What is saved? (chapter 12)

Predict how many bytes the graph saves for each of these functions. x is a tensor of 1,000 float32 numbers that is no
variable but the result of a recorded operation which saves nothing (`x = w * 1.0` of a variable w), and the program
keeps no name for intermediate results. Write the number of bytes behind each name. The check runs the functions and
compares.
"""

import cygrad as cg

FUNCTIONS = {
    "sum": lambda x: x.sum(),
    "exp": lambda x: cg.exp(x).sum(),
    "square": lambda x: cg.square(x).sum(),
    "exp of exp": lambda x: cg.exp(cg.exp(x)).sum(),
    "exp plus 1": lambda x: (cg.exp(x) + 1.0).sum(),
    "relu": lambda x: cg.relu(x).sum(),
    "tanh of relu": lambda x: cg.tanh(cg.relu(x)).sum(),
}

PREDICTIONS = {
    "sum": None,
    "exp": None,
    "square": None,
    "exp of exp": None,
    "exp plus 1": None,
    "relu": None,
    "tanh of relu": None,
}
