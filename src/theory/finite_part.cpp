#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <cmath>
#include <map>

#include "attsvm/next_token.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

namespace {

/// A sequence cut down to the component of its label: members of the component that occur, and how often. A member is
/// the number of its row, or −1 for the smallest token of the component, whose logit counts as 0.
struct CutSequence {
  std::vector<std::pair<Index, double>> members;
  std::size_t label;  // place among the members
};

/// Σ over sequences of −log p, as a function of the values of the rows: smallest token minus member.
class CutLoss {
 public:
  void add(CutSequence sequence) { sequences_.push_back(std::move(sequence)); }

  /// The loss at `values`, and if not null its gradient and Hessian.
  double at(const Eigen::VectorXd& values, Eigen::VectorXd* gradient, Eigen::MatrixXd* hessian) const {
    if (gradient != nullptr) gradient->setZero(values.size());
    if (hessian != nullptr) hessian->setZero(values.size(), values.size());
    double loss = 0;
    std::vector<double> s;
    for (const CutSequence& sequence : sequences_) {
      const auto& members = sequence.members;
      const auto logit = [&](std::size_t m) {
        return std::log(members[m].second) - (members[m].first < 0 ? 0 : values(members[m].first));
      };
      double top = logit(0), sum = 0;
      for (std::size_t m = 1; m < members.size(); ++m) top = std::max(top, logit(m));
      s.assign(members.size(), 0);
      for (std::size_t m = 0; m < members.size(); ++m) sum += s[m] = std::exp(logit(m) - top);
      loss += top + std::log(sum) - logit(sequence.label);
      if (gradient == nullptr) continue;
      for (double& weight : s) weight /= sum;
      for (std::size_t m = 0; m < members.size(); ++m) {
        const Index row = members[m].first;
        if (row < 0) continue;
        (*gradient)(row) -= s[m] - (m == sequence.label ? 1 : 0);  // a row is minus its member's logit
        for (std::size_t o = 0; o < members.size() && hessian != nullptr; ++o) {
          if (members[o].first >= 0) (*hessian)(row, members[o].first) += (m == o ? s[m] : 0) - s[m] * s[o];
        }
      }
    }
    return loss;
  }

 private:
  std::vector<CutSequence> sequences_;
};

/// Minimises loss(B y) from y = 0 by damped Newton steps.
Eigen::VectorXd minimise(const CutLoss& loss, const Eigen::MatrixXd& B) {
  constexpr int kMost = 200;
  constexpr double kEnough = 1e-4, kDone = 1e-30;  // Armijo's share of the slope; the decrease that rounding hides
  Eigen::VectorXd y = Eigen::VectorXd::Zero(B.cols()), gradient;
  Eigen::MatrixXd hessian;
  for (int step = 0; step < kMost && B.cols() > 0; ++step) {
    const double now = loss.at(B * y, &gradient, &hessian);
    const Eigen::VectorXd g = B.transpose() * gradient;
    const Eigen::VectorXd move = (B.transpose() * hessian * B).ldlt().solve(-g);
    const double slope = g.dot(move);
    if (!(-slope > kDone * (1 + now))) break;
    double length = 1;
    while (length > 1e-12 && !(loss.at(B * (y + length * move), nullptr, nullptr) <= now + kEnough * length * slope))
      length /= 2;
    if (length <= 1e-12) {  // the decrease is below the rounding of the loss: a last full step is as good as any
      y += move;
      break;
    }
    y += length * move;
  }
  return y;
}

}  // namespace

struct FinitePart::State {
  Eigen::MatrixXd delta, zeta;  // (rows,d), (rows,dz): row k is δ_k ζ_kᵀ
  Eigen::MatrixXd inverse;      // (rows,dimension): C with W = Σ (C y)_k δ_k ζ_kᵀ for coordinates y
  RowMatrix W;
  double loss = 0, gradient = 0;

  RowMatrix matrix(const Eigen::VectorXd& y) const { return delta.transpose() * (inverse * y).asDiagonal() * zeta; }
  Eigen::VectorXd coordinates(const RowMatrix& of) const {
    return inverse.transpose() * (delta * of).cwiseProduct(zeta).rowwise().sum();
  }
};

FinitePart::FinitePart(const AttentionTask& task, std::span<const PriorityGraph> graphs)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  const ConstRows table = task.embeddings();
  std::map<Index, const PriorityGraph*> graph_of;
  std::map<std::pair<Index, Index>, Index> row_of;  // of last token and member
  for (const PriorityGraph& graph : graphs) {
    graph_of[graph.last] = &graph;
    for (std::size_t k = 0; k < graph.tokens.size(); ++k) {
      if (graph.components[k] != graph.tokens[k]) row_of.emplace(std::pair(graph.last, graph.tokens[k]), 0);
    }
  }
  const auto rows = static_cast<Index>(row_of.size());
  if (rows > kMostRows) refuse("{} tokens are tied; the finite part is computed for at most {}", rows, kMostRows);
  state.delta.resize(rows, task.key_size());
  state.zeta.resize(rows, task.query_size());
  Index next = 0;
  for (auto& [place, row] : row_of) {
    row = next++;
    state.delta.row(row) = table.row(graph_of[place.first]->component(place.second)) - table.row(place.second);
    state.zeta.row(row) = table.row(place.first);
  }

  CutLoss loss;
  for (Index i = 0; i < task.queries() && rows > 0; ++i) {
    const PriorityGraph& graph = *graph_of[task.last(i)];
    const Index component = graph.component(task.next(i));
    std::map<Index, double> counts;
    for (const Index token : task.ids(i)) {
      if (graph.component(token) == component) ++counts[token];
    }
    if (counts.size() < 2) continue;  // its loss is 0
    CutSequence cut{.members = {}, .label = 0};
    for (const auto& [token, count] : counts) {
      if (token == task.next(i)) cut.label = cut.members.size();
      cut.members.emplace_back(token == component ? -1 : row_of.at({task.last(i), token}), count);
    }
    loss.add(std::move(cut));
  }

  constexpr double kDependent = 1e-12;  // of the largest eigenvalue: smaller ones are rounding
  const Eigen::MatrixXd gram =
      (state.delta * state.delta.transpose()).cwiseProduct(state.zeta * state.zeta.transpose());
  Eigen::MatrixXd B(rows, 0);
  if (rows > 0) {
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> spectrum(gram);
    const Eigen::VectorXd values = spectrum.eigenvalues();
    const Index rank = (values.array() > kDependent * values.maxCoeff()).count();
    const Eigen::ArrayXd roots = values.tail(rank).array().sqrt();
    B = spectrum.eigenvectors().rightCols(rank) * roots.matrix().asDiagonal();
    state.inverse = spectrum.eigenvectors().rightCols(rank) * roots.inverse().matrix().asDiagonal();
  } else {
    state.inverse.resize(0, 0);
  }
  const Eigen::VectorXd y = minimise(loss, B);
  Eigen::VectorXd slope;
  const auto count = static_cast<double>(task.queries());
  state.loss = loss.at(B * y, &slope, nullptr) / count;
  state.gradient = (B.transpose() * slope).norm() / count;
  state.W = state.matrix(y);
}

FinitePart::~FinitePart() = default;
FinitePart::FinitePart(FinitePart&&) noexcept = default;
FinitePart& FinitePart::operator=(FinitePart&&) noexcept = default;

Index FinitePart::dimension() const { return state_->inverse.cols(); }
const RowMatrix& FinitePart::W() const { return state_->W; }
double FinitePart::loss() const { return state_->loss; }
double FinitePart::gradient() const { return state_->gradient; }
RowMatrix FinitePart::project(const RowMatrix& W) const { return state_->matrix(state_->coordinates(W)); }

}  // namespace attsvm
