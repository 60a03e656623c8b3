#pragma once

#include "attsvm/train.h"

namespace attsvm::internal {

/// Runs of one shape, one per vector lane: number k of run l is entry k·lanes + l of an array. Arrays begin at cache
/// lines. For linear heads in exact arithmetic.
///
/// A run stores u_i = W z_i and a_i with W = W_0 + Σ_i a_i z_iᵀ instead of W, so that a step costs n² d operations and
/// not n d dz. In the same way it stores s_i = Qᵀz_i and a_i with Q = Q_0 + Σ_i z_i a_iᵀ instead of Q; K is stored
/// whole. A run gives the same bits in any lane of any width, alone or among others.
///
/// Optimizers that need the entries of the arrays have them whole: W stands in place of K, with r = dz and s_i = z_i,
/// or Q beside K. lane_gradient then only finds change_K and change_Q, and lane_step moves the arrays.
struct LaneGroup {
  Index lanes = 1;  ///< 1, or lane_width()
  Index n = 0, T = 0, d = 0;
  Index r = 0;         ///< columns of K and Q; 0: W is trained
  Index dz = 0;        ///< rows of Q
  bool whole = false;  ///< the trained arrays are stored whole
  Loss loss = Loss::logistic;
  bool normalized = true;  ///< divide each array's gradient by its norm (ngd); else gd
  bool ragged = false;     ///< some queries see fewer than T tokens
  double epsilon = 0;      ///< added to the norm of the gradient

  // The tasks.
  double *X = nullptr, *gamma = nullptr;  ///< keys (n,T,d), scores with the label (n,T)
  double* gram = nullptr;                 ///< z_i · z_k (n,n)
  double* Z = nullptr;                    ///< queries (n,dz), beside Q
  double* visible = nullptr;              ///< (n)

  // The point.
  double* reach = nullptr;  ///< u_i (n,d), or s_i (n,r)
  double* added = nullptr;  ///< a_i, as `reach`
  double* K = nullptr;      ///< (d,r)
  double* Q = nullptr;      ///< (dz,r), if it is trained and stored whole

  // What lane_gradient finds there.
  double* f = nullptr;                ///< y_i f_i (n)
  double *g = nullptr, *c = nullptr;  ///< descent direction Σ_i c_i g_i z_iᵀ e^{top}/n: (n,d), (n)
  double* top = nullptr;              ///< (1)
  double* square = nullptr;           ///< squared norms, without e^{top}/n, of the directions of W, or of K and Q (2)

  double *u = nullptr, *m = nullptr;                                   ///< scratch: K s_i (n,d), Kᵀ g_i (n,r)
  double *change = nullptr, *change_K = nullptr, *change_Q = nullptr;  ///< directions of `reach`, K and Q
  double* work = nullptr;                                              ///< scratch: 2T + n numbers
};

/// How many runs a vector holds on this machine.
Index lane_width();

/// Forward and backward of all runs of a group.
void lane_gradient(LaneGroup& group);

/// One step with the gradient that lane_gradient found, unless the arrays are whole. Runs with zero gradient do not
/// move.
void lane_move(LaneGroup& group, double step);

}  // namespace attsvm::internal
