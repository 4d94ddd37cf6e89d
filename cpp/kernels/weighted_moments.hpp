// Moments of rows with many distinct weights.
#pragma once
#include <vector>

#include "matrix.hpp"
#include "moment_sums.hpp"

namespace deciban {

// w, w*x and w*x^2 are sums of one, two and four doubles, added limb by limb.
class WeightedWorker {
public:
    WeightedWorker(std::size_t classes, std::size_t columns, Moments& total)
        : cells_(classes * columns), columns_(columns), total_(total), count_(cells_), sum_x_(cells_), sum_xx_(cells_),
          top_(columns, 0) {}

    template <class T>
    void choose_windows(const Matrix<T>& x, const double* weights, std::size_t begin, std::size_t end) {
        double heaviest = 0.0;
        std::vector<double> largest(columns_, 0.0);
        for (std::size_t i = begin; i < end; ++i) {
            heaviest = std::max(heaviest, weights[i]);
            for (std::size_t j = 0; j < columns_; ++j) {
                const double size = std::fabs(static_cast<double>(x.at(i, j)));
                if (size < 0x1p500 && size > largest[j]) largest[j] = size;
            }
        }
        heavy_ = heaviest > 0.0 ? std::ilogb(heaviest) : 0;
        for (std::size_t j = 0; j < columns_; ++j) top_[j] = largest[j] > 0.0 ? std::ilogb(largest[j]) : 0;
    }

    void add(std::size_t cell, std::size_t column, double x, double w) {
        double high, low, a[2], b[2], c[2];
        two_product(w, x, a[0], a[1]);
        two_product(x, x, high, low);
        two_product(w, high, b[0], b[1]);
        two_product(w, low, c[0], c[1]);
        put(count_, total_.count, cell, w, heavy_);
        for (const double part : a) put(sum_x_, total_.sum_x, cell, part, top_[column] + heavy_);
        for (const double part : b) put(sum_xx_, total_.sum_xx, cell, part, 2 * top_[column] + heavy_);
        for (const double part : c) put(sum_xx_, total_.sum_xx, cell, part, 2 * top_[column] + heavy_);
    }

    void flush() {
        for (std::size_t cell = 0; cell < cells_; ++cell) {
            const int top = top_[cell % columns_];
            count_.flush(cell, count_.base(heavy_, margin), total_.count, cell);
            sum_x_.flush(cell, sum_x_.base(top + heavy_, margin), total_.sum_x, cell);
            sum_xx_.flush(cell, sum_xx_.base(2 * top + heavy_, margin), total_.sum_xx, cell);
        }
    }

private:
    static constexpr int margin = 112;  // of which 64 are for the limbs that a number may spill into
    template <class Sums>
    static void put(Sums& sums, ExactSums& otherwise, std::size_t cell, double x, int top) {
        if (!sums.add(cell, x, Sums::base(top, margin))) otherwise.add(cell, x);
    }
    std::size_t cells_, columns_;
    Moments& total_;
    LimbSums<8> count_;
    LimbSums<10> sum_x_;
    LimbSums<14> sum_xx_;
    int heavy_ = 0;
    std::vector<int> top_;
};

template <class T>
void weighted_moments_of_rows(const Matrix<T>& x, const std::int32_t* codes, const double* weights, std::size_t classes,
                              std::size_t begin, std::size_t end, double limit, Moments& total, BadCell& bad) {
    WeightedWorker worker(classes, x.columns, total);
    worker.choose_windows(x, weights, begin, std::min(end, begin + 256));
    for (std::size_t i = begin; i < end; ++i)
        for (std::size_t j = 0; j < x.columns; ++j) {
            const double value = static_cast<double>(x.at(i, j));
            if (std::isnan(value)) continue;
            if (std::fabs(value) >= limit) bad.note(i, j);
            else worker.add(static_cast<std::size_t>(codes[i]) * x.columns + j, j, value, weights[i]);
        }
    worker.flush();
}

}  // namespace deciban
