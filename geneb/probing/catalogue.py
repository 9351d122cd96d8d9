"""The probes beside the published one, by the ids of their protocols, and why they are as they are.

All come with the published regimes, seeds and metrics. An id stands for its parameters: other
parameters are another id, with the next number.
"""

from __future__ import annotations

from geneb.probing.estimators import (
    CentroidProbe,
    NeighboursProbe,
    PerceptronProbe,
    RidgeProbe,
)
from geneb.probing.probes import LogisticProbe, Probe
from geneb.probing.scaled import ScaledProbe, TunedProbe

# The published solver settings; float64, because a test row may lie far from the rows that
# features were standardised by.
_REGRESSION = LogisticProbe(
    {"C": 1.0, "solver": "lbfgs", "max_iter": 1000, "tol": 1e-4}, dtype="float64"
)

CATALOGUE: dict[str, Probe] = {
    # Asks whether classes lie together, with nothing to fit. Five rows: odd, and half of what a
    # class has in 10shot. The nearer a row, the more its vote weighs: where each class has one
    # row, it is the nearest that wins, and not a tie.
    "geneb-knn-1": NeighboursProbe(neighbours=5),
    # Asks the same of the classes' means; the only probe that needs no parameter at all.
    "geneb-centroid-1": CentroidProbe(),
    # As strong a penalty as there are features is the best one where features and noise have an
    # equal part in what is seen; with few rows it keeps weights small, with many it is lost
    # among them. It has a closed form: no solver can stop early.
    "geneb-ridge-1": RidgeProbe(),
    # The published probe but for the scale of the features, which raw embeddings differ in
    # wildly, and which decides what C = 1 means.
    "geneb-scaled-lr-1": ScaledProbe(_REGRESSION),
    # No model has the luck of a C that suits it. Above 10 standardised features are as good as
    # unpenalised, below 1e-4 the weights are as good as zero; a power of ten in between changes
    # MCC by little. 15 % leave a class of ten rows two to choose by and eight to fit.
    "geneb-tuned-lr-1": TunedProbe(
        _REGRESSION, grid=(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0), share="15%", carve_seed=13
    ),
    # Gives models of 256 and of 4,096 dimensions the same number of weights to fit. Components
    # are not brought to variance 1: the last of them would be rounding, blown up.
    "geneb-pca-lr-1": ScaledProbe(_REGRESSION, components=128),
    # Asks what a probe that is not linear still finds. One layer of 128 units is small beside
    # the embeddings; a hundred epochs are as many steps where all rows fit into one batch. There
    # is no early stopping on a part of train, which few rows cannot spare.
    "geneb-mlp-1": PerceptronProbe(hidden=128, epochs=100),
}
