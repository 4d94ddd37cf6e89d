// Compressed sparse rows: sums by class and column, and sums of a table's entries.
#pragma once
#include <stdexcept>
#include <vector>

#include "exact.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace deciban {

template <class Index>
struct SparseRows {
    const double* values;
    const Index* columns;
    const Index* starts;  // rows + 1
    std::size_t rows, width, stored;

    void check() const {
        if (rows == 0) return;
        if (starts[0] < 0 || static_cast<std::size_t>(starts[rows]) > stored) throw std::invalid_argument("sparse rows: bad indptr");
        for (std::size_t i = 0; i < rows; ++i)
            if (starts[i] > starts[i + 1]) throw std::invalid_argument("sparse rows: bad indptr");
        for (auto p = starts[0]; p < starts[rows]; ++p)
            if (columns[p] < 0 || static_cast<std::size_t>(columns[p]) >= width) throw std::invalid_argument("sparse rows: column out of range");
    }
    bool whole() const {  // whole numbers that plain doubles add exactly
        for (auto p = starts[0]; p < starts[rows]; ++p)
            if (!(values[p] == std::nearbyint(values[p]) && std::fabs(values[p]) <= 0x1p20)) return false;
        return true;
    }
};

// Cells (class, column).
template <class Index>
ExactSums sum_sparse(const SparseRows<Index>& x, const std::int32_t* y, const double* weights, std::size_t classes) {
    ExactSums sums(classes * x.width, 1);
    if (weights || !x.whole()) {
        for (std::size_t i = 0; i < x.rows; ++i)
            for (auto p = x.starts[i]; p < x.starts[i + 1]; ++p) {
                const std::size_t cell = static_cast<std::size_t>(y[i]) * x.width + static_cast<std::size_t>(x.columns[p]);
                double high, low;
                two_product(x.values[p], weights ? weights[i] : 1.0, high, low);
                sums.add(cell, high);
                sums.add(cell, low);
            }
        return sums;
    }
    const unsigned parts = thread_count(x.stored, std::max<std::size_t>(1 << 16, 2 * sums.cells()));
    std::vector<std::vector<double>> totals(parts);
    parallel(x.rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        auto& mine = totals[part];
        mine.assign(sums.cells(), 0.0);
        for (std::size_t i = begin; i < end; ++i) {
            double* of_class = &mine[static_cast<std::size_t>(y[i]) * x.width];
            for (auto p = x.starts[i]; p < x.starts[i + 1]; ++p) of_class[x.columns[p]] += x.values[p];
        }
    });
    for (std::size_t cell = 0; cell < sums.cells(); ++cell)
        for (const auto& mine : totals)
            if (mine[cell] != 0.0) sums.add(cell, mine[cell]);
    return sums;
}

template <class Index>
DECIBAN_CLONES void add_sparse_rows(const SparseRows<Index>& x, const double* table, std::size_t width,
                                    std::size_t classes, std::size_t begin, std::size_t end, double* row, double* out) {
    for (std::size_t i = begin; i < end; ++i) {
        std::memset(row, 0, width * sizeof(double));
        for (auto p = x.starts[i]; p < x.starts[i + 1]; ++p) {
            const double value = x.values[p];
            if (value == 0.0 || value != value) continue;
            const double* entry = table + static_cast<std::size_t>(x.columns[p]) * width;
            for (std::size_t c = 0; c < width; c += 4) store(row + c, fma(splat(value), load(entry + c), load(row + c)));
        }
        for (std::size_t c = 0; c < classes; ++c) out[i * classes + c] += row[c];
    }
}

// out (rows, classes) += x @ table; table (width of x, classes padded).
template <class Index>
void add_sparse(const SparseRows<Index>& x, const double* table, std::size_t classes, double* out) {
    const std::size_t width = padded(classes);
    const unsigned parts = thread_count(x.stored * classes, 1 << 16);
    parallel(x.rows, parts, [&](unsigned, std::size_t begin, std::size_t end) {
        Doubles row(width);
        add_sparse_rows(x, table, width, classes, begin, end, row.data(), out);
    });
}

}  // namespace deciban
