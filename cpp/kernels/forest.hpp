// Decision trees on rows of small codes. A row's bags depend only on its codes.
#pragma once
#include <atomic>
#include <type_traits>

#include "byte_rows.hpp"

namespace deciban {

struct ForestOptions {
    std::size_t classes, trees, max_columns, max_depth;
    double bag_fraction, min_weight;
    std::uint64_t seed;
};

DECIBAN_INLINE std::uint64_t tree_key(std::uint64_t seed, std::size_t tree) {
    return mix(mix(seed + golden) + (tree + 1) * golden);
}

// Equal rows are in the same bags.
DECIBAN_INLINE bool in_bag(std::uint64_t hash, std::uint64_t key, double bag_fraction) {
    return static_cast<double>(mix(hash ^ key) >> 11) * 0x1p-53 < bag_fraction;
}

inline void mark_bags(const ByteRows& x, std::size_t trees, double bag_fraction, std::uint64_t seed, bool* out) {
    std::vector<std::uint64_t> keys;
    for (std::size_t t = 0; t < trees; ++t) keys.push_back(tree_key(seed, t));
    parallel(x.rows, thread_count(x.rows * trees, 1 << 16), [&](unsigned, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            for (std::size_t t = 0; t < trees; ++t) out[i * trees + t] = in_bag(x.hashes[i], keys[t], bag_fraction);
    });
}

// The nodes of a tree. Inner nodes: column, code, and left child (the right child is next to it). Leaves: −1, 0, and
// the number of the leaf.
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

// The set of codes that occur, in ascending order.
class CodeSet {
public:
    void add(unsigned code) { words_[code / 64] |= std::uint64_t{1} << (code % 64); }
    bool has_several() const {
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
        return 64 * i + highest_bit(words_[i] | 1);
    }
    template <class Body>
    void for_each(const Body& body) const {
        for (unsigned i = 0; i < 4; ++i)
            for (std::uint64_t word = words_[i]; word; word &= word - 1) body(64 * i + lowest_bit(word));
    }

private:
    std::uint64_t words_[4] = {};
};

// Grows one tree after the other. Count is std::uint32_t without weights, so that all sums are exact. With weights it
// is double, and rows are in canonical order.
//
// The score of a split is Σ L_k²/L + Σ R_k²/R. With T = L + R, Σ R_k² = Σ T_k² − 2 Σ T_k L_k + Σ L_k², so only sums
// over the left side are kept, and adding a row updates them in constant time, however many classes there are.
template <class Count>
class TreeGrower {
    static constexpr bool weighted = std::is_same_v<Count, double>;
    using Square = std::conditional_t<weighted, double, std::uint64_t>;

public:
    TreeGrower(const ByteRows& x, const std::int32_t* sizes, const bool* ordered, const std::int32_t* labels,
               const double* weights, const ForestOptions& options)
        : x_(x), sizes_(sizes), ordered_(ordered), labels_(labels), weights_(weights), options_(options),
          totals_(options.classes), left_(options.classes), order_(x.columns), table_offset_(x.columns) {}

    Tree grow(std::size_t tree) {
        key_ = tree_key(options_.seed, tree);
        rows_.clear();
        for (std::size_t i = 0; i < x_.rows; ++i)
            if (in_bag(x_.hashes[i], key_, options_.bag_fraction))
                rows_.push_back({static_cast<std::uint32_t>(i), labels_[i]});
        right_rows_.resize(rows_.size()), codes_.resize(rows_.size()), sorted_.resize(rows_.size());
        if (weighted) sorted_weights_.resize(rows_.size());
        Tree grown;
        grown.column.push_back(-1), grown.code.push_back(0), grown.left.push_back(0);
        std::vector<Node> stack{{0, rows_.size(), 0, 0}};
        while (!stack.empty()) {
            const Node node = stack.back();
            stack.pop_back();
            Split split;
            if (!find_split(node, split)) continue;
            const std::size_t middle = partition(node, split), left = grown.add_pair();
            grown.column[node.id] = static_cast<std::int32_t>(split.column);
            grown.code[node.id] = static_cast<std::int32_t>(split.code);
            grown.left[node.id] = static_cast<std::int32_t>(left);
            stack.push_back({middle, node.end, left + 1, node.depth + 1});
            stack.push_back({node.begin, middle, left, node.depth + 1});
        }
        grown.number_leaves();
        return grown;
    }

private:
    struct Row {
        std::uint32_t row;
        std::int32_t label;
    };
    struct Node {
        std::size_t begin, end, id, depth;
    };
    struct Split {
        double score;
        std::size_t column;
        unsigned code;
    };
    struct Side {
        Count weight = 0;                 // L
        Square squares = 0, cross = 0;  // Σ L_k², Σ L_k T_k
    };
    struct Dense {
        std::uint32_t column, offset;  // offset of the column's table
    };
    static constexpr std::uint32_t no_table = ~std::uint32_t{0};
    static constexpr std::size_t max_cells = std::size_t{1} << 24;

    Count weight_of(const Row& row) const {
        if constexpr (weighted) return weights_[row.row];
        return 1;
    }

    bool find_split(const Node& node, Split& best) {
        if (node.depth >= options_.max_depth) return false;
        total_ = 0;
        classes_present_.clear();
        for (std::size_t i = node.begin; i < node.end; ++i) {
            const auto label = static_cast<std::size_t>(rows_[i].label);
            const Count weight = weight_of(rows_[i]);
            if (totals_[label] == 0) classes_present_.push_back(label);
            totals_[label] += weight;
            total_ += weight;
        }
        bool found = false;
        if (classes_present_.size() > 1 && static_cast<double>(total_) >= 2 * options_.min_weight) {
            squares_ = 0;
            for (const auto label : classes_present_) squares_ += static_cast<Square>(totals_[label]) * totals_[label];
            const double unsplit = static_cast<double>(squares_) / static_cast<double>(total_) * (1 + 1e-12);
            best = {unsplit, 0, 0};
            search_columns(node, best);
            found = best.score > unsplit;
        }
        for (const auto label : classes_present_) totals_[label] = 0;
        return found;
    }

    // Columns that are constant in the node do not count as tried. They are constant in its children too: row `depth`
    // of `constant_` belongs to the last node visited at that depth, and a child is visited after its parent.
    void search_columns(const Node& node, Split& best) {
        const std::size_t d = x_.columns;
        if (constant_.size() < (node.depth + 1) * d) constant_.resize((node.depth + 1) * d);
        std::uint8_t* constant = constant_.data() + node.depth * d;
        if (node.depth) std::copy_n(constant - d, d, constant);
        else std::fill_n(constant, d, std::uint8_t{0});
        std::iota(order_.begin(), order_.end(), 0u);
        RandomDraws draws{mix(key_ ^ mix(node.id + golden))};
        for (std::size_t tried = 0, drawn = 0; tried < options_.max_columns && drawn < d;) {
            chosen_.clear();
            for (; chosen_.size() < options_.max_columns - tried && drawn < d; ++drawn) {
                std::swap(order_[drawn], order_[drawn + draws.below(d - drawn)]);
                if (!constant[order_[drawn]]) chosen_.push_back(order_[drawn]);
            }
            tried += evaluate_columns(node, constant, best);
        }
    }

    // Finds the best split of the chosen columns; returns how many are not constant. With enough rows a table (code,
    // class) is counted, otherwise rows are sorted by code.
    std::size_t evaluate_columns(const Node& node, std::uint8_t* constant, Split& best) {
        const std::size_t rows = node.end - node.begin;
        std::size_t cells = 0, varying = 0;
        dense_.clear();
        for (const auto column : chosen_) {
            const std::size_t column_cells = static_cast<std::size_t>(sizes_[column]) * options_.classes;
            table_offset_[column] = no_table;
            if (column_cells > 2 * rows || cells + column_cells > max_cells) continue;
            table_offset_[column] = static_cast<std::uint32_t>(cells);
            dense_.push_back({column, table_offset_[column]});
            cells += column_cells;
        }
        if (!dense_.empty()) count(node, cells);
        for (const auto column : chosen_) {
            const bool varies =
                table_offset_[column] == no_table ? evaluate_rows(node, column, best) : evaluate_table(column, best);
            constant[column] = !varies;
            varying += varies;
        }
        return varying;
    }

    void count(const Node& node, std::size_t cells) {
        table_.assign(cells, 0);
        const std::size_t classes = options_.classes;
        constexpr std::size_t prefetch_distance = 8;  // rows
        for (std::size_t i = node.begin; i < node.end; ++i) {
            if (i + prefetch_distance < node.end) prefetch(x_.row(rows_[i + prefetch_distance].row));
            const std::uint8_t* codes = x_.row(rows_[i].row);
            const Count weight = weight_of(rows_[i]);
            Count* of_class = table_.data() + rows_[i].label;
            for (const auto& [column, offset] : dense_) of_class[offset + codes[column] * classes] += weight;
        }
    }

    bool evaluate_table(std::size_t column, Split& best) {
        const std::size_t classes = options_.classes;
        const Count* table = table_.data() + table_offset_[column];
        CodeSet codes;
        for (unsigned code = 0; code < static_cast<unsigned>(sizes_[column]); ++code) {
            Count any = 0;
            for (std::size_t k = 0; k < classes; ++k) any += table[code * classes + k];
            if (any > 0) codes.add(code);
        }
        if (!codes.has_several()) return false;
        sweep(column, codes, best, [&](unsigned code, Side& side, bool cumulative) {
            for (std::size_t k = 0; k < classes; ++k) {
                const Count weight = table[code * classes + k];
                add_to_left(side, k, weight);
                if (cumulative) left_[k] += weight;
            }
        });
        return true;
    }

    bool evaluate_rows(const Node& node, std::size_t column, Split& best) {
        const std::size_t rows = node.end - node.begin;
        CodeSet codes;
        for (std::size_t i = 0; i < rows; ++i) {
            const std::uint8_t code = x_.row(rows_[node.begin + i].row)[column];
            codes_[i] = code;
            codes.add(code);
            ++ends_[code];
        }
        const bool varies = codes.has_several();
        if (varies) {
            std::uint32_t end = 0;
            codes.for_each([&](unsigned code) {
                const std::uint32_t begin = end;
                end += ends_[code];
                ends_[code] = begins_[code] = begin;
            });
            for (std::size_t i = 0; i < rows; ++i) {
                const std::uint32_t to = ends_[codes_[i]]++;
                sorted_[to] = rows_[node.begin + i].label;
                if constexpr (weighted) sorted_weights_[to] = weight_of(rows_[node.begin + i]);
            }
            sweep(column, codes, best, [&](unsigned code, Side& side, bool cumulative) {
                for (std::uint32_t i = begins_[code]; i < ends_[code]; ++i) {
                    const auto k = static_cast<std::size_t>(sorted_[i]);
                    Count weight = 1;
                    if constexpr (weighted) weight = sorted_weights_[i];
                    add_to_left(side, k, weight);
                    left_[k] += weight;
                }
                if (!cumulative)
                    for (std::uint32_t i = begins_[code]; i < ends_[code]; ++i)
                        left_[static_cast<std::size_t>(sorted_[i])] = 0;
            });
        }
        codes.for_each([&](unsigned code) { ends_[code] = 0; });
        return varies;
    }

    // Adds rows of class k to the left side, which already has left_[k] of them.
    void add_to_left(Side& side, std::size_t k, Count weight) const {
        side.weight += weight;
        side.squares += static_cast<Square>(weight) * (2 * static_cast<Square>(left_[k]) + weight);
        side.cross += static_cast<Square>(weight) * totals_[k];
    }

    // add_code(code, side, cumulative) adds the rows of a code to the side, and to left_ if cumulative.
    template <class AddCode>
    void sweep(std::size_t column, const CodeSet& codes, Split& best, const AddCode& add_code) {
        if (ordered_[column]) {
            Side side;
            const unsigned last = codes.last();
            codes.for_each([&](unsigned code) {
                if (code == last) return;
                add_code(code, side, true);
                consider(side, column, code, best);
            });
            for (const auto label : classes_present_) left_[label] = 0;
        } else {
            codes.for_each([&](unsigned code) {
                if (code + 1 == static_cast<unsigned>(sizes_[column]))
                    return;  // unseen values: nothing is known of them
                Side side;
                add_code(code, side, false);
                consider(side, column, code, best);
            });
        }
    }

    void consider(const Side& side, std::size_t column, unsigned code, Split& best) const {
        const Count right = total_ - side.weight;
        const double l = static_cast<double>(side.weight), r = static_cast<double>(right);
        if (!(l >= options_.min_weight && r >= options_.min_weight && r > 0)) return;
        const Square rest = squares_ - 2 * side.cross + side.squares;
        const double score = static_cast<double>(side.squares) / l + static_cast<double>(rest) / r;
        if (score > best.score) best = {score, column, code};
    }

    // Stable: rows keep their order on both sides.
    std::size_t partition(const Node& node, const Split& split) {
        std::size_t middle = node.begin, others = 0;
        const bool ordered = ordered_[split.column];
        for (std::size_t i = node.begin; i < node.end; ++i) {
            const Row row = rows_[i];
            const unsigned code = x_.row(row.row)[split.column];
            const bool left = ordered ? code <= split.code : code == split.code;
            rows_[middle] = row, right_rows_[others] = row;
            middle += left, others += !left;
        }
        std::copy_n(right_rows_.begin(), others, rows_.begin() + static_cast<std::ptrdiff_t>(middle));
        return middle;
    }

    const ByteRows& x_;
    const std::int32_t* sizes_;
    const bool* ordered_;
    const std::int32_t* labels_;
    const double* weights_;
    const ForestOptions options_;
    std::uint64_t key_ = 0;
    std::vector<Row> rows_, right_rows_;  // rows of the bag (a node is a range of them), and a buffer
    // The current node: T, Σ T_k², T_k, the classes that occur, L_k (zero between columns).
    Count total_ = 0;
    Square squares_ = 0;
    std::vector<Count> totals_;
    std::vector<std::size_t> classes_present_;
    std::vector<Count> left_;
    std::vector<std::uint8_t> constant_;  // (depth, column)
    std::vector<std::uint32_t> order_, chosen_;
    std::vector<Dense> dense_;
    std::vector<std::uint32_t> table_offset_;
    std::vector<Count> table_;
    // Rows sorted by code.
    std::uint32_t begins_[256] = {}, ends_[256] = {};
    std::vector<std::uint8_t> codes_;
    std::vector<std::int32_t> sorted_;
    std::vector<double> sorted_weights_;
};

template <class Count>
std::vector<Tree> grow_trees(const ByteRows& x, const std::int32_t* sizes, const bool* ordered,
                             const std::int32_t* labels, const double* weights, const ForestOptions& options) {
    std::vector<Tree> forest(options.trees);
    std::atomic<std::size_t> next{0};
    const unsigned parts = thread_count(options.trees * std::max<std::size_t>(1, x.rows), 1 << 12);
    parallel(options.trees, static_cast<unsigned>(std::min<std::size_t>(parts, options.trees)),
             [&](unsigned, std::size_t, std::size_t) {
                 TreeGrower<Count> grower(x, sizes, ordered, labels, weights, options);
                 for (std::size_t tree; (tree = next++) < options.trees;) forest[tree] = grower.grow(tree);
             });
    return forest;
}

inline std::vector<Tree> grow_forest(const Matrix<std::uint8_t>& codes, const std::int32_t* sizes, const bool* ordered,
                                     const std::int32_t* labels, const double* weights, const ForestOptions& options) {
    const ByteRows x(codes);
    if (!weights) return grow_trees<std::uint32_t>(x, sizes, ordered, labels, nullptr, options);
    const auto order = canonical_order(x, labels, weights);
    const auto own_labels = permuted(labels, order);
    const auto own_weights = permuted(weights, order);
    return grow_trees<double>(ByteRows(x, order), sizes, ordered, own_labels.data(), own_weights.data(), options);
}

}  // namespace deciban
