#pragma once

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>

// Eigen's large decompositions, compiled once in decompositions.cpp instead of wherever they are used: each costs the
// compiler many seconds.
extern template class Eigen::BDCSVD<Eigen::MatrixXd>;
extern template class Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;
