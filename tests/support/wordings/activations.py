"""The wording of errors: activations."""

import cygrad as cg

CASES = [
    (lambda: cg.leaky_relu(cg.zeros(2), "a"), TypeError,
     "leaky_relu: negative_slope must be a Python number, got 'a'"),
    (lambda: cg.prelu(cg.zeros((2, 3, 4)), cg.zeros(2)), ValueError,
     "prelu: x is (2, 3, 4) and weight is (2,); wanted one weight, or one for each channel of x, which is axis 1"),
    (lambda: cg.prelu(cg.zeros(3), cg.zeros(3)), ValueError,
     "prelu: x is (3,) and weight is (3,); wanted one weight, or one for each channel of x, which is axis 1"),
    (lambda: cg.prelu(cg.zeros((3, 1)), cg.zeros((3, 1))), ValueError,
     "prelu: x is (3, 1) and weight is (3, 1); wanted one weight, or one for each channel of x, which is axis 1"),
    (lambda: cg.threshold(cg.zeros(2), True, 1.0), TypeError,
     "threshold: threshold must be a Python number, got True"),
    (lambda: cg.threshold(cg.zeros(2), 0.5, None), TypeError,
     "threshold: value must be a Python number, got None"),
    (lambda: cg.hardtanh(cg.zeros(2), cg.zeros(2)), TypeError,
     "hardtanh: min_val must be a Python number, got <*>"),
    (lambda: cg.hardtanh(cg.zeros(2), 2.0, 1.0), ValueError,
     "hardtanh: min_val is 2.0 and max_val is 1.0; min_val must not be larger"),
    (lambda: cg.elu(cg.zeros(2), "1"), TypeError,
     "elu: alpha must be a Python number, got '1'"),
    (lambda: cg.celu(cg.zeros(2), 0), ValueError,
     "celu: alpha must not be 0, because x is divided by it"),
    (lambda: cg.glu(cg.zeros((2, 3))), ValueError,
     "glu: x is (2, 3), so axis 1 has size 3; it is cut in halves and must have an even size"),
    (lambda: cg.glu(cg.zeros(2), 1), IndexError,
     "axis 1 is out of range for a tensor of 1 dimensions"),
]
