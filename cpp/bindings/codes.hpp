// Codes of columns: int32 with a range per column, or bytes below a size per column.
#pragma once
#include "arrays.hpp"

namespace deciban {

using Codes = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::device::cpu>;
using Offsets = In<std::int64_t, 1>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::device::cpu>;
using Sizes = In<std::int32_t, 1>;

// The number of codes of all columns: the last offset.
inline std::size_t total_codes(const Offsets& offsets, std::size_t columns) {
    expect_shape("offsets", offsets, {columns + 1});
    expect(offsets.data()[0] == 0 && std::is_sorted(offsets.data(), offsets.data() + columns + 1),
           "offsets must ascend from 0");
    return static_cast<std::size_t>(offsets.data()[columns]);
}

// Rows and trees are numbered by 32 bits, columns by 16.
inline Matrix<std::uint8_t> expect_bytes(const Bytes& codes) {
    expect(codes.shape(0) < std::size_t{1} << 30, "more than 2^30 rows");
    expect(codes.shape(1) < std::size_t{1} << 16, "more than 65,535 columns");
    return view<std::uint8_t>(codes);
}

inline Matrix<std::uint8_t> expect_bytes_below(const Bytes& codes, const Sizes& sizes) {
    const auto matrix = expect_bytes(codes);
    expect_shape("sizes", sizes, {matrix.columns});
    for (std::size_t j = 0; j < matrix.columns; ++j)
        expect(sizes.data()[j] >= 0 && sizes.data()[j] <= 256, "sizes must be between 0 and 256");
    bool within = true;
    if (matrix.column_stride == 1) {
        for (std::size_t i = 0; i < matrix.rows; ++i)
            for (std::size_t j = 0; j < matrix.columns; ++j) within &= matrix.at(i, j) < sizes.data()[j];
    } else {
        for (std::size_t j = 0; j < matrix.columns; ++j)
            for (std::size_t i = 0; i < matrix.rows; ++i) within &= matrix.at(i, j) < sizes.data()[j];
    }
    expect(within, "codes: a code is not below the size of its column");
    return matrix;
}

// Finite and not negative, and so is every sum of them.
inline void expect_counts(const char* what, const double* values, std::size_t n) {
    bool valid = true;
    for (std::size_t i = 0; i < n; ++i) valid &= values[i] >= 0 && values[i] <= std::numeric_limits<double>::max();
    expect(valid, what);
}

inline void expect_positive_weights(const Weights& weights, std::size_t rows) {
    expect_weights(weights, rows);
    if (weights) expect_counts("weights must be finite and not negative", weights->data(), rows);
}

}  // namespace deciban
