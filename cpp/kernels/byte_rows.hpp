// Rows of codes of one byte each: packed, hashed, and sorted into an order that depends only on their contents.
#pragma once
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "matrix.hpp"
#include "parallel.hpp"

namespace deciban {

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;

// The finalizer of splitmix64: every bit of the result depends on every bit of x.
DECIBAN_INLINE std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// splitmix64
struct RandomDraws {
    std::uint64_t state;
    std::uint64_t next() { return mix(state += golden); }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(((next() >> 32) * n) >> 32); }
};

// Rows up to a cache line are padded to a power of two bytes, so that none straddles two lines.
inline std::size_t row_width(std::size_t columns) {
    std::size_t width = 8;
    while (width < columns && width < 64) width *= 2;
    return (columns + width - 1) / width * width;
}

// Copies rows [first, first + rows) of x into rows of `width` bytes, padded with zeros.
inline void pack_rows(const Matrix<std::uint8_t>& x, std::size_t first, std::size_t rows, std::size_t width,
                      std::uint8_t* out) {
    if (width > x.columns) std::memset(out, 0, rows * width);
    if (x.column_stride == 1) {
        for (std::size_t i = 0; i < rows; ++i)
            if (x.columns) std::memcpy(out + i * width, x.address(first + i, 0), x.columns);
    } else {
        for (std::size_t j = 0; j < x.columns; ++j)
            for (std::size_t i = 0; i < rows; ++i) out[i * width + j] = x.at(first + i, j);
    }
}

struct ByteRows {
    std::size_t rows, columns, width;
    std::vector<std::uint8_t, Aligned<std::uint8_t>> bytes;
    std::vector<std::uint64_t> hashes;  // (row)

    explicit ByteRows(const Matrix<std::uint8_t>& x)
        : rows(x.rows), columns(x.columns), width(row_width(x.columns)), bytes(rows * width), hashes(rows) {
        parallel(rows, thread_count(rows * width, 1 << 18), [&](unsigned, std::size_t begin, std::size_t end) {
            constexpr std::size_t block = 256;
            for (std::size_t first = begin; first < end; first += block) {
                const std::size_t last = std::min(end, first + block);
                pack_rows(x, first, last - first, width, bytes.data() + first * width);
                for (std::size_t i = first; i < last; ++i) hashes[i] = hash(row(i));
            }
        });
    }
    // The rows of `other` at the indices `order`.
    ByteRows(const ByteRows& other, const std::vector<std::uint32_t>& order)
        : rows(order.size()), columns(other.columns), width(other.width), bytes(rows * width), hashes(rows) {
        for (std::size_t i = 0; i < rows; ++i) {
            if (width) std::memcpy(bytes.data() + i * width, other.row(order[i]), width);
            hashes[i] = other.hashes[order[i]];
        }
    }

    const std::uint8_t* row(std::size_t i) const { return bytes.data() + i * width; }

private:
    std::uint64_t hash(const std::uint8_t* row) const {
        std::uint64_t h = columns, word;
        for (std::size_t j = 0; j < columns; j += 8) {
            std::memcpy(&word, row + j, 8);
            h = mix((h ^ word) + golden);
        }
        return mix(h + golden);
    }
};

// Indices of the rows with positive weight, sorted by codes, class and weight. Sums in this order do not depend on the
// order of the input, bit for bit.
inline std::vector<std::uint32_t> canonical_order(const ByteRows& x, const std::int32_t* labels,
                                                  const double* weights) {
    std::vector<std::uint32_t> order;
    order.reserve(x.rows);
    for (std::size_t i = 0; i < x.rows; ++i)
        if (weights[i] > 0) order.push_back(static_cast<std::uint32_t>(i));
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        if (x.hashes[a] != x.hashes[b]) return x.hashes[a] < x.hashes[b];
        const int order = std::memcmp(x.row(a), x.row(b), x.width);
        if (order) return order < 0;
        return labels[a] != labels[b] ? labels[a] < labels[b] : weights[a] < weights[b];
    });
    return order;
}

template <class T>
std::vector<T> permuted(const T* values, const std::vector<std::uint32_t>& order) {
    std::vector<T> result;
    result.reserve(order.size());
    for (const auto i : order) result.push_back(values[i]);
    return result;
}

}  // namespace deciban
