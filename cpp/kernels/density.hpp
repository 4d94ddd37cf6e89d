// Log-densities of many rows under many classes. NaN adds nothing. A row's result does not depend on its neighbours:
// the operations and their order are the same however rows are batched.
#pragma once
#include <cmath>
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"

namespace deciban {

// Columns per block, so that rows and parameters stay in the L1 cache.
constexpr std::size_t columns_per_block = 256;

// Parameters of a block of independent columns, one padded row per class.
// quadratic:  constant + factor * (x - mean)^2          linear:  constant + factor * x
struct ColumnParameters {
    std::size_t classes, columns, width;
    Doubles mean, factor, constant;  // (class, padded column)
    std::vector<double> total;       // (class) sum of constants
    bool finite = true;              // no infinite factor

    // Columns [left, left + columns) of parameters (class, d); m may be null.
    ColumnParameters(std::size_t k, std::size_t d, std::size_t left, const double* m, const double* f, const double* c)
        : classes(k), columns(std::min(columns_per_block, d - left)), width(padded(columns)), mean(k * width),
          factor(k * width), constant(k * width), total(k) {
        for (std::size_t i = 0; i < k; ++i)
            for (std::size_t j = 0; j < columns; ++j) {
                const std::size_t from = i * d + left + j, to = i * width + j;
                if (m) mean[to] = m[from];
                factor[to] = f[from];
                constant[to] = c[from];
                total[i] += c[from];
                if (std::isinf(f[from])) finite = false;
            }
    }
};

// Scores `Rows` rows together, so that each parameter is loaded once.
template <bool Quadratic, bool Masked, int Rows>
DECIBAN_INLINE void score_together(const double* const* rows, const ColumnParameters& q, std::size_t c,
                                   double* scores) {
    const double *mean = &q.mean[c * q.width], *factor = &q.factor[c * q.width], *constant = &q.constant[c * q.width];
    v4 sums[Rows] = {}, constants[Rows] = {};
    for (std::size_t j = 0; j < q.width; j += 4) {
        const v4 f = load(factor + j), m = Quadratic ? load(mean + j) : splat(0.0);
        DECIBAN_UNROLL
        for (int r = 0; r < Rows; ++r) {
            const v4 x = load(rows[r] + j);
            if (Quadratic) {
                v4 t = x - m;
                if (Masked) t = keep(t, (u4)(x == x));
                sums[r] = fma(t * t, f, sums[r]);
            } else if (Masked) {
                const u4 not_zero = (u4)((x < splat(0.0)) | (x > splat(0.0)));
                sums[r] += keep(x * f, not_zero);  // 0 * -inf counts as 0, NaN as nothing
            } else {
                sums[r] = fma(x, f, sums[r]);
            }
            if (Masked) constants[r] += keep(load(constant + j), (u4)(x == x));
        }
    }
    DECIBAN_UNROLL
    for (int r = 0; r < Rows; r += 4) {
        const v4 four = sums_of(sums[r], sums[r + 1], sums[r + 2], sums[r + 3]);
        const v4 rest =
            Masked ? sums_of(constants[r], constants[r + 1], constants[r + 2], constants[r + 3]) : splat(q.total[c]);
        store(scores + r, four + rest);
    }
}

template <bool Quadratic, bool Masked, int Rows>
DECIBAN_CLONES void score_rows(const double* tile, const std::uint32_t* rows, std::size_t count,
                               const ColumnParameters& q, double* out) {
    for (std::size_t first = 0; first < count; first += Rows) {
        const double* together[Rows];  // past the end, the last row repeats
        for (std::size_t r = 0; r < Rows; ++r) together[r] = tile + rows[std::min(first + r, count - 1)] * q.width;
        for (std::size_t c = 0; c < q.classes; ++c) {
            double scores[Rows];
            score_together<Quadratic, Masked, Rows>(together, q, c, scores);
            for (std::size_t r = 0; r < Rows && first + r < count; ++r)
                out[rows[first + r] * q.classes + c] += scores[r];
        }
    }
}

DECIBAN_CLONES inline bool has_nan(const double* row, std::size_t width) {
    u4 nan_lanes = splat(std::uint64_t{0});
    for (std::size_t j = 0; j < width; j += 4) {
        const v4 x = load(row + j);
        nan_lanes |= (u4)(x != x);
    }
    return any(nan_lanes);
}

template <class T>
DECIBAN_CLONES bool row_has_nan(const T* row, std::size_t columns, std::ptrdiff_t stride) {
    unsigned found_nan = 0;
    if (stride == 1)
        for (std::size_t j = 0; j < columns; ++j) found_nan |= row[j] != row[j];
    else
        for (std::size_t j = 0; j < columns; ++j)
            found_nan |= row[static_cast<std::ptrdiff_t>(j) * stride] != row[static_cast<std::ptrdiff_t>(j) * stride];
    return found_nan != 0;
}

template <class T>
void rows_with_nan(const Matrix<T>& x, bool* incomplete) {
    parallel(x.rows, thread_count(x.rows * x.columns, 1 << 18), [&](unsigned, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            incomplete[i] = x.columns && row_has_nan(x.address(i, 0), x.columns, x.column_stride);
    });
}

// out (rows, classes) += log-density of all columns. Rows without NaN take a shorter path.
template <bool Quadratic, class T>
void add_log_density(const Matrix<T>& x, const double* mean, const double* factor, const double* constant,
                     std::size_t classes, double* out) {
    std::vector<ColumnParameters> parameters;
    for (std::size_t left = 0; left < x.columns; left += columns_per_block)
        parameters.emplace_back(classes, x.columns, left, mean, factor, constant);
    const std::size_t widest = padded(std::min(columns_per_block, x.columns));
    const std::size_t tile_rows = std::clamp<std::size_t>((std::size_t{64} << 10) / (8 * widest + 1), 8, 256);
    const unsigned parts = thread_count(x.rows * x.columns * classes, 1 << 16);
    parallel(x.rows, parts, [&](unsigned, std::size_t begin, std::size_t end) {
        Doubles tile(tile_rows * widest);
        std::vector<std::uint32_t> complete, incomplete;
        for (std::size_t first = begin; first < end; first += tile_rows) {
            const std::size_t rows = std::min(tile_rows, end - first);
            double* target = out + first * classes;
            std::size_t left = 0;
            for (const auto& q : parameters) {
                copy_tile(x, first, rows, left, q.columns, tile.data(), q.width);
                left += q.columns;
                complete.clear(), incomplete.clear();
                for (std::uint32_t i = 0; i < rows; ++i)
                    (has_nan(&tile[i * q.width], q.width) || (!Quadratic && !q.finite) ? incomplete : complete)
                        .push_back(i);
                if (!complete.empty())
                    score_rows<Quadratic, false, 8>(tile.data(), complete.data(), complete.size(), q, target);
                if (!incomplete.empty())
                    score_rows<Quadratic, true, 4>(tile.data(), incomplete.data(), incomplete.size(), q, target);
            }
        }
    });
}

}  // namespace deciban
