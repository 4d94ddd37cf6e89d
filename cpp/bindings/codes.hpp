// Codes of columns: int32 with a range for each column, or bytes below a size for each column.
#pragma once
#include "arrays.hpp"

namespace deciban {

using Codes = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::device::cpu>;
using Offsets = In<std::int64_t, 1>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::device::cpu>;
using Sizes = In<std::int32_t, 1>;

// How many values all columns have: where the offsets end.
inline std::size_t values_of(const Offsets& offsets, std::size_t columns) {
    expect_shape("offsets", offsets, {columns + 1});
    expect(offsets.data()[0] == 0 && std::is_sorted(offsets.data(), offsets.data() + columns + 1), "offsets do not rise from 0");
    return static_cast<std::size_t>(offsets.data()[columns]);
}

// As many as rows and trees can be numbered by 32 bits, and columns by 16.
inline Matrix<std::uint8_t> expect_bytes(const Bytes& codes) {
    expect(codes.shape(0) < std::size_t{1} << 30, "more than 2^30 rows");
    expect(codes.shape(1) < std::size_t{1} << 16, "more than 65,535 columns");
    return view<std::uint8_t>(codes);
}

inline Matrix<std::uint8_t> expect_bytes_below(const Bytes& codes, const Sizes& sizes) {
    const auto matrix = expect_bytes(codes);
    expect_shape("sizes", sizes, {matrix.columns});
    for (std::size_t j = 0; j < matrix.columns; ++j)
        expect(sizes.data()[j] >= 0 && sizes.data()[j] <= 256, "sizes: a column of bytes has at most 256 codes");
    bool within = true;
    if (matrix.column_stride == 1) {
        for (std::size_t i = 0; i < matrix.rows; ++i)
            for (std::size_t j = 0; j < matrix.columns; ++j) within &= matrix.at(i, j) < sizes.data()[j];
    } else {
        for (std::size_t j = 0; j < matrix.columns; ++j)
            for (std::size_t i = 0; i < matrix.rows; ++i) within &= matrix.at(i, j) < sizes.data()[j];
    }
    expect(within, "codes: one is not below the size of its column");
    return matrix;
}

// Finite and not below 0, so that no sum of them is.
inline void expect_counts(const char* what, const double* values, std::size_t n) {
    bool good = true;
    for (std::size_t i = 0; i < n; ++i) good &= values[i] >= 0 && values[i] <= std::numeric_limits<double>::max();
    expect(good, what);
}

inline void expect_positive_weights(const Weights& weights, std::size_t rows) {
    expect_weights(weights, rows);
    if (weights) expect_counts("weights: one is negative or not finite", weights->data(), rows);
}

}  // namespace deciban
