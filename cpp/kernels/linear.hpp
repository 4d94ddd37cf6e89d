// Linear predictors eta = (x - origin) . w + b of many rows, the softmax loss, and gradients sum residual * (x -
// origin).
//
// Rows are read once: a tile is centred into the cache, its predictors are computed, turned into residuals and
// multiplied onto the same tile. The blocks of rows depend only on the number of rows and are added in order, so the
// result does not depend on the number of threads.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"
#include "softmax.hpp"

namespace deciban {

constexpr std::size_t max_blocks = 16;

// m predictors of d columns. w: (m, d)
struct Predictors {
    std::size_t m, d, width;
    Doubles w;  // (m, width), padded with 0
    const double* constant;
    const double* origin;  // (d)
    Predictors(std::size_t m, std::size_t d, const double* coefficients, const double* constant, const double* origin)
        : m(m), d(d), width(padded(d)), w(m * width, 0.0), constant(constant), origin(origin) {
        for (std::size_t k = 0; k < m; ++k) std::copy_n(coefficients + k * d, d, w.data() + k * width);
    }
};

// A few rows in cache: centred cells (rows, width), and eta (m, rows), the predictors and then the residuals.
struct Tile {
    std::size_t capacity, used = 0, first = 0;
    Doubles cells, eta;
    Tile(std::size_t width, std::size_t m)
        : capacity(std::clamp<std::size_t>((std::size_t{16} << 10) / (8 * width + 1) / 8 * 8, 8, 64)),
          cells(capacity * width, 0.0), eta(m * capacity, 0.0) {}
};

template <class T>
DECIBAN_CLONES void centre_tile(const T* source, std::ptrdiff_t row_stride, std::ptrdiff_t stride, std::size_t rows,
                                const double* origin, std::size_t d, double* cells, std::size_t width) {
    for (std::size_t i = 0; i < rows; ++i, source += row_stride, cells += width) {
        if (stride == 1)
            for (std::size_t j = 0; j < d; ++j) cells[j] = static_cast<double>(source[j]) - origin[j];
        else
            for (std::size_t j = 0; j < d; ++j)
                cells[j] = static_cast<double>(source[static_cast<std::ptrdiff_t>(j) * stride]) - origin[j];
    }
}

// `Classes` predictors of four rows.
template <int Classes>
DECIBAN_INLINE void predict_block(const double* cells, std::size_t width, const double* w, const double* constant,
                                  double* eta, std::size_t capacity) {
    v4 sums[Classes][4];
    DECIBAN_UNROLL
    for (int k = 0; k < Classes; ++k) {
        DECIBAN_UNROLL
        for (int i = 0; i < 4; ++i) sums[k][i] = splat(0.0);
    }
    for (std::size_t j = 0; j < width; j += 4) {
        v4 x[4];
        DECIBAN_UNROLL
        for (int i = 0; i < 4; ++i) x[i] = load(cells + static_cast<std::size_t>(i) * width + j);
        DECIBAN_UNROLL
        for (int k = 0; k < Classes; ++k) {
            const v4 factor = load(w + static_cast<std::size_t>(k) * width + j);
            DECIBAN_UNROLL
            for (int i = 0; i < 4; ++i) sums[k][i] = fma(x[i], factor, sums[k][i]);
        }
    }
    DECIBAN_UNROLL
    for (int k = 0; k < Classes; ++k)
        store(eta + static_cast<std::size_t>(k) * capacity,
              splat(constant[k]) + sums_of(sums[k][0], sums[k][1], sums[k][2], sums[k][3]));
}

DECIBAN_CLONES inline void predict_tile(const double* cells, std::size_t rows, std::size_t width, std::size_t m,
                                        const double* w, const double* constant, double* eta, std::size_t capacity) {
    for (std::size_t i = 0; i < rows; i += 4) {
        std::size_t k = 0;
        for (; k + 2 <= m; k += 2)
            predict_block<2>(cells + i * width, width, w + k * width, constant + k, eta + k * capacity + i, capacity);
        if (k < m)
            predict_block<1>(cells + i * width, width, w + k * width, constant + k, eta + k * capacity + i, capacity);
    }
}

// sums (Classes, width) += residual^T cells, for `Vectors` vectors of columns.
template <int Classes, int Vectors>
DECIBAN_INLINE void accumulate_block(const double* cells, std::size_t rows, std::size_t width, const double* residual,
                                     std::size_t capacity, double* sums) {
    v4 total[Classes][Vectors];
    const double* factor[Classes];
    DECIBAN_UNROLL
    for (int k = 0; k < Classes; ++k) {
        factor[k] = opaque_pointer(residual + static_cast<std::size_t>(k) * capacity);
        DECIBAN_UNROLL
        for (int v = 0; v < Vectors; ++v) total[k][v] = load(sums + static_cast<std::size_t>(k) * width + 4 * v);
    }
    for (std::size_t i = 0; i < rows; ++i, cells += width) {
        v4 x[Vectors];
        DECIBAN_UNROLL
        for (int v = 0; v < Vectors; ++v) x[v] = load(cells + 4 * v);
        DECIBAN_UNROLL
        for (int k = 0; k < Classes; ++k) {
            const v4 r = splat(factor[k][i]);
            DECIBAN_UNROLL
            for (int v = 0; v < Vectors; ++v) total[k][v] = fma(r, x[v], total[k][v]);
        }
    }
    DECIBAN_UNROLL
    for (int k = 0; k < Classes; ++k) {
        DECIBAN_UNROLL
        for (int v = 0; v < Vectors; ++v) store(sums + static_cast<std::size_t>(k) * width + 4 * v, total[k][v]);
    }
}

template <int Classes, int Vectors>
DECIBAN_INLINE void accumulate_columns(const double* cells, std::size_t rows, std::size_t width, const double* residual,
                                       std::size_t capacity, double* sums) {
    std::size_t j = 0;
    for (; j + 4 * Vectors <= width; j += 4 * Vectors)
        accumulate_block<Classes, Vectors>(cells + j, rows, width, residual, capacity, sums + j);
    for (; j < width; j += 4) accumulate_block<Classes, 1>(cells + j, rows, width, residual, capacity, sums + j);
}

DECIBAN_CLONES inline void accumulate_tile(const double* cells, std::size_t rows, std::size_t width, std::size_t m,
                                           const double* residual, std::size_t capacity, double* sums) {
    std::size_t k = 0;
    for (; k + 4 <= m; k += 4)
        accumulate_columns<4, 3>(cells, rows, width, residual + k * capacity, capacity, sums + k * width);
    for (; k + 2 <= m; k += 2)
        accumulate_columns<2, 5>(cells, rows, width, residual + k * capacity, capacity, sums + k * width);
    if (k < m) accumulate_columns<1, 8>(cells, rows, width, residual + k * capacity, capacity, sums + k * width);
}

// Softmax with the first class as reference (its predictor is 0): eta (m, rows) becomes w (p_k - [y = k]); returns
// sum w (log sum exp eta - eta_y). Without weights, the sums are multiplied over rows and one log is taken of each
// product.
DECIBAN_CLONES inline double softmax_tile(double* eta, std::size_t rows, std::size_t m, std::size_t capacity,
                                          const std::int32_t* codes, const double* weights) {
    double loss = 0.0;
    v4 product = splat(1.0), poison = splat(0.0);
    for (std::size_t i = 0; i < rows; i += 4) {
        const std::size_t lanes = std::min<std::size_t>(4, rows - i);
        v4 most = splat(0.0);
        for (std::size_t k = 0; k < m; ++k) {
            const v4 value = load(eta + k * capacity + i);
            most = larger(value, most);
            poison += value - value;  // NaN if not finite, which comparisons and exp would hide
        }
        for (std::size_t l = 0; l < lanes; ++l) {
            const double own = codes[i + l] ? eta[static_cast<std::size_t>(codes[i + l] - 1) * capacity + i + l] : 0.0;
            loss += (weights ? weights[i + l] : 1.0) * (most[l] - own);
        }
        v4 total = exp_of(-most);
        for (std::size_t k = 0; k < m; ++k) {
            const v4 e = exp_of(load(eta + k * capacity + i) - most);
            total += e;
            store(eta + k * capacity + i, e);
        }
        v4 scale = splat(1.0) / total;
        if (weights) {
            for (std::size_t l = 0; l < lanes; ++l)
                loss += weights[i + l] * std::log(total[l]), scale[l] *= weights[i + l];
        } else {
            for (std::size_t l = 0; l < lanes; ++l) product[l] *= total[l];
        }
        for (std::size_t k = 0; k < m; ++k) store(eta + k * capacity + i, load(eta + k * capacity + i) * scale);
        for (std::size_t l = 0; l < lanes; ++l)
            if (codes[i + l])
                eta[static_cast<std::size_t>(codes[i + l] - 1) * capacity + i + l] -= weights ? weights[i + l] : 1.0;
        for (std::size_t l = lanes; l < 4; ++l)
            for (std::size_t k = 0; k < m; ++k) eta[k * capacity + i + l] = 0.0;
    }
    for (int l = 0; l < 4; ++l) loss += std::log(product[l]);
    return loss + sum(poison);
}

struct Pass {
    double loss = 0.0;
    Doubles sums;                   // (m, width) sum residual * (x - origin)
    std::vector<double> residuals;  // (m) sum residual
    Pass(std::size_t m, std::size_t width) : sums(m * width, 0.0), residuals(m, 0.0) {}
    void add(const Pass& other) {
        loss += other.loss;
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums[i];
        for (std::size_t k = 0; k < residuals.size(); ++k) residuals[k] += other.residuals[k];
    }
};

// Calls body(block, begin, end); the blocks do not depend on the number of threads.
template <class Body>
void for_each_block(std::size_t rows, std::size_t blocks, std::size_t work, const Body& body) {
    const unsigned parts = static_cast<unsigned>(std::min<std::size_t>(blocks, thread_count(work, 1 << 17)));
    parallel(blocks, parts, [&](unsigned, std::size_t from, std::size_t to) {
        for (std::size_t block = from; block < to; ++block)
            body(block, rows * block / blocks / 4 * 4,
                 block + 1 == blocks ? rows : rows * (block + 1) / blocks / 4 * 4);
    });
}

inline std::size_t block_count(std::size_t rows) { return std::clamp<std::size_t>(rows / 256, 1, max_blocks); }

inline Pass sum_passes(std::vector<Pass>& parts) {
    for (std::size_t i = 1; i < parts.size(); ++i) parts[0].add(parts[i]);
    return std::move(parts[0]);
}

// Calls use(tile) for every tile of rows [begin, end).
template <class T, class Use>
void for_each_tile(const Matrix<T>& x, const Predictors& p, bool predict, std::size_t begin, std::size_t end,
                   const Use& use) {
    Tile tile(p.width, p.m);
    for (tile.first = begin; tile.first < end; tile.first += tile.capacity) {
        tile.used = std::min(tile.capacity, end - tile.first);
        centre_tile(x.address(tile.first, 0), x.row_stride, x.column_stride, tile.used, p.origin, p.d,
                    tile.cells.data(), p.width);
        if (predict)
            predict_tile(tile.cells.data(), tile.used, p.width, p.m, p.w.data(), p.constant, tile.eta.data(),
                         tile.capacity);
        use(tile);
    }
}

inline void accumulate_residuals(const Tile& tile, const Predictors& p, Pass& pass) {
    accumulate_tile(tile.cells.data(), tile.used, p.width, p.m, tile.eta.data(), tile.capacity, pass.sums.data());
    for (std::size_t k = 0; k < p.m; ++k)
        for (std::size_t i = 0; i < tile.used; ++i) pass.residuals[k] += tile.eta[k * tile.capacity + i];
}

// The softmax objective and its gradient, in one read of x.
template <class T>
Pass softmax_pass(const Matrix<T>& x, const Predictors& p, const std::int32_t* codes, const double* weights) {
    const std::size_t blocks = block_count(x.rows);
    std::vector<Pass> parts(blocks, Pass(p.m, p.width));
    for_each_block(x.rows, blocks, x.rows * p.d * p.m, [&](std::size_t block, std::size_t begin, std::size_t end) {
        Pass& pass = parts[block];
        for_each_tile(x, p, true, begin, end, [&](Tile& tile) {
            pass.loss += softmax_tile(tile.eta.data(), tile.used, p.m, tile.capacity, codes + tile.first,
                                      weights ? weights + tile.first : nullptr);
            accumulate_residuals(tile, p, pass);
        });
    });
    return sum_passes(parts);
}

// eta (n, m)
template <class T>
void predictors(const Matrix<T>& x, const Predictors& p, double* eta) {
    for_each_block(x.rows, block_count(x.rows), x.rows * p.d * p.m,
                   [&](std::size_t, std::size_t begin, std::size_t end) {
                       for_each_tile(x, p, true, begin, end, [&](const Tile& tile) {
                           for (std::size_t i = 0; i < tile.used; ++i)
                               for (std::size_t k = 0; k < p.m; ++k)
                                   eta[(tile.first + i) * p.m + k] = tile.eta[k * tile.capacity + i];
                       });
                   });
}

// sum residual (n, m) * (x - origin), and sum residual
template <class T>
Pass residual_sums(const Matrix<T>& x, const Predictors& p, const double* residual) {
    const std::size_t blocks = block_count(x.rows);
    std::vector<Pass> parts(blocks, Pass(p.m, p.width));
    for_each_block(x.rows, blocks, x.rows * p.d * p.m, [&](std::size_t block, std::size_t begin, std::size_t end) {
        for_each_tile(x, p, false, begin, end, [&](Tile& tile) {
            for (std::size_t i = 0; i < tile.used; ++i)
                for (std::size_t k = 0; k < p.m; ++k)
                    tile.eta[k * tile.capacity + i] = residual[(tile.first + i) * p.m + k];
            accumulate_residuals(tile, p, parts[block]);
        });
    });
    return sum_passes(parts);
}

// sums (2, width) += w z and w z^2, four columns at a time.
DECIBAN_CLONES inline void add_column_sums(const double* cells, std::size_t rows, std::size_t width,
                                           const double* weights, double* sums) {
    for (std::size_t j = 0; j < width; j += 4) {
        v4 first = load(sums + j), second = load(sums + width + j);
        for (std::size_t i = 0; i < rows; ++i) {
            const v4 z = load(cells + i * width + j), wz = splat(weights[i]) * z;
            first += wz;
            second = fma(wz, z, second);
        }
        store(sums + j, first), store(sums + width + j, second);
    }
}

// (2, d) sum w (x - origin) and sum w (x - origin)^2
template <class T>
Pass column_sums(const Matrix<T>& x, const Predictors& p, const double* weights) {
    const std::size_t blocks = block_count(x.rows);
    std::vector<Pass> parts(blocks, Pass(2, p.width));
    for_each_block(x.rows, blocks, x.rows * p.d, [&](std::size_t block, std::size_t begin, std::size_t end) {
        for_each_tile(x, p, false, begin, end, [&](const Tile& tile) {
            add_column_sums(tile.cells.data(), tile.used, p.width, weights + tile.first, parts[block].sums.data());
        });
    });
    return sum_passes(parts);
}

}  // namespace deciban
