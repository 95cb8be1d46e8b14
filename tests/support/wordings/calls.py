"""The wording of errors: operator calls as data, and the parts of rows that nets write."""

import numpy as np

import cygrad as cg
from cygrad.core.graph.attributes import plain
from cygrad.ops import ROWS
from cygrad.ops.calls import arguments_of, call, decode


def run(name, *args, **kwargs):
    """A case: the function of a row. Arguments that are functions make tensors."""
    return lambda: ROWS[name].function(*[a() if callable(a) else a for a in args], **kwargs)


def zeros(*shape, dtype="float32"):
    return lambda: cg.tensor(np.zeros(shape, dtype))


def indices(values):
    return lambda: cg.tensor(values)


X, BYTES = zeros(3, 4), zeros(2, dtype="uint8")
PACKED = indices([3, 1, 0, 7])                          # one sample: 3 steps, a target of 1 label, which is 7

CASES = [
    # ---- calls
    (lambda: call(3, [], {}), TypeError, "call: the type must be a string, got 3"),
    (lambda: call("sine", [X()], {}), ValueError,
     "call: there is no operator 'sine'; the types are the names of the table of operators"),
    (lambda: call("relu", X(), {}), TypeError, "relu: the inputs must be a list, got a float32 tensor of shape (3, 4)"),
    (lambda: call("relu", [X()], [1]), TypeError, "relu: the arguments must be a dict, got [1]"),
    (lambda: call("matmul", [X()], {}), ValueError, "matmul: got 1 input; wanted x, y"),
    (lambda: call("linear", [X()] * 4, {}), ValueError, "linear: got 4 inputs; wanted x, w, b (optional)"),
    (lambda: call("lstm", [X(), X()], {}), ValueError, "lstm: got 2 inputs; wanted x, any number of weights, h0 "
     "(optional), c0 (optional), lengths (optional)"),
    (lambda: call("relu", [[1.0]], {}), TypeError, "relu: x must be a tensor or a Python number, got [1.0]"),
    (lambda: call("linear", [X(), None], {}), TypeError, "linear: w must be a tensor or a Python number, got None"),
    (lambda: call("sum", [X()], {"axes": 1}), TypeError,
     "sum: there is no argument 'axes'; the arguments are axis, keepdims"),
    (lambda: call("relu", [X()], {"x": 1}), TypeError, "relu: there is no argument 'x'; it has none"),
    (lambda: call("one_hot", [X()], {}), TypeError, "one_hot: the argument 'classes' is missing"),
    (lambda: plain(object()), TypeError,
     "an argument of an operation must be a number, a string, None, ..., a slice, a dtype or a tuple of these, got a "
     "value of type object"),
    (lambda: plain((((((((((((),),),),),),),),),),)), ValueError,
     "an argument of an operation is a tuple of more than 8 levels; wanted a flat one"),
    (lambda: arguments_of(type(ROWS["exp"].operator)(), None, 1), ValueError,
     "arguments_of: the operator exp is not in the table of operators, so no net can name it"),
    (lambda: decode([1]), ValueError,
     "decode: the arguments must be a JSON object whose names are identifiers, got a list of 1 values"),
    (lambda: decode({"axis": {"slice": []}}), ValueError,
     "decode: the argument 'axis' is a dict of 1 values; wanted null, true, false, a number, a string, a list of these "
     "of at most 8 levels, or an object that encode() makes"),

    # ---- indices and windows
    (run("put_slice", X, (5, 4), ((1, 1, 2), (0, 1, 4))), ValueError,
     "put_slice: x is (3, 4), but the index selects (2, 4)"),
    (run("put_slice", X, (5, 4), 3), TypeError, "put_slice: the index must be a tuple of entries, got 3"),
    (run("put_slice", X, (5, 4), ("ab", 1)), TypeError,
     "put_slice: an entry of the index must be an int, (start, step, count) or None, got 'ab'"),
    (run("put_slice", X, (5, 4), ((3, 1, 3), (0, 1, 4))), IndexError,
     "put_slice: entry (3, 1, 3) of the index does not fit dimension 0 of the shape (5, 4)"),
    (run("assign", X, zeros(4, dtype="int32"), (1,)), ValueError,
     "assign: v is int32 of shape (4,); wanted float32 of shape (4,), as x[index]"),
    (run("put", X, X, indices([[0]]), 3), TypeError,
     "put: attributes must be (entries of Slices, order, axis), got 3"),
    (run("put", X, X, indices([[0]]), (((0, 1, 3),), None, 0)), IndexError,
     "put: 1 index arrays from axis 0 on and an index of 1 dimensions do not fit x of shape (3, 4)"),
    (run("put", X, X, indices([[0]]), (((0, 1, 3), (0, 1, 4)), None, 0)), ValueError,
     "put: v is float32 of shape (3, 4); wanted float32 of shape (1, 4), which the index selects"),
    (run("add_at", X, 0, zeros(1, 4, dtype="int8"), indices([0])), TypeError,
     "add_at: x is float32 and v is int8; they must have the same dtype; convert with astype"),
    (run("kept_mask", BYTES, (3, 8)), ValueError,
     "kept_mask: x is uint8 of shape (2,), for a mask of 24 elements; wanted a byte for 8 of them in uint8, or indices "
     "in uint16, uint32 or int64, dense"),
    (run("code_is", BYTES, 2, 1, (16,)), ValueError,
     "code_is: bits is 1 and code is 2; wanted codes of 1 or 2 bits"),
    (run("code_is", BYTES, 1, 2, (16,)), ValueError,
     "code_is: x is uint8 of shape (2,); for 2 bits for each element of shape (16,) wanted dense uint8 of shape (4,)"),
    (run("as_view", X, (-1,), (1,)), ValueError, "as_view: the shape (-1,) has a negative size"),
    (run("as_view", X, (3,), (6,)), IndexError,
     "as_view: a window of shape (3,), strides (6,) and offset 0 is not inside x of shape (3, 4)"),
    (run("put_diagonal", X, (3, 4), 0, 1, 1), ValueError,
     "put_diagonal: axis1 and axis2 are both 1; wanted two different axes"),
    (run("put_diagonal", X, (3, 4)), ValueError, "put_diagonal: x is (3, 4), but diagonal 0 of shape (3, 4) is (3,)"),

    # ---- matrices and images
    (run("contract", X, X, ("ab", "cb")), TypeError,
     "contract: labels must be three strings, for x, y and the result; got ('ab', 'cb')"),
    (run("contract", X, X, ("ab", "bc", "ac")), ValueError,
     "contract: labels ('ab', 'bc', 'ac') do not fit x of shape (3, 4) and y of shape (3, 4); wanted a label for each "
     "dimension, each in two of the three, with one size"),
    (run("spectral_gaps", zeros()), ValueError, "spectral_gaps: w has shape (); wanted (..., n)"),
    (run("conv1d_sized", zeros(1, 1, 4), zeros(1, 1, 3), 4, 1, 0, 1), ValueError,
     "conv1d_sized: tensors of shapes (1, 1, 4) and (1, 1, 3) do not give a result of size 4 with stride 1, padding 0, "
     "dilation 1 and groups 1"),
    (run("conv_weight", X, X, 1, 1, 0, 1), ValueError, "conv_weight: x is (3, 4); wanted 1 to 3 spatial dimensions"),
    (run("avg_spread", zeros(1, 1, 2), 2, 2, 0, 9), ValueError,
     "avg_spread: the tensor is (1, 1, 2); windows of kernel 2, stride 2, padding 0 and dilation 1 do not relate "
     "images of size (9,) and results of size (2,)"),
    (run("interpolate_scaled", zeros(1, 1, 2), 4, (1.5,)), ValueError,
     "interpolate_scaled: scale is (1.5,), for images of (2,) and results of (4,); wanted the number of elements "
     "before for one after, for each dimension"),
    (run("attend", zeros(2, 3), zeros(2, 4), zeros(2, 3)), ValueError,
     "attend: query is (2, 3), key (2, 4) and value (2, 3); wanted equal leading dimensions, or a multiple of the "
     "heads of key and value"),

    # ---- losses
    (run("mean_square", zeros(2, dtype="int8")), TypeError, "mean_square: the difference is int8; wanted floats"),
    (run("soft_cross_entropy", X, zeros(3, 4, dtype="int8")), ValueError,
     "cross_entropy: x is (3, 4) and the probabilities are int8 of shape (3, 4); wanted floats of the shape of x"),
    (run("ctc_loss_packed", zeros(3, 1, 5), PACKED, longest=1), ValueError,
     "ctc_loss: a length, a start, a label or the blank is out of range for log_probs of shape (3, 1, 5) and targets "
     "of up to 1 labels"),
    (run("ctc_loss_packed", zeros(3, 2, 5), PACKED), ValueError,
     "ctc_loss: log_probs is (3, 2, 5) and packed int64 of shape (4,); wanted (steps, samples, classes), and int64 "
     "with 3 numbers for each sample and the labels"),
]
