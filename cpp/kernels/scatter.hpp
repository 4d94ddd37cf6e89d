// Scatter about an origin, by class: sum (x - o) and sum (x - o)(x - o)^T over the complete rows.
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
        : width(padded(d)), count(classes), skipped(classes), sum(classes * d, 0.0),
          products(groups * width * width, 0.0) {}
    std::size_t width;             // d, padded to whole vectors
    ExactSums count, skipped;      // (class) weight of the complete and of the incomplete rows
    std::vector<double> sum;       // (class, d)
    Doubles products;  // (group, width, width), the blocks on and right of the diagonal
    void add(const Scatter& other) {
        const auto plus = [](auto& a, const auto& b) {
            for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
        };
        count.add(other.count), skipped.add(other.skipped);
        plus(sum, other.sum), plus(products, other.products);
    }
};

// A block of 4 x 4*(Last - First) sums: rows `top`, columns `right` + 4*First and on.
template <int First, int Last>
DECIBAN_INLINE void add_block(const double* z, const double* v, std::size_t rows, std::size_t width, std::size_t top,
                              std::size_t right, double* products) {
    v4 sums[4][3];
    double* target = products + top * width + right;
    DECIBAN_UNROLL
    for (int i = 0; i < 4; ++i) {
        DECIBAN_UNROLL
        for (int k = First; k < Last; ++k) sums[i][k] = load(target + static_cast<std::size_t>(i) * width + 4 * k);
    }
    const double* row = v + right;
    const double* left[4] = {opaque_pointer(z + top), opaque_pointer(z + top + 1), opaque_pointer(z + top + 2),
                             opaque_pointer(z + top + 3)};
    for (std::size_t r = 0; r < rows; ++r, row += width) {
        v4 y[3];
        DECIBAN_UNROLL
        for (int k = First; k < Last; ++k) y[k] = load(row + 4 * k);
        DECIBAN_UNROLL
        for (int i = 0; i < 4; ++i) {
            const v4 x = splat(left[i][r * width]);
            DECIBAN_UNROLL
            for (int k = First; k < Last; ++k) sums[i][k] = fma(x, y[k], sums[i][k]);
        }
    }
    DECIBAN_UNROLL
    for (int i = 0; i < 4; ++i) {
        DECIBAN_UNROLL
        for (int k = First; k < Last; ++k) store(target + static_cast<std::size_t>(i) * width + 4 * k, sums[i][k]);
    }
}

// products += z^T v for `rows` rows of `width` doubles (whole vectors), on and right of the diagonal.
DECIBAN_CLONES inline void add_products(const double* z, const double* v, std::size_t rows, std::size_t width,
                                        double* products) {
    for (std::size_t right = 0; right < width; right += 12) {
        const std::size_t vectors = std::min<std::size_t>(3, (width - right) / 4);
        for (std::size_t top = 0; top < right; top += 4) {
            if (vectors == 3) add_block<0, 3>(z, v, rows, width, top, right, products);
            else if (vectors == 2) add_block<0, 2>(z, v, rows, width, top, right, products);
            else add_block<0, 1>(z, v, rows, width, top, right, products);
        }
        if (vectors == 3) {  // skips the blocks left of the diagonal
            add_block<0, 3>(z, v, rows, width, right, right, products);
            add_block<1, 3>(z, v, rows, width, right + 4, right, products);
            add_block<2, 3>(z, v, rows, width, right + 8, right, products);
        } else if (vectors == 2) {
            add_block<0, 2>(z, v, rows, width, right, right, products);
            add_block<1, 2>(z, v, rows, width, right + 4, right, products);
        } else {
            add_block<0, 1>(z, v, rows, width, right, right, products);
        }
    }
}

// row = source - origin; returns whether all of it is finite.
template <class T>
DECIBAN_CLONES bool centre_row(const T* source, std::ptrdiff_t stride, const double* origin, std::size_t d, double* row,
                               std::size_t width) {
    if (stride == 1)
        for (std::size_t j = 0; j < d; ++j) row[j] = static_cast<double>(source[j]) - origin[j];
    else
        for (std::size_t j = 0; j < d; ++j)
            row[j] = static_cast<double>(source[static_cast<std::ptrdiff_t>(j) * stride]) - origin[j];
    u4 not_finite = splat(std::uint64_t{0});
    for (std::size_t j = 0; j < width; j += 4) {
        const v4 x = load(row + j);
        not_finite |= (u4)(x - x != splat(0.0));  // inf - inf and NaN are not 0
    }
    return !any(not_finite);
}

DECIBAN_CLONES inline void add_row(const double* row, std::size_t d, double* sum) {
    for (std::size_t j = 0; j < d; ++j) sum[j] += row[j];
}

// origin (class, d). All classes share one matrix of products, or each has its own.
template <class T>
void scatter_of_rows(const Matrix<T>& x, const std::int32_t* codes, const double* weights, const double* origin,
                     std::size_t classes, bool shared, std::size_t begin, std::size_t end, Scatter& total) {
    const std::size_t d = x.columns, width = total.width, groups = shared ? 1 : classes;
    const std::size_t tile_rows = std::clamp<std::size_t>((std::size_t{96} << 10) / (8 * width + 1), 16, 512);
    Doubles centred(tile_rows * width, 0.0), weighted(weights ? centred.size() : 0, 0.0);
    std::vector<std::size_t> start(groups + 1), next(groups);
    const auto group = [&](std::size_t i) { return shared ? std::size_t{0} : static_cast<std::size_t>(codes[i]); };
    for (std::size_t first = begin; first < end; first += tile_rows) {
        const std::size_t last = std::min(first + tile_rows, end);
        std::fill(start.begin(), start.end(), 0);
        for (std::size_t i = first; i < last; ++i) ++start[group(i) + 1];
        for (std::size_t g = 0; g < groups; ++g) start[g + 1] += start[g];
        std::copy(start.begin(), start.end() - 1, next.begin());
        for (std::size_t i = first; i < last; ++i) {  // rows of a group become adjacent
            const auto c = static_cast<std::size_t>(codes[i]);
            const double w = weights ? weights[i] : 1.0;
            const std::size_t at = next[group(i)] * width;
            double* const row = centred.data() + at;
            if (!centre_row(x.address(i, 0), x.column_stride, origin + c * d, d, row, width)) {
                total.skipped.add(c, w);
                continue;
            }
            if (weights)
                for (std::size_t j = 0; j < d; ++j) weighted[at + j] = w * row[j];
            add_row(weights ? weighted.data() + at : row, d, total.sum.data() + c * d);
            total.count.add(c, w);
            ++next[group(i)];
        }
        for (std::size_t g = 0; g < groups; ++g) {
            const std::size_t at = start[g] * width, used = next[g] - start[g];
            if (used)
                add_products(centred.data() + at, (weights ? weighted : centred).data() + at, used, width,
                             total.products.data() + g * width * width);
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
