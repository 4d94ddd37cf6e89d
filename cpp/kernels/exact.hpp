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

// Canonical words each begin below the last bit of the one before: 2,098 bits of range hold no more than 41 of them.
// Words that merely do not overlap may be short and many; a buffer that is full of them is made canonical.
constexpr std::size_t most_words = 64;

// Rewrites words (smallest first) as canonical ones (largest first); returns how many.
inline std::size_t canonical(const double* p, std::size_t used, double* words) {
    double rest[most_words + 1];
    std::copy_n(p, used, rest);
    std::size_t made = 0;
    for (; used > 0; ++made) {
        words[made] = rounded(rest, used);
        used = grow(rest, used, -words[made]);
    }
    return made;
}

// Adds x to words (smallest first) in a buffer of `room`, at most most_words; returns how many are in use, or more than
// `room` where even canonical words need more.
inline std::size_t add_word(double* p, std::size_t used, std::size_t room, double x) {
    if (used == room) {
        double words[most_words];
        used = canonical(p, used, words);
        std::reverse_copy(words, words + used, p);
        if (used == room) return room + 1;
    }
    used = grow(p, used, x);
    if (used && !std::isfinite(p[used - 1])) throw std::overflow_error("the numbers are too large to add up");
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
            double words[most_words];
            const std::size_t made = canonical(&words_[cell * stride_], used_[cell], words);
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
