"""Figures of scikit-learn.

    python metric_reference.py [--dir metric/testdata]

sklearn.json: classification (labels, predictions → averages and figures of each class, with zero_division=0), areas (scores with
ties → roc_auc_score in all ways), regression (also of constant targets), probabilities (top-k, log loss, calibration error of 15 bins
from calibration_curve's edges). Null stands for NaN.
"""

import argparse
import math
import pathlib
import warnings

import numpy as np
import sklearn
import sklearn.calibration
from sklearn import metrics

import common

warnings.simplefilter("ignore")


def number(v):
    return None if math.isnan(v) else float(v)


def classification(rng):
    out = []
    cases = [(200, 5, range(5)), (50, 4, [0, 2, 3]), (1, 3, [1]), (30, 3, [0, 1]), (7, 6, [5, 0])]
    for n, classes, used in cases:
        y = rng.choice(list(used), n)
        p = np.where(rng.random(n) < 0.6, y, rng.integers(0, classes, n))
        if n == 30:
            p[:] = 2  # a class that has no labels, predicted always
        case = {"Classes": classes, "Labels": y.tolist(), "Predictions": p.tolist(), "Accuracy": metrics.accuracy_score(y, p),
                "Counts": metrics.confusion_matrix(y, p, labels=range(classes)).tolist(), "Averages": {}}
        for a in ["micro", "macro", "weighted"]:
            args = {"average": a, "zero_division": 0}
            case["Averages"][a] = {"Precision": metrics.precision_score(y, p, **args), "Recall": metrics.recall_score(y, p, **args),
                                   "F1": metrics.f1_score(y, p, **args), "IoU": metrics.jaccard_score(y, p, **args)}
        args = {"average": None, "labels": range(classes), "zero_division": np.nan}
        each = {"Precision": metrics.precision_score, "Recall": metrics.recall_score, "F1": metrics.f1_score}
        case["Each"] = {k: [number(v) for v in f(y, p, **args)] for k, f in each.items()}
        out.append(case)
    return out


def areas(rng):
    out = []
    for n, classes, decimals in [(100, 1, 8), (60, 1, 1), (10, 1, 0), (80, 2, 1), (90, 3, 1), (200, 5, 2)]:
        y = rng.integers(0, max(classes, 2), n)
        s = rng.normal(size=(n, max(classes, 2)))
        s[np.arange(n), y] += 0.7
        s = np.exp(np.round(s, decimals))
        if classes > 2:
            s /= s.sum(1, keepdims=True)
        case = {"Classes": classes, "Labels": y.tolist(), "Areas": {}}
        if classes <= 2:
            case["Scores"] = (s[:, 1] if classes == 1 else s.reshape(-1)).tolist()
            case["Areas"]["binary"] = metrics.roc_auc_score(y, s[:, 1])
        else:
            case["Scores"] = s.reshape(-1).tolist()
            for how in ["ovr", "ovo"]:
                for a in ["macro", "weighted"]:
                    case["Areas"][f"{how} {a}"] = metrics.roc_auc_score(y, s, multi_class=how, average=a)
        out.append(case)
    return out


def regression(rng):
    out = []
    x = rng.normal(size=50)
    cases = [(x + 0.3 * rng.normal(size=50), x), (1e6 + x, 1e6 + x + 0.01 * rng.normal(size=50)), (np.full(5, 2.0), np.full(5, 2.0)),
             (np.full(5, 2.5), np.full(5, 2.0)), (np.array([1.0]), np.array([3.0])), (-x, x)]
    for p, y in cases:
        out.append({"Predictions": p.tolist(), "Targets": y.tolist(), "MAE": metrics.mean_absolute_error(y, p), "MSE": metrics.mean_squared_error(y, p),
                    "RMSE": metrics.root_mean_squared_error(y, p), "R2": number(metrics.r2_score(y, p))})
    return out


def probabilities(rng):
    n, classes, bins = 300, 6, 15
    y = rng.integers(0, classes, n)
    logits = rng.normal(size=(n, classes)) * 2
    logits[np.arange(n), y] += 1
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    sure, right = p.max(1), p.argmax(1) == y
    which = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], sure)
    true, mean = sklearn.calibration.calibration_curve(right, sure, n_bins=bins)
    count = np.bincount(which, minlength=bins)
    count = count[count > 0]
    return {"Classes": classes, "Labels": y.tolist(), "Probabilities": p.reshape(-1).tolist(), "LogLoss": metrics.log_loss(y, p),
            "TopK": [metrics.top_k_accuracy_score(y, p, k=k) for k in range(1, classes)], "Calibration": float((count * abs(true - mean)).sum() / n)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", default=common.ROOT / "metric" / "testdata", type=pathlib.Path)
    args = parser.parse_args()
    rng = np.random.default_rng(11)
    common.save_json(args.dir / "sklearn.json", {"versions": common.versions(sklearn), "Classification": classification(rng), "Areas": areas(rng),
                                                 "Regression": regression(rng), "Probabilities": probabilities(rng)})


if __name__ == "__main__":
    main()
