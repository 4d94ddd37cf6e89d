// A 64-bit hash of the numbers of each row.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "byte_rows.hpp"

namespace deciban {

// All NaN have the same bits, and so have 0 and −0.
DECIBAN_INLINE std::uint64_t bits_of(double x) {
    x = std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x + 0.0;
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

// keys = mix(keys ^ mix(bits + salt)), column by column, in blocks of rows that stay in cache.
template <class T>
void mix_keys(const Matrix<T>& x, const std::uint64_t* salts, std::uint64_t* keys) {
    constexpr std::size_t block = 512;
    parallel(x.rows, thread_count(x.rows * x.columns, 1 << 16), [&](unsigned, std::size_t begin, std::size_t end) {
        for (std::size_t first = begin; first < end; first += block) {
            const std::size_t last = std::min(end, first + block);
            for (std::size_t j = 0; j < x.columns; ++j)
                for (std::size_t i = first; i < last; ++i)
                    keys[i] = mix(keys[i] ^ mix(bits_of(static_cast<double>(x.at(i, j))) + salts[j]));
        }
    });
}

}  // namespace deciban
