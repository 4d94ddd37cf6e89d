// Weights that depend on the row: each feature that is unknown in it changes them.
#pragma once
#include <cstdint>
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"

namespace deciban {

// The weights of pieces for each class, and their changes where features are unknown.
struct ChangingWeights {
    std::size_t pieces, classes, features;
    const double *weights, *changes;  // (pieces, classes) and (features, pieces, classes)
    const bool* alone;                // (features, pieces) pieces without evidence where the feature is unknown

    std::size_t size() const { return pieces * classes; }

    // out (pieces, classes) = max(0, w + the changes of all unknown features), 0 for pieces without evidence
    void of_row(const bool* unknown, double* out) const {
        std::copy_n(weights, size(), out);
        for (std::size_t c = 0; c < features; ++c)
            if (unknown[c])
                for (std::size_t i = 0; i < size(); ++i) out[i] += changes[c * size() + i];
        for (std::size_t i = 0; i < size(); ++i) out[i] = out[i] > 0.0 ? out[i] : 0.0;
        for (std::size_t c = 0; c < features; ++c)
            for (std::size_t p = 0; unknown[c] && p < pieces; ++p)
                if (alone[c * pieces + p]) std::fill_n(out + p * classes, classes, 0.0);
    }
};

// out (rows, classes) += the sum over pieces of evidence (rows, pieces, classes) times the weights of the row
inline void add_changed(const ChangingWeights& weights, const double* evidence, const bool* unknown, std::size_t rows,
                        double* out) {
    parallel(rows, thread_count(rows * weights.size(), 1 << 15), [&](unsigned, std::size_t begin, std::size_t end) {
        std::vector<double> of_row(weights.size());
        for (std::size_t i = begin; i < end; ++i) {
            weights.of_row(unknown + i * weights.features, of_row.data());
            const double* e = evidence + i * weights.size();
            double* to = out + i * weights.classes;
            for (std::size_t p = 0; p < weights.pieces; ++p)
                for (std::size_t k = 0; k < weights.classes; ++k)
                    to[k] += e[p * weights.classes + k] * of_row[p * weights.classes + k];
        }
    });
}

}  // namespace deciban
