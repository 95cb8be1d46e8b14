"""The exercises as the reader gets them: chNNx_name.py is exercise x of chapter NN. Its docstring is the task."""
