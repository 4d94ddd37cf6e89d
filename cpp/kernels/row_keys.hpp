// A 64-bit hash of the numbers of each row.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "byte_rows.hpp"
#include "sparse.hpp"

namespace deciban {

DECIBAN_INLINE u4 mix(u4 x) {
    x = (x ^ (x >> 30)) * splat(std::uint64_t{0xbf58476d1ce4e5b9});
    x = (x ^ (x >> 27)) * splat(std::uint64_t{0x94d049bb133111eb});
    return x ^ (x >> 31);
}

// All NaN have the same bits, and so have 0 and −0.
DECIBAN_INLINE u4 bits_of(v4 x) {
    const u4 number = (u4)(x == x);
    return ((u4)(x + splat(0.0)) & number) | (splat(std::uint64_t{0x7ff8000000000000}) & ~number);
}

constexpr std::size_t rows_mixed = 16, columns_mixed = 64;  // at a time: 8 kB

// keys = mix(keys ^ mix(bits + salt)), column by column, for rows_mixed rows of each column.
DECIBAN_CLONES_V4 inline void mix_columns(const double* cells, std::size_t columns, const std::uint64_t* salts,
                                          std::uint64_t* keys) {
    constexpr int vectors = rows_mixed / 4;
    u4 k[vectors];
    DECIBAN_UNROLL
    for (int v = 0; v < vectors; ++v) k[v] = load(keys + 4 * v);
    for (std::size_t j = 0; j < columns; ++j) {
        const u4 salt = splat(salts[j]);
        DECIBAN_UNROLL
        for (int v = 0; v < vectors; ++v) k[v] = mix(k[v] ^ mix(bits_of(load(cells + j * rows_mixed + 4 * v)) + salt));
    }
    DECIBAN_UNROLL
    for (int v = 0; v < vectors; ++v) std::memcpy(keys + 4 * v, &k[v], sizeof k[v]);
}

template <class T>
void mix_keys(const Matrix<T>& x, const std::uint64_t* salts, std::uint64_t* keys) {
    parallel(x.rows, thread_count(x.rows * x.columns, 1 << 16), [&](unsigned, std::size_t begin, std::size_t end) {
        Doubles cells(rows_mixed * columns_mixed);
        for (std::size_t first = begin; first < end; first += rows_mixed) {
            const std::size_t rows = std::min(rows_mixed, end - first);
            std::uint64_t of_rows[rows_mixed] = {};
            std::copy_n(keys + first, rows, of_rows);
            for (std::size_t left = 0; left < x.columns; left += columns_mixed) {
                const std::size_t columns = std::min(columns_mixed, x.columns - left);
                if (x.column_stride == 1)
                    for (std::size_t i = 0; i < rows; ++i) {
                        const T* row = x.address(first + i, left);
                        for (std::size_t j = 0; j < columns; ++j)
                            cells[j * rows_mixed + i] = static_cast<double>(row[j]);
                    }
                else
                    for (std::size_t j = 0; j < columns; ++j)
                        for (std::size_t i = 0; i < rows; ++i)
                            cells[j * rows_mixed + i] = static_cast<double>(x.at(first + i, left + j));
                mix_columns(cells.data(), columns, salts + left, of_rows);
            }
            std::copy_n(of_rows, rows, keys + first);
        }
    });
}

// keys += the sum of mix(bits + golden * (column + 1)) over the values of a row that are not 0, in any order.
template <class Index>
DECIBAN_CLONES_V4 void add_keys_of_rows(const SparseRows<Index>& x, std::size_t begin, std::size_t end,
                                        std::uint64_t* keys) {
    for (std::size_t i = begin; i < end; ++i) {
        std::uint64_t sum = 0;
        for (auto p = x.starts[i]; p < x.starts[i + 1]; ++p) {
            const double value = x.values[p] + 0.0;
            std::uint64_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            const std::uint64_t key = mix(bits + golden * (static_cast<std::uint64_t>(x.columns[p]) + 1));
            sum += value == 0.0 ? 0 : key;
        }
        keys[i] += sum;
    }
}

template <class Index>
void add_sparse_keys(const SparseRows<Index>& x, std::uint64_t* keys) {
    parallel(x.rows, thread_count(x.stored, 1 << 16),
             [&](unsigned, std::size_t begin, std::size_t end) { add_keys_of_rows(x, begin, end, keys); });
}

}  // namespace deciban
