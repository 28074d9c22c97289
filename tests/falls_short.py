"""Cases that hold a promise which the package does not keep today, and by how much it misses it.

Each is run and may fail. Some pass on processors whose roundings fall otherwise; of one that passes
everywhere the line goes.
"""

from __future__ import annotations

FALLS_SHORT = {
    "tests/numeric/test_narrow_modes.py::test_a_rare_narrow_mode_far_away": (
        "the upper end is 6.5e-8 of δ above the truth, not 1e-10"
    ),
    **{
        "tests/prove/test_singular_ends.py::"
        f"test_a_loss_made_of_squares_of_sines_is_known_to_rise[{epsilon}]": (
            f"an estimate whose interval is {width} of δ wide, not 1e-8"
        )
        for epsilon, width in {"0.05": 0.14, "0.2": 5e-4}.items()
    },
    "tests/prove/test_enclosure.py::"
    "test_what_cannot_be_proved_to_so_many_digits_is_proved_to_six": (
        "a hundred digits are refused with the advice to ask for fewer, and six are not given"
    ),
    "tests/numeric/test_two_steps.py::"
    "test_two_steps_hold_what_nested_quadratures_give[two laws-2.5-remove]": (
        "no tilt above 0 has a moment: a bound whose interval is 8e-4 wide, not 2e-11"
    ),
    "tests/numeric/test_stretch.py::test_two_steps[triangle-10-remove-0.03]": (
        "the interval is 1.7e-9 wide, not 1e-11"
    ),
    **{
        "tests/numeric/test_turning_losses.py::"
        f"test_two_sampled_steps_whose_loss_turns_against_an_integral_over_one[{epsilon}]": (
            f"an estimate whose interval is {width} of δ wide, not 1e-4"
        )
        for epsilon, width in {"-0.005": 0.7, "0.001": 0.9, "0.3": 3e-3}.items()
    },
    "tests/numeric/test_turning_losses.py::test_two_sampled_steps_next_to_whose_least_loss_densities"
    "_grow_without_end[shapes-20--0.004]": "the interval is 1.5e-6 of δ wide on some processors",
    "tests/numeric/test_turning_losses.py::test_two_sampled_steps_next_to_whose_least_loss_densities"
    "_grow_without_end[shapes_without_end-160-0.2]": (
        "an estimate whose interval is 0.017 of δ wide, not 1e-4"
    ),
    "tests/numeric/test_few_steps.py::test_ten_sampled_steps_as_certified"
    "[exp(-|x|**3) noise-2.0]": "the interval is 1.7e-6 of δ wide, not 1e-9",
    **{
        f"tests/balls/test_modes.py::test_kinds_of_densities_are_decided[density{number}-False]": (
            "it is not decided whether a density of waves, or of two humps, rises again"
        )
        for number in (5, 7)
    },
    "tests/numeric/test_radial.py::test_other_noise_is_what_draws_show[10-rate5-10-0.4-exp 4]": (
        "the interval is 5.7e-8 of δ wide, not 1e-9"
    ),
    "tests/numeric/test_honesty.py::test_bounds_hold_where_roundings_are_not_small"
    "[losses that crowd at the least one]": "the interval is 1.2e-6 of δ wide, not 1e-10",
    "tests/numeric/test_few_steps.py::test_ten_sampled_steps_as_certified"
    "[laplace against gaussian-5.0]": "the interval is 9.2e-7 of δ wide, not 1e-9",
    "tests/numeric/test_narrow_modes.py::test_a_narrow_mode_far_from_a_wide_one[4]": (
        "the upper end is 2.9e-10 of δ above the truth, not 3e-11"
    ),
    "tests/numeric/test_few_steps.py::test_where_nothing_lies_between_single_values[ten]": (
        "the interval is 2.1e-7 of δ wide, not 1e-8"
    ),
    "tests/numeric/test_finite_integers.py::test_finitely_many_integers_are_composed[mixed]": (
        "refused: a coefficient that is 0 at an end of the support has no value there in balls"
    ),
    "tests/numeric/test_many_steps.py::test_ten_thousand_distinct_sampled_steps": (
        "the interval is 1.02e-11 wide, not 1e-11"
    ),
    "tests/numeric/test_large_losses.py::test_few_steps_against_proofs[1/1000-4-0.5]": (
        "twelve digits are not certified"
    ),
    "tests/numeric/test_honesty.py::test_bounds_are_narrow_and_hold_for_very_many_steps"
    "[heavy tails whose loss is bounded]": "the sum of so many steps is too large for a proof",
    "tests/numeric/test_honesty.py::test_bounds_are_narrow_and_hold_for_very_many_steps"
    "[a tail of 1e-132]": "the interval is 6e-11 wide, not 3e-12",
    "tests/numeric/test_honesty.py::test_bounds_are_narrow_and_hold_for_very_many_steps[student]": (
        "the interval is 9.5e-12 wide, not 3e-12"
    ),
    "tests/methods/test_msd.py::test_sane_for_every_epsilon[20.0]": (
        "msd:2 warns of next terms of 0.018 of δ where its answer is within 1 %"
    ),
}
