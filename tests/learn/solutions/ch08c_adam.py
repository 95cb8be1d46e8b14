"""The beginning of Adam (chapter 8).

Write `adam(gradients, lr, beta1, beta2)`: how far a weight of 0 is after steps with these gradients, a list of floats.
m and v are running means of g and of g², and both begin at 0:

    m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g²

After t steps both are too small, m by the factor 1 - beta1^t and v by the factor 1 - beta2^t. Divide both by theirs
before you use them: w = w - lr m / √v. (There is no eps here. No gradient is 0.)
"""


def adam(gradients, lr, beta1, beta2):
    w = m = v = 0.0
    for t, g in enumerate(gradients, 1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        w -= lr * (m / (1 - beta1 ** t)) / (v / (1 - beta2 ** t)) ** 0.5
    return w
