// A strided matrix view, and tiles: a few of its rows copied into padded rows of doubles that stay in cache.
#pragma once
#include <cstddef>

#include "simd.hpp"

namespace deciban {

template <class T>
struct Matrix {
    const T* data;
    std::size_t rows, columns;
    std::ptrdiff_t row_stride, column_stride;  // in elements
    // Unlike &at(i, j), also of an empty matrix.
    const T* address(std::size_t i, std::size_t j) const {
        return data + static_cast<std::ptrdiff_t>(i) * row_stride + static_cast<std::ptrdiff_t>(j) * column_stride;
    }
    const T& at(std::size_t i, std::size_t j) const { return *address(i, j); }
};

// Copies rows [first, first+rows) of columns [left, left+columns) into rows of `width` doubles; pads with zeros.
template <class T>
void copy_tile(const Matrix<T>& x, std::size_t first, std::size_t rows, std::size_t left, std::size_t columns,
               double* tile, std::size_t width) {
    if (x.column_stride == 1 || x.columns == 1) {
        for (std::size_t i = 0; i < rows; ++i) {
            const T* source = x.address(first + i, left);
            double* row = tile + i * width;
            for (std::size_t j = 0; j < columns; ++j) row[j] = static_cast<double>(source[j]);
        }
    } else {
        for (std::size_t j = 0; j < columns; ++j)
            for (std::size_t i = 0; i < rows; ++i) tile[i * width + j] = static_cast<double>(x.at(first + i, left + j));
    }
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = columns; j < width; ++j) tile[i * width + j] = 0.0;
}

}  // namespace deciban
