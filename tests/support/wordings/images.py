"""The wording of errors: convolutions and pooling."""

import cygrad as cg

CASES = [
    (lambda: cg.conv2d(cg.zeros((2, 3)), cg.zeros((4, 3, 3, 3))), ValueError,
     "conv2d: x is (2, 3); wanted (n, channels, height, width), or the same without n"),
    (lambda: cg.conv1d(cg.zeros((2, 3, 5)), cg.zeros((4, 3))), ValueError,
     "conv1d: weight is (4, 3); wanted (outputs, channels / groups, width of the kernel), none of them 0"),
    (lambda: cg.conv2d(cg.zeros((2, 3, 5, 5)), cg.zeros((4, 2, 3, 3))), ValueError,
     "conv2d: x is (2, 3, 5, 5), weight (4, 2, 3, 3) and groups 1; x must have 2 * 1 channels, and 1 must divide the 4 "
     "outputs"),
    (lambda: cg.conv2d(cg.zeros((2, 3, 5, 5)), cg.zeros((4, 3, 3, 3)), cg.zeros(3)), ValueError,
     "conv2d: bias is (3,); wanted (4,), a number for each channel of the result"),
    (lambda: cg.conv2d(cg.zeros((2, 3, 5, 5)), cg.zeros((4, 3, 7, 3)), padding=(0, 1)), ValueError,
     "conv2d: x is (2, 3, 5, 5) and weight (4, 3, 7, 3); the kernel must fit into x with its padding [0, 2] in total; "
     "it covers [7, 3]"),
    (lambda: cg.conv1d(cg.zeros((2, 3, 5)), cg.zeros((4, 3, 3)), stride=2, padding="same"), ValueError,
     "conv1d: padding 'same' needs stride 1, got 2"),
    (lambda: cg.conv1d(cg.zeros((2, 3, 5)), cg.zeros((4, 3, 3)), padding="full"), ValueError,
     "conv1d: padding must be 'same', 'valid' or integers, got 'full'"),
    (lambda: cg.conv1d(cg.zeros((2, 3, 5)), cg.zeros((4, 3, 3)), stride=(1, 2)), ValueError,
     "conv1d: stride is (1, 2); wanted an integer, or a tuple of 1"),
    (lambda: cg.conv1d(cg.zeros((2, 3, 5)), cg.zeros((4, 3, 3)), stride=1.0), TypeError,
     "conv1d: stride must be an integer or a tuple of integers, got 1.0"),
    (lambda: cg.conv1d(cg.zeros((2, 3, 5)), cg.zeros((4, 3, 3)), dilation=0), ValueError,
     "conv1d: dilation is 0; wanted numbers of at least 1 that fit into 32 bits"),
    (lambda: cg.conv1d(cg.zeros((2, 3, 5)), cg.zeros((4, 3, 3)), activation="gelu"), ValueError,
     "conv1d: activation must be 'relu', 'tanh', 'sigmoid' or None, got 'gelu'"),
    (lambda: cg.conv1d(cg.zeros((2, 3, 5), dtype="int64"), cg.zeros((4, 3, 3), dtype="int64")), TypeError,
     "conv1d takes only floating-point tensors; cast x and weight with astype"),
    (lambda: cg.conv_transpose1d(cg.zeros((2, 3, 5)), cg.zeros((4, 3, 3))), ValueError,
     "conv_transpose1d: x is (2, 3, 5), weight (4, 3, 3) and groups 1; x must have 4 channels, and 1 must divide them"),
    (lambda: cg.conv_transpose1d(cg.zeros((2, 3, 5)), cg.zeros((3, 4, 3)), output_padding=1), ValueError,
     "conv_transpose1d: output_padding is 1; it must be below the stride or the dilation, 1 and 1"),
    (lambda: cg.conv_transpose1d(cg.zeros((2, 3, 1)), cg.zeros((3, 4, 3)), padding=2), ValueError,
     "conv_transpose1d: x is (2, 3, 1) and weight (3, 4, 3); with padding 2 the result would have size (-1,); wanted "
     "sizes of at least 1"),
]
