// From joint log-probabilities to posteriors, by log-sum-exp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
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

// The most probable class of each row, the first among equals; an impossible row takes that of `fallback`.
inline std::size_t most_probable(const double* joint, std::size_t rows, std::size_t classes, const double* fallback, std::int64_t* chosen) {
    const unsigned parts = thread_count(rows * classes, 1 << 16);
    std::vector<std::size_t> impossible(parts, 0);
    const auto largest = [&](const double* row) { return std::max_element(row, row + classes) - row; };
    parallel(rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            chosen[i] = largest(joint + i * classes);
            if (joint[i * classes + static_cast<std::size_t>(chosen[i])] != -std::numeric_limits<double>::infinity()) continue;
            chosen[i] = largest(fallback);
            ++impossible[part];
        }
    });
    std::size_t all = 0;
    for (const auto count : impossible) all += count;
    return all;
}

}  // namespace deciban
