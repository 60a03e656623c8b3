#include "base/decompositions.h"

template class Eigen::BDCSVD<Eigen::MatrixXd>;
template class Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;
