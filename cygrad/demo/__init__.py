"""The demo: a network that learns handwritten digits, and where its bytes are. `python -m cygrad demo` starts it."""
