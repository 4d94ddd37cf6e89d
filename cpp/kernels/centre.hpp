// Mean and sum of squared deviations from exact sums, each rounded once.
#pragma once
#include <algorithm>

#include "exact.hpp"

namespace deciban {

// The words of one cell, `stride` elements apart.
struct Words {
    const double* data;
    std::size_t count, stride;
    double operator[](std::size_t i) const { return data[i * stride]; }
};

class Accumulator {  // one exact sum on the stack
public:
    void add(double x) { used_ = add_word(words_, used_, max_words, x); }
    void add_product(double a, double b) {
        double high, low;
        two_product(a, b, high, low);
        add(low);
        add(high);
    }
    double value() const { return rounded(words_, used_); }

private:
    double words_[max_words];
    std::size_t used_ = 0;
};

// With S = sum w*x and N = sum w:  mean = S/N,  squares = sum w*(x - mean)^2 = Q - 2mS + Nm^2 - (S - Nm)^2/N.
inline void centre(Words count, Words sum_x, Words sum_xx, double& mean, double& squares) {
    const double n = count[0];
    mean = squares = 0.0;
    if (!(n > 0.0)) return;
    const auto residual = [&](double m) {
        Accumulator rest;
        for (std::size_t i = 0; i < sum_x.count; ++i) rest.add(sum_x[i]);
        for (std::size_t i = 0; i < count.count; ++i) rest.add_product(-m, count[i]);
        return rest.value();
    };
    double m = sum_x[0] / n;
    m += residual(m) / n;
    const double rest = residual(m);
    Accumulator total;
    for (std::size_t i = 0; i < sum_xx.count; ++i) total.add(sum_xx[i]);
    for (std::size_t i = 0; i < sum_x.count; ++i) total.add_product(-2.0 * m, sum_x[i]);
    for (std::size_t i = 0; i < count.count; ++i) {
        double high, low;
        two_product(count[i], m, high, low);
        total.add_product(high, m);
        total.add_product(low, m);
    }
    mean = m;
    squares = total.value();  // negative only if no data has these sums
    if (squares > 0.0) squares = std::max(0.0, squares - rest * rest / n);
}

}  // namespace deciban
