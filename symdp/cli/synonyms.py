"""What other libraries call an option: taken for ours, or named where it means something else."""

from __future__ import annotations

from collections.abc import Sequence

from symdp.errors import InputError

_OF_TRAINING = {
    "--noise-multiplier": "--noise", "--sigma": "--noise", "--z": "--noise",
    "--batch-size": "--batch", "--bs": "--batch", "--lot-size": "--batch",
    "--n": "--examples", "--N": "--examples", "--num-examples": "--examples",
    "--dataset-size": "--examples", "--number-of-examples": "--examples", "--samples": "--examples",
    "--eps": "--target-epsilon", "--epsilon": "--target-epsilon",
    "--target-eps": "--target-epsilon", "--target-delta": "--delta",
    "--num-epochs": "--epochs", "--num-steps": "--steps", "--iterations": "--steps",
}  # fmt: skip
_OF_OTHERS = {
    "--eps": "--epsilon", "--target-epsilon": "--epsilon", "--target-delta": "--delta",
    "--n": "-n", "--num-steps": "-n", "--num-compositions": "-n",
    "--sample-rate": "--rate", "--sampling-rate": "--rate", "--sampling-probability": "--rate",
    "--q": "--rate",
}  # fmt: skip
_MEANT = {
    "--sample-rate": "symdp train has no --sample-rate: give --examples N and --batch B, whose "
    "ratio is the rate",
    "--max-grad-norm": "the clip norm changes no ε: --noise is the noise over it; leave "
    "--max-grad-norm out",
}
_PARAMETERS = ("--noise-multiplier", "--sigma", "--noise")


def ours(words: Sequence[str]) -> list[str]:
    """Return the words of a command line, the options of other libraries by our names.

    Raises
    ------
    InputError : an option that means something which symdp asks for in another way.

    >>> ours(["train", "--noise_multiplier=1.1", "--batch-size", "256"])
    ['train', '--noise=1.1', '--batch', '256']
    """
    if not words:
        return []
    is_training = words[0] in ("train", "card")
    names = _OF_TRAINING if words[0] == "train" else {} if is_training else _OF_OTHERS
    found = []
    for word in words:
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            found.append(word)
            continue
        name = name.replace("_", "-")
        if is_training and name in _MEANT:
            raise InputError(_MEANT[name])
        if words[0] in ("delta", "epsilon", "curve", "certify") and name in _PARAMETERS:
            raise InputError(f"{name}: a parameter is written NAME=VALUE here, as in sigma=1.1")
        found.append(names.get(name, name) + equals + value)
    return found
