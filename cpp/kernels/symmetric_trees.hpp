// Symmetric trees on rows of small codes: all nodes of a level have the same split, so the leaf of a row is a number of
// as many bits as the tree has levels. Which ensemble of trees a row belongs to depends only on its codes.
#pragma once
#include <array>
#include <vector>

#include "byte_rows.hpp"
#include "simd.hpp"

namespace deciban {

constexpr std::size_t max_tree_depth = 8;  // so that the number of a leaf is a byte

// The ensemble that is grown without this row.
DECIBAN_INLINE std::size_t ensemble_of(std::uint64_t hash, std::size_t ensembles, std::uint64_t seed) {
    return RandomDraws{hash ^ mix(seed + 5 * golden)}.below(ensembles);
}

inline void find_ensembles(const ByteRows& x, std::size_t ensembles, std::uint64_t seed, std::int32_t* out) {
    for (std::size_t i = 0; i < x.rows; ++i)
        out[i] = static_cast<std::int32_t>(ensemble_of(x.hashes[i], ensembles, seed));
}

// Trees of one depth. A row is on the left of a split by up to its code, or if the column is not ordered by its code
// alone; on the right its bit is 1, and the first level's bit is the highest. Two classes have one value, for the
// second.
struct SymmetricTrees {
    std::size_t depth, outputs;
    std::vector<std::int32_t> column, code;  // (tree, depth); column −1: no split, all rows are on the left
    std::vector<double> value;  // (tree, leaf, outputs)
    std::vector<double> rows;  // (tree, leaf) the weight of the rows that it was grown from, and of
                               // one virtual row, divided among the leaves that rows can reach

    std::size_t leaves() const { return std::size_t{1} << depth; }
    std::size_t trees() const { return column.size() / depth; }
    void resize(std::size_t trees) {
        column.resize(trees * depth, -1), code.resize(trees * depth, 0);
        value.resize(trees * leaves() * outputs, 0.0);
        rows.resize(trees * leaves(), 0.0);
    }
    void append(const SymmetricTrees& other) {
        column.insert(column.end(), other.column.begin(), other.column.end());
        code.insert(code.end(), other.code.begin(), other.code.end());
        value.insert(value.end(), other.value.begin(), other.value.end());
        rows.insert(rows.end(), other.rows.begin(), other.rows.end());
    }
    // Subtracts the mean of each tree over its rows.
    void centre() {
        for (std::size_t t = 0; t < trees(); ++t)
            for (std::size_t k = 0; k < outputs; ++k) {
                double sum = 0.0, weight = 0.0;
                for (std::size_t leaf = t * leaves(); leaf < (t + 1) * leaves(); ++leaf)
                    sum += rows[leaf] * value[leaf * outputs + k], weight += rows[leaf];
                for (std::size_t leaf = t * leaves(); leaf < (t + 1) * leaves(); ++leaf)
                    value[leaf * outputs + k] -= sum / weight;
            }
    }
};

// Appends a bit to the leaf of each row: whether it is on the right of a split.
DECIBAN_CLONES inline void add_bits(const std::uint8_t* codes, std::size_t n, std::uint8_t code, bool ordered,
                                    std::uint8_t* leaf) {
    if (ordered)
        for (std::size_t i = 0; i < n; ++i) leaf[i] = static_cast<std::uint8_t>(2 * leaf[i] + (codes[i] > code));
    else
        for (std::size_t i = 0; i < n; ++i) leaf[i] = static_cast<std::uint8_t>(2 * leaf[i] + (codes[i] != code));
}

// Scores rows by symmetric trees. Where a split reads an unknown value, a row has the mean of both sides, by the rows
// that they were grown from. A node is numbered in its tree as in a heap: the root is 1, its children are 2 and 3.
class SymmetricWalk {
public:
    // mean (tree, node, outputs) and rows (tree, node) of all nodes.
    SymmetricWalk(std::size_t trees, std::size_t depth, std::size_t outputs, const std::int32_t* column,
                  const std::int32_t* code, const bool* ordered, const double* mean, const double* rows)
        : trees_(trees), depth_(depth), outputs_(outputs), column_(column), code_(code), ordered_(ordered), mean_(mean),
          rows_(rows) {}

    // out (rows, parts, outputs) += the values of each row's leaves, at the part of their tree. With an ensemble for
    // each row, only its trees count. `unknown` may be null.
    void add_values(const Matrix<std::uint8_t>& codes, const Matrix<bool>* unknown, const std::int32_t* part,
                    std::size_t parts, const std::int32_t* ensemble_of_row, const std::int32_t* ensemble_of_tree,
                    double* out) const {
        each_tree(codes, unknown, [&](std::size_t t, std::size_t first, std::size_t n, const Block& block) {
            const double* leaves = mean_ + ((t << (depth_ + 1)) + (std::size_t{1} << depth_)) * outputs_;
            const std::size_t stride = parts * outputs_;
            double* to = out + (first * parts + static_cast<std::size_t>(part[t])) * outputs_;
            for (std::size_t i = 0; i < n; ++i, to += stride) {
                if (ensemble_of_row && ensemble_of_row[first + i] != ensemble_of_tree[t]) continue;
                if (unknown && block.free[i]) {
                    add_mean(t, depth_, block.leaf[i], block.free[i], to);
                    continue;
                }
                const double* value = leaves + block.leaf[i] * outputs_;
                for (std::size_t k = 0; k < outputs_; ++k) to[k] += value[k];
            }
        });
    }

    // out (rows, columns, outputs) += what each split adds to the mean of the rows that agree so far.
    void add_contributions(const Matrix<std::uint8_t>& codes, const Matrix<bool>* unknown, double* out) const {
        each_tree(codes, unknown, [&](std::size_t t, std::size_t first, std::size_t n, const Block& block) {
            const std::int32_t* column = column_ + t * depth_;
            std::size_t levels = 0;
            while (levels < depth_ && column[levels] >= 0) ++levels;
            double* of_row = out + first * codes.columns * outputs_;
            for (std::size_t i = 0; i < n; ++i, of_row += codes.columns * outputs_) {
                if (unknown && block.free[i]) {
                    add_changes(t, levels, block.leaf[i], block.free[i], of_row);
                    continue;
                }
                const double* before = mean_ + ((t << (depth_ + 1)) + 1) * outputs_;
                for (std::size_t level = 1; level <= levels; ++level) {
                    const std::size_t node = (std::size_t{1} << level) + (block.leaf[i] >> (depth_ - level));
                    const double* after = mean_ + ((t << (depth_ + 1)) + node) * outputs_;
                    double* to = of_row + static_cast<std::size_t>(column[level - 1]) * outputs_;
                    for (std::size_t k = 0; k < outputs_; ++k) to[k] += after[k] - before[k];
                    before = after;
                }
            }
        });
    }

private:
    static constexpr std::size_t block_rows = 512;

    // The leaves of some rows in a tree, and the levels whose split reads an unknown value, as bits.
    struct Block {
        std::array<std::uint8_t, block_rows> leaf, free;
    };

    // of_row (columns, outputs) += the changes down a tree for a row with unknown values.
    void add_changes(std::size_t tree, std::size_t levels, std::size_t leaf, std::size_t free, double* of_row) const {
        const double* root = mean_ + ((tree << (depth_ + 1)) + 1) * outputs_;
        std::vector<double> before(root, root + outputs_), after(outputs_);
        for (std::size_t level = 1; level <= levels; ++level) {
            const std::size_t below = depth_ - level;
            if (free >> below & 1) continue;  // both sides: the mean stays
            std::fill(after.begin(), after.end(), 0.0);
            add_mean(tree, level, leaf >> below, free >> below, after.data());
            double* to = of_row + static_cast<std::size_t>(column_[tree * depth_ + level - 1]) * outputs_;
            for (std::size_t k = 0; k < outputs_; ++k) to[k] += after[k] - before[k];
            before.swap(after);
        }
    }

    // to += the mean of the nodes of a level that a row may be in.
    void add_mean(std::size_t tree, std::size_t level, std::size_t node, std::size_t free, double* to) const {
        const std::size_t first = (tree << (depth_ + 1)) + (std::size_t{1} << level), known = node & ~free;
        if (!free) {
            for (std::size_t k = 0; k < outputs_; ++k) to[k] += mean_[(first + node) * outputs_ + k];
            return;
        }
        double total = 0.0;
        for (std::size_t bits = free;; bits = (bits - 1) & free) {
            total += rows_[first + (known | bits)];
            if (!bits) break;
        }
        for (std::size_t bits = free;; bits = (bits - 1) & free) {
            const std::size_t at = first + (known | bits);
            const double share = rows_[at] / total;
            for (std::size_t k = 0; k < outputs_; ++k) to[k] += share * mean_[at * outputs_ + k];
            if (!bits) break;
        }
    }

    // body(tree, first row, rows, block) for blocks of rows that fit in cache, by column.
    template <class Body>
    void each_tree(const Matrix<std::uint8_t>& codes, const Matrix<bool>* unknown, const Body& body) const {
        parallel(codes.rows, thread_count(codes.rows * trees_, 1 << 14),
                 [&](unsigned, std::size_t begin, std::size_t end) {
                     std::vector<std::uint8_t> by_column(codes.columns * block_rows);
                     std::vector<std::uint8_t> unknown_by_column(unknown ? codes.columns * block_rows : 0);
                     Block block{};
                     for (std::size_t first = begin; first < end; first += block_rows) {
                         const std::size_t n = std::min(block_rows, end - first);
                         for (std::size_t j = 0; j < codes.columns; ++j)
                             for (std::size_t i = 0; i < n; ++i) {
                                 by_column[j * block_rows + i] = codes.at(first + i, j);
                                 if (unknown) unknown_by_column[j * block_rows + i] = unknown->at(first + i, j);
                             }
                         for (std::size_t t = 0; t < trees_; ++t) {
                             find_leaves(t, by_column.data(), n, block.leaf);
                             if (unknown) find_free(t, unknown_by_column.data(), n, block.free);
                             body(t, first, n, block);
                         }
                     }
                 });
    }

    void find_leaves(std::size_t tree, const std::uint8_t* by_column, std::size_t n,
                     std::array<std::uint8_t, block_rows>& leaf) const {
        std::fill_n(leaf.begin(), n, std::uint8_t{0});
        constexpr std::size_t few_rows = 8;  // for which calls for vectors would take longer
        if (n < few_rows) {
            for (std::size_t i = 0; i < n; ++i) leaf[i] = leaf_of(tree, by_column + i);
            return;
        }
        for (std::size_t level = 0; level < depth_; ++level) {
            const std::int32_t column = column_[tree * depth_ + level];
            const auto code = static_cast<std::uint8_t>(code_[tree * depth_ + level]);
            if (column < 0)
                for (std::size_t i = 0; i < n; ++i) leaf[i] = static_cast<std::uint8_t>(2 * leaf[i]);
            else
                add_bits(by_column + static_cast<std::size_t>(column) * block_rows, n, code, ordered_[column],
                         leaf.data());
        }
    }

    // The leaf of one row, whose codes are block_rows apart.
    std::uint8_t leaf_of(std::size_t tree, const std::uint8_t* codes) const {
        unsigned leaf = 0;
        for (std::size_t level = 0; level < depth_; ++level) {
            const std::int32_t column = column_[tree * depth_ + level], code = code_[tree * depth_ + level];
            unsigned right = 0;
            if (column >= 0) {
                const std::int32_t value = codes[static_cast<std::size_t>(column) * block_rows];
                right = ordered_[column] ? value > code : value != code;
            }
            leaf = 2 * leaf + right;
        }
        return static_cast<std::uint8_t>(leaf);
    }

    void find_free(std::size_t tree, const std::uint8_t* unknown, std::size_t n,
                   std::array<std::uint8_t, block_rows>& free) const {
        std::fill_n(free.begin(), n, std::uint8_t{0});
        for (std::size_t level = 0; level < depth_; ++level) {
            const std::int32_t column = column_[tree * depth_ + level];
            for (std::size_t i = 0; i < n; ++i)
                free[i] = static_cast<std::uint8_t>(
                    2 * free[i] + (column < 0 ? 0 : unknown[static_cast<std::size_t>(column) * block_rows + i]));
        }
    }

    const std::size_t trees_, depth_, outputs_;
    const std::int32_t *column_, *code_;
    const bool* ordered_;
    const double *mean_, *rows_;
};

}  // namespace deciban
