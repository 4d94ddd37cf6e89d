// The objective of weights of evidence, its gradient and its curvature.
//
//     J = sum_i omega_i (-log p_{i,y_i}) + lambda sum_pc (w_pc - m_p)^2 + lambda sum_p (m_p - g_{group(p)})^2
//         + mu sum_g (g - t)^2 + epsilon sum_c b_c^2
//
// over w >= 0 and b, with the best levels g >= 0; m_p is the mean of w_pc over the score columns c. z_ic = offset_ic +
// b_c + sum_p w_pc e_ipc, and p = softmax(z), or p_1 = 1 / (1 + exp(-z)) for one score column. The rows are summed in
// blocks that depend only on their number, so the result does not depend on the number of threads.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "linear.hpp"
#include "scatter.hpp"

namespace deciban {

// Weights and similar vectors are (score columns, width): the pieces, the bias, and zeros.
struct WeightProblem {
    std::size_t scores, rows, pieces, width, stride;  // stride: the rows, padded
    const double* offset;                             // (scores, rows)
    const std::int32_t* labels;                       // (rows)
    const double* omega;                              // (rows), or null for ones
    const std::int32_t* groups;                       // (pieces)
    double penalty, level, bias, target;              // lambda, mu, epsilon, t
    Doubles cells;                                    // (scores, stride, width) the evidence, a one, and zeros
    std::vector<double> level_curvature;              // (groups) lambda |g| + mu

    // values: (scores, rows, pieces)
    WeightProblem(std::size_t scores, std::size_t rows, std::size_t pieces, const double* values, const double* offset,
                  const std::int32_t* labels, const double* omega, const std::int32_t* groups, double penalty,
                  double level, double bias, double target)
        : scores(scores), rows(rows), pieces(pieces), width(padded(pieces + 1)), stride(padded(rows)), offset(offset),
          labels(labels), omega(omega), groups(groups), penalty(penalty), level(level), bias(bias), target(target),
          cells(scores * stride * width, 0.0) {
        for (std::size_t c = 0; c < scores; ++c)
            for (std::size_t i = 0; i < rows; ++i) {
                double* row = cells.data() + (c * stride + i) * width;
                std::copy_n(values + (c * rows + i) * pieces, pieces, row);
                row[pieces] = 1.0;
            }
        std::int32_t count = 0;
        for (std::size_t p = 0; p < pieces; ++p) count = std::max(count, groups[p] + 1);
        level_curvature.assign(static_cast<std::size_t>(count), level);
        for (std::size_t p = 0; p < pieces; ++p) level_curvature[group(p)] += penalty;
    }

    std::size_t group(std::size_t p) const { return static_cast<std::size_t>(groups[p]); }
    std::size_t size() const { return scores * width; }
    double weight(std::size_t i) const { return omega ? omega[i] : 1.0; }
    const double* row(std::size_t c, std::size_t i) const { return cells.data() + (c * stride + i) * width; }

    // Calls body(block, begin, end), in threads where these gain: from a million multiply-adds on.
    template <class Body>
    void for_rows(std::size_t multiply_adds, const Body& body) const {
        for_each_block(rows, block_count(rows), multiply_adds / 4, body);
    }
    // Rows of so many columns that stay in the innermost cache, with as much beside them.
    static std::size_t tile_rows(std::size_t columns) {
        return std::clamp<std::size_t>((std::size_t{1} << 11) / columns / 4 * 4, 8, 64);
    }
    static Doubles sum_of(std::vector<Doubles>& parts) {
        for (std::size_t b = 1; b < parts.size(); ++b)
            for (std::size_t j = 0; j < parts[0].size(); ++j) parts[0][j] += parts[b][j];
        return std::move(parts[0]);
    }

    // z (scores, stride) of rows [begin, end), without the offset
    void forward(const Doubles& theta, std::size_t begin, std::size_t end, double* z) const {
        const double zero = 0.0;
        for (std::size_t c = 0; c < scores; ++c)
            predict_tile(row(c, begin), end - begin, width, 1, theta.data() + c * width, &zero, z + c * stride + begin,
                         0);
    }
    void forward(const Doubles& theta, Doubles& z) const {
        for_rows(rows * size(),
                 [&](std::size_t, std::size_t begin, std::size_t end) { forward(theta, begin, end, z.data()); });
    }

    // The sum of body(begin, end, sums), which adds rows [begin, end) to sums (scores, width).
    template <class Body>
    Doubles summed(const Body& body) const {
        std::vector<Doubles> parts(block_count(rows), Doubles(size(), 0.0));
        for_rows(2 * rows * size(), [&](std::size_t block, std::size_t begin, std::size_t end) {
            const std::size_t step = tile_rows(size() / 2);
            for (std::size_t i = begin; i < end; i += step) body(i, std::min(i + step, end), parts[block]);
        });
        return sum_of(parts);
    }
    // sums (scores, width) += sum_i r_ci e_ipc and r_ci, for rows [begin, end) of r (scores, stride)
    void backward(const double* r, std::size_t begin, std::size_t end, Doubles& sums) const {
        for (std::size_t c = 0; c < scores; ++c)
            accumulate_tile(row(c, begin), end - begin, width, 1, r + c * stride + begin, 0, sums.data() + c * width);
    }

    // (pieces) the mean over the score columns
    std::vector<double> mean(const Doubles& theta) const {
        std::vector<double> out(pieces, 0.0);
        for (std::size_t c = 0; c < scores; ++c)
            for (std::size_t p = 0; p < pieces; ++p) out[p] += theta[c * width + p];
        for (double& m : out) m /= static_cast<double>(scores);
        return out;
    }
    // (groups) the best g, for the mean of each piece; at_target is 1, or 0 for its change with the mean
    std::vector<double> levels(const std::vector<double>& mean, double at_target) const {
        std::vector<double> out(level_curvature.size(), level * target * at_target);
        for (std::size_t p = 0; p < pieces; ++p) out[group(p)] += penalty * mean[p];
        for (std::size_t g = 0; g < out.size(); ++g) out[g] /= level_curvature[g];
        return out;
    }
    // out += the gradient of J without the loss; at_target as above
    void add_ridge_slope(const Doubles& theta, double at_target, Doubles& out) const {
        const auto m = mean(theta);
        const auto g = levels(m, at_target);
        const double columns = static_cast<double>(scores);
        for (std::size_t c = 0; c < scores; ++c) {
            for (std::size_t p = 0, at = c * width; p < pieces; ++p, ++at)
                out[at] += 2.0 * penalty * (theta[at] - m[p] + (m[p] - g[group(p)]) / columns);
            out[c * width + pieces] += 2.0 * bias * theta[c * width + pieces];
        }
    }
    // J without the loss
    double ridge(const Doubles& theta) const {
        const auto m = mean(theta);
        const auto g = levels(m, 1.0);
        double spread = 0.0, rest = 0.0;
        for (std::size_t p = 0; p < pieces; ++p) {
            for (std::size_t c = 0; c < scores; ++c) spread += std::pow(theta[c * width + p] - m[p], 2);
            spread += std::pow(m[p] - g[group(p)], 2);
        }
        for (const double value : g) rest += level * std::pow(value - target, 2);
        for (std::size_t c = 0; c < scores; ++c) rest += bias * std::pow(theta[c * width + pieces], 2);
        return penalty * spread + rest;
    }

    // The loss of scores z (scores, stride), offset included; p (scores, stride), unless null, gets probabilities.
    double loss(const Doubles& z, double* p) const {
        std::vector<double> parts(block_count(rows), 0.0);
        for_rows(32 * rows * scores, [&](std::size_t block, std::size_t begin, std::size_t end) {
            parts[block] = scores == 1 ? logistic_loss(z.data(), p, begin, end) : softmax_loss(z.data(), p, begin, end);
        });
        double total = 0.0;
        for (const double part : parts) total += part;
        return total;
    }
    double logistic_loss(const double* z, double* p, std::size_t begin, std::size_t end) const {
        double total = 0.0;
        for (std::size_t i = begin; i < end; ++i) {
            const double e = std::exp(-std::fabs(z[i])), against = labels[i] == 1 ? -z[i] : z[i];
            total += weight(i) * (std::max(against, 0.0) + std::log1p(e));
            if (p) p[i] = z[i] >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
        }
        return total;
    }
    double softmax_loss(const double* z, double* p, std::size_t begin, std::size_t end) const {
        double total = 0.0;
        std::vector<double> own(p ? 0 : scores);
        for (std::size_t i = begin; i < end; ++i) {
            double most = z[i], sum = 0.0;
            for (std::size_t c = 1; c < scores; ++c) most = std::max(most, z[c * stride + i]);
            double* out = p ? p + i : own.data();
            const std::size_t step = p ? stride : 1;
            for (std::size_t c = 0; c < scores; ++c) sum += out[c * step] = std::exp(z[c * stride + i] - most);
            if (p)
                for (std::size_t c = 0; c < scores; ++c) out[c * step] /= sum;
            const double true_score = z[static_cast<std::size_t>(labels[i]) * stride + i];
            total += weight(i) * (std::log(sum) + (most - true_score));
        }
        return total;
    }

    Doubles gradient(const Doubles& theta, const Doubles& p) const {
        Doubles residual(scores * stride, 0.0);
        Doubles out = summed([&](std::size_t begin, std::size_t end, Doubles& sums) {
            for (std::size_t i = begin; i < end; ++i) {
                for (std::size_t c = 0; c < scores; ++c)
                    residual[c * stride + i] = weight(i) * (p[c * stride + i] - is_class(i, c));
            }
            backward(residual.data(), begin, end, sums);
        });
        add_ridge_slope(theta, 1.0, out);
        return out;
    }
    double is_class(std::size_t i, std::size_t c) const {
        return labels[i] == static_cast<std::int32_t>(scores == 1 ? 1 : c) ? 1.0 : 0.0;
    }

    // The second derivative of J, times a direction.
    Doubles curvature(const Doubles& direction, const Doubles& p) const {
        Doubles moved(scores * stride, 0.0);
        Doubles out = summed([&](std::size_t begin, std::size_t end, Doubles& sums) {
            forward(direction, begin, end, moved.data());
            if (scores == 1) {
                for (std::size_t i = begin; i < end; ++i) moved[i] *= weight(i) * p[i] * (1.0 - p[i]);
            } else {
                for (std::size_t i = begin; i < end; ++i) {
                    double mean = 0.0;
                    for (std::size_t c = 0; c < scores; ++c) mean += p[c * stride + i] * moved[c * stride + i];
                    for (std::size_t c = 0; c < scores; ++c)
                        moved[c * stride + i] = weight(i) * p[c * stride + i] * (moved[c * stride + i] - mean);
                }
            }
            backward(moved.data(), begin, end, sums);
        });
        add_ridge_slope(direction, 0.0, out);
        return out;
    }

    // sum_i s_i x_i x_i^T of a score column, with s = omega p (1 - p); (width, width), on and right of the diagonal
    Doubles loss_block(std::size_t c, const Doubles& p) const {
        std::vector<Doubles> parts(block_count(rows), Doubles(width * width, 0.0));
        for_rows(rows * width * width / 2, [&](std::size_t block, std::size_t begin, std::size_t end) {
            const std::size_t step = tile_rows(width);
            Doubles scaled(step * width, 0.0);
            for (std::size_t i = begin; i < end; i += step) {
                const std::size_t count = std::min(step, end - i);
                for (std::size_t k = 0; k < count; ++k) {
                    const double q = p[c * stride + i + k], s = weight(i + k) * q * (1.0 - q);
                    const double* x = row(c, i + k);
                    for (std::size_t j = 0; j < width; ++j) scaled[k * width + j] = s * x[j];
                }
                add_products(row(c, i), scaled.data(), count, width, parts[block].data());
            }
        });
        return sum_of(parts);
    }
    // The second derivative of J within a score column; (width, width)
    Doubles block(std::size_t c, const Doubles& p) const {
        Doubles out = loss_block(c, p);
        for (std::size_t a = 0; a < width; ++a)
            for (std::size_t b = 0; b < a; ++b) out[a * width + b] = out[b * width + a];
        const double columns = static_cast<double>(scores);
        double trace = 0.0;
        for (std::size_t a = 0; a < pieces; ++a) {
            for (std::size_t b = 0; b < pieces; ++b)
                if (groups[a] == groups[b])
                    out[a * width + b] -= 2.0 * penalty * penalty / (columns * columns) / level_curvature[group(a)];
            out[a * width + a] += own_ridge();
        }
        out[pieces * width + pieces] += 2.0 * bias;
        for (std::size_t j = 0; j <= pieces; ++j) trace += out[j * width + j];
        // rounding must not make the least eigenvalue negative
        for (std::size_t j = 0; j <= pieces; ++j) out[j * width + j] += std::numeric_limits<double>::epsilon() * trace;
        return out;
    }
    double own_ridge() const {
        const double columns = static_cast<double>(scores);
        return 2.0 * penalty * (1.0 - 1.0 / columns + 1.0 / (columns * columns));
    }
    // The diagonal of the second derivative, without the levels.
    Doubles diagonal(const Doubles& p) const {
        Doubles out = summed([&](std::size_t begin, std::size_t end, Doubles& sums) {
            for (std::size_t c = 0; c < scores; ++c)
                for (std::size_t i = begin; i < end; ++i) {
                    const double q = p[c * stride + i], s = weight(i) * q * (1.0 - q);
                    const double* x = row(c, i);
                    for (std::size_t j = 0; j <= pieces; ++j) sums[c * width + j] += s * x[j] * x[j];
                }
        });
        for (std::size_t c = 0; c < scores; ++c) {
            for (std::size_t p_ = 0; p_ < pieces; ++p_) out[c * width + p_] += own_ridge();
            out[c * width + pieces] += 2.0 * bias;
        }
        return out;
    }
};

}  // namespace deciban
