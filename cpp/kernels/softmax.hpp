// From joint log-probabilities to posteriors, by log-sum-exp.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "parallel.hpp"

namespace deciban {

// In place. A row that is -inf in every class becomes `fallback`; returns how many such rows there were.
inline std::size_t normalise(double* joint, std::size_t rows, std::size_t classes, const double* fallback, bool logs) {
    const unsigned parts = thread_count(rows * classes, 1 << 14);
    std::vector<std::size_t> impossible(parts, 0);
    parallel(rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            double* row = joint + i * classes;
            double most = row[0];
            for (std::size_t c = 1; c < classes; ++c) most = std::max(most, row[c]);
            if (most == -std::numeric_limits<double>::infinity()) {
                ++impossible[part];
                for (std::size_t c = 0; c < classes; ++c) row[c] = logs ? fallback[c] : std::exp(fallback[c]);
                continue;
            }
            double total = 0.0;
            if (logs) {
                for (std::size_t c = 0; c < classes; ++c) total += std::exp(row[c] - most);
                const double log_total = std::log(total);
                for (std::size_t c = 0; c < classes; ++c) row[c] = (row[c] - most) - log_total;
            } else {
                for (std::size_t c = 0; c < classes; ++c) total += row[c] = std::exp(row[c] - most);
                for (std::size_t c = 0; c < classes; ++c) row[c] /= total;
            }
        }
    });
    std::size_t all = 0;
    for (const auto count : impossible) all += count;
    return all;
}

}  // namespace deciban
