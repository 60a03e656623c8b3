#include <stdexcept>

#include "attsvm/task.h"

namespace attsvm {

std::string_view name_of(HeadKind kind) {
  switch (kind) {
    case HeadKind::none:
      return "none";
    case HeadKind::linear:
      return "linear";
    case HeadKind::hidden:
      return "relu";
    case HeadKind::quadratic:
      return "quadratic";
  }
  throw std::logic_error("unknown head");
}

double Head::value(const Eigen::Ref<const Eigen::VectorXd>& x) const {
  switch (kind) {
    case HeadKind::linear:
      return v.dot(x);
    case HeadKind::hidden:
      return v.dot((B.transpose() * x).cwiseMax(0.0));
    case HeadKind::quadratic:
      return v.dot(x) - lambda * x.squaredNorm();
    case HeadKind::none:
      break;
  }
  throw std::logic_error("Head::value: the task has no head");
}

Eigen::VectorXd Head::gradient(const Eigen::Ref<const Eigen::VectorXd>& x) const {
  switch (kind) {
    case HeadKind::linear:
      return v;
    case HeadKind::hidden:
      return B * ((B.transpose() * x).array() > 0).select(v, 0.0).matrix();
    case HeadKind::quadratic:
      return v - 2 * lambda * x;
    case HeadKind::none:
      break;
  }
  throw std::logic_error("Head::gradient: the task has no head");
}

}  // namespace attsvm
