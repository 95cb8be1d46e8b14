"""Sample calls and NumPy references of ops/rules. A reference returns the new parameter and the new states."""

import numpy as np

import cygrad as cg

from . import Sampled
from .makers import call, positive, real


def root(x):
    return np.sqrt(np.maximum(x, 0))


def means(g, m, v, beta1, beta2):
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


def correction(beta1, beta2, t):
    return (1 - beta2**t) ** 0.5 / (1 - beta1**t)


def sgd(w, g, lr, t, weight_decay=0.0):
    return [w - lr * (g + weight_decay * w)]


def sgdw(w, g, lr, t, v, momentum=0.9, wd=1e-4, first_lr=1e-3):
    v = momentum * v + lr * g
    return [w - v - lr / first_lr * wd * w, v]


def momentum(w, g, lr, t, v, momentum=0.9, weight_decay=0.0):
    v = momentum * v + lr * (g + weight_decay * w)
    return [w - v, v]


def nesterov(w, g, lr, t, v, momentum=0.9, weight_decay=0.0):
    new = momentum * v - lr * (g + weight_decay * w)
    return [w - momentum * v + (1 + momentum) * new, new]


def lars(w, g, lr, t, v, momentum=0.9, coefficient=0.001, eps=1e-6, wd=0.0):
    of_w, of_g = float(np.linalg.norm(w.astype("float64"))), float(np.linalg.norm(g.astype("float64")))
    divisor = of_g + wd * of_w
    if divisor < eps: divisor += eps
    v = momentum * v + (lr if of_w < eps else lr * coefficient * of_w / divisor) * (g + wd * w)
    return [w - v, v]


def adagrad(w, g, lr, t, v, eps=1e-8, weight_decay=0.0):
    g = g + weight_decay * w
    v = v + g * g
    return [w - lr * g / (root(v) + eps), v]


def ftrl(w, g, lr, t, z, v, lamda1=0.01, beta=1.0, wd=0.0):
    """The published form, with two divisions by the learning rate."""
    z = z + g - (np.sqrt(v + g * g) - root(v)) / lr * w
    v = v + g * g
    return [(abs(z) > lamda1) * (np.sign(z) * lamda1 - z) / ((beta + np.sqrt(v)) / lr + wd), z, v]


def adadelta(w, g, lr, t, v, u, decay=0.95, eps=1e-6, weight_decay=0.0):
    g = g + weight_decay * w
    v = decay * v + (1 - decay) * g * g
    step = root((u + eps) / (v + eps)) * g
    return [w - lr * step, v, decay * u + (1 - decay) * step * step]


def rmsprop(w, g, lr, t, v, decay=0.9, eps=1e-8, weight_decay=0.0):
    g = g + weight_decay * w
    v = decay * v + (1 - decay) * g * g
    return [w - lr * g / (root(v) + eps), v]


def rmsprop_graves(w, g, lr, t, v, m, d, decay=0.95, momentum=0.9, eps=1e-4, weight_decay=0.0):
    g = g + weight_decay * w
    v, m = decay * v + (1 - decay) * g * g, decay * m + (1 - decay) * g
    d = momentum * d - lr * g / np.sqrt(v - m * m + eps)
    return [w + d, v, m, d]


def adam(w, g, lr, t, m, v, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = means(g + weight_decay * w, m, v, beta1, beta2)
    return [w - lr * correction(beta1, beta2, t) * m / (root(v) + eps), m, v]


def adamw(w, g, lr, t, m, v, beta1=0.9, beta2=0.999, eps=1e-8, wd=1e-4, first_lr=1e-3):
    new, m, v = adam(w, g, lr, t, m, v, beta1, beta2, eps)
    return [new - lr / first_lr * wd * w, m, v]


def adamax(w, g, lr, t, m, u, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    g = g + weight_decay * w
    m, u = beta1 * m + (1 - beta1) * g, np.maximum(beta2 * u, abs(g))
    return [w - lr / (1 - beta1**t) * m / (u + eps), m, u]


def amsgrad(w, g, lr, t, m, v, v_max, beta1=0.9, beta2=0.999, eps=1e-8, bias_correction=False, weight_decay=0.0):
    m, v = means(g + weight_decay * w, m, v, beta1, beta2)
    v_max = np.maximum(v_max, v)
    rate = lr * correction(beta1, beta2, t) if bias_correction else lr
    return [w - rate * m / (root(v_max) + eps), m, v, v_max]


def clipped(rate, v, eps, final_lr, gamma, t):
    return np.clip(rate / (root(v) + eps), final_lr - final_lr / (gamma * t + 1), final_lr + final_lr / (gamma * t))


def adabound(w, g, lr, t, m, v, beta1=0.9, beta2=0.999, eps=1e-8, final_lr=0.1, gamma=0.001, first_lr=1e-3,
             weight_decay=0.0):
    m, v = means(g + weight_decay * w, m, v, beta1, beta2)
    rate = clipped(lr * correction(beta1, beta2, t), v, eps, final_lr * lr / first_lr, gamma, t)
    return [w - rate * m, m, v]


def amsbound(w, g, lr, t, m, v, v_max, beta1=0.9, beta2=0.999, eps=1e-8, final_lr=0.1, gamma=0.001,
             bias_correction=False, first_lr=1e-3, weight_decay=0.0):
    m, v = means(g + weight_decay * w, m, v, beta1, beta2)
    v_max = np.maximum(v_max, v)
    rate = lr * correction(beta1, beta2, t) if bias_correction else lr
    return [w - clipped(rate, v_max, eps, final_lr * lr / first_lr, gamma, t) * m, m, v, v_max]


def adabelief_step(w, lr, t, m, v, beta1, beta2, eps, wd, fixed_decay, rectify):
    """The new w, for the new m and v."""
    step = lr / (1 - beta1**t) * m / (np.sqrt(v / (1 - beta2**t)) + eps)
    if rectify:
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * t * beta2**t / (1 - beta2**t)
        if length > 4:
            step = step * ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
        else:
            step = lr * m
    return w - (wd if fixed_decay else wd * lr) * w - step


def adabelief(w, g, lr, t, m, v, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.0, fixed_decay=False, rectify=False,
              weight_decay=0.0):
    g = g + weight_decay * w
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * (g - m) ** 2 + eps
    return [adabelief_step(w, lr, t, m, v, beta1, beta2, eps, wd, fixed_decay, rectify), m, v]


def adabelief_max(w, g, lr, t, m, v, v_max, beta1=0.9, beta2=0.999, eps=1e-8, wd=0.0, fixed_decay=False, rectify=False,
                  weight_decay=0.0):
    g = g + weight_decay * w
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * (g - m) ** 2
    v_max = np.maximum(v_max, v) + eps
    return [adabelief_step(w, lr, t, m, v_max, beta1, beta2, eps, wd, fixed_decay, rectify), m, v, v_max]


def lamb(w, g, lr, t, m, v, beta1=0.9, beta2=0.999, eps=1e-6, gamma_l=0.0, gamma_u=10.0, bias_correction=False, wd=0.0):
    m, v = means(g, m, v, beta1, beta2)
    of_m, of_v = (1 - beta1**t, 1 - beta2**t) if bias_correction else (1, 1)
    r = m / of_m / (root(v / of_v) + eps) + wd * w
    of_w, of_r = float(np.linalg.norm(w.astype("float64"))), float(np.linalg.norm(r.astype("float64")))
    return [w - lr * (min(max(of_w, gamma_l), gamma_u) / of_r if of_r > eps else 1) * r, m, v]


def lion(w, g, lr, t, m, beta1=0.9, beta2=0.99, wd=0.0):
    return [w - lr * (np.sign(beta1 * m + (1 - beta1) * g) + wd * w), beta2 * m + (1 - beta2) * g]


REFERENCES = {f.__name__ + "_update": f for f in (
    sgd, sgdw, momentum, nesterov, lars, adagrad, ftrl, adadelta, rmsprop, rmsprop_graves, adam, adamw, adamax, amsgrad,
    adabound, amsbound, adabelief, adabelief_max, lamb, lion,
)}
STATES = {"sgd": 0, "sgdw": 1, "momentum": 1, "nesterov": 1, "lars": 1, "adagrad": 1, "rmsprop": 1, "lion": 1,
          "rmsprop_graves": 3, "amsgrad": 3, "amsbound": 3, "adabelief_max": 3}
SETTINGS = {                                        # of the second and third sample
    "sgd": [dict(weight_decay=0.5)], "sgdw": [dict(momentum=0.5, wd=0.25, first_lr=0.2)],
    "momentum": [dict(momentum=0.5, weight_decay=0.5)], "nesterov": [dict(momentum=0.5, weight_decay=0.5)],
    "lars": [dict(momentum=0.5, coefficient=0.5, wd=0.25), dict(eps=100.0)],
    "adagrad": [dict(eps=0.5, weight_decay=0.5)],
    "ftrl": [dict(lamda1=5.0, beta=0.5, wd=0.25), dict(lamda1=0.0, beta=0.0)],
    "adadelta": [dict(decay=0.5, eps=0.1, weight_decay=0.5)], "rmsprop": [dict(decay=0.5, eps=0.5, weight_decay=0.5)],
    "rmsprop_graves": [dict(decay=0.5, momentum=0.5, eps=5.0, weight_decay=0.5)],
    "adam": [dict(beta1=0.5, beta2=0.75, eps=0.5, weight_decay=0.5)],
    "adamw": [dict(beta1=0.5, beta2=0.75, eps=0.5, wd=0.25, first_lr=0.2)],
    "adamax": [dict(beta1=0.5, beta2=0.75, eps=0.5, weight_decay=0.5)],
    "amsgrad": [dict(beta1=0.5, beta2=0.75, eps=0.5, bias_correction=True, weight_decay=0.5)],
    "adabound": [dict(eps=0.5, final_lr=0.01, gamma=0.5, weight_decay=0.5), dict(final_lr=10.0, gamma=2.0)],
    "amsbound": [dict(eps=0.5, final_lr=0.01, gamma=0.5, bias_correction=True, weight_decay=0.5), dict(gamma=2.0)],
    "adabelief": [dict(eps=0.5, wd=0.25, rectify=True, weight_decay=0.5),
                  dict(beta2=0.75, wd=0.25, fixed_decay=True, rectify=True)],
    "adabelief_max": [dict(eps=0.5, wd=0.25, rectify=True), dict(beta2=0.75, wd=0.25, fixed_decay=True, rectify=True)],
    "lamb": [dict(beta1=0.5, beta2=0.75, gamma_l=0.5, gamma_u=0.75, bias_correction=True, wd=0.25), dict(eps=100.0)],
    "lion": [dict(beta1=0.5, beta2=0.75, wd=0.25)],
}


def samples(name):
    """Calls with 2 and 3 dimensions, of other settings, of size 1 and of size 0."""
    def inputs(*shape, t=1):
        states = [positive(*shape, seed=2 + k) for k in range(STATES.get(name, 2))]
        if name == "rmsprop_graves": states[0] += 9                     # v is at least m^2
        return [real(*shape), real(*shape, seed=1), np.array(0.1), np.array(t), *states]

    return [call(*inputs(2, 3)), *(call(*inputs(3, 2, 3, t=7), **settings) for settings in SETTINGS[name]),
            call(*inputs()), call(*inputs(0, 3), **SETTINGS[name][0])]


def all_outputs(like):
    """A reference whose outputs are joined."""
    def joined(w, g, lr, t, *states, **settings):
        ys = like(w, g, float(lr), int(t), *states, **settings)
        return np.concatenate([y.reshape(-1) for y in ys]).astype(w.dtype)
    joined.__name__ = like.__name__                 # for the operator page
    return joined


def all_tested(name):
    """A rule whose outputs are joined."""
    def joined(*args, **settings):
        ys = cg.ops.ROWS[name].function(*args, **settings)
        return cg.concat([y.reshape(-1) for y in (ys if isinstance(ys, tuple) else (ys,))])
    return joined


SAMPLES = [Sampled(name, all_outputs(like), lambda name=name: samples(name.removesuffix("_update")),
                   tested=all_tested(name)) for name, like in REFERENCES.items()]
