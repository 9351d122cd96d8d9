"""Time the embedding of a task against the published way of doing it, with the same weights.

    python tools/measure/embed.py DATA --task ID [ID ...] [--rows 256]
        [--model ID --weights FOLDER | --made 512x6] [--device cpu] [--threads 1]

Rows are spread over each file. Of several tasks they take turns, one of each: lengths as mixed as
those of the tasks are. Four ways take turns in one process, on the same rows and on one network:

- geneb: tokenised, each distinct row once, in buckets of one padded length under the budget;
- the forward pass alone: the very same batches, tokenised and padded beforehand, not pooled;
- published, longest: input order, 8 rows a batch, padded to the longest of the batch;
- published, limit: the same, padded to all that the model takes, as the Nucleotide Transformer's
  published extractor does; on fewer rows, since it is slow.

Then the machine's peak: the product of two large float32 matrices. Times are medians a row. On a
CPU they are seconds of the processor over all threads, so that what else runs does not count as
much; on a GPU those of the clock. Without --model the network is random, of the Nucleotide
Transformer's architecture and vocabulary, with as many numbers and layers as --made says.
Exits with 1 if a vector of the published way is not that of geneb.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from transformers import EsmConfig, EsmModel

from geneb.base import canonical, env
from geneb.embedding.batches import plan_batches
from geneb.embedding.canary import relative_difference, tolerance
from geneb.embedding.engine import Engine
from geneb.embedding.plan import owners
from geneb.extractors.base import LAST, Batch
from geneb.extractors.esm import EsmExtractor
from geneb.extractors.options import ModelOptions
from geneb.extractors.registry import load
from geneb.tasks.read import read_task

PUBLISHED_BATCH = 8
LIMIT = 1000
SPECIALS = ("<unk>", "<pad>", "<mask>", "<cls>", "<eos>", "<bos>")


def make_weights(folder, dim, layers):
    """Write a random checkpoint of the Nucleotide Transformer's layout."""
    words = ["".join(letters) for letters in itertools.product("ATCG", repeat=6)]
    vocabulary = [*SPECIALS, *words, *"ATCGN"]
    config = EsmConfig(
        vocab_size=len(vocabulary),
        hidden_size=dim,
        num_hidden_layers=layers,
        num_attention_heads=dim // 64,
        intermediate_size=4 * dim,
        max_position_embeddings=LIMIT + 2,
        position_embedding_type="absolute",
        pad_token_id=SPECIALS.index("<pad>"),
        mask_token_id=SPECIALS.index("<mask>"),
        token_dropout=False,
    )
    torch.manual_seed(0)
    model = EsmModel(config, add_pooling_layer=False)
    del model.contact_head
    tensors = {f"esm.{name}": tensor for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")


def load_extractor(options):
    """Return the extractor that was asked for, and what to call it."""
    if options.model:
        loaded = load(options.model, weights=options.weights, device=options.device)
        return loaded.extractor, options.model
    dim, layers = map(int, options.made.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        make_weights(Path(folder), dim, layers)
        told = ModelOptions(device=options.device)
        return EsmExtractor(Path(folder), told, limit=LIMIT), f"random network, {options.made}"


def take_turns(folder, tasks, rows):
    """Return train sequences of the tasks in turns, spread over each file.

    What stands in a file by class or length is all there.
    """
    each = rows // len(tasks)
    columns = []
    for task in tasks:
        sequences = read_task(folder / f"{task}.csv", ["train"]).splits["train"].sequences
        columns.append(
            [sequences[row] for row in np.linspace(0, len(sequences) - 1, each, dtype=int)]
        )
    return [sequence for turn in zip(*columns, strict=True) for sequence in turn]


def by_geneb(engine, sequences, row_ids):
    """Embed each distinct row once; the others are copies."""
    owner = owners(row_ids)
    distinct = np.unique(owner)
    vectors = engine.embed(engine.prepare([sequences[row] for row in distinct]))
    return vectors[np.searchsorted(distinct, owner)]


def by_the_published_way(extractor, sequences, width=None):
    """Embed in input order, 8 rows a batch; padded to ``width``, or to the longest of the batch."""
    vectors = []
    for first in range(0, len(sequences), PUBLISHED_BATCH):
        items = extractor.prepare(sequences[first : first + PUBLISHED_BATCH])
        batch = Batch(items, width or max(item.length for item in items))
        vectors.append(extractor.forward(batch, (LAST,))[LAST])
    return np.concatenate(vectors)


def padded_batches(engine, sequences, row_ids):
    """Return the tensors of the batches that geneb runs."""
    extractor = engine.extractor
    items = engine.prepare([sequences[row] for row in np.unique(owners(row_ids))])
    plans = plan_batches(
        [item.length for item in items],
        extractor.batching,
        engine.token_budget,
        extractor.max_length,
    )
    # What is measured is the network alone, so its tensors are made here.
    return [
        extractor._padded(Batch([items[row] for row in plan.rows], plan.padded_length))  # noqa: SLF001
        for plan in plans
    ]


@torch.inference_mode()
def forward_alone(extractor, batches):
    """Run the network on tensors that are ready."""
    for ids, inside in batches:
        extractor.network(ids, inside, [extractor.layer])


def operations(extractor, batches):
    """Return the floating-point operations of one forward pass: weights' products and attention."""
    linear = [module for module in extractor.network.modules() if isinstance(module, nn.Linear)]
    weights = sum(module.weight.numel() for module in linear)
    dim, layers = linear[0].in_features, extractor.network.layers
    return sum(ids.numel() * (2 * weights + 4 * layers * dim * ids.shape[1]) for ids, _ in batches)


def matrix_peak(device, size):
    """Return the operations a second of the product of two float32 matrices, the best of five."""
    left, right = (torch.rand(size, size, device=device) for _ in range(2))
    seconds = [timed(device, torch.mm, left, right)[1] for _ in range(5)]
    return 2 * size**3 / min(seconds)


def timed(device, function, *args):
    """Return a function's result and the seconds that it took."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    if device != "cpu":
        torch.cuda.synchronize()
    began = clock()
    result = function(*args)
    if device != "cpu":
        torch.cuda.synchronize()
    return result, clock() - began


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", required=True, nargs="+", metavar="ID")
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--rows-at-limit", type=int, default=16)
    parser.add_argument("--model")
    parser.add_argument("--weights")
    parser.add_argument("--made", default="512x6", metavar="DIMxLAYERS")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--matrix", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def main():
    options = parse()
    torch.set_num_threads(options.threads)
    extractor, name = load_extractor(options)
    sequences = take_turns(options.data, options.task, options.rows)
    row_ids = canonical.row_ids(sequences)
    few = sequences[: options.rows_at_limit]
    engine = Engine(extractor, options.batch_tokens)
    batches = padded_batches(engine, sequences, row_ids)

    ways = {
        "geneb": (len(sequences), by_geneb, engine, sequences, row_ids),
        "forward pass alone": (len(sequences), forward_alone, extractor, batches),
        "published, longest": (len(sequences), by_the_published_way, extractor, sequences),
        "published, limit": (len(few), by_the_published_way, extractor, few, extractor.max_length),
    }
    by_the_published_way(extractor, sequences[:PUBLISHED_BATCH])  # whatever is done only once
    seconds = {way: [] for way in ways}
    results = {}
    for _ in range(options.repeats):
        for way, (rows, function, *args) in ways.items():
            results[way], took = timed(options.device, function, *args)
            seconds[way].append(took / rows)
    peak = matrix_peak(options.device, options.matrix)

    installed = env.versions(("numpy", "torch", "transformers"))
    print(", ".join([env.processor(), *(f"{package} {got}" for package, got in installed.items())]))
    print(f"device {options.device}, {options.threads} thread(s); {name}")
    lengths = [item.length for item in engine.prepare(sequences)]
    print(", ".join(options.task))
    print(
        f"{len(sequences)} rows ({len(np.unique(owners(row_ids)))} distinct) of "
        f"{min(map(len, sequences))} to {max(map(len, sequences))} letters, {min(lengths)} to "
        f"{max(lengths)} tokens; budget {options.batch_tokens} tokens"
    )
    median = {way: statistics.median(took) for way, took in seconds.items()}
    print(f"{'':20}{'ms a row':>10}{'x geneb':>9}   all")
    for way, took in seconds.items():
        each = " ".join(f"{1000 * second:.2f}" for second in took)
        print(f"{way:20}{1000 * median[way]:10.2f}{median[way] / median['geneb']:9.2f}   {each}")
    share = median["forward pass alone"] / median["geneb"]
    print(f"geneb runs at {100 * share:.1f} % of the forward pass alone")
    done = operations(extractor, batches) / (median["forward pass alone"] * len(sequences))
    print(
        f"forward pass {done / 1e9:,.1f} GFLOP/s; product of {options.matrix} x {options.matrix} "
        f"matrices {peak / 1e9:,.1f} GFLOP/s: {100 * done / peak:.0f} % of it"
    )
    allowed = tolerance(extractor.describe().compute_dtype, "float32")
    worst = max(
        relative_difference(results[way], results["geneb"][: ways[way][0]]).max()
        for way in ("published, longest", "published, limit")
    )
    print(
        f"largest difference of a vector {worst:.2g} of its root mean square, {allowed:g} allowed"
    )
    return 0 if worst <= allowed else 1


if __name__ == "__main__":
    sys.exit(main())
