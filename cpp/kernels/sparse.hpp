// Compressed sparse rows: sums by class and column, and sums of a table's entries.
#pragma once
#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "exact.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace deciban {

constexpr double largest_count = 0x1p500;

template <class Index>
struct SparseRows {
    const double* values;
    const Index* columns;
    const Index* starts;  // rows + 1
    std::size_t rows, width, stored;

    void check_rows() const {  // columns are checked on use
        if (starts[0] < 0 || static_cast<std::size_t>(starts[rows]) > stored)
            throw std::invalid_argument("sparse rows: bad indptr");
        for (std::size_t i = 0; i < rows; ++i)
            if (starts[i] > starts[i + 1]) throw std::invalid_argument("sparse rows: bad indptr");
    }
    std::size_t column(Index p) const {
        const auto j = static_cast<std::make_unsigned_t<Index>>(columns[p]);
        if (j >= width) throw std::invalid_argument("sparse rows: column out of range");
        return j;
    }
};

// Adds rows to plain doubles (class, column) while values are integers small enough to add exactly; returns false at
// the first that is not.
template <class Index>
bool sum_whole_numbers(const SparseRows<Index>& x, const std::int32_t* y, std::size_t begin, std::size_t end,
                       double* sums) {
    for (std::size_t i = begin; i < end; ++i) {
        double* of_class = sums + static_cast<std::size_t>(y[i]) * x.width;
        for (auto p = x.starts[i]; p < x.starts[i + 1]; ++p) {
            const double value = x.values[p];
            if (!(value >= 0.0 && value <= 0x1p20 && value == static_cast<double>(static_cast<std::int32_t>(value))))
                return false;
            of_class[x.column(p)] += value;
        }
    }
    return true;
}

// Cells (class, column). `valid` becomes false if a value is negative, infinite or NaN.
template <class Index>
ExactSums sum_sparse(const SparseRows<Index>& x, const std::int32_t* y, const double* weights, std::size_t classes,
                     bool& valid) {
    ExactSums sums(classes * x.width, 1);
    valid = true;
    if (!weights) {
        const unsigned parts = thread_count(x.stored, std::max<std::size_t>(1 << 16, 2 * sums.cells()));
        std::vector<std::vector<double>> totals(parts);
        std::vector<char> whole(parts, 1);
        parallel(x.rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
            totals[part].assign(sums.cells(), 0.0);
            whole[part] = sum_whole_numbers(x, y, begin, end, totals[part].data());
        });
        if (std::all_of(whole.begin(), whole.end(), [](char w) { return w != 0; })) {
            for (std::size_t cell = 0; cell < sums.cells(); ++cell)
                for (const auto& part : totals)
                    if (part[cell] != 0.0) sums.add(cell, part[cell]);
            return sums;
        }
    }
    for (std::size_t i = 0; i < x.rows; ++i)
        for (auto p = x.starts[i]; p < x.starts[i + 1]; ++p) {
            const double value = x.values[p];
            if (!(value >= 0.0 && value < largest_count)) {
                valid = false;
                return sums;
            }
            const std::size_t cell = static_cast<std::size_t>(y[i]) * x.width + x.column(p);
            double high, low;
            two_product(value, weights ? weights[i] : 1.0, high, low);
            sums.add(cell, high);
            sums.add(cell, low);
        }
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
            for (std::size_t c = 0; c < width; c += 4)
                store(row + c, fma(splat(value), load(entry + c), load(row + c)));
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
        // not in add_sparse_rows: no exception may leave a function with DECIBAN_CLONES
        for (auto p = x.starts[begin]; p < x.starts[end]; ++p) x.column(p);
        add_sparse_rows(x, table, width, classes, begin, end, row.data(), out);
    });
}

}  // namespace deciban
