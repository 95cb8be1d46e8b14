"""Names of torch.utils.data and arguments of its DataLoader that cygrad.data does not have, each with what it has
instead (cygrad/core/answers.py)."""

ROWS = "pass the rows in that order, x[order]"
DATA = {
    "Dataset": "any object with __getitem__ and __len__ will do", "IterableDataset": "any iterable of samples will do",
    "TensorDataset": "pass the arrays themselves: DataLoader((x, labels), 64)",
    "StackDataset": "pass a tuple or a dict of arrays: DataLoader((x, labels), 64)",
    "ConcatDataset": "pass arrays joined by cygrad.concat(xs), or a sequence that reads from each",
    "ChainDataset": "pass itertools.chain(...)", "Subset": "pass some rows, x[indices]",
    "random_split": "take the rows of parts of cygrad.random.permutation(n)",
    "Sampler": ROWS, "SequentialSampler": ROWS, "RandomSampler": "use DataLoader(x, shuffle=True)",
    "SubsetRandomSampler": "pass some rows, DataLoader(x[indices], shuffle=True)",
    "BatchSampler": "use DataLoader(x, batch_size)",
    "WeightedRandomSampler": "pass the rows cygrad.random.choice(len(x), n, p=weights)",
    "DistributedSampler": "pass the rows of a process, x[comm.rank::comm.size]",
    "default_collate": "batches are made so without it, and by DataLoader(x, collate=f) otherwise",
    "get_worker_info": "a worker is asked for samples by their numbers, so none needs to know its own",
}
# Arguments: their names here, or what to do without them.
NAMES = {"num_workers": "workers", "collate_fn": "collate", "prefetch_factor": "prefetch",
         "generator": "seed"}
WITHOUT_THEM = {
    "pin_memory": "all memory is the CPU's; leave it out", "pin_memory_device": "all memory is the CPU's; leave it out",
    "sampler": ROWS, "batch_sampler": ROWS + ", with batch_size", "timeout": "it waits for as long as a sample takes",
    "persistent_workers": "each epoch forks its workers; leave it out",
    "worker_init_fn": "random numbers of workers are seeded for each batch; leave it out",
    "multiprocessing_context": "workers are forked; leave it out", "in_order": "batches come in order; leave it out",
}


def of_argument(name, names):
    """The message for an unknown argument of a DataLoader that takes `names`."""
    if name in NAMES: return f"DataLoader takes {NAMES[name]}, not {name}: DataLoader(data, {NAMES[name]}=...)"
    return f"DataLoader takes no {name}" + (f": {WITHOUT_THEM[name]}" if name in WITHOUT_THEM
                                            else f"; it takes {', '.join(names)}")
