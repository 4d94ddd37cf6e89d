// Exact sums of 1, x and x^2 for every class and column, at nearly the speed of reading.
//
// Each column has a window of 19 binades, 2^(top-19) <= |x| < 2^top, chosen from a sample. For an x inside, adding the
// constant 1.5*2^k to it leaves x rounded to a fixed grid in the low bits of the result, as an integer; integers add
// exactly. The rest that the grid rounds off is so short that a plain double adds 2^13 of them exactly:
//     x  = grid part (50 bits) + rest        x*x = p + e  (e = fma(x, x, -p))
//     p  = grid part (50 bits) + rest        e   = grid part (50 bits) + rest
// Bits of the summed rests of 2^13 rows: x 33, p 52, e 50, all below 53. A cell outside the window that is neither zero
// nor NaN takes the slow path, one exact addition. NaN is missing.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "matrix.hpp"
#include "moment_sums.hpp"
#include "parallel.hpp"
#include "weighted_moments.hpp"

namespace deciban {

constexpr int window_binades = 19, level_bits = 50;
constexpr std::size_t rows_per_flush = (std::size_t{1} << 13) - 1;  // the last bit of a grid's 64 is the sign

// One window per column, in groups of four columns. The last group may overlap the one before it, so that loads stay
// inside the row; its duplicate columns are skipped in flush.
struct Windows {
    explicit Windows(std::size_t columns)
        : groups((columns + 3) / 4), top(groups * 4, 0), low(groups * 4), span(groups * 4), x(groups * 4),
          p(groups * 4), e(groups * 4) {}

    void set(std::size_t slot, int new_top) {
        top[slot] = new_top;
        const auto bits = [](int exponent) { return static_cast<std::uint64_t>(exponent + 1023) << 52; };
        const std::uint64_t sign = std::uint64_t{1} << 63;
        // (|x| bits - low) < span as unsigned numbers; the sign bit flipped on both sides makes it a signed compare.
        low[slot] = bits(new_top - window_binades) + sign;
        span[slot] = (static_cast<std::uint64_t>(window_binades) << 52) - sign;
        x[slot] = std::ldexp(1.5, new_top + 2);
        p[slot] = std::ldexp(1.5, 2 * new_top + 2);
        e[slot] = std::ldexp(1.5, 2 * new_top - 54 + 2);
    }
    bool holds(std::size_t slot, double value) const {
        const double size = std::fabs(value);
        return size < std::ldexp(1.0, top[slot]) && size >= std::ldexp(1.0, top[slot] - window_binades);
    }

    std::size_t groups;
    std::vector<int> top;
    std::vector<std::uint64_t, Aligned<std::uint64_t>> low, span;
    Doubles x, p, e;
};

// Accumulators of one class and group: seven vectors.
enum Slot : std::size_t { present = 0, grid_x = 4, rest_x = 8, grid_p = 12, rest_p = 16, grid_e = 20, rest_e = 24 };
constexpr std::size_t slots = 28;

// Adds `count` rows of one class; sets outside_window[group] if a cell lies outside its window.
DECIBAN_CLONES inline void add_segment(const double* x, std::size_t row_stride, const std::uint32_t* rows,
                                       std::size_t count, std::size_t columns, std::size_t prefetch_distance,
                                       const Windows& windows, double* accumulators, unsigned char* outside_window) {
    const u4 magnitude = splat(std::uint64_t{0x7fffffffffffffff});
    for (std::size_t g = 0; g < windows.groups; ++g) {
        const std::size_t slot = 4 * g;
        const double* column = x + (slot + 4 <= columns ? slot : columns - 4);
        const u4 low = load(&windows.low[slot]);
        const i4 span = (i4)load(&windows.span[slot]);
        const v4 sx = load(&windows.x[slot]), sp = load(&windows.p[slot]), se = load(&windows.e[slot]);
        double* a = accumulators + g * slots;
        u4 n = (u4)load(a + present), ix = (u4)load(a + grid_x), ip = (u4)load(a + grid_p), ie = (u4)load(a + grid_e);
        v4 rx = load(a + rest_x), rp = load(a + rest_p), re = load(a + rest_e);
        u4 outside = splat(std::uint64_t{0});
        for (std::size_t r = 0; r < count; ++r) {
            const double* cell = column + rows[r] * row_stride;
            const v4 all = load(cell);
            prefetch<false, 2>(cell + prefetch_distance);
            const u4 inside = (u4)((i4)(((u4)all & magnitude) - low) < span);
            const v4 v = keep(all, inside);
            n -= (u4)(all == all);
            outside -= (u4)((v < all) | (v > all));
            v4 t = v + sx;
            ix += (u4)t;
            rx += v - (t - sx);
            const v4 p = v * v, e = fma(v, v, -p);
            t = p + sp;
            ip += (u4)t;
            rp += p - (t - sp);
            t = e + se;
            ie += (u4)t;
            re += e - (t - se);
        }
        store(a + present, (v4)n), store(a + grid_x, (v4)ix), store(a + rest_x, rx), store(a + grid_p, (v4)ip);
        store(a + rest_p, rp), store(a + grid_e, (v4)ie), store(a + rest_e, re);
        outside_window[g] = any(outside);
    }
}

// The work of one thread on one block of columns.
class MomentsWorker {
public:
    MomentsWorker(std::size_t classes, std::size_t columns, std::size_t left, Moments& total, std::size_t width,
                  double limit, BadCell& bad)
        : classes_(classes), columns_(columns), lanes_(std::max<std::size_t>(columns, 4)), left_(left), total_(total),
          width_(width), limit_(limit), bad_(bad), windows_(lanes_),
          accumulators_(classes * windows_.groups * slots, 0.0), outside_window_(windows_.groups), pending_(classes, 0),
          start_(classes + 1), rows_in_cache_(std::max<std::size_t>(8, (std::size_t{8} << 10) / (8 * lanes_))) {}

    // Chooses the window of each column that holds the most of the sampled cells.
    void choose_windows(const double* x, std::size_t row_stride, std::size_t rows, std::size_t step) {
        for (std::size_t g = 0; g < windows_.groups; ++g)
            for (std::size_t lane = 0; lane < 4; ++lane) {
                std::array<std::uint32_t, 1024> seen{};
                for (std::size_t i = 0; i < rows; i += step) {
                    const double value = x[i * row_stride + first_column(g) + lane];
                    if (value == 0.0 || !std::isfinite(value)) continue;
                    ++seen[static_cast<std::size_t>(std::clamp(std::ilogb(value), -400, 400) + 512)];
                }
                windows_.set(4 * g + lane, std::min(best_top(seen), std::ilogb(limit_)));
            }
    }

    void add_tile(const double* x, std::size_t row_stride, const std::int32_t* codes, std::size_t rows,
                  std::size_t first_row, std::size_t prefetch_distance) {
        sort_by_class(codes, rows);
        for (std::size_t c = 0; c < classes_; ++c) {
            const std::size_t count = start_[c + 1] - start_[c];
            if (count == 0) continue;
            if (pending_[c] + count > rows_per_flush) flush(c);
            pending_[c] += count;
            for (std::size_t first = 0; first < count; first += rows_in_cache_) {
                const std::uint32_t* segment = &order_[start_[c] + first];
                const std::size_t count_here = std::min(rows_in_cache_, count - first);
                add_segment(x, row_stride, segment, count_here, lanes_, prefetch_distance, windows_, accumulator(c, 0),
                            outside_window_.data());
                for (std::size_t g = 0; g < windows_.groups; ++g)
                    if (outside_window_[g]) add_outside(x, row_stride, segment, count_here, c, g, first_row);
            }
        }
    }

    void flush() {
        for (std::size_t c = 0; c < classes_; ++c) flush(c);
    }

private:
    std::size_t first_column(std::size_t group) const { return 4 * group + 4 <= lanes_ ? 4 * group : lanes_ - 4; }
    double* accumulator(std::size_t c, std::size_t group) {
        return &accumulators_[(c * windows_.groups + group) * slots];
    }
    std::size_t cell(std::size_t c, std::size_t column) const { return c * width_ + left_ + column; }

    static int best_top(const std::array<std::uint32_t, 1024>& seen) {
        std::uint64_t held = 0, most = 0;
        int first = 0, last = 0;  // first and last of the best tops
        for (int top = 1; top < 1024; ++top) {
            held += seen[static_cast<std::size_t>(top - 1)];
            if (top > window_binades) held -= seen[static_cast<std::size_t>(top - 1 - window_binades)];
            if (held > most) most = held, first = last = top;
            else if (held == most && last == top - 1) last = top;
        }
        return std::clamp((first + last) / 2 - 512, -400, 480);
    }

    void sort_by_class(const std::int32_t* codes, std::size_t rows) {
        order_.resize(rows);
        std::fill(start_.begin(), start_.end(), 0u);
        for (std::size_t i = 0; i < rows; ++i) ++start_[static_cast<std::size_t>(codes[i]) + 1];
        for (std::size_t c = 0; c < classes_; ++c) start_[c + 1] += start_[c];
        next_.assign(start_.begin(), start_.end() - 1);
        for (std::size_t i = 0; i < rows; ++i)
            order_[next_[static_cast<std::size_t>(codes[i])]++] = static_cast<std::uint32_t>(i);
    }

    void add_outside(const double* x, std::size_t row_stride, const std::uint32_t* rows, std::size_t count,
                     std::size_t c, std::size_t g, std::size_t first_row) {
        for (std::size_t lane = 0; lane < 4; ++lane) {
            const std::size_t column = first_column(g) + lane;
            if (column < 4 * g || column >= columns_) continue;  // duplicate of the overlap, or padding
            for (std::size_t r = 0; r < count; ++r) {
                const double value = x[rows[r] * row_stride + column];
                if (std::isnan(value) || value == 0.0 || windows_.holds(4 * g + lane, value)) continue;
                if (std::fabs(value) >= limit_) bad_.note(first_row + rows[r], left_ + column);
                else total_.add_row(cell(c, column), value);
            }
        }
    }

    void flush(std::size_t c) {
        const auto rows = static_cast<std::uint64_t>(pending_[c]);
        if (rows == 0) return;
        for (std::size_t g = 0; g < windows_.groups; ++g) {
            double* a = accumulator(c, g);
            for (std::size_t lane = 0; lane < 4; ++lane) {
                const std::size_t column = first_column(g) + lane, slot = 4 * g + lane;
                if (column < 4 * g || column >= columns_) continue;
                const auto whole = [&](std::size_t at) {
                    std::int64_t v;
                    std::memcpy(&v, a + at + lane, 8);
                    return v;
                };
                const auto grid = [&](std::size_t at,
                                      double constant) {  // subtracts the constant, which every row added
                    std::uint64_t bits;
                    std::memcpy(&bits, &constant, 8);
                    return static_cast<long long>(static_cast<std::uint64_t>(whole(at)) - rows * bits);
                };
                const std::size_t k = cell(c, column);
                const int top = windows_.top[slot];
                total_.count.add(k, static_cast<double>(whole(present)));
                total_.sum_x.add_scaled(k, grid(grid_x, windows_.x[slot]), top - level_bits);
                total_.sum_x.add(k, a[rest_x + lane]);
                total_.sum_xx.add_scaled(k, grid(grid_p, windows_.p[slot]), 2 * top - level_bits);
                total_.sum_xx.add(k, a[rest_p + lane]);
                total_.sum_xx.add_scaled(k, grid(grid_e, windows_.e[slot]), 2 * top - 54 - level_bits);
                total_.sum_xx.add(k, a[rest_e + lane]);
            }
            std::fill_n(a, slots, 0.0);
        }
        pending_[c] = 0;
    }

    std::size_t classes_, columns_, lanes_, left_;
    Moments& total_;
    std::size_t width_;
    double limit_;  // at most 2^500, so that no window holds a bad cell
    BadCell& bad_;
    Windows windows_;
    Doubles accumulators_;
    std::vector<unsigned char> outside_window_;
    std::vector<std::size_t> pending_;
    std::vector<std::uint32_t> start_, next_, order_;
    std::size_t rows_in_cache_;  // every group of columns reads them again
};

// Columns per pass, so that a few rows stay in the L1 cache and the accumulators of all classes in L2.
inline std::size_t columns_per_pass(std::size_t classes, std::size_t columns) {
    const std::size_t fit = (std::size_t{512} << 10) / (std::max<std::size_t>(1, classes) * slots / 4 * sizeof(double));
    return std::min({columns, std::size_t{128}, std::max<std::size_t>(16, fit / 4 * 4)});
}

template <class T>
void moments_of_rows(const Matrix<T>& x, const std::int32_t* codes, std::size_t classes, std::size_t begin,
                     std::size_t end, double limit, Moments& total, BadCell& bad) {
    constexpr bool doubles = std::is_same_v<T, double>;
    const std::size_t block = columns_per_pass(classes, x.columns);
    for (std::size_t left = 0; left < x.columns; left += block) {
        const std::size_t columns = std::min(block, x.columns - left), width = std::max<std::size_t>(columns, 4);
        const bool direct = doubles && x.column_stride == 1 && x.row_stride >= 0 && columns >= 4;
        const std::size_t tile_rows = std::clamp<std::size_t>((std::size_t{128} << 10) / (8 * width), 32, 1024);
        Doubles tile(direct ? 0 : tile_rows * width);
        MomentsWorker worker(classes, columns, left, total, x.columns, limit, bad);
        for (std::size_t first = begin; first < end; first += tile_rows) {
            const std::size_t rows = std::min(tile_rows, end - first);
            const double* data;
            std::size_t stride = width, prefetch_distance = 0;
            if (direct) {
                data = reinterpret_cast<const double*>(x.address(first, left));
                stride = static_cast<std::size_t>(x.row_stride);
                prefetch_distance = first + 2 * tile_rows <= end ? tile_rows * stride : 0;
            } else {
                copy_tile(x, first, rows, left, columns, tile.data(), width);
                data = tile.data();
            }
            if (first == begin) worker.choose_windows(data, stride, rows, 1);
            worker.add_tile(data, stride, codes + first, rows, first, prefetch_distance);
        }
        worker.flush();
    }
}

template <class T>
Moments plain_moments(const Matrix<T>& x, const std::int32_t* codes, const double* weights, std::size_t classes,
                      double limit, BadCell& bad) {
    const std::size_t cells = classes * x.columns;
    const unsigned parts = thread_count(x.rows * x.columns, std::max<std::size_t>(1 << 16, 4 * cells));
    std::vector<std::unique_ptr<Moments>> partial(parts);
    std::vector<BadCell> bad_cells(parts);
    parallel(x.rows, parts, [&](unsigned part, std::size_t begin, std::size_t end) {
        partial[part] = std::make_unique<Moments>(cells);
        if (weights)
            weighted_moments_of_rows(x, codes, weights, classes, begin, end, limit, *partial[part], bad_cells[part]);
        else moments_of_rows(x, codes, classes, begin, end, limit, *partial[part], bad_cells[part]);
    });
    for (unsigned part = 1; part < parts; ++part) partial[0]->add(*partial[part]);
    for (const auto& cell : bad_cells) bad.note(cell);
    return std::move(*partial[0]);
}

// The index of each weight among the distinct ones; false if there are more than `most`.
inline bool group_weights(const double* weights, std::size_t rows, std::size_t most, std::vector<double>& values,
                          std::vector<std::int32_t>& groups) {
    groups.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        std::size_t g = 0;
        while (g < values.size() && values[g] != weights[i]) ++g;
        if (g == most) return false;
        if (g == values.size()) values.push_back(weights[i]);
        groups[i] = static_cast<std::int32_t>(g);
    }
    return true;
}

// weights may be null. A few distinct weights (class weights, multiplicities) are groups of unweighted rows, each
// scaled at the end; only many distinct weights are multiplied cell by cell.
template <class T>
Moments moments(const Matrix<T>& x, const std::int32_t* codes, const double* weights, std::size_t classes,
                BadCell& bad) {
    const double limit = size_limit(weights, x.rows);
    std::vector<double> values;
    std::vector<std::int32_t> groups;
    if (!weights || !group_weights(weights, x.rows, std::max<std::size_t>(1, 64 / std::max<std::size_t>(1, classes)),
                                   values, groups))
        return plain_moments(x, codes, weights, classes, limit, bad);
    for (std::size_t i = 0; i < x.rows; ++i) groups[i] += codes[i] * static_cast<std::int32_t>(values.size());
    const Moments plain = plain_moments(x, groups.data(), nullptr, classes * values.size(), limit, bad);
    if (bad.found()) return Moments(classes * x.columns);
    Moments total(classes * x.columns);
    for (std::size_t c = 0; c < classes; ++c)
        for (std::size_t g = 0; g < values.size(); ++g)
            for (std::size_t j = 0; j < x.columns; ++j)
                total.add_scaled(plain, (c * values.size() + g) * x.columns + j, values[g], c * x.columns + j);
    return total;
}

}  // namespace deciban
