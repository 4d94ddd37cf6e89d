// The log-density of each row under its own class, when that row is left out of what the class was estimated from.
#pragma once
#include <cmath>
#include <cstdint>

#include "density.hpp"

namespace deciban {

// Below this share the downdate has lost too many digits, and another way is taken.
constexpr double least_left = 1e-4;

// Parameters of some independent columns, for each class a padded row.
struct LeftOutParameters {
    std::size_t columns, width;
    Doubles mean, scale, gain, constant;  // (class, padded column)

    LeftOutParameters(std::size_t k, std::size_t d, std::size_t left, const double* m, const double* s, const double* g, const double* c)
        : columns(std::min(columns_at_once, d - left)), width(padded(columns)), mean(k * width), scale(k * width),
          gain(k * width), constant(k * width) {
        for (std::size_t i = 0; i < k; ++i)
            for (std::size_t j = 0; j < columns; ++j) {
                const std::size_t from = i * d + left + j, to = i * width + j;
                mean[to] = m[from], scale[to] = s[from], gain[to] = g[from], constant[to] = c[from];
            }
    }
};

// v = 1 − scale·(x − mean)² is what is left of the class's squares; a cell adds constant − ½ log v − gain·(1/v − 1), a
// NaN nothing. Returns whether some v was too small; own += the sum. Logs are taken of products of 64 columns, none of
// which can underflow, as v is kept above 1e-4.
DECIBAN_CLONES inline bool add_left_out(const double* row, const LeftOutParameters& q, std::size_t c, double* own) {
    const double *mean = &q.mean[c * q.width], *scale = &q.scale[c * q.width], *gain = &q.gain[c * q.width],
                 *constant = &q.constant[c * q.width];
    const v4 one = splat(1.0), least = splat(least_left);
    v4 sum_of = splat(0.0);
    i4 refused = splat(std::int64_t{0});
    double logs = 0.0;
    for (std::size_t left = 0; left < q.width; left += 64) {
        const std::size_t right = std::min(left + 64, q.width);
        v4 product = one;
        for (std::size_t j = left; j < right; j += 4) {
            const v4 x = load(row + j);
            const i4 there = (i4)(x == x);
            const v4 apart = keep(x - load(mean + j), there);
            v4 v = fma(-load(scale + j), apart * apart, one);
            const i4 small = (i4)(v < least);
            refused |= small;
            v = (v4)(((i4)v & ~small) | ((i4)least & small));
            product *= v;
            sum_of += keep(load(constant + j), there) - load(gain + j) * (one / v - one);
        }
        logs += std::log((product[0] * product[1]) * (product[2] * product[3]));
    }
    *own += sum(sum_of) - 0.5 * logs;
    return any(refused);
}

template <class T>
void left_out_densities(const Matrix<T>& x, const std::int32_t* labels, const double* mean, const double* scale,
                        const double* gain, const double* constant, std::size_t classes, double* own, bool* refused) {
    std::vector<LeftOutParameters> parameters;
    for (std::size_t left = 0; left < x.columns; left += columns_at_once)
        parameters.emplace_back(classes, x.columns, left, mean, scale, gain, constant);
    const std::size_t widest = padded(std::min(columns_at_once, x.columns));
    constexpr std::size_t tile_rows = 32;
    parallel(x.rows, thread_count(x.rows * x.columns, 1 << 14), [&](unsigned, std::size_t begin, std::size_t end) {
        Doubles tile(tile_rows * widest);
        for (std::size_t first = begin; first < end; first += tile_rows) {
            const std::size_t rows = std::min(tile_rows, end - first);
            for (std::size_t i = first; i < first + rows; ++i) own[i] = 0.0, refused[i] = false;
            std::size_t left = 0;
            for (const auto& q : parameters) {
                copy_tile(x, first, rows, left, q.columns, tile.data(), q.width);
                left += q.columns;
                for (std::size_t i = 0; i < rows; ++i)
                    refused[first + i] |= add_left_out(&tile[i * q.width], q, static_cast<std::size_t>(labels[first + i]), own + first + i);
            }
        }
    });
}

}  // namespace deciban
