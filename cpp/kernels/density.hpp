// Log-densities of many rows under many classes. A NaN cell adds nothing. What a row gets does not depend on its
// neighbours: the same operations in the same order, however the rows are cut into batches.
#pragma once
#include <cmath>
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"

namespace deciban {

// Parameters of d independent columns, for each class a padded row: mean, factor and constant.
// quadratic:  constant + factor * (x - mean)^2          linear:  constant + factor * x
struct ColumnParameters {
    std::size_t classes, columns, width;
    std::vector<double> mean, factor, constant;  // (class, padded column)
    std::vector<double> total;                   // (class) sum of constants
    bool finite = true;                          // no infinite factor

    ColumnParameters(std::size_t k, std::size_t d, const double* m, const double* f, const double* c)
        : classes(k), columns(d), width(padded(d)), mean(k * width), factor(k * width), constant(k * width), total(k) {
        for (std::size_t i = 0; i < k; ++i)
            for (std::size_t j = 0; j < d; ++j) {
                if (m) mean[i * width + j] = m[i * d + j];
                factor[i * width + j] = f[i * d + j];
                constant[i * width + j] = c[i * d + j];
                total[i] += c[i * d + j];
                if (std::isinf(f[i * d + j])) finite = false;
            }
    }
};

// Four rows (or copies of one) at a time: each parameter is loaded once for the four.
template <bool Quadratic, bool Masked>
DECIBAN_INLINE void score_four(const double* const* rows, const ColumnParameters& q, std::size_t c, double* scores) {
    const double *mean = &q.mean[c * q.width], *factor = &q.factor[c * q.width], *constant = &q.constant[c * q.width];
    v4 sums[4] = {}, constants[4] = {};
    for (std::size_t j = 0; j < q.width; j += 4) {
        const v4 f = load(factor + j);
        DECIBAN_UNROLL
        for (int r = 0; r < 4; ++r) {
            const v4 x = load(rows[r] + j);
            if (Quadratic) {
                v4 t = x - load(mean + j);
                if (Masked) t = keep(t, (i4)(x == x));
                sums[r] = fma(t * t, f, sums[r]);
            } else if (Masked) {
                sums[r] += keep(x * f, (i4)((x < splat(0.0)) | (x > splat(0.0))));  // 0 * -inf is 0 here, NaN nothing
            } else {
                sums[r] = fma(x, f, sums[r]);
            }
            if (Masked) constants[r] += keep(load(constant + j), (i4)(x == x));
        }
    }
    for (int r = 0; r < 4; ++r) scores[r] = sum(sums[r]) + (Masked ? sum(constants[r]) : q.total[c]);
}

template <bool Quadratic, bool Masked>
DECIBAN_CLONES void score_rows(const double* tile, const std::uint32_t* rows, std::size_t count,
                               const ColumnParameters& q, double* out) {
    for (std::size_t first = 0; first < count; first += 4) {
        const double* four[4];
        for (std::size_t r = 0; r < 4; ++r) four[r] = tile + rows[std::min(first + r, count - 1)] * q.width;
        for (std::size_t c = 0; c < q.classes; ++c) {
            double scores[4];
            score_four<Quadratic, Masked>(four, q, c, scores);
            for (std::size_t r = 0; r < 4 && first + r < count; ++r) out[rows[first + r] * q.classes + c] += scores[r];
        }
    }
}

DECIBAN_CLONES inline bool has_nan(const double* row, std::size_t width) {
    i4 missing = splat(std::int64_t{0});
    for (std::size_t j = 0; j < width; j += 4) {
        const v4 x = load(row + j);
        missing |= (i4)(x != x);
    }
    return any(missing);
}

// out (rows, classes) += log-density
template <bool Quadratic, class T>
void add_log_density(const Matrix<T>& x, const ColumnParameters& q, double* out) {
    const std::size_t tile_rows = std::clamp<std::size_t>((std::size_t{64} << 10) / (8 * q.width), 4, 256);
    const unsigned parts = thread_count(x.rows * x.columns * q.classes, 1 << 16);
    parallel(x.rows, parts, [&](unsigned, std::size_t begin, std::size_t end) {
        std::vector<double> tile(tile_rows * q.width);
        std::vector<std::uint32_t> whole, holed;
        for (std::size_t first = begin; first < end; first += tile_rows) {
            const std::size_t rows = std::min(tile_rows, end - first);
            copy_tile(x, first, rows, 0, x.columns, tile.data(), q.width);
            whole.clear(), holed.clear();
            for (std::uint32_t i = 0; i < rows; ++i)
                (has_nan(&tile[i * q.width], q.width) || (!Quadratic && !q.finite) ? holed : whole).push_back(i);
            double* target = out + first * q.classes;
            if (!whole.empty()) score_rows<Quadratic, false>(tile.data(), whole.data(), whole.size(), q, target);
            if (!holed.empty()) score_rows<Quadratic, true>(tile.data(), holed.data(), holed.size(), q, target);
        }
    });
}

}  // namespace deciban
