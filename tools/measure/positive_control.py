"""Ask stores of known encoders whether what they learnt can be read off by a linear probe.

    geneb embed --model ci-spliceai-1 --weights WHEEL --data DIR --tasks TASK --store one.zarr
    geneb embed --model ci-spliceai   --weights WHEEL --data DIR --tasks TASK --store five.zarr
    geneb embed --model kmer4                         --data DIR --tasks TASK --store kmer4.zarr
    python tools/measure/positive_control.py --task TASK one.zarr five.zarr kmer4.zarr

TASK is one of human splice sites, such as the reconstructed splice task of GUE. The networks of
CI-SpliceAI were trained on human splice sites, so a toolkit that embeds them rightly separates the
classes and 4-mers do not; it is a control, not a claim about the model, which has seen the genes.

The probe is plain scikit-learn and shares nothing with the toolkit's own: vectors standardised by
the train split, logistic regression with C = 0.1. Prints the MCC of each store.
"""

import argparse
import platform

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import matthews_corrcoef
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from geneb import open_store


def probe(store, task_id):
    """Return dim, train rows, test rows, and the MCC on the test split."""
    task = store.task(task_id)
    train, test = task.embeddings("train"), task.embeddings("test")
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=5000))
    classifier.fit(train, task.labels("train"))
    mcc = matthews_corrcoef(task.labels("test"), classifier.predict(test))
    return train.shape[1], len(train), len(test), mcc


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("stores", nargs="+", metavar="STORE")
    parser.add_argument("--task", required=True)
    options = parser.parse_args()

    print(
        f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )
    print(f"{'model':<20} {'dim':>5} {'train':>7} {'test':>7} {'MCC':>7}")
    for path in options.stores:
        store = open_store(path)
        dim, train, test, mcc = probe(store, options.task)
        print(f"{store.model_id:<20} {dim:>5} {train:>7} {test:>7} {mcc:>7.3f}")


if __name__ == "__main__":
    main()
