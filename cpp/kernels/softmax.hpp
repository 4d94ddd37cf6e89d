// Posteriors from joint log-probabilities, by log-sum-exp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace deciban {

// exp(x) for x <= 0, to within one unit in the last place; below -708 it is 0.
// x = k log 2 + r with |r| <= log(2)/2, exp(r) by its Taylor series to r^13 / 13!, and k goes into the exponent.
DECIBAN_INLINE v4 exp_of(v4 x) {
    constexpr double shift = 0x1.8p52, inverse = 1.4426950408889634074;
    constexpr double log2_high = 0x1.62e42fefa0000p-1, log2_low = 0x1.cf79abc9e3b3ap-40;
    const u4 alive = (u4)(x >= splat(-708.0));
    x = keep(x, alive);
    const v4 shifted = fma(x, splat(inverse), splat(shift)), k = shifted - splat(shift);
    const v4 r = fma(-k, splat(log2_low), fma(-k, splat(log2_high), x));
    v4 p = splat(1.0 / 6227020800.0);
    constexpr double factors[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                                  1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      1.0 / 2,     1.0};
    for (const double factor : factors) p = fma(p, r, splat(factor));
    p = fma(p, r, splat(1.0));
    const u4 exponent = ((u4)shifted - (u4)splat(shift)) << 52;
    return keep((v4)((u4)p + exponent), alive);
}

// Normalises rows [begin, end) in place; `scratch` holds padded(classes) doubles.
DECIBAN_CLONES inline std::size_t normalise_rows(double* joint, std::size_t begin, std::size_t end, std::size_t classes,
                                                 const double* fallback, bool logs, double* scratch) {
    std::size_t impossible = 0;
    for (std::size_t i = begin; i < end; ++i) {
        double* row = joint + i * classes;
        double most = row[0];
        for (std::size_t c = 1; c < classes; ++c) most = row[c] > most ? row[c] : most;
        if (most == -std::numeric_limits<double>::infinity()) {
            ++impossible;
            for (std::size_t c = 0; c < classes; ++c) row[c] = logs ? fallback[c] : std::exp(fallback[c]);
            continue;
        }
        std::memcpy(scratch, row, classes * sizeof(double));
        for (std::size_t c = 0; c < classes; c += 4) store(scratch + c, exp_of(load(scratch + c) - splat(most)));
        double total = 0.0;
        for (std::size_t c = 0; c < classes; ++c) total += scratch[c];
        if (logs) {
            const double log_total = std::log(total);
            for (std::size_t c = 0; c < classes; ++c) row[c] = (row[c] - most) - log_total;
        } else {
            for (std::size_t c = 0; c < classes; ++c) row[c] = scratch[c] / total;
        }
    }
    return impossible;
}

// A row that is -inf in every class becomes `fallback`; returns how many such rows there were.
inline std::size_t normalise(double* joint, std::size_t rows, std::size_t classes, const double* fallback, bool logs) {
    const unsigned parts = thread_count(rows * classes, 1 << 14);
    std::vector<std::size_t> impossible(parts, 0);
    parallel(rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        Doubles scratch(padded(classes), 0.0);
        impossible[part] = normalise_rows(joint, begin, end, classes, fallback, logs, scratch.data());
    });
    std::size_t all = 0;
    for (const auto count : impossible) all += count;
    return all;
}

// The most probable class of each row, the first among equals; an impossible row takes that of `fallback`.
inline std::size_t most_probable(const double* joint, std::size_t rows, std::size_t classes, const double* fallback,
                                 std::int64_t* chosen) {
    const unsigned parts = thread_count(rows * classes, 1 << 16);
    std::vector<std::size_t> impossible(parts, 0);
    const auto largest = [&](const double* row) { return std::max_element(row, row + classes) - row; };
    parallel(rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            chosen[i] = largest(joint + i * classes);
            if (joint[i * classes + static_cast<std::size_t>(chosen[i])] != -std::numeric_limits<double>::infinity())
                continue;
            chosen[i] = largest(fallback);
            ++impossible[part];
        }
    });
    std::size_t all = 0;
    for (const auto count : impossible) all += count;
    return all;
}

}  // namespace deciban
