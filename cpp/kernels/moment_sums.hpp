// Exact sums of 1, x and x^2 by class and column, and the first cell that cannot be added.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "exact.hpp"

namespace deciban {

struct Moments {
    explicit Moments(std::size_t cells) : count(cells, 1), sum_x(cells), sum_xx(cells) {}
    void add(const Moments& other) {
        count.add(other.count);
        sum_x.add(other.sum_x);
        sum_xx.add(other.sum_xx);
    }
    void add_row(std::size_t cell, double x) {  // without the count
        double high, low;
        two_product(x, x, high, low);
        sum_x.add(cell, x);
        sum_xx.add(cell, high);
        sum_xx.add(cell, low);
    }
    // Adds weight * other exactly, for rows that all have the same weight.
    void add_scaled(const Moments& other, std::size_t other_cell, double weight, std::size_t cell) {
        const auto scale = [&](ExactSums& to, const ExactSums& from) {
            for (std::size_t i = 0; i < from.words(other_cell); ++i) {
                double high, low;
                two_product(weight, from.word(other_cell, i), high, low);
                to.add(cell, high);
                to.add(cell, low);
            }
        };
        scale(count, other.count), scale(sum_x, other.sum_x), scale(sum_xx, other.sum_xx);
    }
    ExactSums count, sum_x, sum_xx;  // (class, column)
};

// The first cell that is infinite, or whose square would be.
struct BadCell {
    std::size_t row = std::numeric_limits<std::size_t>::max(), column = 0;
    void note(std::size_t i, std::size_t j) {
        if (i < row || (i == row && j < column)) row = i, column = j;
    }
    void note(const BadCell& other) {
        if (other.found()) note(other.row, other.column);
    }
    bool found() const { return row != std::numeric_limits<std::size_t>::max(); }
};
// Cells of this size or above are bad: no row may add 2^1000 or more.
inline double size_limit(const double* weights, std::size_t rows) {
    const double heaviest = weights && rows ? *std::max_element(weights, weights + rows) : 1.0;
    const int bits = heaviest > 1.0 ? std::ilogb(heaviest) + 1 : 0;
    return std::ldexp(1.0, (1000 - bits) / 2);
}

}  // namespace deciban
