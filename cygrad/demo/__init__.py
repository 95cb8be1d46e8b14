"""The demo trains a network on handwritten digits and shows its memory. `python -m cygrad demo` runs it."""
