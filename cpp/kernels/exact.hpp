// Exact sums of doubles.
//
// A cell holds its sum as a few doubles that do not overlap (Shewchuk 1997), so nothing is ever rounded away:
// adding is associative and commutative to the last bit, and what was added can be taken out again.
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

// Adds x to the non-overlapping words p[0..used), smallest first; returns how many are in use. Needs room for one more.
inline std::size_t grow(double* p, std::size_t used, double x) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < used; ++i) {
        double high, low;
        two_sum(x, p[i], high, low);
        if (low != 0.0) p[kept++] = low;
        x = high;
    }
    if (x != 0.0) p[kept++] = x;
    return kept;
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
    // Half way between two doubles: the sign of the words below decides.
    if (i > 0 && ((low < 0.0 && p[i - 1] < 0.0) || (low > 0.0 && p[i - 1] > 0.0))) {
        const double twice = 2.0 * low, up = high + twice;
        if (twice == up - high) high = up;
    }
    return high;
}

class ExactSums {
public:
    // The longest non-overlapping expansion of doubles: 2,098 bits of range / 53, and one.
    static constexpr std::size_t longest = 41;

    explicit ExactSums(std::size_t cells, std::size_t stride = 4)
        : cells_(cells), stride_(stride), words_(cells * stride, 0.0), used_(cells, 0) {}

    std::size_t cells() const { return cells_; }

    void add(std::size_t cell, double x) {
        if (used_[cell] == stride_) widen();
        double* words = &words_[cell * stride_];
        const std::size_t used = grow(words, used_[cell], x);
        if (used && !std::isfinite(words[used - 1])) throw std::overflow_error("the numbers are too large to add up");
        used_[cell] = static_cast<unsigned char>(used);
    }
    // value * 2^exponent, a whole 64-bit integer: two doubles hold it.
    void add_scaled(std::size_t cell, long long value, int exponent) {
        const long long high = value >> 32;
        add(cell, std::ldexp(static_cast<double>(high), exponent + 32));
        add(cell, std::ldexp(static_cast<double>(value - (high << 32)), exponent));
    }
    void add(const ExactSums& other) {
        for (std::size_t cell = 0; cell < cells_; ++cell)
            for (std::size_t i = 0; i < other.used_[cell]; ++i) add(cell, other.words_[cell * other.stride_ + i]);
    }
    // Rewrites every cell in canonical form, largest word first; returns the words of the longest cell (at least 1).
    std::size_t canonicalise() {
        std::size_t most = 1;
        for (std::size_t cell = 0; cell < cells_; ++cell) {
            double rest[longest + 1], words[longest + 1];
            std::size_t used = used_[cell], made = 0;
            std::copy_n(&words_[cell * stride_], used, rest);
            while (used > 0) {
                words[made] = rounded(rest, used);
                used = grow(rest, used, -words[made]);
                ++made;
            }
            while (made > stride_) widen();
            std::copy_n(words, made, &words_[cell * stride_]);
            used_[cell] = static_cast<unsigned char>(made);
            most = std::max(most, made);
        }
        return most;
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

// Exact sums of numbers of similar size: whole numbers in limbs of 32 bits, with room for 2^31 additions.
template <std::size_t Limbs>
class LimbSums {
public:
    LimbSums(std::size_t cells) : limbs_(cells * Limbs, 0) {}

    // The lowest bit of a window whose top lies `margin` bits above numbers of exponent `top`.
    static int base(int top, int margin) { return top + margin - static_cast<int>(32 * Limbs); }

    // False where x does not fit the window; then nothing is added.
    bool add(std::size_t cell, double x, int base) {
        if (x == 0.0) return true;
        std::uint64_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        const int exponent = static_cast<int>((bits >> 52) & 0x7ff), shift = exponent - 1075 - base;
        if (exponent == 0 || shift < 0 || static_cast<std::size_t>(shift) >= 32 * (Limbs - 2)) return false;
        const std::uint64_t mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;
        const unsigned __int128 wide = static_cast<unsigned __int128>(mantissa) << (shift & 31);
        const auto sign = -static_cast<std::int64_t>(bits >> 63);  // 0, or all ones: (v ^ sign) - sign is v or -v
        std::int64_t* limb = &limbs_[cell * Limbs + static_cast<std::size_t>(shift >> 5)];
        limb[0] += (static_cast<std::int64_t>(wide & 0xffffffff) ^ sign) - sign;
        limb[1] += (static_cast<std::int64_t>((wide >> 32) & 0xffffffff) ^ sign) - sign;
        limb[2] += (static_cast<std::int64_t>(wide >> 64) ^ sign) - sign;
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
