"""Factories of estimators as a user writes them, good and bad."""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from geneb.probing.estimators import CentroidProbe

SHARED = KNeighborsClassifier(n_neighbors=1)
NOT_CALLABLE = 3


def nearest():
    return KNeighborsClassifier(n_neighbors=1)


def shared():
    """The same object each time."""
    return SHARED


def stochastic(random_state):
    return make_pipeline(StandardScaler(), SGDClassifier(max_iter=3, random_state=random_state))


def in_place():
    """Standardises the very rows that it is given."""
    return make_pipeline(StandardScaler(copy=False), KNeighborsClassifier(n_neighbors=1))


def talkative():
    sys.stdout.write("printed while an estimator was made\n")
    return DummyClassifier()


def regression():
    return LinearRegression()


def no_estimator():
    return object()


def needs(argument):
    return argument


def breaks():
    raise RuntimeError("there is no such thing")


def probe():
    return CentroidProbe()


class BrokenProbe(CentroidProbe):
    """Raises what no caller reckons with, where it is told to."""

    where = ""

    def fit(self, rows, labels, seed, backend):
        if self.where == "fit":
            raise AttributeError("no such thing")
        fit = super().fit(rows, labels, seed, backend)
        return self if self.where == "predict" else fit

    def predict(self, rows):
        raise AttributeError("no such thing")

    def optimality(self, fit, rows, labels):
        raise AttributeError("no such thing")

    n_iter = None
    converged = None


class BrokenInFit(BrokenProbe):
    where = "fit"


class BrokenInPredict(BrokenProbe):
    where = "predict"


class _Odd(ClassifierMixin, BaseEstimator):
    def __init__(self, function=None):
        self.function = function

    def fit(self, rows, labels):
        if self.function == "raises":
            raise KeyError("a key")
        if self.function == "exits":
            sys.exit("enough")
        if self.function == "warns":
            warnings.warn("something of the user's", RuntimeWarning, stacklevel=1)
        self.labels_ = labels
        return self

    def predict(self, rows):
        if self.function == "predict raises":
            raise TypeError("not like this")
        if self.function == "nan":
            return np.full(len(rows), np.nan)
        if self.function == "short":
            return np.zeros(len(rows) - 1)
        if self.function == "other":
            return np.full(len(rows), 99)
        return np.zeros(len(rows))


def raises():
    return _Odd("raises")


def exits():
    return _Odd("exits")


def warns():
    return _Odd("warns")


def predict_raises():
    return _Odd("predict raises")


def nan():
    return _Odd("nan")


def short():
    return _Odd("short")


def other():
    return _Odd("other")


def with_address():
    return _Odd(function=print_nothing)


def print_nothing():
    pass
