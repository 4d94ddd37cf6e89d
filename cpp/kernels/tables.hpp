// Integer codes of the values of a column; a code outside the column's range is missing.
#pragma once
#include <vector>

#include "exact.hpp"
#include "matrix.hpp"
#include "parallel.hpp"

namespace deciban {

DECIBAN_INLINE bool in_range(const std::int64_t* offsets, std::size_t column, std::int32_t code) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(code)) <
           static_cast<std::uint64_t>(offsets[column + 1] - offsets[column]);
}

// Counts by (class, offset[column] + code).
inline ExactSums count_codes(const Matrix<std::int32_t>& codes, const std::int64_t* offsets, const std::int32_t* y,
                             const double* weights, std::size_t classes) {
    const auto total = static_cast<std::size_t>(offsets[codes.columns]);
    const std::size_t cells = classes * total;
    ExactSums sums(cells, 1);
    if (weights) {
        for (std::size_t i = 0; i < codes.rows; ++i)
            for (std::size_t j = 0; j < codes.columns; ++j) {
                const std::int32_t code = codes.at(i, j);
                if (!in_range(offsets, j, code)) continue;
                const std::size_t cell = static_cast<std::size_t>(offsets[j] + code);
                sums.add(static_cast<std::size_t>(y[i]) * total + cell, weights[i]);
            }
        return sums;
    }
    const unsigned parts = thread_count(codes.rows * codes.columns, std::max<std::size_t>(1 << 16, 4 * cells));
    std::vector<std::vector<std::int64_t>> counts(parts);
    parallel(codes.rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        auto& local = counts[part];
        local.assign(cells, 0);
        if (codes.column_stride == 1) {
            for (std::size_t i = begin; i < end; ++i) {
                std::int64_t* of_class = local.data() + static_cast<std::size_t>(y[i]) * total;
                const std::int32_t* row = codes.address(i, 0);
                for (std::size_t j = 0; j < codes.columns; ++j)
                    if (in_range(offsets, j, row[j])) ++of_class[offsets[j] + row[j]];
            }
        } else {
            for (std::size_t j = 0; j < codes.columns; ++j)
                for (std::size_t i = begin; i < end; ++i) {
                    const std::int32_t code = codes.at(i, j);
                    if (in_range(offsets, j, code))
                        ++local[static_cast<std::size_t>(y[i]) * total + static_cast<std::size_t>(offsets[j] + code)];
                }
        }
    });
    for (std::size_t cell = 0; cell < cells; ++cell) {
        std::int64_t n = 0;
        for (const auto& local : counts) n += local[cell];
        if (n) sums.add(cell, static_cast<double>(n));
    }
    return sums;
}

// The number of rows of each class.
inline std::vector<std::int64_t> count_labels(const std::int32_t* labels, std::size_t rows, std::size_t classes) {
    const unsigned parts = thread_count(rows, std::max<std::size_t>(1 << 16, 4 * classes));
    std::vector<std::vector<std::int64_t>> counts(parts);
    parallel(rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        std::vector<std::int64_t> local(classes, 0);
        for (std::size_t i = begin; i < end; ++i) ++local[static_cast<std::size_t>(labels[i])];
        counts[part].swap(local);
    });
    for (unsigned part = 1; part < parts; ++part)
        for (std::size_t c = 0; c < classes; ++c) counts[0][c] += counts[part][c];
    return counts[0];
}

template <std::size_t Vectors>
DECIBAN_CLONES void look_up(const Matrix<std::int32_t>& codes, const std::int64_t* offsets, const double* table,
                            std::size_t width, std::size_t begin, std::size_t end, double* sums) {
    for (std::size_t i = begin; i < end; ++i) {
        v4 row[Vectors] = {};
        for (std::size_t j = 0; j < codes.columns; ++j) {
            const std::int32_t code = codes.at(i, j);
            if (!in_range(offsets, j, code)) continue;
            const double* entry = table + static_cast<std::size_t>(offsets[j] + code) * width;
            DECIBAN_UNROLL
            for (std::size_t v = 0; v < Vectors; ++v) row[v] += load(entry + 4 * v);
        }
        for (std::size_t v = 0; v < Vectors; ++v) store(sums + (i - begin) * 4 * Vectors + 4 * v, row[v]);
    }
}

// out (rows, classes) += sum over columns of table[offset[column] + code]; table (total, classes padded to `width`).
// Sixteen classes at a time, so that the sums of a row stay in registers.
inline void add_table(const Matrix<std::int32_t>& codes, const std::int64_t* offsets, const double* table,
                      std::size_t classes, double* out) {
    const std::size_t width = padded(classes), chunk = 1024;
    const unsigned parts = thread_count(codes.rows * codes.columns * classes, 1 << 16);
    parallel(codes.rows, parts, [&](unsigned, std::size_t begin, std::size_t end) {
        Doubles sums(chunk * 16);
        for (std::size_t first = begin; first < end; first += chunk) {
            const std::size_t last = std::min(end, first + chunk);
            for (std::size_t left = 0; left < width; left += 16) {
                const std::size_t block_width = std::min<std::size_t>(16, width - left);
                constexpr decltype(&look_up<1>) variants[] = {look_up<1>, look_up<2>, look_up<3>, look_up<4>};
                variants[block_width / 4 - 1](codes, offsets, table + left, width, first, last, sums.data());
                const std::size_t used = std::min(block_width, classes - left);
                for (std::size_t i = first; i < last; ++i)
                    for (std::size_t c = 0; c < used; ++c)
                        out[i * classes + left + c] += sums[(i - first) * block_width + c];
            }
        }
    });
}

// The smallest and largest value of each column.
template <class T>
void integer_range(const Matrix<T>& x, std::int64_t* low, std::int64_t* high) {
    const unsigned parts = thread_count(x.rows * x.columns, 1 << 18);
    std::vector<std::vector<T>> lows(parts), highs(parts);
    parallel(x.rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        auto& small = lows[part];
        auto& large = highs[part];
        for (std::size_t j = 0; j < x.columns; ++j) small.push_back(x.at(begin, j)), large.push_back(x.at(begin, j));
        if (x.column_stride == 1) {
            for (std::size_t i = begin; i < end; ++i) {
                const T* row = x.address(i, 0);
                for (std::size_t j = 0; j < x.columns; ++j) {
                    small[j] = std::min(small[j], row[j]);
                    large[j] = std::max(large[j], row[j]);
                }
            }
        } else {
            for (std::size_t j = 0; j < x.columns; ++j)
                for (std::size_t i = begin; i < end; ++i) {
                    small[j] = std::min(small[j], x.at(i, j));
                    large[j] = std::max(large[j], x.at(i, j));
                }
        }
    });
    for (std::size_t j = 0; j < x.columns; ++j) {
        low[j] = lows[0][j], high[j] = highs[0][j];
        for (unsigned part = 1; part < parts; ++part) {
            low[j] = std::min<std::int64_t>(low[j], lows[part][j]);
            high[j] = std::max<std::int64_t>(high[j], highs[part][j]);
        }
    }
}

// codes[i][j] = lut[offsets[j] + x - low[j]], or `outside` if the table does not cover x.
template <class T>
void encode_integers(const Matrix<T>& x, const std::int64_t* low, const std::int64_t* offsets, const std::int32_t* lut,
                     std::int32_t outside, std::int32_t* codes) {
    const unsigned parts = thread_count(x.rows * x.columns, 1 << 17);
    parallel(x.rows, parts, [&](unsigned, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            for (std::size_t j = 0; j < x.columns; ++j) {
                const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(x.at(i, j))) -
                                static_cast<std::uint64_t>(low[j]);
                const auto size = static_cast<std::uint64_t>(offsets[j + 1] - offsets[j]);
                codes[i * x.columns + j] = at < size ? lut[static_cast<std::uint64_t>(offsets[j]) + at] : outside;
            }
    });
}

}  // namespace deciban
