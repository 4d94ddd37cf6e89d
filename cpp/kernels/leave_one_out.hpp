// Leave-one-out: the log-density of each row under its own class estimated without that row.
#pragma once
#include <cmath>
#include <cstdint>

#include "density.hpp"

namespace deciban {

// Below this the downdate has lost too many digits, and the row is marked unsafe.
constexpr double min_remaining = 1e-4;

// Parameters of a block of independent columns, one padded row per class.
struct LeaveOneOutParameters {
    std::size_t columns, width;
    Doubles mean, scale, gain, constant;  // (class, padded column)

    LeaveOneOutParameters(std::size_t k, std::size_t d, std::size_t left, const double* m, const double* s,
                          const double* g, const double* c)
        : columns(std::min(columns_per_block, d - left)), width(padded(columns)), mean(k * width), scale(k * width),
          gain(k * width), constant(k * width) {
        for (std::size_t i = 0; i < k; ++i)
            for (std::size_t j = 0; j < columns; ++j) {
                const std::size_t from = i * d + left + j, to = i * width + j;
                mean[to] = m[from], scale[to] = s[from], gain[to] = g[from], constant[to] = c[from];
            }
    }
};

// v = 1 − scale·(x − mean)² is the remaining fraction of the class's sum of squares; a cell adds
// constant − ½ log v − gain·(1/v − 1), NaN adds nothing. own += the sum; returns whether some v was too small. Logs are
// taken of products over 64 columns, which cannot underflow because v is kept above 1e-4.
DECIBAN_CLONES inline bool add_leave_one_out(const double* row, const LeaveOneOutParameters& q, std::size_t c,
                                             double* own) {
    const double *mean = &q.mean[c * q.width], *scale = &q.scale[c * q.width], *gain = &q.gain[c * q.width],
                 *constant = &q.constant[c * q.width];
    const v4 one = splat(1.0), least = splat(min_remaining);
    v4 total = splat(0.0);
    u4 unsafe = splat(std::uint64_t{0});
    double logs = 0.0;
    for (std::size_t left = 0; left < q.width; left += 64) {
        const std::size_t right = std::min(left + 64, q.width);
        v4 product = one;
        for (std::size_t j = left; j < right; j += 4) {
            const v4 x = load(row + j);
            const u4 present = (u4)(x == x);
            const v4 deviation = keep(x - load(mean + j), present);
            v4 v = fma(-load(scale + j), deviation * deviation, one);
            const u4 small = (u4)(v < least);
            unsafe |= small;
            v = (v4)(((u4)v & ~small) | ((u4)least & small));
            product *= v;
            total += keep(load(constant + j), present) - load(gain + j) * (one / v - one);
        }
        logs += std::log((product[0] * product[1]) * (product[2] * product[3]));
    }
    *own += sum(total) - 0.5 * logs;
    return any(unsafe);
}

template <class T>
void leave_one_out_densities(const Matrix<T>& x, const std::int32_t* labels, const double* mean, const double* scale,
                             const double* gain, const double* constant, std::size_t classes, double* own,
                             bool* unsafe) {
    std::vector<LeaveOneOutParameters> parameters;
    for (std::size_t left = 0; left < x.columns; left += columns_per_block)
        parameters.emplace_back(classes, x.columns, left, mean, scale, gain, constant);
    const std::size_t widest = padded(std::min(columns_per_block, x.columns));
    constexpr std::size_t tile_rows = 32;
    parallel(x.rows, thread_count(x.rows * x.columns, 1 << 14), [&](unsigned, std::size_t begin, std::size_t end) {
        Doubles tile(tile_rows * widest);
        for (std::size_t first = begin; first < end; first += tile_rows) {
            const std::size_t rows = std::min(tile_rows, end - first);
            for (std::size_t i = first; i < first + rows; ++i) own[i] = 0.0, unsafe[i] = false;
            std::size_t left = 0;
            for (const auto& q : parameters) {
                copy_tile(x, first, rows, left, q.columns, tile.data(), q.width);
                left += q.columns;
                for (std::size_t i = 0; i < rows; ++i)
                    unsafe[first + i] |= add_leave_one_out(
                        &tile[i * q.width], q, static_cast<std::size_t>(labels[first + i]), own + first + i);
            }
        }
    });
}

}  // namespace deciban
