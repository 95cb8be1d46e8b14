"""Kernels. Convolution, pooling and resizing, over one to three dimensions."""
