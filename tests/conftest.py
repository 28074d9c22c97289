"""What every test may rely on."""

from __future__ import annotations

import os
from collections.abc import Iterator

import flint
import mpmath
import pytest
from shell import Shell

# Nothing that a user's own derivations left on the disk may decide a test.
os.environ["SYMDP_CACHE"] = "off"

# Single cases of quick tests that were measured to take over about eight seconds.
SLOW_CASES = (
    "test_contains_the_contour[gumbel-1]",
    "test_contains_the_contour[with replacement-10]",
    "test_contains_the_contour[logistic-10]",
    "test_contains_the_contour[mixture noise-10]",
    "test_contains_the_contour[two variances-10]",
    "test_contains_the_contour[student-10]",
    "test_always_a_number_and_advice_where_it_is_wrong[gumbel-1]",
    "test_always_a_number_and_advice_where_it_is_wrong[with replacement-10]",
    "test_always_a_number_and_advice_where_it_is_wrong[logistic-10]",
    "test_always_a_number_and_advice_where_it_is_wrong[mixture noise-10]",
    "test_always_a_number_and_advice_where_it_is_wrong[two variances-10]",
    "test_always_a_number_and_advice_where_it_is_wrong[student-10]",
    "test_python_gives_the_package_s_series[subsampled gaussian-1]",
    "test_python_gives_the_package_s_series[gumbel added-1]",
    "test_convolution_agrees_with_the_contour",
    "test_far_below_every_double",
    "test_densities_pass[three narrow peaks]",
    "test_against_truth[add-two variances]",
    "test_gaussian_closed_form[36.5-2-1/2]",
    "test_profile_decreases_and_is_kept",
    "test_a_loss_made_of_squares_of_sines_is_known_to_rise[0.2]",
    "test_delta_falls_across_the_valley",
    "test_what_comes_back_rarely_leaves_narrow_bounds[100]",
    "test_step_mu_dominates_the_step",
    "test_delta_agrees_with_one_record_at_a_time_far_down",
    "test_many_draws_are_summed_to_a_proved_remainder",
    "test_always_a_number_and_advice_where_it_is_wrong[with replacement-1]",
    "test_always_a_number_and_advice_where_it_is_wrong[with replacement-1000000]",
    "test_never_below_the_contour_and_equal_to_moments[with replacement-10]",
)

# Further points of a path that another case of the same test still takes in the quick run.
REPEATED = (
    "test_what_the_cut_off_changes_by_quadrature[0.3-1.7]",
    "test_a_thin_slice[substitution-1-add]",
    "test_log_delta_of_a_gaussian_in_the_central_regime[3]",
    "test_what_is_moved_to_infinity_keeps_its_transform[chi-square-1/100]",
    "test_what_is_moved_to_infinity_keeps_its_transform[burr-]",
    "test_what_is_moved_to_infinity_keeps_its_transform[arcsine and uniform-1/100]",
    "test_ten_sampled_steps_are_added_as_certified[laplace against gaussian-5.0]",
    "test_fifty_steps_on_and_off_a_sum_of_atoms[5-2.0]",
    "test_every_accuracy_contains_the_next[its loss turns twice]",
    "test_against_truth[remove-far]",
    "test_lattices_however_fine_agree_with_certified_values[two kinds of noise-1.5]",
    "test_tail_bounds_hold_for_sums[fixed batches-P]",
    "test_tail_bounds_hold_for_sums[fixed batches-Q]",
    "test_few_steps_are_certified[sampled tails]",
    "test_contains_the_truth[few subsampled laplace]",
    "test_the_saddle_point_in_the_central_regime[2-laplace]",
    "test_the_saddle_point_in_the_central_regime[1-laplace]",
    "test_both_directions_give_the_larger_of_the_two[unlike steps-0.25]",
    "test_zeros_of_cosines_are_moved_to_infinity[raised cosine noise-]",
    "test_measured_order[6-4]",
    "test_never_below_the_contour_and_equal_to_moments[logistic-10]",
    "test_against_truth[remove-student]",
    "test_against_truth[remove-logistic]",
    "test_what_is_moved_to_infinity_keeps_its_transform[weibull scales-]",
    "test_what_is_moved_to_infinity_keeps_its_transform[levy scales-]",
    "test_what_is_moved_to_infinity_keeps_its_transform[arcsine and uniform-]",
    "test_payoff_integrals[-1.7--0.2]",
    "test_payoff_integrals[0.0--0.7]",
    "test_payoff_integrals[0.9--0.2]",
    "test_every_expression_reads_back_equal[student_t]",
    "test_every_expression_reads_back_equal[sampled]",
    "test_mathml_and_html_are_well_formed[student_t]",
    "test_json_holds_everything_and_survives_a_round_trip[student_t]",
    "test_few_steps_are_certified[five bounded]",
    "test_few_steps_are_certified[doubly]",
    "test_always_a_number_and_advice_where_it_is_wrong[substitution-10]",
    "test_contains_the_contour[with replacement]",
    "test_sub_gaussian_constants_hold_on_their_interval[laplace-Q]",
    "test_van_der_corput_constants_bound_the_characteristic_function[logistic]",
    "test_both_lines_agree[mass at infinity]",
    "test_where_the_loss_turns_both_ways_agree[remove--0.6]",
    "test_every_value_lies_between_its_bounds[prv-sampled gaussian]",
    "test_every_value_lies_between_its_bounds[tilted-prv-laplace]",
    "test_epsilon_is_the_larger_of_both_directions[symmetric]",
    "test_always_a_number_and_advice_where_it_is_wrong[substitution-1]",
    "test_bounds_are_narrow_and_hold_for_very_many_steps[student]",
    "test_two_sampled_steps_next_to_whose_least_loss_densities_grow_without_end"
    "[shapes_without_end-160-0.2]",
    "test_a_batch_without_replacement[logistic]",
    "test_a_group_without_replacement[logistic]",
    "test_draws_with_replacement[logistic]",
    "test_a_group_without_replacement[student]",
    "test_draws_with_replacement[student]",
    "test_payoff_integrals[-1.7--0.7]",
    "test_payoff_integrals[0.0--0.2]",
    "test_payoff_integrals[0.9--0.7]",
    "test_payoff_integrals[-1.7--1.4]",
    "test_against_truth[remove-quartic]",
    "test_against_truth[remove-two variances]",
    "test_every_value_lies_between_its_bounds[tilted-prv-sampled gaussian]",
    "test_every_value_lies_between_its_bounds[tilted-prv-gaussian]",
    "test_a_certificate_prints_its_value_between_its_ends[40]",
    "test_lattices_however_fine_agree_with_certified_values[two kinds of noise--1.0]",
    "test_lattices_however_fine_agree_with_certified_values[two kinds of noise-0.3]",
    "test_lattices_however_fine_agree_with_certified_values[fine--1.0]",
    "test_lattices_however_fine_agree_with_certified_values[fine-0.3]",
    "test_single_values_beside_a_spread_loss_agree_with_certified_values[two lattices-0.3]",
    "test_a_rare_large_loss_on_single_values[a hundred]",
    "test_two_halves_and_the_integral_agree[mechanism1-12]",
    "test_many_steps_against_one_jump[100]",
    "test_a_loss_made_of_squares_of_sines_is_known_to_rise[0.05]",
    "test_densities_with_an_essential_singularity_pass[inverse gamma]",
    "test_densities_with_an_essential_singularity_pass[frechet scales]",
    "test_the_two_directions_mirror_each_other[pair3-2-0.4-convolution]",
    "test_a_loss_that_is_a_single_value_most_of_the_time[10-100-1.0]",
    "test_where_the_loss_turns_the_split_bound_holds[mixture]",
    "test_tail_bounds_hold_for_sums[logistic-Q]",
    "test_tail_bounds_hold_for_sums[student t-P]",
    "test_against_truth[add-quartic]",
    "test_two_sampled_steps_next_to_whose_least_loss_densities_grow_without_end"
    "[shapes_without_end-160--0.004]",
    "test_two_sampled_steps_next_to_whose_least_loss_densities_grow_without_end[shapes-20-0.2]",
    "test_what_the_cut_off_changes_by_quadrature[0.3--0.4]",
    "test_a_thousand_sampled_steps_agree_with_certified_values[noise-0.5]",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow cases."""
    for item in items:
        if item.name in SLOW_CASES or item.name in REPEATED:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _restored_precision() -> Iterator[None]:
    """Restore the precision that mpmath and FLINT share among all code in a process."""
    digits, bits = mpmath.mp.dps, flint.ctx.prec
    yield
    mpmath.mp.dps, flint.ctx.prec = digits, bits


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in this process."""
    return Shell(capsys)
