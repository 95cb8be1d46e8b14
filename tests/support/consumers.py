"""Functions of other libraries, of NumPy arrays and of tensors. `python consumers.py LIBRARY` prints for each, as JSON,
what is wrong with the result for tensors: "" if it is made of tensors and equals that for arrays.

It is a program of its own: SciPy reads SCIPY_ARRAY_API when it is imported. docs/array-api.md lists the names."""

import json
import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np

import cygrad as cg

RNG = np.random.default_rng(0)
X, Z, W = RNG.normal(size=(20, 3)), RNG.normal(size=20), RNG.normal(size=20)
LABELS, PREDICTED = RNG.integers(0, 2, 20), RNG.integers(0, 2, 20)


def scikit_learn():
    import sklearn
    from sklearn import decomposition, discriminant_analysis, linear_model, metrics, mixture, naive_bayes, preprocessing
    from sklearn.metrics import pairwise
    sklearn.set_config(array_api_dispatch=True)

    def labels(name): return lambda a: getattr(metrics, name)(a(LABELS), a(PREDICTED))
    def numbers(name): return lambda a: getattr(metrics, name)(a(Z), a(W))
    def positive(name): return lambda a: getattr(metrics, name)(a(Z ** 2 + 1), a(W ** 2 + 1))
    def kernel(name): return lambda a: getattr(pairwise, name)(a(np.abs(X)), a(np.abs(X[::-1].copy())))
    def scores(name): return lambda a: getattr(metrics, name)(a(LABELS), a(1 / (1 + np.exp(Z))))
    def transformer(e, x=X): return lambda a: e.fit(a(x)).transform(a(x))
    def predictor(e, y=Z): return lambda a: e.fit(a(X), a(y)).predict(a(X))

    return {
        **{name: labels(name) for name in (
            "accuracy_score zero_one_loss confusion_matrix f1_score precision_score recall_score "
            "balanced_accuracy_score hamming_loss jaccard_score cohen_kappa_score "
            "multilabel_confusion_matrix").split()},
        **{name: numbers(name) for name in (
            "mean_squared_error mean_absolute_error r2_score explained_variance_score max_error median_absolute_error "
            "mean_absolute_percentage_error root_mean_squared_error mean_pinball_loss "
            "d2_absolute_error_score").split()},
        **{name: positive(name) for name in ("mean_poisson_deviance", "mean_gamma_deviance")},
        **{name: scores(name) for name in (
            "log_loss", "brier_score_loss", "roc_curve", "det_curve", "precision_recall_curve")},
        **{name: kernel(name) for name in (
            "cosine_similarity cosine_distances euclidean_distances linear_kernel polynomial_kernel rbf_kernel "
            "sigmoid_kernel laplacian_kernel manhattan_distances additive_chi2_kernel chi2_kernel "
            "paired_cosine_distances paired_euclidean_distances").split()},
        **{type(e).__name__: transformer(e) for e in (
            preprocessing.StandardScaler(), preprocessing.MinMaxScaler(), preprocessing.MaxAbsScaler(),
            preprocessing.Normalizer(), preprocessing.Binarizer(), preprocessing.PolynomialFeatures(),
            decomposition.PCA(2, svd_solver="full"))},
        "KernelCenterer": transformer(preprocessing.KernelCenterer(), X @ X.T),
        **{type(e).__name__: predictor(e) for e in (linear_model.Ridge(solver="svd"), linear_model.RidgeCV())},
        **{type(e).__name__: predictor(e, LABELS) for e in (
            discriminant_analysis.LinearDiscriminantAnalysis(), naive_bayes.GaussianNB(),
            linear_model.RidgeClassifier(solver="svd"), linear_model.LogisticRegression())},
        "GaussianMixture": lambda a: mixture.GaussianMixture(
            2, init_params="random", random_state=0).fit(a(X)).predict(a(X)),
        "LabelEncoder": lambda a: preprocessing.LabelEncoder().fit_transform(a(LABELS)),
    }


def scipy():
    from scipy import constants, differentiate, integrate, ndimage, optimize, signal, special, stats
    from scipy.cluster import hierarchy, vq
    from scipy.spatial.transform import Rotation
    return {
        **{f"special.{name}": lambda a, name=name: getattr(special, name)(a(np.abs(X) + 0.1)) for name in (
            "expit gammaln erf erfc log_ndtr ndtr i0 logit entr").split()},
        "special.logsumexp": lambda a: special.logsumexp(a(X), axis=1),
        "special.softmax": lambda a: special.softmax(a(X), axis=1),
        "special.log_softmax": lambda a: special.log_softmax(a(X), axis=1),
        **{f"stats.{name}": lambda a, name=name: getattr(stats, name)(a(np.abs(X) + 0.1)) for name in (
            "zscore skew kurtosis gmean hmean variation sem entropy kstat").split()},
        "stats.moment": lambda a: stats.moment(a(X), 2), "stats.ttest_1samp": lambda a: tuple(
            getattr(stats.ttest_1samp(a(X), 0.0), key) for key in ("statistic", "pvalue")),
        "stats.pearsonr": lambda a: stats.pearsonr(a(Z), a(W)).statistic,
        "cluster.vq.whiten": lambda a: vq.whiten(a(X)), "cluster.hierarchy.linkage": lambda a: hierarchy.linkage(a(X)),
        "constants.convert_temperature": lambda a: constants.convert_temperature(a(Z), "C", "K"),
        "integrate.trapezoid": lambda a: integrate.trapezoid(a(X), axis=0),
        "integrate.cumulative_trapezoid": lambda a: integrate.cumulative_trapezoid(a(X), axis=0),
        "integrate.tanhsinh": lambda a: integrate.tanhsinh(lambda v: v * v, a(np.zeros(1)), a(np.ones(1))).integral,
        "integrate.cubature": lambda a: integrate.cubature(
            lambda v: v[:, 0] ** 2, a(np.zeros(1)), a(np.ones(1))).estimate,
        "differentiate.derivative": lambda a: differentiate.derivative(lambda v: v * v, a(np.ones(1))).df,
        "optimize.rosen": lambda a: optimize.rosen(a(Z)), "signal.detrend": lambda a: signal.detrend(a(X), axis=0),
        "ndimage.gaussian_filter": lambda a: ndimage.gaussian_filter(a(X), 1),
        "spatial.transform.Rotation": lambda a: Rotation.from_rotvec(a(X)).as_matrix(),
    }


def array_api_compat():
    import array_api_compat as compat
    return {
        "array_namespace": lambda a: compat.array_namespace(a(X)).sum(a(X), axis=1),
        "device": lambda a: compat.device(a(X)), "size": lambda a: compat.size(a(X)),
        "to_device": lambda a: compat.to_device(a(X), "cpu"),
        "is_array_api_obj": lambda a: compat.is_array_api_obj(a(X)),
    }


def array_api_extra():
    import array_api_extra as xpx
    return {
        "apply_where": lambda a: xpx.apply_where(a(X) > 0, (a(X),), lambda v: v * 2, fill_value=0.0),
        "argpartition": lambda a: a(X) if xpx.argpartition(a(X), 2) is not None else None,
        "at": lambda a: xpx.at(a(X), 0).set(1.0, copy=True), "atleast_nd": lambda a: xpx.atleast_nd(a(X), ndim=3),
        "cov": lambda a: xpx.cov(a(X.T)), "create_diagonal": lambda a: xpx.create_diagonal(a(Z)),
        "expand_dims": lambda a: xpx.expand_dims(a(X), axis=(0, 1)), "isclose": lambda a: xpx.isclose(a(X), a(X)),
        "isin": lambda a: xpx.isin(a(LABELS), a(LABELS[:1])), "kron": lambda a: xpx.kron(a(X), a(X)),
        "nan_to_num": lambda a: xpx.nan_to_num(a(X)), "nunique": lambda a: xpx.nunique(a(LABELS)),
        "one_hot": lambda a: xpx.one_hot(a(LABELS), 2, dtype=a(X).dtype), "pad": lambda a: xpx.pad(a(X), 1),
        "partition": lambda a: a(X) if xpx.partition(a(X), 2) is not None else None,
        "setdiff1d": lambda a: xpx.setdiff1d(a(LABELS), a(LABELS[:1])), "sinc": lambda a: xpx.sinc(a(X)),
        "union1d": lambda a: xpx.union1d(a(LABELS), a(PREDICTED)),
    }


def einops():
    import einops
    import einops.array_api

    import cygrad.array_api.einops  # noqa: F401
    return {
        "rearrange": lambda a: einops.rearrange(a(X), "(a b) c -> b (c a)", b=4),
        "reduce": lambda a: tuple(einops.reduce(a(X), "a b -> b", f) for f in ("sum", "mean", "max", "min", "prod")),
        "repeat": lambda a: einops.repeat(a(X), "a b -> a c b", c=2), "einsum": lambda a: einops.einsum(
            a(X), a(X), "a b, a c -> b c"), "pack": lambda a: einops.pack([a(X), a(Z)], "a *")[0],
        "unpack": lambda a: tuple(einops.unpack(a(X), [(1,), (2,)], "a *")),
        "array_api": lambda a: (einops.array_api.rearrange(a(X), "a b -> b a"), einops.array_api.reduce(
            a(X), "a b -> a", "mean"), einops.array_api.repeat(a(X), "a b -> a b c", c=2)),
    }


def opt_einsum():
    import opt_einsum
    return {"contract": lambda a: opt_einsum.contract("ab,ac,cd->bd", a(X), a(X), a(X[:3])),
            "contract_expression": lambda a: opt_einsum.contract_expression("ab,ac->bc", X.shape, X.shape)(a(X), a(X))}


LIBRARIES = {f.__name__.replace("_", "-"): f for f in (
    scikit_learn, scipy, array_api_compat, array_api_extra, einops)} | {"opt_einsum": opt_einsum}


def parts(value):
    return [v for part in value for v in parts(part)] if isinstance(value, (tuple, list)) else [value]


def complaint(name, f):
    """What is wrong with the results of f, or ""."""
    try:
        wanted, found = parts(f(np.asarray)), parts(f(lambda a: cg.tensor(a)))
        if len(found) != len(wanted): return f"{len(found)} results instead of {len(wanted)}"
        for y, w in zip(found, wanted, strict=True):
            if isinstance(w, np.ndarray) and not isinstance(y, cg.Tensor): return f"the result is a {type(y).__name__}"
            if isinstance(w, str): assert y == w
            else: np.testing.assert_allclose(np.asarray(y), w, 1e-6, 1e-7)     # (equal rows: 1e-8 apart)
    except Exception as e: return f"{type(e).__name__}: {e}"[:300]
    return ""


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({name: complaint(name, f) for name, f in LIBRARIES[sys.argv[1]]().items()}))
