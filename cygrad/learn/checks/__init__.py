"""The checks: chNN.py has a function for each exercise of chapter NN, with the name of the exercise."""
