// Merges two sorted lists: the distinct values, and how many of each list are at or below each of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>

namespace deciban {

// Writes up to n + m values and counts; returns the number of distinct values. No branch depends on which list comes
// next, which would be unpredictable.
inline std::size_t merge_sorted(const double* a, std::size_t n, const double* b, std::size_t m, double* values,
                                std::int64_t* count_a, std::int64_t* count_b) {
    std::size_t i = 0, j = 0, k = 0;
    double last = std::numeric_limits<double>::quiet_NaN();  // equal to no value
    const auto step = [&](double v, bool takes_a, bool takes_b) {
        k += !(last == v);
        last = v;
        i += takes_a;
        j += takes_b;
        values[k - 1] = v;
        count_a[k - 1] = static_cast<std::int64_t>(i);
        count_b[k - 1] = static_cast<std::int64_t>(j);
    };
    while (i < n && j < m) {
        const double x = a[i], y = b[j];
        step(x < y ? x : y, !(y < x), !(x < y));  // every step advances, whatever the values are
    }
    while (i < n) step(a[i], true, false);
    while (j < m) step(b[j], false, true);
    return k;
}

}  // namespace deciban
