// Exact sums of doubles.
//
// A cell holds its sum as a few non-overlapping doubles (Shewchuk 1997), so nothing is rounded away: addition is
// associative and commutative to the last bit, and every addition can be undone.
// The canonical form of a sum S is its words w0 = round(S), w1 = round(S - w0), ...: a function of S alone.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace deciban {

inline void two_sum(double a, double b, double& high, double& low) {
    high = a + b;
    const double t = high - a;
    low = (a - (high - t)) + (b - t);
}

inline void two_product(double a, double b, double& high, double& low) {
    high = a * b;
    low = std::fma(a, b, -high);
}

// Adds x to the non-overlapping words p[0..used), smallest first; returns the new count. Needs room for one more word.
inline std::size_t grow(double* p, std::size_t used, double x) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < used; ++i) {
        double high, low;
        two_sum(x, p[i], high, low);
        if (low != 0.0) p[size++] = low;
        x = high;
    }
    if (x != 0.0) p[size++] = x;
    return size;
}

// The sum of non-overlapping words, smallest first, rounded once to the nearest double (ties to even).
inline double rounded(const double* p, std::size_t used) {
    if (used == 0) return 0.0;
    double high = p[used - 1], low = 0.0;
    std::size_t i = used - 1;
    while (i > 0) {
        --i;
        const double x = high;
        high = x + p[i];
        low = p[i] - (high - x);
        if (low != 0.0) break;
    }
    // Halfway between two doubles: the sign of the lower words decides.
    if (i > 0 && ((low < 0.0 && p[i - 1] < 0.0) || (low > 0.0 && p[i - 1] > 0.0))) {
        const double twice = 2.0 * low, up = high + twice;
        if (twice == up - high) high = up;
    }
    return high;
}

// Each canonical word begins below the last bit of the word before: 2,098 bits of range hold at most 41 of them. Words
// that merely do not overlap may be short and many; a full buffer is rewritten in canonical form.
constexpr std::size_t max_words = 64;

// Rewrites words (smallest first) as canonical words (largest first); returns their number.
inline std::size_t canonical(const double* p, std::size_t used, double* words) {
    double rest[max_words + 1];
    std::copy_n(p, used, rest);
    std::size_t count = 0;
    for (; used > 0; ++count) {
        words[count] = rounded(rest, used);
        used = grow(rest, used, -words[count]);
    }
    return count;
}

// Adds x to words (smallest first) in a buffer of `capacity` <= max_words; returns the new count, or capacity + 1 if
// even the canonical words do not fit.
inline std::size_t add_word(double* p, std::size_t used, std::size_t capacity, double x) {
    if (used == capacity) {
        double words[max_words];
        used = canonical(p, used, words);
        std::reverse_copy(words, words + used, p);
        if (used == capacity) return capacity + 1;
    }
    used = grow(p, used, x);
    if (used && !std::isfinite(p[used - 1])) throw std::overflow_error("the numbers are too large to sum");
    return used;
}

class ExactSums {
public:
    explicit ExactSums(std::size_t cells, std::size_t stride = 4)
        : cells_(cells), stride_(stride), words_(cells * stride, 0.0), used_(cells, 0) {}

    std::size_t cells() const { return cells_; }

    void add(std::size_t cell, double x) {
        std::size_t used = add_word(&words_[cell * stride_], used_[cell], stride_, x);
        if (used > stride_) {
            widen();
            used = add_word(&words_[cell * stride_], used_[cell], stride_, x);
        }
        used_[cell] = static_cast<unsigned char>(used);
    }
    // Adds value * 2^exponent; two doubles hold a 64-bit integer.
    void add_scaled(std::size_t cell, long long value, int exponent) {
        const long long high = value >> 32;
        add(cell, std::ldexp(static_cast<double>(high), exponent + 32));
        add(cell, std::ldexp(static_cast<double>(value & 0xffffffff), exponent));
    }
    void add(const ExactSums& other) {
        for (std::size_t cell = 0; cell < cells_; ++cell)
            for (std::size_t i = 0; i < other.used_[cell]; ++i) add(cell, other.words_[cell * other.stride_ + i]);
    }
    // Rewrites every cell in canonical form, largest word first; returns the length of the longest cell (at least 1).
    std::size_t canonicalise() {
        std::size_t longest = 1;
        for (std::size_t cell = 0; cell < cells_; ++cell) {
            double words[max_words];
            const std::size_t count = canonical(&words_[cell * stride_], used_[cell], words);
            while (count > stride_) widen();
            std::copy_n(words, count, &words_[cell * stride_]);
            used_[cell] = static_cast<unsigned char>(count);
            longest = std::max(longest, count);
        }
        return longest;
    }
    std::size_t words(std::size_t cell) const { return used_[cell]; }
    double word(std::size_t cell, std::size_t i) const { return i < used_[cell] ? words_[cell * stride_ + i] : 0.0; }

private:
    void widen() {
        const std::size_t wider = stride_ * 2;
        std::vector<double> words(cells_ * wider, 0.0);
        for (std::size_t cell = 0; cell < cells_; ++cell)
            std::copy_n(&words_[cell * stride_], used_[cell], &words[cell * wider]);
        words_.swap(words);
        stride_ = wider;
    }
    std::size_t cells_, stride_;
    std::vector<double> words_;
    std::vector<unsigned char> used_;
};

// Exact sums of numbers of similar size, as integers in 32-bit limbs with headroom for 2^31 additions.
template <std::size_t Limbs>
class LimbSums {
public:
    LimbSums(std::size_t cells) : limbs_(cells * Limbs, 0) {}

    // The lowest bit of a window whose top lies `margin` bits above numbers of exponent `top`.
    static int base(int top, int margin) { return top + margin - static_cast<int>(32 * Limbs); }

    // Returns false, without adding, if x does not fit the window.
    bool add(std::size_t cell, double x, int base) {
        if (x == 0.0) return true;
        std::uint64_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        const int exponent = static_cast<int>((bits >> 52) & 0x7ff), shift = exponent - 1075 - base;
        if (exponent == 0 || shift < 0 || static_cast<std::size_t>(shift) >= 32 * (Limbs - 2)) return false;
        const std::uint64_t mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;
        const int within = shift & 31;
        const std::uint64_t wide = mantissa << within, above = mantissa >> 1 >> (63 - within);  // 128 bits
        const auto sign = -static_cast<std::int64_t>(bits >> 63);  // 0, or all ones: (v ^ sign) - sign is v or -v
        std::int64_t* limb = &limbs_[cell * Limbs + static_cast<std::size_t>(shift >> 5)];
        limb[0] += (static_cast<std::int64_t>(wide & 0xffffffff) ^ sign) - sign;
        limb[1] += (static_cast<std::int64_t>(wide >> 32) ^ sign) - sign;
        limb[2] += (static_cast<std::int64_t>(above) ^ sign) - sign;
        return true;
    }
    void flush(std::size_t cell, int base, ExactSums& total, std::size_t to) {
        for (std::size_t i = 0; i < Limbs; ++i) {
            std::int64_t& limb = limbs_[cell * Limbs + i];
            if (limb) total.add_scaled(to, limb, base + static_cast<int>(32 * i));
            limb = 0;
        }
    }

private:
    std::vector<std::int64_t> limbs_;
};

}  // namespace deciban
