// Sums of products about an origin, by class: sum (x - o) and sum (x - o)(x - o)^T over the rows without a hole.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "exact.hpp"
#include "matrix.hpp"
#include "parallel.hpp"

namespace deciban {

struct Scatter {
    Scatter(std::size_t classes, std::size_t groups, std::size_t d)
        : width((d + 11) / 12 * 12), count(classes), skipped(classes), sum(classes * d, 0.0),
          products(groups * width * width, 0.0) {}
    std::size_t width;             // columns padded to whole register blocks
    ExactSums count, skipped;      // (class) weight of the rows taken, and of those with a hole
    std::vector<double> sum;       // (class, d)
    std::vector<double> products;  // (group, width, width); right of the diagonal, block by block
    void add(const Scatter& other) {
        const auto plus = [](std::vector<double>& a, const std::vector<double>& b) {
            for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
        };
        count.add(other.count), skipped.add(other.skipped);
        plus(sum, other.sum), plus(products, other.products);
    }
};

// products += z^T v for `rows` rows of `width` doubles; blocks of 4 x 12 on and right of the diagonal.
DECIBAN_CLONES inline void add_products(const double* z, const double* v, std::size_t rows, std::size_t width, double* products) {
    for (std::size_t right = 0; right < width; right += 12)
        for (std::size_t top = 0; top < right + 12; top += 4) {
            v4 sums[4][3];
            for (std::size_t i = 0; i < 4; ++i)
                for (std::size_t k = 0; k < 3; ++k) sums[i][k] = load(products + (top + i) * width + right + 4 * k);
            const double *left = z + top, *row = v + right;
            for (std::size_t r = 0; r < rows; ++r, left += width, row += width) {
                const v4 a = load(row), b = load(row + 4), c = load(row + 8);
                DECIBAN_UNROLL
                for (std::size_t i = 0; i < 4; ++i) {
                    const v4 x = splat(left[i]);
                    sums[i][0] = fma(x, a, sums[i][0]);
                    sums[i][1] = fma(x, b, sums[i][1]);
                    sums[i][2] = fma(x, c, sums[i][2]);
                }
            }
            for (std::size_t i = 0; i < 4; ++i)
                for (std::size_t k = 0; k < 3; ++k) store(products + (top + i) * width + right + 4 * k, sums[i][k]);
        }
}

// origin (class, d). With one group all classes share one matrix of products; else each has its own.
template <class T>
void scatter_of_rows(const Matrix<T>& x, const std::int32_t* codes, const double* weights, const double* origin,
                     std::size_t classes, bool shared, std::size_t begin, std::size_t end, Scatter& total) {
    const std::size_t d = x.columns, width = total.width, groups = shared ? 1 : classes;
    const std::size_t tile_rows = std::clamp<std::size_t>((std::size_t{192} << 10) / (8 * width), 16, 512) * (shared ? 1 : 2);
    std::vector<double> centred(tile_rows * width, 0.0), weighted(weights ? centred.size() : 0, 0.0);
    std::vector<std::size_t> start(groups + 1), next(groups);
    for (std::size_t first = begin; first < end; first += tile_rows) {
        const std::size_t rows = std::min(tile_rows, end - first);
        const auto group = [&](std::size_t i) { return shared ? std::size_t{0} : static_cast<std::size_t>(codes[i]); };
        std::fill(start.begin(), start.end(), 0);
        for (std::size_t i = first; i < first + rows; ++i) ++start[group(i) + 1];
        for (std::size_t g = 0; g < groups; ++g) start[g + 1] += start[g];
        std::copy(start.begin(), start.end() - 1, next.begin());
        for (std::size_t i = first; i < first + rows; ++i) {
            const auto c = static_cast<std::size_t>(codes[i]);
            const double w = weights ? weights[i] : 1.0;
            double* row = &centred[next[group(i)] * width];
            const double* o = origin + c * d;
            double hole = 0.0;
            if (x.column_stride == 1) {
                const T* source = &x.at(i, 0);
                for (std::size_t j = 0; j < d; ++j) row[j] = static_cast<double>(source[j]) - o[j];
            } else {
                for (std::size_t j = 0; j < d; ++j) row[j] = static_cast<double>(x.at(i, j)) - o[j];
            }
            for (std::size_t j = 0; j < d; ++j) hole += row[j] * 0.0;  // NaN or inf anywhere makes NaN
            if (hole != hole) {
                total.skipped.add(c, w);
                continue;
            }
            double* sum = &total.sum[c * d];
            if (weights) {
                double* scaled = &weighted[next[group(i)] * width];
                for (std::size_t j = 0; j < d; ++j) sum[j] += scaled[j] = w * row[j];
            } else {
                for (std::size_t j = 0; j < d; ++j) sum[j] += row[j];
            }
            total.count.add(c, w);
            ++next[group(i)];
        }
        for (std::size_t g = 0; g < groups; ++g) {
            const std::size_t at = start[g] * width, used = next[g] - start[g];
            if (used) add_products(&centred[at], weights ? &weighted[at] : &centred[at], used, width, &total.products[g * width * width]);
        }
    }
}

template <class T>
Scatter scatter(const Matrix<T>& x, const std::int32_t* codes, const double* weights, const double* origin,
                std::size_t classes, bool shared) {
    const std::size_t d = x.columns, groups = shared ? 1 : classes;
    const unsigned parts = thread_count(x.rows * d * d, std::max<std::size_t>(1 << 20, 16 * groups * d * d));
    std::vector<std::unique_ptr<Scatter>> partial(parts);
    parallel(x.rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        partial[part] = std::make_unique<Scatter>(classes, groups, d);
        scatter_of_rows(x, codes, weights, origin, classes, shared, begin, end, *partial[part]);
    });
    for (unsigned part = 1; part < parts; ++part) partial[0]->add(*partial[part]);
    return std::move(*partial[0]);
}

}  // namespace deciban
