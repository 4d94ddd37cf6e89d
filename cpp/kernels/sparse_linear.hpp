// linear.hpp for compressed sparse rows, without an origin. w and sums are (column, m).
#pragma once
#include "linear.hpp"
#include "sparse.hpp"

namespace deciban {

template <class Index>
void predict_row(const SparseRows<Index>& x, std::size_t i, std::size_t m, const double* w, const double* constant,
                 double* eta) {
    if (m == 1) {
        double a = constant[0], b = 0.0;  // two independent chains of additions
        auto p = x.starts[i];
        for (; p + 1 < x.starts[i + 1]; p += 2)
            a += x.values[p] * w[x.column(p)], b += x.values[p + 1] * w[x.column(p + 1)];
        if (p < x.starts[i + 1]) a += x.values[p] * w[x.column(p)];
        eta[0] = a + b;
        return;
    }
    std::copy_n(constant, m, eta);
    for (auto p = x.starts[i]; p < x.starts[i + 1]; ++p) {
        const double value = x.values[p], *row = w + x.column(p) * m;
        for (std::size_t k = 0; k < m; ++k) eta[k] += value * row[k];
    }
}

template <class Index>
void accumulate_row(const SparseRows<Index>& x, std::size_t i, std::size_t m, const double* residual, Pass& pass) {
    double* sums = pass.sums.data();
    if (m == 1) {
        for (auto p = x.starts[i]; p < x.starts[i + 1]; ++p) sums[x.column(p)] += x.values[p] * residual[0];
    } else {
        for (auto p = x.starts[i]; p < x.starts[i + 1]; ++p)
            for (std::size_t k = 0; k < m; ++k) sums[x.column(p) * m + k] += x.values[p] * residual[k];
    }
    for (std::size_t k = 0; k < m; ++k) pass.residuals[k] += residual[k];
}

template <class Index, class Body>
Pass sum_over_blocks(const SparseRows<Index>& x, std::size_t m, const Body& body) {
    const std::size_t blocks = std::min<std::size_t>(4, block_count(x.rows));  // few, because each has its own sums
    std::vector<Pass> parts(blocks, Pass(m, x.width));
    for_each_block(x.rows, blocks, x.stored * m,
                   [&](std::size_t block, std::size_t begin, std::size_t end) { body(begin, end, parts[block]); });
    return sum_passes(parts);
}

template <class Index>
Pass softmax_pass(const SparseRows<Index>& x, std::size_t m, const double* w, const double* constant,
                  const std::int32_t* codes, const double* weights) {
    return sum_over_blocks(x, m, [&](std::size_t begin, std::size_t end, Pass& pass) {
        constexpr std::size_t capacity = 16;
        Doubles eta(capacity * m, 0.0);  // (m, rows)
        std::vector<double> row(m);
        for (std::size_t first = begin; first < end; first += capacity) {
            const std::size_t used = std::min(capacity, end - first);
            for (std::size_t i = 0; i < used; ++i) {
                predict_row(x, first + i, m, w, constant, row.data());
                for (std::size_t k = 0; k < m; ++k) eta[k * capacity + i] = row[k];
            }
            pass.loss +=
                softmax_tile(eta.data(), used, m, capacity, codes + first, weights ? weights + first : nullptr);
            for (std::size_t i = 0; i < used; ++i) {
                for (std::size_t k = 0; k < m; ++k) row[k] = eta[k * capacity + i];
                accumulate_row(x, first + i, m, row.data(), pass);
            }
        }
    });
}

template <class Index>
void predictors(const SparseRows<Index>& x, std::size_t m, const double* w, const double* constant, double* eta) {
    for_each_block(x.rows, block_count(x.rows), x.stored * m, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) predict_row(x, i, m, w, constant, eta + i * m);
    });
}

template <class Index>
Pass residual_sums(const SparseRows<Index>& x, std::size_t m, const double* residual) {
    return sum_over_blocks(x, m, [&](std::size_t begin, std::size_t end, Pass& pass) {
        for (std::size_t i = begin; i < end; ++i) accumulate_row(x, i, m, residual + i * m, pass);
    });
}

}  // namespace deciban
