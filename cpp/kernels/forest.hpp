// Decision trees of rows of small codes: grown on bags of rows that are a function of their codes.
#pragma once
#include <atomic>
#include <type_traits>

#include "byte_rows.hpp"

namespace deciban {

struct ForestPlan {
    std::size_t classes, trees, tries, most_deep;
    double share, least;
    std::uint64_t seed;
};

DECIBAN_INLINE std::uint64_t tree_key(std::uint64_t seed, std::size_t tree) { return mix(mix(seed + golden) + (tree + 1) * golden); }

// Equal rows share their bags.
DECIBAN_INLINE bool in_bag(std::uint64_t hash, std::uint64_t key, double share) {
    return static_cast<double>(mix(hash ^ key) >> 11) * 0x1p-53 < share;
}

inline void mark_bags(const ByteRows& x, std::size_t trees, double share, std::uint64_t seed, bool* out) {
    std::vector<std::uint64_t> keys;
    for (std::size_t t = 0; t < trees; ++t) keys.push_back(tree_key(seed, t));
    parallel(x.rows, thread_count(x.rows * trees, 1 << 16), [&](unsigned, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            for (std::size_t t = 0; t < trees; ++t) out[i * trees + t] = in_bag(x.hashes[i], keys[t], share);
    });
}

// The nodes of a tree. Of an inner node: its column, its code, and the left child; the right one is next to it. Of a leaf:
// −1, 0, and which leaf it is.
struct Tree {
    std::vector<std::int32_t> column, code, left;

    std::size_t add_pair() {
        const std::size_t first = column.size();
        column.resize(first + 2, -1), code.resize(first + 2, 0), left.resize(first + 2, 0);
        return first;
    }
    void number_leaves() {
        std::int32_t leaf = 0;
        for (std::size_t i = 0; i < column.size(); ++i)
            if (column[i] < 0) left[i] = leaf++;
    }
};

// The codes that occur, in rising order.
class CodeSet {
public:
    void add(unsigned code) { words_[code / 64] |= std::uint64_t{1} << (code % 64); }
    bool several() const {
        std::uint64_t seen = 0;
        for (const auto word : words_) {
            if ((word && seen) || (word & (word - 1))) return true;
            seen |= word;
        }
        return false;
    }
    unsigned last() const {
        unsigned i = 3;
        while (!words_[i] && i) --i;
        return 64 * i + 63 - static_cast<unsigned>(__builtin_clzll(words_[i] | 1));
    }
    template <class Body>
    void each(const Body& body) const {
        for (unsigned i = 0; i < 4; ++i)
            for (std::uint64_t word = words_[i]; word; word &= word - 1)
                body(64 * i + static_cast<unsigned>(__builtin_ctzll(word)));
    }

private:
    std::uint64_t words_[4] = {};
};

// Grows one tree after the other. Count is std::uint32_t where every row counts once: then all sums are exact. With
// weights it is double, and rows come in their canonical order.
//
// A cut is judged by Σ L_k²/L + Σ R_k²/R. With T = L + R, Σ R_k² = Σ T_k² − 2 Σ T_k L_k + Σ L_k², so that only sums over
// the left side are kept, and a row that joins it changes them in one step, however many classes there are.
template <class Count>
class TreeGrower {
    static constexpr bool weighted = std::is_same_v<Count, double>;
    using Square = std::conditional_t<weighted, double, std::uint64_t>;

public:
    TreeGrower(const ByteRows& x, const std::int32_t* sizes, const bool* ordered, const std::int32_t* labels,
               const double* weights, const ForestPlan& plan)
        : x_(x), sizes_(sizes), ordered_(ordered), labels_(labels), weights_(weights), plan_(plan), totals_(plan.classes),
          left_(plan.classes), order_(x.columns), place_of_(x.columns) {}

    Tree grow(std::size_t tree) {
        key_ = tree_key(plan_.seed, tree);
        rows_.clear();
        for (std::size_t i = 0; i < x_.rows; ++i)
            if (in_bag(x_.hashes[i], key_, plan_.share)) rows_.push_back({static_cast<std::uint32_t>(i), labels_[i]});
        spare_.resize(rows_.size()), codes_.resize(rows_.size()), sorted_.resize(rows_.size());
        if (weighted) sorted_weights_.resize(rows_.size());
        Tree grown;
        grown.column.push_back(-1), grown.code.push_back(0), grown.left.push_back(0);
        std::vector<Node> waiting{{0, rows_.size(), 0, 0}};
        while (!waiting.empty()) {
            const Node node = waiting.back();
            waiting.pop_back();
            Cut cut;
            if (!find_cut(node, cut)) continue;
            const std::size_t middle = split(node, cut), left = grown.add_pair();
            grown.column[node.number] = static_cast<std::int32_t>(cut.column);
            grown.code[node.number] = static_cast<std::int32_t>(cut.code);
            grown.left[node.number] = static_cast<std::int32_t>(left);
            waiting.push_back({middle, node.end, left + 1, node.depth + 1});
            waiting.push_back({node.begin, middle, left, node.depth + 1});
        }
        grown.number_leaves();
        return grown;
    }

private:
    struct Row { std::uint32_t row; std::int32_t label; };
    struct Node { std::size_t begin, end, number, depth; };
    struct Cut { double score; std::size_t column; unsigned code; };
    struct Side { Count weight = 0; Square squares = 0, shared = 0; };  // L, Σ L_k², Σ L_k T_k
    struct Dense { std::uint32_t column, place; };  // where the column's table begins
    static constexpr std::uint32_t sparse = ~std::uint32_t{0};
    static constexpr std::size_t most_cells = std::size_t{1} << 24;

    Count weight_of(const Row& row) const {
        if constexpr (weighted) return weights_[row.row];
        return 1;
    }

    bool find_cut(const Node& node, Cut& best) {
        if (node.depth >= plan_.most_deep) return false;
        total_ = 0;
        present_.clear();
        for (std::size_t i = node.begin; i < node.end; ++i) {
            const auto label = static_cast<std::size_t>(rows_[i].label);
            const Count weight = weight_of(rows_[i]);
            if (totals_[label] == 0) present_.push_back(label);
            totals_[label] += weight;
            total_ += weight;
        }
        bool found = false;
        if (present_.size() > 1 && static_cast<double>(total_) >= 2 * plan_.least) {
            squares_ = 0;
            for (const auto label : present_) squares_ += static_cast<Square>(totals_[label]) * totals_[label];
            const double least = static_cast<double>(squares_) / static_cast<double>(total_) * (1 + 1e-12);
            best = {least, 0, 0};
            draw_columns(node, best);
            found = best.score > least;
        }
        for (const auto label : present_) totals_[label] = 0;
        return found;
    }

    // Columns that are constant here do not count as tried. A column that is constant in a node is so in its children:
    // the depth's own line of `constant_` is what is known of the node last seen there, and a child comes after its parent.
    void draw_columns(const Node& node, Cut& best) {
        const std::size_t d = x_.columns;
        if (constant_.size() < (node.depth + 1) * d) constant_.resize((node.depth + 1) * d);
        std::uint8_t* constant = constant_.data() + node.depth * d;
        if (node.depth) std::copy_n(constant - d, d, constant);
        else std::fill_n(constant, d, std::uint8_t{0});
        std::iota(order_.begin(), order_.end(), 0u);
        Draws draws{mix(key_ ^ mix(node.number + golden))};
        for (std::size_t tried = 0, drawn = 0; tried < plan_.tries && drawn < d;) {
            chosen_.clear();
            for (; chosen_.size() < plan_.tries - tried && drawn < d; ++drawn) {
                std::swap(order_[drawn], order_[drawn + draws.below(d - drawn)]);
                if (!constant[order_[drawn]]) chosen_.push_back(order_[drawn]);
            }
            tried += weigh(node, constant, best);
        }
    }

    // The best cut of the chosen columns; returns how many of them are not constant. A table of (code, class) is counted
    // where there are rows enough to fill it; else rows are sorted by code.
    std::size_t weigh(const Node& node, std::uint8_t* constant, Cut& best) {
        const std::size_t rows = node.end - node.begin;
        std::size_t cells = 0, varying = 0;
        dense_.clear();
        for (const auto column : chosen_) {
            const std::size_t own = static_cast<std::size_t>(sizes_[column]) * plan_.classes;
            place_of_[column] = sparse;
            if (own > 2 * rows || cells + own > most_cells) continue;
            place_of_[column] = static_cast<std::uint32_t>(cells);
            dense_.push_back({column, place_of_[column]});
            cells += own;
        }
        if (!dense_.empty()) count(node, cells);
        for (const auto column : chosen_) {
            const bool varies = place_of_[column] == sparse ? judge_rows(node, column, best) : judge_table(column, best);
            constant[column] = !varies;
            varying += varies;
        }
        return varying;
    }

    void count(const Node& node, std::size_t cells) {
        table_.assign(cells, 0);
        const std::size_t classes = plan_.classes;
        constexpr std::size_t ahead = 8;  // rows that are fetched from memory meanwhile
        for (std::size_t i = node.begin; i < node.end; ++i) {
            if (i + ahead < node.end) __builtin_prefetch(x_.row(rows_[i + ahead].row));
            const std::uint8_t* codes = x_.row(rows_[i].row);
            const Count weight = weight_of(rows_[i]);
            Count* of_class = table_.data() + rows_[i].label;
            for (const auto& [column, place] : dense_) of_class[place + codes[column] * classes] += weight;
        }
    }

    bool judge_table(std::size_t column, Cut& best) {
        const std::size_t classes = plan_.classes;
        const Count* table = table_.data() + place_of_[column];
        CodeSet codes;
        for (unsigned code = 0; code < static_cast<unsigned>(sizes_[column]); ++code) {
            Count any = 0;
            for (std::size_t k = 0; k < classes; ++k) any += table[code * classes + k];
            if (any > 0) codes.add(code);
        }
        if (!codes.several()) return false;
        sweep(column, codes, best, [&](unsigned code, Side& side, bool stays) {
            for (std::size_t k = 0; k < classes; ++k) {
                const Count here = table[code * classes + k];
                join(side, k, here);
                if (stays) left_[k] += here;
            }
        });
        return true;
    }

    bool judge_rows(const Node& node, std::size_t column, Cut& best) {
        const std::size_t rows = node.end - node.begin;
        CodeSet codes;
        for (std::size_t i = 0; i < rows; ++i) {
            const std::uint8_t code = x_.row(rows_[node.begin + i].row)[column];
            codes_[i] = code;
            codes.add(code);
            ++ends_[code];
        }
        const bool varies = codes.several();
        if (varies) {
            std::uint32_t end = 0;
            codes.each([&](unsigned code) {
                const std::uint32_t begin = end;
                end += ends_[code];
                ends_[code] = begins_[code] = begin;
            });
            for (std::size_t i = 0; i < rows; ++i) {
                const std::uint32_t to = ends_[codes_[i]]++;
                sorted_[to] = rows_[node.begin + i].label;
                if constexpr (weighted) sorted_weights_[to] = weight_of(rows_[node.begin + i]);
            }
            sweep(column, codes, best, [&](unsigned code, Side& side, bool stays) {
                for (std::uint32_t i = begins_[code]; i < ends_[code]; ++i) {
                    const auto k = static_cast<std::size_t>(sorted_[i]);
                    Count here = 1;
                    if constexpr (weighted) here = sorted_weights_[i];
                    join(side, k, here);
                    left_[k] += here;
                }
                if (!stays)
                    for (std::uint32_t i = begins_[code]; i < ends_[code]; ++i) left_[static_cast<std::size_t>(sorted_[i])] = 0;
            });
        }
        codes.each([&](unsigned code) { ends_[code] = 0; });
        return varies;
    }

    // Rows of class k join the left side, which has left_[k] of it.
    void join(Side& side, std::size_t k, Count here) const {
        side.weight += here;
        side.squares += static_cast<Square>(here) * (2 * static_cast<Square>(left_[k]) + here);
        side.shared += static_cast<Square>(here) * totals_[k];
    }

    // take(code, side, stays) lets the rows of a code join the left side, and left_ if they stay there.
    template <class Take>
    void sweep(std::size_t column, const CodeSet& codes, Cut& best, const Take& take) {
        if (ordered_[column]) {
            Side side;
            const unsigned last = codes.last();
            codes.each([&](unsigned code) {
                if (code == last) return;
                take(code, side, true);
                consider(side, column, code, best);
            });
            for (const auto label : present_) left_[label] = 0;
        } else {
            codes.each([&](unsigned code) {
                if (code + 1 == static_cast<unsigned>(sizes_[column])) return;  // values in no list: nothing is known of others
                Side side;
                take(code, side, false);
                consider(side, column, code, best);
            });
        }
    }

    void consider(const Side& side, std::size_t column, unsigned code, Cut& best) const {
        const Count right = total_ - side.weight;
        const double l = static_cast<double>(side.weight), r = static_cast<double>(right);
        if (!(l >= plan_.least && r >= plan_.least && r > 0)) return;
        const Square rest = squares_ - 2 * side.shared + side.squares;
        const double score = static_cast<double>(side.squares) / l + static_cast<double>(rest) / r;
        if (score > best.score) best = {score, column, code};
    }

    // Rows keep their order on both sides.
    std::size_t split(const Node& node, const Cut& cut) {
        std::size_t middle = node.begin, others = 0;
        const bool ordered = ordered_[cut.column];
        for (std::size_t i = node.begin; i < node.end; ++i) {
            const Row row = rows_[i];
            const unsigned code = x_.row(row.row)[cut.column];
            const bool left = ordered ? code <= cut.code : code == cut.code;
            rows_[middle] = row, spare_[others] = row;
            middle += left, others += !left;
        }
        std::copy_n(spare_.begin(), others, rows_.begin() + static_cast<std::ptrdiff_t>(middle));
        return middle;
    }

    const ByteRows& x_;
    const std::int32_t* sizes_;
    const bool* ordered_;
    const std::int32_t* labels_;
    const double* weights_;
    const ForestPlan plan_;
    std::uint64_t key_ = 0;
    std::vector<Row> rows_, spare_;  // of the bag; a node is a range of it
    // Of the node at hand: T, Σ T_k², T_k, the classes that occur, L_k (zeros between two columns).
    Count total_ = 0;
    Square squares_ = 0;
    std::vector<Count> totals_;
    std::vector<std::size_t> present_;
    std::vector<Count> left_;
    std::vector<std::uint8_t> constant_;  // (depth, column)
    std::vector<std::uint32_t> order_, chosen_;
    std::vector<Dense> dense_;
    std::vector<std::uint32_t> place_of_;
    std::vector<Count> table_;
    // Rows by code.
    std::uint32_t begins_[256] = {}, ends_[256] = {};
    std::vector<std::uint8_t> codes_;
    std::vector<std::int32_t> sorted_;
    std::vector<double> sorted_weights_;
};

template <class Count>
std::vector<Tree> grow_trees(const ByteRows& x, const std::int32_t* sizes, const bool* ordered, const std::int32_t* labels,
                             const double* weights, const ForestPlan& plan) {
    std::vector<Tree> forest(plan.trees);
    std::atomic<std::size_t> next{0};
    const unsigned parts = thread_count(plan.trees * std::max<std::size_t>(1, x.rows), 1 << 12);
    parallel(plan.trees, static_cast<unsigned>(std::min<std::size_t>(parts, plan.trees)), [&](unsigned, std::size_t, std::size_t) {
        TreeGrower<Count> grower(x, sizes, ordered, labels, weights, plan);
        for (std::size_t tree; (tree = next++) < plan.trees;) forest[tree] = grower.grow(tree);
    });
    return forest;
}

inline std::vector<Tree> grow_forest(const Matrix<std::uint8_t>& codes, const std::int32_t* sizes, const bool* ordered,
                                     const std::int32_t* labels, const double* weights, const ForestPlan& plan) {
    const ByteRows x(codes);
    if (!weights) return grow_trees<std::uint32_t>(x, sizes, ordered, labels, nullptr, plan);
    const auto order = canonical_order(x, labels, weights);
    const auto own_labels = in_order(labels, order);
    const auto own_weights = in_order(weights, order);
    return grow_trees<double>(ByteRows(x, order), sizes, ordered, own_labels.data(), own_weights.data(), plan);
}

}  // namespace deciban
