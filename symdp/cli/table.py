"""Every command, its examples, and every option once; type and default stand in the commands."""

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
    "cost": ("--cost", "FORMULA", "Of the noise x, even: as large in the mean as of "
        "normal noise of --std."),
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
    "minimize": ("--minimize", "FORMULA", "What is to be least, of the names that have a range."),
    "mu_floor": ("--mu-floor", "D0", "Add μ(D0): the Gaussian μ for δ ≥ D0."),
    "multiplier": ("--multiplier", "Z", "Noise standard deviation over the clip."),
    "name": ("", "NAME", "One of them, to be shown in full."),
    "noise": ("--noise", "Z", "Noise multiplier: noise over clip norm."),
    "only": ("--only", "KEYS", "These sections alone: mechanism, facts, loss, cumulants, series, "
        "asymptotics, tails, composed; or formulas by name, as K or ell; several with commas."),
    "order": ("--order", "K", "Add the series of every mechanism, up to this order, 1 to 8."),
    "orders": ("--orders", "A,…", "A Rényi filter at these orders."),
    "others": ("--others", "N", "How many others; as many as members if not said."),
    "output": ("-o --output", "FILE", "A .html or a .md file."),
    "parameter": ("--parameter", "NAME", "A parameter, a sampling rate, or n: the steps."),
    "participations": ("--participations", "K", "random_allocation: in how many of the steps a "
        "record takes part; 1 if left out."),
    "people": ("--people", "N", "Shuffle the answers of so many people; of a file with a [local] "
        "table. A name makes it a parameter."),
    "plot": ("--plot", "FILE", "Draw the curve: .svg, .pdf or .png."),
    "points": ("--points", "N", "How many ε, both ends among them."),
    "prove": ("--prove", "K", "Prove K digits of the first ε, 1 to 15."),
    "ranges": ("--range", "NAME=A:B", "Where a parameter, a rate or n is looked for; once for "
        "each, first a parameter that is calibrated in the end."),
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
    "support": ("--support", "WHERE", "integers (default), reals, or between two ends: [-B, B] of "
        "integers, reals [-B, B]."),
    "squared": ("--squared", "", "The norms are squared."),
    "std": ("--std", "S", "The standard deviation of the noise."),
    "compare std": ("--std", "S", "The standard deviation of the noise; without a size all have "
        "values."),
    "step": ("--step", "J", "The number it must have."),
    "epoch_steps": ("--steps", "T", "random_allocation: the steps of an epoch; -n counts epochs."),
    "target_epsilon": ("--target-epsilon", "E", "Find the noise for this ε instead."),
    "time_limit": ("--time-limit", "SECONDS", "Give up after so many processor seconds, with a "
        "proved bound if there is one; 0 for no limit."),
    "title": ("--title", "TEXT", "The heading of the page."),
    "tp": ("--tp", "HITS", "Members that the attack found: 90, or 90/100."),
    "tpr": ("--tpr", "T", "Its largest true positive rate, at the rate --fpr."),
    "values": ("", "NAME=VALUE", "Parameters, exact: sigma=1.5 or q=1/3."),
    "with_checker": ("--with-checker", "", "Write the checker beside the certificate."),
    "audit delta": ("--delta", "D", "δ of the guarantee; 0 if left out."),
    "calibrate composition": ("--composition", "FILE", "A TOML file of [[step]] tables whose "
        "parameters are formulas of names, or that share a [budget]."),
    "calibrate digits": ("--digits", "K", "Significant digits, 4 to 13; 10, 6 of a rate."),
    "card delta": ("--delta", "D,…", "The δ at which ε is given."),
    "card output": ("-o --output", "FILE", "A .json, .md, .html or .tex file."),
    "card sampling": ("--sampling", "SCHEME", "How batches are drawn: needs --rate with "
        "MECHANISM; poisson in a training run."),
    "card title": ("--title", "TEXT", "What the card is about."),
    "sensitivities delta": ("--delta", "D", "Derive ε at this δ."),
    "sensitivities epsilon": ("--epsilon", "E", "Derive δ at this ε."),
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
    "derive check": ("--check", "", "Also what formulas say at numbers, beside quadratures, and a "
        "program that repeats these."),
    "derive output": ("-o --output", "FILE", "Write a document that pdflatex compiles, .tex."),
    "derive case": ("--case", "K", "One case alone, where the order of parameters decides."),
    "derive delta": ("--delta", "D", "The same at the ε of -n steps at this δ."),
    "derive epsilon": ("--epsilon", "E", "With a value for every parameter: formula, numbers and "
        "result of each term, beside the exact δ of -n steps."),
    "derive explain": ("--explain", "", "Also the steps: which rule found what, and where it was "
        "checked."),
    "derive whole": ("--all", "", "Also the series that are the same for every mechanism."),
    "derive time_limit": ("--time-limit", "S", "Processor seconds; what is not found by then stays "
        "numeric."),
    "design output": ("-o --output", "FILE", "Write the noise as a mechanism file, .toml."),
    "design plot": ("--plot", "FILE", "Draw it beside normal and Laplace noise: .svg, .pdf or "
        ".png."),
    "design sampling": ("--sampling", "SCHEME", "poisson, with --rate; none if left out."),
    "design sensitivity": ("--sensitivity", "S", "How far one record moves the query at most; "
        "on integers a whole number."),
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
    "note": ("--note", "TEXT", "What for: a line that is kept with the entry."),
    "user": ("--user", "NAME", "By whom; nobody is recorded if left out."),
    "plot output": ("-o --output", "FILE", "A .svg, .pdf or .png file."),
    "size": ("--size", "N", "How many values, 10 if left out."),
    "seed": ("--seed", "S", "A whole number that makes them the same again."),
    "ledger show by": ("--by", "WHAT", "note, user or date: ε of each group at --delta, beside "
        "that of all."),
    "ledger plot by": ("--by", "WHAT", "entry (default), or date."),
    "ledger plot epsilon": ("--epsilon", "E", "The budget, drawn as a line."),
    "ledger output": ("-o --output", "FILE", "A .svg, .pdf or .png file."),
    "renyi order": ("--order", "A,…", "Orders α, 0 or more, or inf."),
    "report delta": ("--delta", "D", "The δ at which ε is compared."),
    "train sampling": ("--sampling", "SCHEME", "How batches are drawn: poisson (default), "
        "without_replacement, with_replacement or truncated_poisson."),
    "steps": ("--steps", "T", "Optimizer steps, or --epochs."),
    "verify delta": ("--delta", "D", "Compare where δ is about this alone."),
    "verify epsilon": ("--epsilon", "E", "Compare at this ε alone."),
    "explore time_limit": ("--time-limit", "SECONDS", "Give up after so many processor seconds; 0 "
        "for no limit."),
    "explore delta": ("--delta", "D", "The δ at which the page begins."),
    "explore epsilon": ("--epsilon", "E", "The ε at which the page begins."),
    "report time_limit": ("--time-limit", "SECONDS", "Processor seconds; the page holds what is "
        "there by then, and names what is not; 0 for no limit."),
    "verify method": ("--method", "METHOD", "Compare this one only."),
}  # fmt: skip

# What says how often and on what part of the data a step is taken.
_STEPS = (
    "count", "composition", "sampling", "rate", "batch_size", "records", "group", "epoch_steps",
    "participations", "released", "relation",
)  # fmt: skip
# What a command has not of the fields of its records.
WITHOUT = {
    "derive": ("composition",),
    "compare": ("composition", "method", "direction"),
    "card": (
        "epoch_steps",
        "people",
        "participations",
        "sensitivity",
        "shift",
        "method",
        "direction",
    ),
    "certify": ("method",),
    "sensitivities": ("method",),
    "plan": ("composition", "method", "direction"),
    "check-claim": ("method",),
    "tradeoff": ("method",),
    "renyi": ("method",),
    "design": ("method", "direction"),
    "train": ("method", "direction"),
    "audit": ("method", "direction"),
    "explore": ("method", "direction", "as_json"),
    "individual": ("time_limit",),
    "sample": (*_STEPS, "sensitivity", "shift", "people"),
    "plot": (*_STEPS, "people"),
}

# Command -> where it is, and its line in the list of all.
COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("catalogue.list_mechanisms", "Show the built-in mechanisms with their parameters."),
    "methods": ("catalogue.list_methods", "Show the methods and what they promise."),
    "derive": ("derivation.derive", "Derive the privacy loss, its CGF and the expansions."),
    "delta": ("question.delta", "Print δ at a given ε."),
    "epsilon": ("question.epsilon", "Print the smallest ε ≥ 0 at a given δ."),
    "curve": ("accounting.curve", "Print the privacy profile δ(ε), and draw it."),
    "verify": ("accounting.verify", "Compare every accountant with a many-digit reference."),
    "certify": (
        "proofs.certify",
        "Print two decimals between which δ (or ε) is proved to lie.",
    ),
    "check": ("proofs.check", "Check a certificate by a program of its own."),
    "check-claim": ("proofs.check_claim", "Prove or refute a stated (ε, δ)."),
    "calibrate": ("accounting.calibrate", "Print the parameter that just meets (ε, δ)."),
    "sensitivities": (
        "derivatives.sensitivities",
        "Print the derivatives of ε or δ in every parameter.",
    ),
    "plan": ("derivatives.plan", "Find the cheapest parameters that meet (ε, δ)."),
    "train": ("training.train", "Print ε of a training run, or the noise for an ε."),
    "card": ("pages.card", "Write or check a privacy card."),
    "compare": ("accounting.compare", "Print noises of one size side by side."),
    "design": ("noise.design", "Find the noise of least ε at a cost."),
    "sample": ("noise.sample", "Print values of the noise, for simulations."),
    "plot": ("noise.plot", "Draw density, loss, K and trade-off of one step."),
    "tradeoff": ("accounting.tradeoff", "Print the least miss rate of any attack."),
    "renyi": ("accounting.renyi", "Print Rényi divergences and the least ρ of zCDP."),
    "audit": ("accounting.audit", "Print a lower bound on ε from an attack's counts."),
    "report": ("pages.report", "Write a report with derivation, accountants and proof."),
    "explore": ("pages.explore", "Write a page with sliders for ε, δ and attacks."),
    "individual": ("records.individual", "Print what every record's ε comes to."),
    "ledger": ("records.LEDGER", "A budget ledger in a file: add, epsilon, show, plot."),
    "filter": ("records.FILTER", "A privacy filter in a file: new, ask, commit, status."),
}

_JOB = "gaussian sigma=1.12 --sampling poisson --rate 256/60000 -n 14063"
_DATA = "--examples 60000 --batch 256 --epochs 60"
_RUN = f"{_DATA} --noise 1.12"
_PLAN = f"{_DATA} --target-epsilon 3"

EXAMPLES: dict[str, tuple[str, ...]] = {
    "list": ("symdp list",),
    "methods": ("symdp methods",),
    "derive": (
        "symdp derive laplace",
        "symdp derive gaussian sigma=1.5 --sampling poisson --rate 0.01 -n 10000 --epsilon 1",
        "symdp derive examples/logistic.toml --format latex",
        "symdp derive gaussian --format javascript",
        "symdp derive laplace --check -o supplement.tex",
    ),
    "delta": (
        "symdp delta laplace b=2 -n 1 --epsilon 0.4",
        "symdp delta examples/logistic.toml s=4 -n 50 --epsilon 2.5 --json",
        "symdp delta laplace b=20 -n 50 --epsilon 1 --method prv --eps-error 1e-3",
    ),
    "epsilon": (
        f"symdp epsilon {_JOB} --delta 1e-5",
        "symdp epsilon --composition examples/composition.toml --delta 1e-6",
    ),
    "curve": ("symdp curve gaussian sigma=2 -n 10 --epsilon-range 0 5 --plot curve.svg",),
    "verify": ("symdp verify gaussian sigma=2 -n 10 --method moments",),
    "certify": (
        "symdp certify gaussian sigma=2 -n 10 --epsilon 3 --digits 8",
        "symdp certify gaussian sigma=2 -n 30 --epsilon 3 --digits 8 --certificate proof.json",
    ),
    "check": ("symdp check proof.json",),
    "check-claim": (
        'symdp check-claim "ε = 17 at δ = 1e-5" gaussian sigma=2 -n 30',
        'symdp check-claim "eps=0.8, delta=1e-6" --composition examples/composition.toml',
    ),
    "calibrate": (
        "symdp calibrate gaussian --parameter sigma -n 10 --epsilon 2 --delta 1e-5",
        "symdp calibrate gaussian sigma=2 --parameter n --epsilon 2 --delta 1e-5",
        "symdp calibrate gaussian --parameter sigma -n 10 --advantage 0.1",
        "symdp calibrate --composition examples/scaled.toml --parameter scale --epsilon 2 "
        "--delta 1e-6",
    ),
    "sensitivities": (
        "symdp sensitivities gaussian sigma=2 --sampling poisson --rate 1/100 -n 500 --delta 1e-5",
        "symdp sensitivities examples/logistic.toml s=4 -n 50 --epsilon 2",
    ),
    "plan": (
        'symdp plan gaussian --sampling poisson --rate q -n 200 --minimize "sigma/q"'
        " --range sigma=1:20 --range q=0.01:0.2 --epsilon 2 --delta 1e-5",
    ),
    "compare": ("symdp compare gaussian laplace student_t nu=5 --std 20 -n 50 --delta 1e-5",),
    "design": ("symdp design --std 4 -n 8 --delta 1e-6 -o best.toml",),
    "sample": ("symdp sample discrete_laplace b=2 --size 5 --seed 1",),
    "plot": ("symdp plot laplace b=2 -o laplace.svg",),
    "tradeoff": ("symdp tradeoff gaussian sigma=4 -n 10 --alpha 0.001,0.01 --plot attack.svg",),
    "renyi": ("symdp renyi laplace b=2 -n 10 --order 2,8",),
    "audit": (
        "symdp audit --tp 90/100 --fp 5/100 --delta 1e-5",
        "symdp audit gaussian sigma=5 -n 1 --tp 200/400 --fp 40/400",
    ),
    "train": (f"symdp train {_RUN} --delta 1e-5", f"symdp train {_PLAN} --delta 1e-5"),
    "card": (
        f"symdp card {_RUN} -o card.json",
        "symdp card --check card.json",
        f"symdp card {_RUN} --registry card.yaml",
    ),
    "ledger add": (
        "symdp ledger add budget.json gaussian sigma=2 --sampling poisson --rate 1/100 -n 600",
        'symdp ledger add budget.json laplace b=10 --note "mean age" --user ada',
    ),
    "ledger epsilon": ("symdp ledger epsilon budget.json --delta 1e-5",),
    "ledger show": (
        "symdp ledger show budget.json",
        "symdp ledger show budget.json --by note --delta 1e-5",
    ),
    "ledger plot": ("symdp ledger plot budget.json --delta 1e-5 --epsilon 3 -o spent.svg",),
    "explore": ("symdp explore gaussian sigma=1.12 --sampling poisson -n 14063 -o page.html",),
    "report": ("symdp report gaussian sigma=2 -n 10 -o report.html",),
    "individual": (
        "symdp individual norms.npy --multiplier 1 --clip 1 --rate 0.01 --delta 1e-5"
        " --layout steps-records",
    ),
    "filter new": ("symdp filter new budget.json --epsilon 2 --delta 1e-6",),
    "filter ask": ("symdp filter ask budget.json 0.1",),
    "filter commit": ("symdp filter commit budget.json 0.1 --step 1",),
    "filter status": ("symdp filter status budget.json",),
}
