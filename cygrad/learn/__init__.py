"""Exercises of the walkthrough as files, and checks that explain what is wrong. `python -m cygrad learn` runs them."""
