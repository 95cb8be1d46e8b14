"""What the formats share: arrays as streams of bytes, and the end of messages."""

import numpy as np

PIECE = 1 << 20             # bytes that one step reads or copies: the only memory beside the tensors
AGAIN = "the file is damaged, or was made to look like what it is not; get it again from its source"


def bytes_of(array):
    """The memory of a contiguous array, as bytes."""
    return memoryview(array.reshape(-1).view(np.uint8))


def pieces(array):
    """The elements of an array in row-major order, as contiguous pieces: the array itself if it is contiguous, else
    copies of at most PIECE bytes, in one buffer. A bool is written as 0 or 1, whatever its byte is."""
    if array.flags.c_contiguous and array.dtype != bool:
        yield bytes_of(array)
        return
    steps = np.nditer(array, ["external_loop", "buffered", "zerosize_ok"], [["readonly", "contig"]], order="C",
                      buffersize=PIECE // array.itemsize)
    for piece in steps: yield bytes_of(piece.view(np.uint8) != 0 if array.dtype == bool else piece)
