#pragma once

#include "attsvm/theory.h"

namespace attsvm::internal {

// The experiments, one per claim; the table in claims.cpp describes each of them.
using ClaimTest = ClaimResult(const Claim&, const ClaimSettings&, Threads&);

ClaimTest test_separability, test_rank;
ClaimTest test_capacity_always, test_capacity_count, test_capacity_law;
ClaimTest test_divergence;
ClaimTest test_direction, test_sequence, test_fixed_slope, test_global, test_first_gradient, test_kq_bias;
ClaimTest test_local, test_necessity, test_over_parametrization;
ClaimTest test_path_w, test_path_kq, test_path_p, test_joint_tight, test_joint_loose;
ClaimTest test_steepest, test_steepest_kq, test_adam_pace, test_adam_turn;
ClaimTest test_next_token;
ClaimTest test_decay, test_dropout, test_smoothing, test_batches, test_batches_normalized;
ClaimTest test_entropy_direction, test_entropy_locks, test_noise;
ClaimTest test_positions;
ClaimTest test_heads, test_heads_level, test_heads_divide;
ClaimTest test_layers_live, test_layers_all, test_layers_values, test_layers_mlp;
ClaimTest test_lemma, test_equivalence_relu, test_equivalence_quadratic;

}  // namespace attsvm::internal
