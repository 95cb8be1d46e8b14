"""How many digits are right? (chapter 2)

A model gives each image ten scores, one for each digit. Its answer is the digit with the largest score. Write
`accuracy(scores, labels)`: the share of images whose answer is their label, as a float from 0 to 1. `scores` is a
tensor (images, 10), `labels` a tensor of integers (images,).
"""

import cygrad as cg


def accuracy(scores, labels):
    return (scores.argmax(1) == labels).astype("float32").mean().item()
