"""From the words of a command line to a panel of sliders."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from symdp.cli import job as words
from symdp.cli.job import Job
from symdp.errors import InputError

if TYPE_CHECKING:
    from symdp.model.mechanism import Mechanism
    from symdp.page.panel import Panel

_RATE = "q"  # the name of a sampling rate that has no other


def panel_of(job: Job) -> Panel:
    """Return the panel of a job: its values are where the sliders begin.

    Raises
    ------
    InputError
        If the job composes several mechanisms, which no program does.
    """
    from symdp.page.panel import Panel

    values = dict(word.partition("=")[::2] for word in job.values)
    if job.composition is not None:
        composition = job.build()
        if len(composition.steps) != 1:
            raise InputError(
                f"{job.composition}: it composes {len(composition.steps)} mechanisms, and a page "
                f"computes with one: symdp epsilon --composition {job.composition} answers for all"
            )
        composition.accounted.require_one_sign(f"{job.composition}: a page")
        mechanism, count = composition.steps[0]
        command = f"--composition {job.composition}"
        python = f"symdp.compose(symdp.load_composition({job.composition!r}))"
        return Panel(mechanism.name, mechanism, {"n": str(count)}, command, python)
    # A group of sampled records is a matter of the sampling.
    group = None if job.sampling is not None else job.group
    unbound = replace(job, values=[], rate=None, sampling=None, relation=None, group=group)
    mechanism = unbound.build_mechanism()
    given = words.bindings(job.values)
    mechanism(**given)  # where a value breaks a rule, this says so
    # A program integrates no mass: what one depends on keeps its value, and has no slider.
    fixed = {name: given[name] for name in _of_masses(mechanism) & given.keys()}
    slid = {p.name: values[p.name] if p.name in fixed else f"{{{p.name}}}"
            for p in mechanism.declared}  # fmt: skip
    mechanism = mechanism(**fixed)
    values = {name: value for name, value in values.items() if name not in fixed}
    name = str(job.mechanism)
    own = " ".join(f"{key}={value}" for key, value in slid.items())
    called = ", ".join(
        f'{key}="{value}"' if key in fixed else f"{key}={value}" for key, value in slid.items()
    )
    is_file = name.endswith(".toml")
    made = f"symdp.load({name!r})" if is_file else f"symdp.mechanisms.{name}"
    python = f"{made}({called})" if called else made
    command = f"{name} {own}".strip()
    if job.shift is not None:
        command += f" --shift {job.shift}"
        python += f'.shifted("{mechanism.shift}")'
    if job.sampling is not None:
        rate = _RATE if _RATE not in mechanism.parameters else "rate"
        mechanism = job.subsampled(mechanism, job.sampling, rate)
        if job.rate is not None:
            values[rate] = job.rate
        command += f" --sampling {job.sampling} --rate {{{rate}}}"
        python += f'.subsample("{job.sampling}", {{{rate}}})'
    if job.relation is not None:
        mechanism = mechanism.under(job.relation.replace("-", "_"))
        command += f" --relation {job.relation}"
        python += f'.under("{job.relation}")'
    if job.count is not None:
        values["n"] = job.count
    return Panel(
        mechanism.title or mechanism.name,
        mechanism,
        values,
        f"{command} -n {{n}}",
        f"symdp.compose({python}, {{n}})",
        told=job.told,
    )


def _of_masses(mechanism: Mechanism) -> set[str]:
    """Return the parameters that the mass of a density depends on."""
    from symdp.emit.mass import MassIntegral

    pair = replace(mechanism, sampling=None, relation=None).pair()
    laws = [law for law in pair.components if not isinstance(law, tuple)]
    laws += [mass for _, masses in pair.atoms for mass in masses]
    masses = [mass for law in laws for mass in law.atoms(MassIntegral)]
    return {str(symbol.name) for mass in masses for symbol in mass.free_symbols}
