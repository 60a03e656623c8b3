#include <fmt/format.h>

#include <array>

#include "attsvm/theory.h"
#include "base/nearest.h"
#include "base/refuse.h"
#include "theory/claim_tests.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::array kClaims{
    Claim{"separability",
          "With d >= T-1 and linearly independent queries (so dz >= n) a generic cross-attention task has a W "
          "for every selection; a prompt task has one if d >= n(T-1). Both are sufficient, neither is necessary.",
          "Abstract of arXiv 2308.16898: over-parameterization ensures that the SVM is feasible. The conditions are in "
          "our words.",
          "random cross and prompt tasks exactly at the bound, (n,T,d,dz) = (3,4,3,3), (2,5,4,2), (4,3,2,4) and "
          "prompts (2,4,6), (3,3,6), (3,4,9), all T^n selections of each; held: every one is solved",
          "share of a task's selections without a W", 90, test_separability},
    Claim{"capacity-always",
          "Unit tokens and queries in general position: every selection is separable if n <= dz*max(1, floor(d/(T-1))) "
          "(cross and prompt attention, d >= 2) or n <= d (self attention, d >= 2).",
          "The statement is ours, with a proof (sizes, in the documentation). It contains d >= T-1 with linearly "
          "independent queries.",
          "random tasks exactly at the bound: cross (n,T,d,dz) = (6,3,4,3), (8,2,4,2), (4,12,2,4), (3,20,3,3), "
          "(12,4,7,6), prompts (3,3,6), (4,2,4), self attention (5,9,5); 8 random selections of each; held: all are "
          "solved",
          "share of a task's selections without a W", 96, test_capacity_always},
    Claim{"capacity-count",
          "Half of all random selections are separable where rows and unknowns meet Cover's count n(T-1) = 2*d*dz.",
          "The statement is ours. For T = 2 it is Cover's theorem; for T > 2 it is a conjecture.",
          "36 unknowns: cross and self attention with d = dz = 6, prompts with d = 36; T = 2, 3, 5, 7, 9 and n = "
          "72/(T-1); a task is a size, 100 random selections are solved at each; held: the share of separable ones is "
          "within 0.15 of 1/2, three standard errors",
          "distance of the share from 1/2", 15, test_capacity_count},
    Claim{"capacity-law",
          "The share of separable selections is what the conic kinematic formula gives for n cones in general "
          "position, each with the law of a query's own rows; half are separable where n times the statistical "
          "dimension of a query's rows is d*dz.",
          "The statement is ours. For T = 2 it is Cover's theorem; for T > 2 it is a conjecture.",
          "the sizes of capacity-count with n = d*dz/dimension, rounded; 100 random selections each; held: the share "
          "of separable ones is within 0.15 of the formula",
          "distance of the share from the formula", 15, test_capacity_law},
    Claim{"divergence",
          "If the optimal tokens are separable, and the other scores of each input are equal or the other "
          "tokens are all support tokens, then the gradient has a negative product with W^mm at every W, and "
          "|W| grows without bound.",
          "Abstract of arXiv 2308.16898: over-parameterization guarantees a landscape without stationary points. The "
          "two conditions are in our words.",
          "tasks (6,8,10) with equal other scores and (3,4,24) of support tokens alone; 31 points W of norms 0 "
          "to 1000 and a run from a random start; held: every product whose sign is above rounding (1e-12) is "
          "negative, the run goes on along W^mm at every record, and its norm grows at both last doublings of "
          "2,000 steps",
          "largest cosine between gradient and W^mm", 48, test_divergence},
    Claim{"direction", "The direction of W tends to that of W^mm of the tokens that training selects.",
          "Abstract of arXiv 2306.13596: gradient descent on p, or equivalently W, converges in direction to a "
          "max-margin solution that separates locally-optimal tokens from the others. Abstract of arXiv "
          "2308.16898: the direction can be a locally optimal one.",
          "random tasks (6,8,10), 20,000 normalized steps of 0.1 from zero; held: 1 - correlation <= 1e-4",
          "1 - correlation at the end", 100, test_direction},
    Claim{"global",
          "If the optimal tokens are separable and the other scores of each input are equal, every start "
          "reaches W^mm of the optimal tokens. With several inputs this is false: docs/claims.md has a "
          "counter-example of two inputs, with its proof.",
          "The statement is ours. Abstract of arXiv 2308.16898: local or global convergence of gradient descent under "
          "suitable geometric conditions.",
          "tasks (6,8,10) with equal other scores, 20,000 normalized steps of 0.1 from random W of norm 1 and "
          "10 and from 10 straight away from W^mm; held: 1 - correlation <= 1e-4 from all three; beside them as "
          "many tasks of one input (1,8,10), and the two-input example from its start",
          "largest 1 - correlation of the three runs", 32, test_global},
    Claim{"first-gradient",
          "If the first gradient step already separates the optimal tokens, a run started far enough along it "
          "reaches W^mm of the optimal tokens.",
          "Abstract of arXiv 2308.16898: local or global convergence of gradient descent under suitable "
          "geometric conditions. This condition is in our words.",
          "random tasks (3,4,24) whose negative gradient at zero separates with margin 0.1 of its length, "
          "started along it with every optimal token 20 logits ahead, 40,000 normalized steps of 0.5; held: the "
          "optimal tokens are selected and 1 - correlation <= 1e-4",
          "1 - correlation at the end", 32, test_first_gradient},
    Claim{"local",
          "If every selected token scores above its support tokens, runs that start in a narrow cone around "
          "W^mm of the selection, far out, stay there and converge to it.",
          "Abstract of arXiv 2306.13596: convergence in direction to a max-margin solution that separates "
          "locally-optimal tokens. The cone and its size are in our words.",
          "random tasks (3,5,5), a locally optimal selection that is not optimal, start beside the ray of W^mm, "
          "far enough out that its support tokens are 40 logits behind and outweigh all others, 20,000 "
          "normalized steps of 0.1; held: the selection stays and 1 - correlation <= 1e-4",
          "1 - correlation at the end", 48, test_local},
    Claim{"necessity",
          "If some support token scores above the selected one, training does not converge to W^mm of the selection.",
          "The statement is ours.",
          "random tasks (3,5,5), a separable selection with such a support token, start beside the ray of W^mm "
          "with support tokens 40 logits behind, 20,000 normalized steps of 0.1; held: the run ends at another "
          "selection",
          "correlation with W^mm of the selection at the end", 48, test_necessity},
    Claim{"over-parametrization",
          "As d grows, more runs end at the optimal tokens, and more tokens are support tokens.",
          "Abstract of arXiv 2308.16898: over-parameterization catalyzes global convergence. Sizes and measures are "
          "ours.",
          "a task is a sweep over d = 2, 4, 8, 16, 32 with 24 random tasks (5,5,d) each, 4,000 normalized steps "
          "of 0.1 from zero; held: the share of global runs is larger at d = 32 than at d = 2 and the share of "
          "support tokens grows at every doubling",
          "smallest gain, sign reversed", 8, test_over_parametrization},
    Claim{"kq-bias",
          "Training (K,Q) without regularization aligns with the nuclear-norm solution better than with the "
          "Frobenius one.",
          "The statement is ours. Abstract of arXiv 2308.16898: with vanishing regularization (K,Q) converges "
          "in direction to the solution of least nuclear norm; path-KQ tests that.",
          "random tasks (6,8,10), 5,000 normalized steps of 0.1 from random K and Q, both SVMs of the selected "
          "tokens; held: the correlation with the nuclear solution is larger",
          "correlation with the Frobenius less that with the nuclear solution", 48, test_kq_bias},
    Claim{
        "steepest",
        "Conjecture: steepest descent in a norm (Frobenius, largest entry, spectral, sum of entries, nuclear) turns W "
        "to the largest margin in that norm.",
        "The statement is ours for softmax attention. Proven elsewhere for linear models: arXiv 2502.04664 (entrywise "
        "and Schatten norms).",
        "random tasks (6,8,10), 3,000 steps from zero in each of the five norms, the SVMs of the tokens that each run "
        "selects; held: every run's share of the largest margin is larger in its own norm than in the other four, "
        "and larger than at step 300",
        "largest share in another norm, or at step 300, less that in the own norm at the end", 32, test_steepest},
    Claim{
        "steepest-kq",
        "Conjecture: with W = K Q', gradient descent on K and Q turns W to the largest margin in the nuclear norm, and "
        "spectral descent on each of them to that in the spectral norm.",
        "The statement is ours. Abstract of arXiv 2308.16898, for vanishing regularization instead of training: (K,Q) "
        "converges in direction to the solution of least nuclear norm.",
        "random tasks (6,8,10), random K and Q, 3,000 normalized steps of 0.1 and 6,000 spectral ones of 0.01, the "
        "SVMs "
        "of the tokens that each run selects; held: both runs' share of the largest margin is larger in the norm "
        "named than in the other four of steepest, and larger than after a tenth of the steps",
        "largest share in another norm, or after a tenth of the steps, less that in the norm named at the end", 32,
        test_steepest_kq},
    Claim{"adam-pace",
          "Adam without epsilon raises the smallest gap by r per step in the long run, where r = step margin "
          "(1-b1)/(1-b1 "
          "e^r) sqrt((1-b2 e^2r)/(1-b2)) and margin is the largest one in the norm of the largest entry.",
          "The statement is ours. Proven elsewhere for linear models: arXiv 2406.10650 (Adam without epsilon maximises "
          "the margin in the norm of the largest entry).",
          "random tasks (6,8,10), b1 = 0.9, b2 = 0.9, 0.95 and 0.98, 6,000 steps of 0.01 from zero; held: the growth "
          "over the second half is within 10 % of r for all three",
          "largest relative error of r", 48, test_adam_pace},
    Claim{
        "adam-turn",
        "Adam without epsilon has found its SVM once t (1-b2 e^2r) is well above 1 after t steps (r as in adam-pace), "
        "and is far from it while that is well below 1: second moments still hold early gradients.",
        "The statement is ours.",
        "random tasks (6,8,10), b1 = 0.9, 6,000 steps of 0.03 from zero; held: with b2 = 0.9 that number is at least "
        "20 and the share of the largest margin at least 0.85, with b2 = 0.995 it is at most 0.1 and the share at "
        "most 0.7",
        "how far a share is on the wrong side", 48, test_adam_turn},
    Claim{"rank", "W^mm and its nuclear-norm counterpart have rank at most min(n, d, dz).",
          "The statement is ours: an SVM solution can be taken in the span of the tokens' differences on one "
          "side and of the queries on the other.",
          "random separable tasks (5,5,10), (10,5,5), (10,5,20), (5,15,20), (8,4,12,dz=4), (6,8,10), optimal "
          "tokens; held: both numerical ranks are within the bound",
          "rank above the bound", 90, test_rank},
    Claim{
        "path-W", "The minimiser of the loss over |W| <= R tends in direction to W^mm of the optimal tokens.",
        "Abstract of arXiv 2308.16898: with vanishing regularization, training W minimizes a Frobenius norm objective.",
        "random separable tasks (3,4,5), R = 1, 10, 100, 1000, best of 4 random starts and the ray of W^mm; "
        "held: 1 - correlation <= 1e-3 at R = 1000 and first-order conditions to 1e-8 at every R",
        "1 - correlation at R = 1000", 48, test_path_w},
    Claim{"path-KQ",
          "The minimiser of the loss over |K|^2 + |Q|^2 <= 2R tends in direction to the nuclear-norm solution "
          "of the optimal tokens.",
          "Abstract of arXiv 2308.16898: with vanishing regularization, training (K,Q) converges in direction "
          "to the SVM solution of least nuclear norm.",
          "random separable tasks (3,4,5) whose nuclear solution is certified to be the only one, R = 1, 10, "
          "100, 1000, best of 4 random starts and the predicted ray; held: 1 - correlation <= 1e-3 at R = 1000 "
          "and first-order conditions to 1e-8 at every R",
          "1 - correlation at R = 1000", 48, test_path_kq},
    Claim{"path-p",
          "The minimiser of the loss over prompts |p| <= R tends in direction to the p-SVM of the optimal tokens.",
          "Abstract of arXiv 2306.13596: a regularization path analysis establishes that attention maximizes margins.",
          "random separable prompt tasks (2,4,6), R = 1, 10, 100, 1000, best of 4 random starts and the ray of "
          "p^mm; held: 1 - correlation <= 1e-3 at R = 1000 and first-order conditions to 1e-8 at every R",
          "1 - correlation at R = 1000", 48, test_path_p},
    Claim{"joint-tight",
          "Minimised together over growing balls, the head tends to the v-SVM of the tokens that labels are "
          "told apart by best, and the prompt to their p-SVM, if all inputs are support vectors of the v-SVM.",
          "Abstract of arXiv 2306.13596: there are conditions under which the regularization paths of v and p "
          "converge in direction to their hard-margin SVM solutions. This condition is in our words.",
          "random prompt tasks (3,3,6) in which one selection has a clearly largest label margin, all inputs on "
          "it, R = 1, 10, 100, 1000 for both balls, best of 4 starts; held: 1 - correlation <= 1e-3 for p and v "
          "at R = 1000 and first-order conditions to 1e-8 at every R",
          "larger 1 - correlation of p and v at R = 1000", 24, test_joint_tight},
    Claim{"joint-loose",
          "If some inputs are no support vectors of the v-SVM, the prompt tends, to leading order, to the p-SVM "
          "in which input i needs a margin of max(0, 1 - r(f_i - Gamma)/(R Xi)) instead of 1: r and R the radii "
          "of head and prompt, f_i the value that the v-SVM's direction gives input i, Gamma the least of them, "
          "Xi the margin of this p-SVM itself.",
          "The statement is ours. Abstract of arXiv 2306.13596: the SVM of p is influenced by the support vector "
          "geometry of v.",
          "as joint-tight, with at least one input clear of the label margin; the head's ball is as large as "
          "the prompt's (r = R) for what counts, and 10 and 100 times as large beside it; for comparison the "
          "relaxed p-SVM, in which those inputs need only be level (all their margins 0)",
          "larger 1 - correlation of p and v at R = 1000", 16, test_joint_loose},
    Claim{"p-W-lemma",
          "Gradient descent on a prompt p, and on W with one fixed query u and the step divided by |u|^2, give "
          "the same logits at every step.",
          "Abstract of arXiv 2306.13596: gradient descent on p, or equivalently W.",
          "random prompt tasks (6,8,10) and the same with u of size 4, 1,000 plain steps of 1; held: logits "
          "agree to 1e-9 of their size at every tenth step",
          "largest difference of logits, relative", 32, test_lemma},
    Claim{"equivalence-relu",
          "With a nonlinear head training keeps several tokens, and W is close to finite part + R Gen-SVM of "
          "the kept tokens, closer than to the SVM of each query's largest token.",
          "Abstract of arXiv 2308.16898: a more general SVM equivalence is proposed that predicts the implicit "
          "bias with nonlinear heads. What counts as held is ours.",
          "tasks (3,4,d), d = 4, 6, 8, with a random ReLU head, 2,001 normalized steps of 0.1 from random "
          "starts in plain arithmetic, with 2^-52 added to norms, as published; for comparison also in exact "
          "arithmetic and by 20,000 steps of gradient descent (10); runs that drop tokens (attention <= 1e-6), "
          "keep several of some query (>= 1e-3), have none between, and whose SVMs exist; held: the equivalence "
          "correlates better with W than the one-token SVM",
          "1 - correlation of the equivalence", 40, test_equivalence_relu},
    Claim{"equivalence-quadratic", "The same for quadratic heads, trained by plain gradient descent.",
          "Abstract of arXiv 2308.16898: as equivalence-relu; quadratic heads with dropped tokens at these bounds are "
          "our test.",
          "orthonormal tokens (3,4,d), d = 6, 10, head v'x - 0.3 |x|^2, 20,000 plain steps of 50 from zero; the "
          "same with dropped tokens at attention <= 1e-4",
          "1 - correlation of the equivalence", 24, test_equivalence_quadratic},
    Claim{"sequence",
          "With one query per position that sees the tokens up to that position, the direction of W tends to the SVM "
          "over all positions of the tokens that training selects.",
          "The statement is ours.",
          "random causal tasks (2,5,8), 20,000 normalized steps of 0.1 from zero; held: 1 - correlation <= 1e-4",
          "1 - correlation at the end", 48, test_sequence},
    Claim{
        "next-token",
        "In next-token prediction the direction of W tends to that of the graph SVM, and the part of W among tokens "
        "that no W can order tends to the minimiser of the loss over such matrices.",
        "The statement is ours, about gradient descent; arXiv 2403.08081 introduces the graph SVM.",
        "random tasks of 6 sequences of 4 tokens, vocabulary 6, d = 8, 20,000 gradient steps of 1 from zero; held: "
        "1 - correlation <= 0.05 where there is a strict order, the finite part within 0.01 of its limit where tokens "
        "are tied, and both closer than after 2,000 steps; beside them runs of K and Q from random starts",
        "the larger of the two distances, as a share of its bound", 48, test_next_token},
    Claim{"decay",
          "With weight decay gradient descent stops growing W and settles on the regularization path: where it ends, W "
          "is "
          "the minimiser of the loss over the ball of its own norm.",
          "The statement is ours. Where a run settles, W is a stationary point of the loss on that sphere; that it is "
          "the minimiser is a conjecture.",
          "random separable tasks (3,4,5), gradient steps of 4 from zero with decay 0.1, 0.01, 0.001 and 0.0001, 10 / "
          "decay of them, the path's minimiser as in path-W; held: 1 - correlation <= 1e-8 for all four; beside them "
          "normalized "
          "steps of 0.1 with decay 0.1, which settle where |W| = 1 / decay",
          "largest 1 - correlation with the path's minimiser", 48, test_decay},
    Claim{
        "dropout",
        "Under dropout the attention of each query tends to the point of the simplex that has the least expected loss. "
        "So a query saturates if and only if that is a vertex: no other token, weighed against the chance that the "
        "selected one is dropped, lowers the expected loss.",
        "The statement is ours.",
        "random tasks (3,4,5), where W can give any logits, 20,000 gradient steps of 4 from zero, falling along a "
        "cosine, dropout 0.1, 0.3 and 0.5, expected losses summed over all choices of dropped tokens; held: at the "
        "end the expected loss is above its least value by at most 2 % of what equal attention has, for all three",
        "largest share of the excess of equal attention that is left", 32, test_dropout},
    Claim{
        "smoothing",
        "Under label smoothing e the output y f of every query tends to log((2-e)/e), where the loss is least, or to "
        "the score nearest to it that attention can give; if that is the best score, the query saturates.",
        "The statement is ours.",
        "random tasks (3,4,5), where W can give any logits, 100,000 gradient steps of 4 from zero, smoothing 0.3, 0.6, "
        "0.7, 0.8 and 0.9; held: every output of all five runs is within 0.01 of that",
        "largest difference of an output", 32, test_smoothing},
    Claim{"batches",
          "Gradient steps on minibatches lead W where steps on all queries do: with weight decay, and steps that fall, "
          "to the regularization path; without decay to the SVM of the tokens that it selects, as fast.",
          "The statement is ours. With decay it needs a run that does not settle at a locally optimal selection, as "
          "decay does.",
          "random tasks (3,4,5), one query per step, steps of 4 from zero that fall along a cosine, 40 / decay of "
          "them, decay 0.1 and 0.01; 20,000 constant steps of 4 without decay, beside as many on all queries; held: 1 "
          "- correlation <= 1e-3 with the path's minimiser for both decays, and without decay 1 - correlation with "
          "the run's own SVM is at most 1.1 times that of the steps on all queries",
          "largest 1 - correlation with the path's minimiser", 32, test_batches},
    Claim{"batches-normalized",
          "Normalized steps on one query at a time do not turn W to W^mm. Every query is moved equally far, and W "
          "turns to the solution of a soft margin with small penalties 1/(|h_i| |z_i|), where h_i is the convex "
          "combination of rows of query i that this solution itself has.",
          "The statement is ours.",
          "random tasks (3,4,5), 20,000 normalized steps of 0.1 from zero on single queries, the penalties found by "
          "iteration; held: 1 - correlation with that solution <= 1e-3, and less than that with W^mm",
          "1 - correlation with the prediction", 48, test_batches_normalized},
    Claim{
        "entropy-direction",
        "An entropy penalty leaves the limit direction: W turns to the SVM of the tokens that it selects. And it makes "
        "W grow faster.",
        "The statement is ours.",
        "random tasks (5,5,6), 10,000 normalized steps of 0.1 from zero with entropy 0, 0.01, 0.1 and 1, and 2,000 "
        "gradient steps of 1; held: 1 - correlation <= 1e-3 with the SVM of the run's own tokens for all four, and "
        "after gradient steps |W| is larger with each entropy than without",
        "largest 1 - correlation", 48, test_entropy_direction},
    Claim{"entropy-locks",
          "With an entropy penalty every separable selection attracts the runs that start far out beside it, even if a "
          "support token scores higher.",
          "The statement is ours: far out the penalty pushes logits apart by its weight times their distance, whatever "
          "the scores are. Without the penalty such runs leave (claim necessity).",
          "random tasks (3,5,5), a random separable selection that is not locally optimal, start on the ray of W^mm "
          "with support tokens 40 logits behind, 5,000 normalized steps of 0.1 with entropy 0.1; held: the selection "
          "stays and 1 - correlation <= 1e-4",
          "1 - correlation at the end", 48, test_entropy_locks},
    Claim{
        "noise",
        "Conjecture: noise helps to leave local optima. More runs end at the optimal tokens when steps see hard "
        "selections drawn by Gumbel noise, or Dirichlet weights, than when they see the softmax.",
        "The statement is ours.",
        "a task is a sweep of 48 random tasks (5,5,6), 2,000 normalized steps of 0.1 from zero: softmax, Gumbel draws "
        "at temperature 1 to 0.1, Dirichlet weights of concentration 10, beside them the softmax at the same "
        "temperatures; held: both kinds of draws have more such runs than the softmax",
        "share of such runs by the softmax less the smaller one by draws", 8, test_noise},
    Claim{"positions",
          "With positions in the keys a run turns to the SVM of the tokens that it selects, with the same positions, "
          "also where a query keeps one of two equal words. Without positions equal words share their attention.",
          "The statement is ours.",
          "self attention of the last token of 4 sequences of 6 words out of 4, unit vectors of size 8, one random "
          "score per token; 20,000 normalized steps of 0.1 from zero with sinusoidal and rotary positions and with a "
          "bias per distance; held: 1 - correlation <= 1e-3 for all three; beside them a run without positions",
          "largest 1 - correlation of the three", 48, test_positions},
    Claim{"fixed-slope",
          "A fixed slope in the logits does not change the direction that W takes: it tends to the SVM of the tokens "
          "that the run selects, which knows nothing of the slope.",
          "The statement is ours.",
          "random causal tasks (2,5,8), logits less the distance to the token, 20,000 normalized steps of 0.1 from "
          "zero; held: 1 - correlation <= 1e-4",
          "1 - correlation at the end", 48, test_fixed_slope},
    Claim{"heads",
          "With many heads, whose outputs add up, the direction of each head's W tends to W^mm of the tokens that this "
          "head selects, whether steps divide by a norm per head or by one norm over all heads.",
          "The statement is ours.",
          "random tasks (6,8,10), 4 heads, v of length 1 each, 10,000 normalized steps of 0.1 from zero, with a norm "
          "per head and with one norm; held: 1 - correlation <= 0.01 for every head of both runs",
          "largest 1 - correlation of a head", 32, test_heads},
    Claim{
        "heads-level",
        "With one norm over all heads, the direction of all W together tends to that of the smallest block-diagonal "
        "W that meets the rows of all heads: every head's W^mm, in the same proportion.",
        "The statement is ours.",
        "as heads, 40,000 steps; held: 1 - correlation of all W of the run with one norm, as one vector, with all W^mm "
        "<= 0.001; beside it the run with a norm per head",
        "1 - correlation with the SVM of all heads", 32, test_heads_level},
    Claim{
        "heads-divide",
        "Conjecture: heads divide the tokens among them. Trained together they select more different tokens per query "
        "than the same heads trained alone.",
        "The statement is ours.",
        "random tasks (6,8,10), 4 heads, v of length 1 each, 4,000 normalized steps of 0.1 from zero with a norm per "
        "head, together and one by one with the same v; beside them together with their v's trained",
        "different tokens per query alone less those together", 48, test_heads_divide},
    Claim{"layers-live",
          "In a stack of attention layers with residuals and fixed values, the direction of every head of every layer "
          "tends to the SVM of what it selects, in its own final inputs, at live positions: the one that is read and, "
          "from the last layer down, those that heads select for live positions.",
          "The statement is ours.",
          "random tasks (6,6,8) read at the last token, random values, 2 causal layers of 1 and of 2 heads, 3 causal "
          "layers of 1 head, 2 layers of 1 head that see all tokens, in turn; 10,000 normalized steps of 0.1 from "
          "zero, each matrix with its own norm; held: 1 - correlation <= 0.01 for every head, and less than for all "
          "10 matrices of its null, W in the axes of its inputs with random signs",
          "largest 1 - correlation of a head", 48, test_layers_live},
    Claim{"layers-all", "The same with the selections of all positions, live or not.", "The statement is ours.",
          "as layers-live", "largest 1 - correlation of a head", 48, test_layers_all},
    Claim{"layers-values", "The same as layers-live where the values are trained too.", "The statement is ours.",
          "as layers-live, with values that start as those and are trained by normalized steps of their own",
          "largest 1 - correlation of a head", 48, test_layers_values},
    Claim{"layers-mlp", "The same as layers-live where every layer has an MLP with a residual after its attention.",
          "The statement is ours.", "as layers-live, with random fixed MLPs of 16 ReLU units",
          "largest 1 - correlation of a head", 48, test_layers_mlp},
};

}  // namespace

std::span<const Claim> claims() { return kClaims; }

std::vector<const Claim*> find_claims(std::string_view name) {
  std::vector<const Claim*> found;
  std::vector<std::string> known;
  for (const Claim& claim : kClaims) {
    if (claim.name == name) return {&claim};
    if (claim.name.starts_with(name) && claim.name.substr(name.size()).starts_with('-')) found.push_back(&claim);
    known.emplace_back(claim.name);
  }
  if (found.empty()) refuse("unknown claim '{}'; {}", name, suggestion(name, known));
  return found;
}

ClaimResult test_claim(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  if (settings.tasks < 0) refuse("tasks = {}; must be at least 1, or 0 for the claim's own number", settings.tasks);
  return claim.test(claim, settings, threads);
}

}  // namespace attsvm
