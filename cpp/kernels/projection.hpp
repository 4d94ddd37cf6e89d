// Rows without their projection on the span of some columns of a triangular matrix: what is left of whitened rows when
// some of their entries are integrated out.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace deciban {

DECIBAN_INLINE double dot(const double* a, const double* b, std::size_t n) {
    v4 x = splat(0.0), y = splat(0.0);
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        x = fma(load(a + i), load(b + i), x);
        y = fma(load(a + i + 4), load(b + i + 4), y);
    }
    for (; i < n; i += 4) x = fma(load(a + i), load(b + i), x);
    return sum(x + y);
}

DECIBAN_INLINE void subtract_multiple(double* a, double factor, const double* b, std::size_t n) {
    const v4 minus = splat(-factor);
    for (std::size_t i = 0; i < n; i += 4) store(a + i, fma(minus, load(b + i), load(a + i)));
}

// Makes m rows of q, n entries each, orthonormal by the modified method of Gram and Schmidt; returns log |R|.
DECIBAN_CLONES inline double orthonormalise(double* q, std::size_t m, std::size_t n) {
    double log_r = 0.0;
    for (std::size_t k = 0; k < m; ++k) {
        double* own = q + k * n;
        for (std::size_t i = 0; i < k; ++i) subtract_multiple(own, dot(q + i * n, own, n), q + i * n, n);
        const double norm = std::sqrt(dot(own, own, n));
        log_r += std::log(norm);
        for (std::size_t i = 0; i < n; ++i) own[i] /= norm;
    }
    return log_r;
}

DECIBAN_CLONES inline void subtract_projection(const double* q, std::size_t m, std::size_t n, double* z) {
    for (std::size_t k = 0; k < m; ++k) subtract_multiple(z, dot(q + k * n, z, n), q + k * n, n);
}

// Groups of rows [starts[g], starts[g + 1]) of `rows` lack the columns of t (d, d) in unknown (groups, d). Subtracts
// from each of their vectors (vectors, n, d) its projection on the span of these columns, and log |R| from log_det (n).
inline void project_out(const double* t, std::size_t d, const bool* unknown, std::size_t groups,
                        const std::int64_t* starts, const std::int64_t* rows, double* vectors, std::size_t count,
                        std::size_t n, double* log_det) {
    const auto work = static_cast<std::size_t>(starts[groups]) * d;
    parallel(groups, thread_count(work, 1 << 13), [&](unsigned, std::size_t begin, std::size_t end) {
        const std::size_t width = padded(d);
        Doubles q(width * d), z(width, 0.0);
        for (std::size_t g = begin; g < end; ++g) {
            std::size_t m = 0;
            for (std::size_t j = 0; j < d; ++j) {
                if (!unknown[g * d + j]) continue;
                double* column = &q[m++ * width];
                for (std::size_t i = 0; i < width; ++i) column[i] = i >= j && i < d ? t[i * d + j] : 0.0;
            }
            const double log_r = orthonormalise(q.data(), m, width);
            for (std::int64_t at = starts[g]; at < starts[g + 1]; ++at) {
                const auto row = static_cast<std::size_t>(rows[at]);
                log_det[row] -= log_r;
                for (std::size_t v = 0; v < count; ++v) {
                    double* vector = vectors + (v * n + row) * d;
                    std::memcpy(z.data(), vector, d * sizeof(double));
                    subtract_projection(q.data(), m, width, z.data());
                    std::memcpy(vector, z.data(), d * sizeof(double));
                }
            }
        }
    });
}

}  // namespace deciban
