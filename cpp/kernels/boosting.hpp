// Boosting: ensembles of symmetric trees, each grown by Newton's steps without one fold of the rows.
#pragma once
#include <atomic>
#include <cmath>
#include <limits>

#include "softmax.hpp"
#include "symmetric_trees.hpp"

namespace deciban {

struct BoostingOptions {
    std::size_t classes, ensembles, max_rounds, depth;
    double learning_rate, l2, row_fraction, column_fraction;
    std::uint64_t seed;
};

// out = exp(−|z|)
DECIBAN_CLONES inline void exponentials(const double* z, std::size_t n, double* out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = -std::fabs(z[i]);
    for (std::size_t i = n; i < padded(n); ++i) out[i] = 0.0;
    for (std::size_t i = 0; i < n; i += 4) store(out + i, exp_of(load(out + i)));
}

// Grows the ensemble of one fold from the rows of the others, by Newton's steps for the log-loss.
//
// A split gains Σ G²/(H + λ) over its nodes, with G and H sums of slopes and curvatures. With more than a few classes,
// G is a random projection of the slopes of all classes on a few directions, drawn for each tree. All sums are of
// integers, so they are exact: the order of the rows does not matter, and a row of weight 2 is the row twice. Splits
// are found by sums of 32 bits, values by sums of 64.
template <std::size_t Directions>
class Booster {
    struct Cell {
        std::int32_t g[Directions], h;
        void operator+=(const Cell& other) {
            for (std::size_t s = 0; s < Directions; ++s) g[s] += other.g[s];
            h += other.h;
        }
        void operator-=(const Cell& other) {
            for (std::size_t s = 0; s < Directions; ++s) g[s] -= other.g[s];
            h -= other.h;
        }
        bool empty() const {
            std::int32_t any = h;
            for (std::size_t s = 0; s < Directions; ++s) any |= g[s];
            return any == 0;
        }
    };

public:
    Booster(const ByteRows& x, const std::int32_t* sizes, const bool* ordered, const std::int32_t* labels,
            const double* weights, const BoostingOptions& options)
        : x_(x), sizes_(sizes), ordered_(ordered), labels_(labels), weights_(weights), options_(options),
          outputs_(options.classes == 2 ? 1 : options.classes) {
        double total = 1.0;
        for (std::size_t i = 0; i < x.rows; ++i) total += weights[i], alike_ &= weights[i] == 1.0;
        // No sum overflows: the slopes of a row, in all classes, sum to at most 2.
        scale_ = std::ldexp(1.0, std::min(40, 55 - std::ilogb(total)));
        cell_scale_ = std::ldexp(1.0, std::min(20, 28 - std::ilogb(total)));
    }

    // Begins with the prior, before the first round.
    void start(std::size_t ensemble) {
        ensemble_ = ensemble;
        rows_.clear(), held_out_.clear();
        for (std::size_t i = 0; i < x_.rows; ++i) {
            const bool own = ensemble_of(x_.hashes[i], options_.ensembles, options_.seed) == ensemble;
            (own ? held_out_ : rows_).push_back(static_cast<std::uint32_t>(i));
        }
        std::vector<double> count(options_.classes, 0.0);
        for (const auto i : rows_) count[static_cast<std::size_t>(labels_[i])] += weights_[i];
        for (auto& each : count) each += 1.0 / static_cast<double>(options_.classes);
        std::vector<double> prior(outputs_, std::log(count[1] / count[0]));
        if (outputs_ > 1)
            for (std::size_t k = 0; k < outputs_; ++k) prior[k] = std::log(count[k]);
        scores_.resize((rows_.size() + held_out_.size()) * outputs_);
        for (std::size_t i = 0; i < scores_.size(); ++i) scores_[i] = prior[i % outputs_];
        const std::size_t n = rows_.size();
        rows_.insert(rows_.end(), held_out_.begin(), held_out_.end());
        by_column_.resize(x_.columns * rows_.size());
        for (std::size_t r = 0; r < rows_.size(); ++r)
            for (std::size_t j = 0; j < x_.columns; ++j) by_column_[j * rows_.size() + r] = x_.row(rows_[r])[j];
        slopes_.resize(n * outputs_), curves_.resize(n * outputs_);
        cells_.resize(n), order_.resize(n), buffer_.resize(n), leaf_.resize(rows_.size());
        trees_ = {options_.depth, outputs_, {}, {}, {}, {}};
    }

    // Adds trees; returns −log p of the held-out rows.
    double grow(std::size_t rounds) {
        const std::size_t first = trees_.trees();
        trees_.resize(first + rounds);
        for (std::size_t t = first; t < first + rounds; ++t) {
            key_ = mix(mix(mix(options_.seed + golden) + (ensemble_ + 1) * golden) + (t + 1) * golden);
            find_slopes();
            draw();
            std::size_t levels = 0;
            while (levels < options_.depth && split(levels, t)) ++levels;
            add_values(t, levels);
        }
        return held_out_loss();
    }

    // The first trees, with the mean of each subtracted.
    SymmetricTrees take(std::size_t rounds) {
        trees_.resize(rounds);
        trees_.centre();
        return std::move(trees_);
    }

private:
    static constexpr std::size_t codes_of_column = 256;  // at most
    struct Leaf {
        std::size_t begin, end;  // of order_
        Cell* table;  // the sums of its rows by code, column after column; those of its parent, before it is counted
        Cell total;
        bool empty() const { return begin == end; }
    };
    struct Step {
        std::int64_t g, h;
    };

    std::size_t own_rows() const { return rows_.size() - held_out_.size(); }

    // Slope and curvature of each row's log-loss in its scores.
    void find_slopes() {
        if (outputs_ == 1) {
            find_slopes_of_two();
            return;
        }
        Doubles p(outputs_), scratch(padded(outputs_), 0.0);
        for (std::size_t r = 0; r < own_rows(); ++r) {
            const auto label = static_cast<std::size_t>(labels_[rows_[r]]);
            std::copy_n(&scores_[r * outputs_], outputs_, p.begin());
            normalise_rows(p.data(), 0, 1, outputs_, nullptr, false, scratch.data());
            for (std::size_t k = 0; k < outputs_; ++k) {
                slopes_[r * outputs_ + k] = fixed(p[k] - (k == label));
                curves_[r * outputs_ + k] = fixed(p[k] * (1.0 - p[k]));
            }
        }
    }

    // Whole numbers: llrint is one instruction.
    std::int64_t fixed(double number) const { return std::llrint(number * scale_); }
    std::int64_t weighted(std::int64_t number, std::size_t r) const {
        return alike_ ? number : std::llrint(static_cast<double>(number) * weights_[rows_[r]]);
    }

    void find_slopes_of_two() {
        decays_.resize(padded(own_rows()));
        exponentials(scores_.data(), own_rows(), decays_.data());
        for (std::size_t r = 0; r < own_rows(); ++r) {
            const double e = decays_[r], p = (scores_[r] >= 0 ? 1.0 : e) / (1.0 + e);
            slopes_[r] = fixed(p - labels_[rows_[r]]);
            curves_[r] = fixed(e / ((1.0 + e) * (1.0 + e)));
        }
    }

    // The rows and columns of a tree, and what is summed of each row.
    void draw() {
        std::size_t n = 0;
        for (std::size_t r = 0; r < own_rows(); ++r)
            if (static_cast<double>(mix(x_.hashes[rows_[r]] ^ key_) >> 11) * 0x1p-53 < options_.row_fraction)
                order_[n++] = static_cast<std::uint32_t>(r);
        leaves_.assign(1, {0, n, nullptr, {}});
        RandomDraws draws{key_};
        columns_.resize(x_.columns);
        std::iota(columns_.begin(), columns_.end(), 0u);
        const auto d = static_cast<double>(x_.columns);
        const auto chosen = std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(d * options_.column_fraction)));
        for (std::size_t j = 0; j < chosen; ++j) std::swap(columns_[j], columns_[j + draws.below(x_.columns - j)]);
        columns_.resize(chosen);
        std::sort(columns_.begin(), columns_.end());
        places_.assign(1, 0);
        for (const auto column : columns_) places_.push_back(places_.back() + static_cast<std::size_t>(sizes_[column]));
        std::vector<std::int64_t> sign(outputs_ * Directions);
        for (std::size_t i = 0; i < sign.size(); ++i)
            if (outputs_ > Directions) sign[i] = (draws.next() >> 63) ? 1 : -1;
            else sign[i] = i / Directions == i % Directions;
        const double unit = cell_scale_ / scale_;
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t r = order_[i];
            std::int64_t curve = 0;
            for (std::size_t k = 0; k < outputs_; ++k) curve += curves_[r * outputs_ + k];
            for (std::size_t s = 0; s < Directions; ++s) {
                std::int64_t slope = 0;
                for (std::size_t k = 0; k < outputs_; ++k)
                    slope += sign[k * Directions + s] * slopes_[r * outputs_ + k];
                cells_[r].g[s] = static_cast<std::int32_t>(weighted(std::llrint(static_cast<double>(slope) * unit), r));
            }
            cells_[r].h = static_cast<std::int32_t>(weighted(std::llrint(static_cast<double>(curve) * unit), r));
        }
    }

    // Of slopes that are projected on directions, whose squares sum to as many times as much, and of mean curvatures.
    double gain(const Cell& cell) const {
        double squares = 0.0;
        for (std::size_t s = 0; s < Directions; ++s)
            squares += static_cast<double>(cell.g[s]) * static_cast<double>(cell.g[s]);
        if (outputs_ > Directions) squares /= static_cast<double>(Directions);
        return squares / (static_cast<double>(cell.h) / static_cast<double>(outputs_) + options_.l2 * cell_scale_);
    }

    void count(const Leaf& leaf, Cell* table) const {
        std::fill_n(table, places_.back(), Cell{});
        constexpr std::size_t prefetch_distance = 8;  // rows
        for (std::size_t i = leaf.begin; i < leaf.end; ++i) {
            if (i + prefetch_distance < leaf.end) prefetch(x_.row(rows_[order_[i + prefetch_distance]]));
            const std::uint8_t* codes = x_.row(rows_[order_[i]]);
            const Cell cell = cells_[order_[i]];
            for (std::size_t c = 0; c < columns_.size(); ++c) table[places_[c] + codes[columns_[c]]] += cell;
        }
    }

    // Finds the split of a level and divides its nodes; false if none gains.
    bool split(std::size_t level, std::size_t tree) {
        count_leaves();
        for (auto& leaf : leaves_) {
            leaf.total = Cell{};
            for (std::size_t at = 0; at < places_[1] && !leaf.empty(); ++at) leaf.total += leaf.table[at];
        }
        double best = 0.0;
        std::size_t best_column = 0;
        unsigned best_code = 0;
        gains_.resize(codes_of_column);
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const std::size_t column = columns_[c];
            const auto size = static_cast<unsigned>(sizes_[column]);
            if (size < 2) continue;
            std::fill_n(gains_.begin(), size, 0.0);
            for (const auto& leaf : leaves_)
                if (!leaf.empty()) add_gains(leaf.table + places_[c], leaf.total, size, ordered_[column]);
            for (unsigned code = 0; code + 1 < size; ++code)
                if (gains_[code] > best * (1 + 1e-12)) best = gains_[code], best_column = column, best_code = code;
        }
        if (best <= 0.0) return false;
        trees_.column[tree * options_.depth + level] = static_cast<std::int32_t>(best_column);
        trees_.code[tree * options_.depth + level] = static_cast<std::int32_t>(best_code);
        divide(best_column, best_code);
        return true;
    }

    // Adds how much each split gains in a node. Most codes do not occur in a small node, and change nothing.
    void add_gains(const Cell* cells, const Cell& all, unsigned size, bool ordered) {
        const double unsplit = gain(all);
        Cell left{};
        double gained = 0.0;
        for (unsigned code = 0; code + 1 < size; ++code) {
            if (cells[code].empty()) {
                if (ordered) gains_[code] += gained;
                continue;
            }
            if (!ordered) left = Cell{};
            left += cells[code];
            Cell right = all;
            right -= left;
            gained = gain(left) + gain(right) - unsplit;
            gains_[code] += gained;
        }
    }

    // The tables of all leaves: of two children only the smaller one is counted, the other one has the rest of their
    // parent's. Tables stay where they are while a tree grows.
    void count_leaves() {
        if (leaves_.size() == 1) {
            tables_.resize(places_.back() << (options_.depth - 1));
            leaves_[0].table = tables_.data();
            count(leaves_[0], leaves_[0].table);
            used_ = 1;
            return;
        }
        for (std::size_t p = 0; p < leaves_.size(); p += 2) {
            Leaf &left = leaves_[p], &right = leaves_[p + 1];
            const bool right_is_smaller = right.end - right.begin < left.end - left.begin;
            Leaf &smaller = right_is_smaller ? right : left, &larger = right_is_smaller ? left : right;
            if (smaller.empty()) continue;  // the other one is like the parent
            smaller.table = tables_.data() + used_++ * places_.back();
            count(smaller, smaller.table);
            for (std::size_t i = 0; i < places_.back(); ++i) larger.table[i] -= smaller.table[i];
        }
    }

    bool is_right(std::size_t r, std::size_t column, unsigned code) const {
        const unsigned value = by_column_[column * rows_.size() + r];
        return ordered_[column] ? value > code : value != code;
    }

    // Stable: rows keep their order on both sides.
    void divide(std::size_t column, unsigned code) {
        std::vector<Leaf> children;
        for (const auto& leaf : leaves_) {
            std::size_t middle = leaf.begin, others = 0;
            for (std::size_t i = leaf.begin; i < leaf.end; ++i) {
                const std::uint32_t r = order_[i];
                const bool right = is_right(r, column, code);
                order_[middle] = r, buffer_[others] = r;
                middle += !right, others += right;
            }
            std::copy_n(buffer_.begin(), others, order_.begin() + static_cast<std::ptrdiff_t>(middle));
            children.push_back({leaf.begin, middle, leaf.table, {}});
            children.push_back({middle, leaf.end, leaf.table, {}});
        }
        leaves_.swap(children);
    }

    // A Newton step in each leaf, from all rows of the ensemble, and new scores, also of held-out rows. Leaves that no
    // row can reach, because there are fewer levels, are like the leaf to their left that rows can reach.
    void add_values(std::size_t tree, std::size_t levels) {
        const std::size_t depth = options_.depth, leaves = trees_.leaves(), spare = depth - levels;
        std::fill(leaf_.begin(), leaf_.end(), std::uint8_t{0});
        for (std::size_t level = 0; level < levels; ++level) {
            const auto column = static_cast<std::size_t>(trees_.column[tree * depth + level]);
            const auto code = static_cast<std::uint8_t>(trees_.code[tree * depth + level]);
            add_bits(by_column_.data() + column * rows_.size(), rows_.size(), code, ordered_[column], leaf_.data());
        }
        for (auto& leaf : leaf_) leaf = static_cast<std::uint8_t>(leaf << spare);
        double *value = &trees_.value[tree * leaves * outputs_], *rows = &trees_.rows[tree * leaves];
        const std::size_t apart = std::size_t{1} << spare;  // of leaves that rows can reach
        for (std::size_t leaf = 0; leaf < leaves; leaf += apart)
            rows[leaf] = static_cast<double>(apart) / static_cast<double>(leaves);
        steps_.assign(leaves * outputs_, {0, 0});
        for (std::size_t r = 0; r < own_rows(); ++r) {
            rows[leaf_[r]] += weights_[rows_[r]];
            Step* step = &steps_[leaf_[r] * outputs_];
            for (std::size_t k = 0; k < outputs_; ++k) {
                step[k].g += weighted(slopes_[r * outputs_ + k], r);
                step[k].h += weighted(curves_[r * outputs_ + k], r);
            }
        }
        for (std::size_t i = 0; i < leaves * outputs_; ++i)
            value[i] = -options_.learning_rate * static_cast<double>(steps_[i].g) /
                       (static_cast<double>(steps_[i].h) + options_.l2 * scale_);
        for (std::size_t leaf = 0; leaf < leaves; ++leaf)
            if (leaf % apart) std::copy_n(value + (leaf - leaf % apart) * outputs_, outputs_, value + leaf * outputs_);
        for (std::size_t r = 0; r < rows_.size(); ++r)
            for (std::size_t k = 0; k < outputs_; ++k) scores_[r * outputs_ + k] += value[leaf_[r] * outputs_ + k];
    }

    double held_out_loss() const {
        double loss = 0.0;
        for (std::size_t r = own_rows(); r < rows_.size(); ++r) {
            const double* z = &scores_[r * outputs_];
            const auto label = static_cast<std::size_t>(labels_[rows_[r]]);
            double nats;
            if (outputs_ == 1) {
                const double margin = label ? *z : -*z;
                nats = std::log1p(std::exp(-std::fabs(margin))) + std::max(0.0, -margin);
            } else {
                const double most = *std::max_element(z, z + outputs_);
                double total = 0.0;
                for (std::size_t k = 0; k < outputs_; ++k) total += std::exp(z[k] - most);
                nats = most + std::log(total) - z[label];
            }
            loss += weights_[rows_[r]] * nats;
        }
        return loss;
    }

    const ByteRows& x_;
    const std::int32_t* sizes_;
    const bool* ordered_;
    const std::int32_t* labels_;
    const double* weights_;
    const BoostingOptions options_;
    const std::size_t outputs_;
    std::size_t ensemble_ = 0;
    SymmetricTrees trees_;
    std::vector<std::uint8_t> by_column_;  // (column, row) codes
    std::vector<std::uint32_t> rows_, held_out_;  // rows_: those that trees are grown from, then the held-out ones
    std::vector<double> scores_;  // (row, outputs)
    std::vector<std::int64_t> slopes_, curves_;  // (row, outputs) times scale_
    double scale_, cell_scale_;
    bool alike_ = true;  // all weights are 1
    Doubles decays_;  // (row)
    std::uint64_t key_ = 0;  // of the current tree
    // The current tree: its columns, sums of each of its rows, rows by leaf, and a table of each leaf.
    std::vector<std::uint32_t> columns_, order_, buffer_;
    std::vector<std::size_t> places_;  // of each column in a table, and its size
    std::vector<Cell> cells_;
    std::vector<Leaf> leaves_;
    std::vector<Cell> tables_;
    std::size_t used_ = 0;  // tables
    std::vector<std::uint8_t> leaf_;  // of each row
    std::vector<double> gains_;  // (code)
    std::vector<Step> steps_;  // (leaf, outputs)
};

// Ensembles one after the other; `starts` has the first tree of each, and the end.
struct Ensembles {
    std::vector<std::int64_t> starts;
    SymmetricTrees trees;
};

// All ensembles grow until their held-out rows have not gained for a while. How many trees of an ensemble are kept is
// then chosen by the held-out rows of the others, to which its own held-out rows are training rows.
template <std::size_t Directions, class Check>
Ensembles grow_ensembles(const ByteRows& x, const std::int32_t* sizes, const bool* ordered, const std::int32_t* labels,
                         const double* weights, const BoostingOptions& options, const Check& check) {
    constexpr std::size_t step = 20;  // rounds
    std::vector<Booster<Directions>> boosters;
    for (std::size_t e = 0; e < options.ensembles; ++e)
        boosters.emplace_back(x, sizes, ordered, labels, weights, options).start(e);
    const auto parts = static_cast<unsigned>(
        std::min<std::size_t>(thread_count(options.ensembles * step * x.rows, 1 << 12), options.ensembles));
    std::vector<std::vector<double>> losses;  // (steps, ensembles)
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s * step < options.max_rounds && s <= best + std::max<std::size_t>(3, best / 4); ++s) {
        losses.emplace_back(options.ensembles);
        std::atomic<std::size_t> next{0};
        parallel(options.ensembles, parts, [&](unsigned, std::size_t, std::size_t) {
            for (std::size_t e; (e = next++) < options.ensembles;)
                losses.back()[e] = boosters[e].grow(std::min(step, options.max_rounds - s * step));
        });
        check();
        const double total = std::accumulate(losses.back().begin(), losses.back().end(), 0.0);
        if (total < least) least = total, best = s;
    }
    Ensembles out{{0}, {options.depth, options.classes == 2 ? 1 : options.classes, {}, {}, {}, {}}};
    for (std::size_t e = 0; e < options.ensembles; ++e) {
        std::size_t rounds = 0;
        double least_of_others = std::numeric_limits<double>::infinity();
        for (std::size_t s = 0; s < losses.size(); ++s) {
            double others = 0.0;
            for (std::size_t other = 0; other < options.ensembles; ++other)
                if (other != e) others += losses[s][other];
            if (others < least_of_others)
                least_of_others = others, rounds = std::min((s + 1) * step, options.max_rounds);
        }
        out.trees.append(boosters[e].take(rounds));
        out.starts.push_back(static_cast<std::int64_t>(out.trees.trees()));
    }
    return out;
}

// The order of the rows does not matter. Calls check() after every few rounds, which may throw.
template <class Check>
Ensembles boost(const Matrix<std::uint8_t>& codes, const std::int32_t* sizes, const bool* ordered,
                const std::int32_t* labels, const double* weights, const BoostingOptions& options, const Check& check) {
    const ByteRows x(codes);
    const std::vector<double> ones(weights ? 0 : x.rows, 1.0);
    const double* own_weights = weights ? weights : ones.data();
    const auto order = canonical_order(x, labels, own_weights);
    const ByteRows sorted(x, order);
    const auto sorted_labels = permuted(labels, order);
    const auto sorted_weights = permuted(own_weights, order);
    const auto grow = options.classes == 2   ? grow_ensembles<1, Check>
                      : options.classes == 3 ? grow_ensembles<3, Check>
                                             : grow_ensembles<4, Check>;
    return grow(sorted, sizes, ordered, sorted_labels.data(), sorted_weights.data(), options, check);
}

}  // namespace deciban
