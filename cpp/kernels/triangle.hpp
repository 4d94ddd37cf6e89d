// Whitening: z = T (x - m) for a lower-triangular T (the inverse of a Cholesky factor). Lanes are rows, so a row's
// result does not depend on its neighbours. This takes half the multiplications of a full product, and z is stored only
// if wanted.
#pragma once
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"

namespace deciban {

class Triangle {
public:
    static constexpr std::size_t panel = 4;  // outputs at a time
    static constexpr std::size_t vectors = 3;  // of four rows
    static constexpr std::size_t rows = 4 * vectors;

    Triangle(std::size_t d, const double* lower, const double* mean) : d_(d), mean_(mean, mean + d) {
        for (std::size_t top = 0; top < d; top += panel)  // by panel, then by column, four outputs together
            for (std::size_t j = 0; j < std::min(d, top + panel); ++j)
                for (std::size_t i = top; i < top + panel; ++i)
                    packed_.push_back(i < d && j <= i ? lower[i * d + j] : 0.0);
    }
    std::size_t dimension() const { return d_; }
    double mean(std::size_t j) const { return mean_[j]; }
    const double* packed() const { return packed_.data(); }

private:
    std::size_t d_;
    std::vector<double> mean_;
    Doubles packed_;
};

// centred: (dimension, 12 rows). Writes squares = |z|^2, and z in the same layout if not null.
DECIBAN_CLONES inline void multiply(const Triangle& t, const double* centred, double* z, double* squares) {
    const std::size_t d = t.dimension();
    const double* a = t.packed();
    v4 length[Triangle::vectors] = {};
    for (std::size_t top = 0; top < d; top += Triangle::panel) {
        v4 sums[Triangle::panel][Triangle::vectors] = {};
        const std::size_t used = std::min(d, top + Triangle::panel);
        const double* entry[4] = {opaque_pointer(a), opaque_pointer(a + 1), opaque_pointer(a + 2),
                                  opaque_pointer(a + 3)};
        for (std::size_t j = 0; j < used; ++j) {
            const double* y = centred + j * Triangle::rows;
            const v4 y0 = load(y), y1 = load(y + 4), y2 = load(y + 8);
            DECIBAN_UNROLL
            for (std::size_t i = 0; i < Triangle::panel; ++i) {
                const v4 w = splat(entry[i][j * Triangle::panel]);
                sums[i][0] = fma(w, y0, sums[i][0]);
                sums[i][1] = fma(w, y1, sums[i][1]);
                sums[i][2] = fma(w, y2, sums[i][2]);
            }
        }
        a += used * Triangle::panel;
        DECIBAN_UNROLL
        for (std::size_t i = 0; i < Triangle::panel; ++i) {
            DECIBAN_UNROLL
            for (std::size_t v = 0; v < Triangle::vectors; ++v) {
                length[v] = fma(sums[i][v], sums[i][v], length[v]);
                if (z && top + i < d) store(z + (top + i) * Triangle::rows + 4 * v, sums[i][v]);
            }
        }
    }
    for (std::size_t v = 0; v < Triangle::vectors; ++v) store(squares + 4 * v, length[v]);
}

// Calls use(triangle, first row, rows, squares, z) for every 12 rows; z is (dimension, 12) or null.
template <class T, class Use>
void whiten(const Matrix<T>& x, const std::vector<Triangle>& triangles, bool want_z, const Use& use) {
    const std::size_t d = x.columns;
    const unsigned parts = thread_count(x.rows * d * d * triangles.size(), 1 << 18);
    parallel(x.rows, parts, [&](unsigned, std::size_t begin, std::size_t end) {
        Doubles tile(d * Triangle::rows, 0.0), centred(tile.size()), z(want_z ? tile.size() : 0);
        for (std::size_t first = begin; first < end; first += Triangle::rows) {
            const std::size_t rows = std::min(Triangle::rows, end - first);
            for (std::size_t i = 0; i < rows; ++i)
                for (std::size_t j = 0; j < d; ++j)
                    tile[j * Triangle::rows + i] = static_cast<double>(x.at(first + i, j));
            for (std::size_t k = 0; k < triangles.size(); ++k) {
                double squares[Triangle::rows];
                for (std::size_t j = 0; j < d; ++j)
                    for (std::size_t i = 0; i < Triangle::rows; ++i)
                        centred[j * Triangle::rows + i] = tile[j * Triangle::rows + i] - triangles[k].mean(j);
                multiply(triangles[k], centred.data(), want_z ? z.data() : nullptr, squares);
                use(k, first, rows, squares, z.data());
            }
        }
    });
}

}  // namespace deciban
