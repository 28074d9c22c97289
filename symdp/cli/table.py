"""Every option once: its flag, its metavar and its help; type and default stand in the commands."""

from __future__ import annotations

# Name of an argument, or command and name where one command means another thing -> flags (none of
# an argument by its place), metavar, help.
TABLE: dict[str, tuple[str, str, str]] = {
    "advantage": (
        "--advantage", "A", "The largest advantage of an attack, instead of ε and δ."),
    "again": ("--again", "", "The same norms were run once more: count them again."),
    "alpha": ("--alpha", "A,…", "False positive rates, 0 to 1."),
    "as_csv": ("--csv", "", "Print one line for each sampling, with a header."),
    "as_json": ("--json", "", "Print one JSON object."),
    "batch": ("--batch", "B", "Examples in a batch, as expected."),
    "batch_size": ("--batch-size", "M", "Number of draws with replacement; the most records a "
        "truncated batch keeps."),
    "between": ("--between", "A B", "Search between these two values only."),
    "bound": ("", "BOUND…", "The step's μ; ρ at every order of rdp."),
    "budget": ("--budget", "B", "μ in all."),
    "certificate": ("--certificate", "", "Add a proof that --check checks by itself."),
    "claim": ("", "CLAIM", 'As "ε = 0.843 at δ = 1e-5" or "eps=0.843, delta=1e-5".'),
    "check": ("--check", "FILE", "Compute a card's JSON again and compare."),
    "clip": ("--clip", "C", "The largest contribution norm."),
    "compare": ("--compare", "", "Also ε of the same run, its batches drawn in other ways."),
    "composition": ("--composition", "FILE", "A TOML file of [[step]] tables instead of "
        "MECHANISM."),
    "confidence": ("--confidence", "C", "Of both rates together."),
    "count": ("-n --count", "COUNT", "Number of steps, 1 if left out; with --composition, how "
        "often the whole file is run."),
    "counts": ("--counts", "", "The file holds counts, records × buckets of the grid."),
    "delta": ("--delta", "D", "δ, between 0 and 1."),
    "digits": ("--digits", "D", "Digits of the truth, 15 to 200."),
    "direction": ("--direction", "DIRECTION", "remove, add, or both: the larger."),
    "epochs": ("--epochs", "E", "Passes over the data, or --steps."),
    "epsilon": ("--epsilon", "E", "ε in nats."),
    "epsilon_range": ("--epsilon-range", "A B", "From 0 to where δ is 1e-10, if left out."),
    "exact": ("--exact", "", "Accepted as before; every program is the exact accountant."),
    "examples": ("--examples", "N", "How many training examples."),
    "explain": ("--explain", "", "Show the ways of the default method, and the one taken."),
    "fixed": ("--fixed", "", "Contributions do not depend on outputs: results are exact."),
    "form": ("--format", "FORMAT", "text, latex, mathml, json, a page with asserts that MyST "
        "executes: page, or a program: python, c, javascript."),
    "fp": ("--fp", "ALARMS", "Others that it took for members: 5, or 5/100."),
    "fpr": ("--fpr", "F", "The false positive rate for --tpr."),
    "grid": ("--grid", "GRID", "norm:COUNT or geometric:COUNT[:SPAN]."),
    "group": ("--group", "K", "Protect K records together."),
    "groups": ("--groups", "FILE", "One label a record: .npy, or text lines."),
    "increments": ("--increments", "M,…", "An odometer of these μ."),
    "keep": ("--keep", "FOLDER", "Keep the counts as a run to resume from."),
    "largest_batch": ("--largest-batch", "M", "Examples that a truncated Poisson batch keeps."),
    "layout": ("--layout", "L", "steps-records or records-steps; not guessed."),
    "mechanism": ("", "MECHANISM", "A built-in name (see 'symdp list') or a TOML file."),
    "mean_abs": ("--mean-abs", "A", "The mean absolute deviation of the noise, E|X − EX|."),
    "members": ("--members", "M", "How many members were attacked."),
    "method": ("--method", "METHOD", "An accountant, such as contour, msd:1, edgeworth:2, clt, "
        "moments; or truth. 'symdp methods' lists them with their options."),
    "mu_floor": ("--mu-floor", "D0", "Add μ(D0): the Gaussian μ for δ ≥ D0."),
    "multiplier": ("--multiplier", "Z", "Noise standard deviation over the clip."),
    "name": ("", "NAME", "One of them, to be shown in full."),
    "noise": ("--noise", "Z", "Noise multiplier: noise over clip norm."),
    "only": ("--only", "KEYS", "These sections alone: mechanism, loss, cumulants, series, "
        "asymptotics, tails, composed, several with commas."),
    "order": ("--order", "K", "Show terms up to this order, 1 to 8."),
    "orders": ("--orders", "A,…", "A Rényi filter at these orders."),
    "others": ("--others", "N", "How many others; as many as members if not said."),
    "output": ("-o --output", "FILE", "A .html or a .md file."),
    "parameter": ("--parameter", "NAME", "A parameter, a sampling rate, or n: the steps."),
    "participations": ("--participations", "K", "random_allocation: in how many of the steps a "
        "record takes part; 1 if left out."),
    "plot": ("--plot", "FILE", "Draw the curve: .svg, .pdf or .png."),
    "points": ("--points", "N", "How many ε, both ends among them."),
    "prove": ("--prove", "K", "Prove K digits of the first ε, 1 to 15."),
    "rate": ("--rate", "Q", "Sampling rate, exact: 0.01 or 1/100."),
    "records": ("--records", "N", "Number of all records: truncated_poisson, averages, groups "
        "without replacement."),
    "refuse": ("--refuse-above", "", "Refuse norms above the clip."),
    "registry": ("--registry", "FILE", "Write a .yaml in the schema of opendp's registry of "
        "deployments; what no computation knows stays to be filled in."),
    "relation": ("--relation", "RELATION", "add_remove (default), substitution (fixed batches: "
        "always) or zero_out."),
    "released": ("--released", "WHAT", "sum (default): the noisy sum of a batch, or it divided by "
        "a constant; average: divided by the number of records drawn, needs --records."),
    "sampling": ("--sampling", "SCHEME", "poisson, without_replacement, with_replacement or "
        "truncated_poisson; needs --rate. Or random_allocation; needs --steps."),
    "sensitivity": ("--sensitivity", "S", "How far one record moves the query that noise is added "
        "to; 1 for the built-in ones."),
    "shift": ("--shift", "SHIFT", "How far a record moves that query: at-most the sensitivity "
        "(default), where noise is skewed with one sign at all steps; either-way, with any; up or "
        "down; or exactly."),
    "source": ("", "RUN|NORMS", "A run's folder, or a .npy, .csv or .parquet file."),
    "squared": ("--squared", "", "The norms are squared."),
    "std": ("--std", "S", "The standard deviation of the noise."),
    "step": ("--step", "J", "The number it must have."),
    "steps": ("--steps", "T", "random_allocation: the steps of an epoch; -n counts epochs."),
    "target_epsilon": ("--target-epsilon", "E", "Find the noise for this ε instead."),
    "time_limit": ("--time-limit", "SECONDS", "Give up after so many processor seconds, with a "
        "proved bound if there is one; 0 for no limit."),
    "title": ("--title", "TEXT", "The heading of the page."),
    "tp": ("--tp", "HITS", "Members that the attack found: 90, or 90/100."),
    "tpr": ("--tpr", "T", "Its largest true positive rate, at the rate --fpr."),
    "values": ("", "NAME=VALUE", "Parameters, exact: sigma=1.5 or q=1/3."),
    "with_checker": ("--with-checker", "", "Write the checker beside the certificate."),
    "audit delta": ("--delta", "D", "δ of the guarantee; 0 if left out."),
    "calibrate digits": ("--digits", "K", "Significant digits, 4 to 13; 10, 6 of a rate."),
    "card delta": ("--delta", "D,…", "The δ at which ε is given."),
    "card output": ("-o --output", "FILE", "A .json, .md, .html or .tex file."),
    "card sampling": ("--sampling", "SCHEME", "How batches are drawn: needs --rate with "
        "MECHANISM; poisson in a training run."),
    "card steps": ("--steps", "T", "Optimizer steps, or --epochs."),
    "card title": ("--title", "TEXT", "What the card is about."),
    "certify delta": ("--delta", "D", "Or prove ε at this δ."),
    "certify digits": ("--digits", "D", "Proved digits, 1 to 200."),
    "certify epsilon": ("--epsilon", "E", "Prove δ at this ε."),
    "certify file": ("--certificate", "FILE", "Write a .json that anyone can check."),
    "check file": ("", "FILE", "A certificate."),
    "check time_limit": ("--time-limit", "SECONDS", "Seconds on the clock; 0 for no limit."),
    "compare values": ("", "NAME=VALUE | MECHANISM", "Values of the mechanism before them, and "
        "more mechanisms; one parameter of each is left open."),
    "compare plot": ("--plot", "FILE", "Draw δ(ε) of all: .svg, .pdf or .png."),
    "curve method": ("--method", "METHOD", "An accountant, contour if left out; several are drawn "
        "over each other."),
    "derive direction": ("--direction", "DIRECTION", "remove or add."),
    "derive epsilon": ("--epsilon", "E", "With a value for every parameter: formula, numbers and "
        "result of each term, beside the exact δ of -n steps."),
    "derive explain": ("--explain", "", "Also the steps: which rule found what, and where it was "
        "checked."),
    "derive time_limit": ("--time-limit", "S", "Processor seconds; what is not found by then stays "
        "numeric."),
    "explore output": ("-o --output", "FILE", "A .html file."),
    "filter count": ("-n --count", "COUNT", "How many such steps; 1."),
    "filter delta": ("--delta", "D", "Its δ."),
    "filter epsilon": ("--epsilon", "E", "ε in all."),
    "filter file": ("", "FILE", "The filter's state, JSON."),
    "individual method": ("--method", "M", "contour, renyi, plancherel, gaussian."),
    "individual output": ("-o --output", "FILE", "One row a record: .csv, .npz or .parquet."),
    "individual plot": ("--plot", "FILE", "Draw a histogram."),
    "individual rate": ("--rate", "Q", "Poisson sampling rate."),
    "ledger file": ("", "FILE", "The ledger's file, JSON."),
    "renyi order": ("--order", "A,…", "Orders α, 0 or more, or inf."),
    "report delta": ("--delta", "D", "The δ at which ε is compared."),
    "train sampling": ("--sampling", "SCHEME", "How batches are drawn: poisson (default), "
        "without_replacement, with_replacement or truncated_poisson."),
    "train steps": ("--steps", "T", "Optimizer steps, or --epochs."),
    "verify method": ("--method", "METHOD", "Compare this one only."),
}  # fmt: skip

# What says which steps are meant: the names of a `Job`, and those in the table.
OF_STEPS = {
    "mechanism": "mechanism", "values": "values", "count": "count", "composition": "composition",
    "sampling": "sampling", "rate": "rate", "batch": "batch_size", "records": "records",
    "group": "group", "steps": "steps", "participations": "participations",
    "released": "released", "relation": "relation", "sensitivity": "sensitivity", "shift": "shift",
}  # fmt: skip
# What a command has not of these, nor of the options of methods.
WITHOUT = {
    "derive": ("composition",),
    "calibrate": ("composition",),
    "compare": ("composition",),
    "curve": ("points",),
}
