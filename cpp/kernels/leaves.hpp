// The leaf of each row in each tree of a forest, and the contributions of the columns on the way to it. Trees are
// checked, as they may come from a corrupt file. Where the column of a split is unknown, the row follows both branches.
#pragma once
#include <cmath>
#include <limits>
#include <memory>

#include "byte_rows.hpp"

namespace deciban {

// A node: go left if code − low, as a byte, is at most `span`. A leaf leads to itself.
struct Step {
    std::int32_t left;
    std::uint16_t column;
    std::uint8_t low, span;
};

class ForestWalk {
public:
    // Returns what is wrong with the nodes, or nullptr. Children come after their parents, so that every walk ends.
    const char* load(std::size_t trees, const std::int64_t* starts, const std::int32_t* column,
                     const std::int32_t* code, const std::int32_t* left, const bool* ordered, std::size_t columns,
                     std::size_t nodes) {
        if (starts[0] != 0 || starts[trees] != static_cast<std::int64_t>(nodes)) return "starts do not match the nodes";
        for (std::size_t t = 0; t < trees; ++t)
            if (starts[t] < 0 || starts[t + 1] <= starts[t]) return "starts: every tree needs a node";
        steps_.resize(nodes), leaves_.resize(nodes), columns_below_.assign(nodes, 0),
            starts_.assign(starts, starts + trees + 1);
        for (std::size_t t = 0; t < trees; ++t) {
            const std::int64_t size = starts[t + 1] - starts[t];
            if (size > std::numeric_limits<std::int32_t>::max()) return "starts: a tree has too many nodes";
            std::int32_t leaf = 0;
            for (std::int64_t i = 0; i < size; ++i) {
                const auto at = static_cast<std::size_t>(starts[t] + i);
                if (column[at] == -1) {
                    if (left[at] != leaf) return "left: leaves must be numbered in order";
                    leaves_[at] = leaf++;
                    steps_[at] = {static_cast<std::int32_t>(i), 0, 0, 255};
                    continue;
                }
                if (column[at] < 0 || static_cast<std::size_t>(column[at]) >= columns) return "column out of range";
                if (code[at] < 0 || code[at] > 255) return "code must be a byte";
                if (left[at] <= i || left[at] >= size - 1)
                    return "left: children must come after their parent in the same tree";
                const auto byte = static_cast<std::uint8_t>(code[at]);
                const bool is_ordered = ordered[column[at]];
                steps_[at] = {left[at], static_cast<std::uint16_t>(column[at]), is_ordered ? std::uint8_t{0} : byte,
                              is_ordered ? byte : std::uint8_t{0}};
            }
            for (std::int64_t i = size; i-- > 0;) {
                const auto at = static_cast<std::size_t>(starts[t] + i);
                if (column[at] < 0) continue;
                const auto child = static_cast<std::size_t>(starts[t] + left[at]);
                columns_below_[at] = column_bit(static_cast<std::size_t>(column[at])) | columns_below_[child] |
                                     columns_below_[child + 1];
            }
        }
        return nullptr;
    }

    // out (rows, trees): the leaf of each row. Eight rows walk together, because each step waits for memory.
    void find(const Matrix<std::uint8_t>& codes, std::int32_t* out) const {
        const std::size_t trees = starts_.size() - 1, width = std::max<std::size_t>(1, codes.columns);
        const std::size_t block_rows =
            std::clamp<std::size_t>((1 << 16) / width, 64, 1024);  // fit in cache together with a tree
        parallel(codes.rows, thread_count(codes.rows * trees, 1 << 12),
                 [&](unsigned, std::size_t begin, std::size_t end) {
                     std::vector<std::uint8_t> block(block_rows * width);
                     for (std::size_t first = begin; first < end; first += block_rows) {
                         const std::size_t rows = std::min(block_rows, end - first);
                         pack_rows(codes, first, rows, width, block.data());
                         for (std::size_t t = 0; t < trees; ++t)
                             for (std::size_t i = 0; i < rows; i += rows_at_once)
                                 walk(t, &block[i * width], width, std::min(rows_at_once, rows - i),
                                      out + (first + i) * trees + t, trees);
                     }
                 });
    }

    // out (rows, columns, classes) += node_scores[child] − node_scores[node] for every step, at the column of the
    // split.
    void add_contributions(const Matrix<std::uint8_t>& codes, const double* node_scores, std::size_t classes,
                           double* out) const {
        const std::size_t trees = starts_.size() - 1, width = std::max<std::size_t>(1, codes.columns);
        constexpr std::size_t block_rows = 256;  // fit in cache together with a tree
        parallel(
            codes.rows, thread_count(codes.rows * trees, 1 << 10), [&](unsigned, std::size_t begin, std::size_t end) {
                std::vector<std::uint8_t> block(block_rows * width);
                for (std::size_t first = begin; first < end; first += block_rows) {
                    const std::size_t rows = std::min(block_rows, end - first);
                    pack_rows(codes, first, rows, width, block.data());
                    for (std::size_t t = 0; t < trees; ++t)
                        for (std::size_t i = 0; i < rows; i += rows_at_once) {
                            const RowBatch batch{&block[i * width], width, std::min(rows_at_once, rows - i),
                                                 out + (first + i) * codes.columns * classes, codes.columns * classes};
                            if (classes == 1) add_contributions_of_batch<1>(t, batch, node_scores, classes);
                            else add_contributions_of_batch<0>(t, batch, node_scores, classes);
                        }
                }
            });
    }

    // out (trees, rows, classes): the summed counts of all leaves that a row may reach; counts (nodes, classes). A tree
    // in `skip` (rows, trees) gives the counts of its root.
    void pooled_leaf_counts(const Matrix<std::uint8_t>& codes, const Matrix<bool>& unknown, const double* counts,
                            std::size_t classes, const bool* skip, double* out) const {
        const std::size_t trees = starts_.size() - 1, width = codes.columns;
        constexpr std::size_t block_rows = 256;  // fit in cache together with a tree
        parallel(codes.rows, thread_count(codes.rows * trees, 1 << 10),
                 [&](unsigned, std::size_t begin, std::size_t end) {
                     std::vector<std::uint8_t> rows(block_rows * width), unknown_of_rows(block_rows * width);
                     std::vector<std::uint64_t> known(block_rows);
                     std::vector<std::size_t> others;  // nodes that are to be visited
                     for (std::size_t first = begin; first < end; first += block_rows) {
                         const std::size_t n = std::min(block_rows, end - first);
                         std::fill(known.begin(), known.end(), 0);
                         for (std::size_t i = 0; i < n; ++i)
                             for (std::size_t j = 0; j < width; ++j) {
                                 rows[i * width + j] = codes.at(first + i, j);
                                 unknown_of_rows[i * width + j] = unknown.at(first + i, j);
                                 if (!unknown.at(first + i, j)) known[i] |= column_bit(j);
                             }
                         for (std::size_t t = 0; t < trees; ++t)
                             for (std::size_t i = 0; i < n; ++i) {
                                 double* sums = out + (t * codes.rows + first + i) * classes;
                                 const auto root = static_cast<std::size_t>(starts_[t]);
                                 if (skip && skip[(first + i) * trees + t])
                                     std::copy_n(counts + root * classes, classes, sums);
                                 else
                                     add_reached(root, &rows[i * width], &unknown_of_rows[i * width], known[i], counts,
                                                 classes, others, sums);
                             }
                     }
                 });
    }

    // out (rows, columns, classes) += for every level of a tree, the change of the centred e = log(N + sπ) − log π,
    // divided among the columns of that level in proportion to the training rows that they rule out.
    void add_pooled_contributions(const Matrix<std::uint8_t>& codes, const Matrix<bool>& unknown, const double* counts,
                                  const double* prior, std::size_t classes, double smoothing, double* out) const {
        for_each_pooled(codes, unknown, counts, classes, [&](std::size_t row, std::size_t, PooledWalk& walk_of_row) {
            std::vector<double> before(classes), after(classes);
            evidence(walk_of_row.counts(), prior, classes, smoothing, before.data());
            while (walk_of_row.descend()) {
                double total = 0.0;
                for (const auto& [column, rows] : walk_of_row.ruled_out()) total += rows;
                if (total <= 0) continue;
                evidence(walk_of_row.counts(), prior, classes, smoothing, after.data());
                for (const auto& [column, rows] : walk_of_row.ruled_out())
                    for (std::size_t k = 0; k < classes; ++k)
                        out[(row * codes.columns + column) * classes + k] += rows / total * (after[k] - before[k]);
                before.swap(after);
            }
        });
    }

private:
    static constexpr std::size_t rows_at_once = 8;

    static std::uint64_t column_bit(std::size_t column) { return std::uint64_t{1} << (column % 64); }

    static void evidence(const double* counts, const double* prior, std::size_t classes, double smoothing,
                         double* out) {
        double mean = 0.0;
        for (std::size_t k = 0; k < classes; ++k) {
            out[k] = std::log(counts[k] + smoothing * prior[k]) - std::log(prior[k]);
            mean += out[k] / static_cast<double>(classes);
        }
        for (std::size_t k = 0; k < classes; ++k) out[k] -= mean;
    }

    // The nodes that a row may be at, level by level.
    class PooledWalk {
    public:
        PooledWalk(const ForestWalk& walk, const double* counts, std::size_t classes)
            : walk_(walk), node_counts_(counts), classes_(classes), final_counts_(classes), counts_(classes) {}

        void start(std::size_t tree, const std::uint8_t* row, const bool* unknown, std::size_t columns) {
            row_ = row, unknown_ = unknown, root_ = static_cast<std::size_t>(walk_.starts_[tree]);
            known_ = 0;
            for (std::size_t j = 0; j < columns; ++j)
                if (!unknown[j]) known_ |= column_bit(j);
            std::fill(final_counts_.begin(), final_counts_.end(), 0.0);
            nodes_.assign(1, 0);
            sum();
        }
        const double* counts() const { return counts_.data(); }
        const std::vector<std::pair<std::size_t, double>>& ruled_out() const { return ruled_out_; }

        // Goes one level down; false if no node splits on a known column.
        bool descend() {
            next_.clear(), ruled_out_.clear();
            for (const auto node : nodes_) {
                const std::size_t at = root_ + static_cast<std::size_t>(node);
                if (!(walk_.columns_below_[at] & known_)) {
                    add(final_counts_, at);
                    continue;
                }
                const Step step = walk_.steps_[at];
                if (unknown_[step.column]) {
                    next_.push_back(step.left), next_.push_back(step.left + 1);
                    continue;
                }
                const bool right = static_cast<std::uint8_t>(row_[step.column] - step.low) > step.span;
                next_.push_back(step.left + right);
                rule_out(step.column, root_ + static_cast<std::size_t>(step.left + !right));
            }
            nodes_.swap(next_);
            sum();
            return !nodes_.empty();
        }

    private:
        void add(std::vector<double>& to, std::size_t at) const {
            for (std::size_t k = 0; k < classes_; ++k) to[k] += node_counts_[at * classes_ + k];
        }
        void sum() {
            counts_ = final_counts_;
            for (const auto node : nodes_) add(counts_, root_ + static_cast<std::size_t>(node));
        }
        void rule_out(std::size_t column, std::size_t at) {
            double rows = 0.0;
            for (std::size_t k = 0; k < classes_; ++k) rows += node_counts_[at * classes_ + k];
            for (auto& [known, total] : ruled_out_)
                if (known == column) {
                    total += rows;
                    return;
                }
            ruled_out_.push_back({column, rows});
        }

        const ForestWalk& walk_;
        const double* node_counts_;
        std::size_t classes_, root_ = 0;
        const std::uint8_t* row_ = nullptr;
        const bool* unknown_ = nullptr;
        std::uint64_t known_ = 0;  // column_bit of each known column
        std::vector<std::int32_t> nodes_, next_;
        std::vector<double> final_counts_, counts_;  // of nodes that no known column splits further; of all nodes
        std::vector<std::pair<std::size_t, double>> ruled_out_;
    };

    template <class Body>
    void for_each_pooled(const Matrix<std::uint8_t>& codes, const Matrix<bool>& unknown, const double* counts,
                         std::size_t classes, const Body& body) const {
        const std::size_t trees = starts_.size() - 1;
        parallel(codes.rows, thread_count(codes.rows * trees, 1 << 8),
                 [&](unsigned, std::size_t begin, std::size_t end) {
                     PooledWalk walk_of_row(*this, counts, classes);
                     std::vector<std::uint8_t> row(codes.columns + 1);
                     std::unique_ptr<bool[]> row_unknown(new bool[codes.columns + 1]);
                     for (std::size_t i = begin; i < end; ++i) {
                         for (std::size_t j = 0; j < codes.columns; ++j)
                             row[j] = codes.at(i, j), row_unknown[j] = unknown.at(i, j);
                         for (std::size_t t = 0; t < trees; ++t) {
                             walk_of_row.start(t, row.data(), row_unknown.get(), codes.columns);
                             body(i, t, walk_of_row);
                         }
                     }
                 });
    }

    // sums = the counts of the leaves of a tree that a row may reach; of nodes that no known column splits further.
    void add_reached(std::size_t root, const std::uint8_t* row, const std::uint8_t* unknown, std::uint64_t known,
                     const double* counts, std::size_t classes, std::vector<std::size_t>& others, double* sums) const {
        std::fill_n(sums, classes, 0.0);
        others.assign(1, root);
        while (!others.empty()) {
            std::size_t node = others.back();
            others.pop_back();
            while (columns_below_[node] & known) {
                const Step step = steps_[node];
                node = root + static_cast<std::size_t>(step.left);
                if (unknown[step.column]) others.push_back(node + 1);
                else node += static_cast<std::uint8_t>(row[step.column] - step.low) > step.span;
            }
            for (std::size_t k = 0; k < classes; ++k) sums[k] += counts[node * classes + k];
        }
    }

    // A few rows and their contributions.
    struct RowBatch {
        const std::uint8_t* rows;
        std::size_t width, n;
        double* out;
        std::size_t out_width;
    };

    template <std::size_t Classes>  // 0: known only at run time
    void add_contributions_of_batch(std::size_t tree, const RowBatch& batch, const double* node_scores,
                                    std::size_t classes) const {
        const std::size_t classes_here = Classes ? Classes : classes;
        const auto root = static_cast<std::size_t>(starts_[tree]);
        const Step* steps = &steps_[root];
        const double* tree_scores = node_scores + root * classes_here;
        const std::uint8_t* row[rows_at_once];
        double* out[rows_at_once];
        for (std::size_t i = 0; i < batch.n; ++i)
            row[i] = batch.rows + i * batch.width, out[i] = batch.out + i * batch.out_width;
        std::int32_t at[rows_at_once] = {};
        for (std::int32_t change = 1; change;) {
            change = 0;
            for (std::size_t i = 0; i < batch.n; ++i) {
                const Step step = steps[at[i]];
                const std::int32_t to =
                    step.left + (static_cast<std::uint8_t>(row[i][step.column] - step.low) > step.span);
                const double* here = tree_scores + static_cast<std::size_t>(at[i]) * classes_here;
                const double* there = tree_scores + static_cast<std::size_t>(to) * classes_here;
                double* contribution = out[i] + step.column * classes_here;
                for (std::size_t k = 0; k < classes_here; ++k)
                    contribution[k] += there[k] - here[k];  // adds 0 at a leaf, which leads to itself
                change |= to ^ at[i];
                at[i] = to;
            }
        }
    }

    void walk(std::size_t tree, const std::uint8_t* rows, std::size_t width, std::size_t n, std::int32_t* out,
              std::size_t trees) const {
        const Step* steps = &steps_[static_cast<std::size_t>(starts_[tree])];
        const std::uint8_t* row[rows_at_once];
        for (std::size_t i = 0; i < rows_at_once; ++i) row[i] = rows + (i < n ? i * width : 0);
        std::int32_t at[rows_at_once] = {};
        for (bool moved = true; moved;) {
            std::int32_t change = 0;
            DECIBAN_UNROLL
            for (std::size_t i = 0; i < rows_at_once; ++i) {
                const Step step = steps[at[i]];
                const std::int32_t to =
                    step.left + (static_cast<std::uint8_t>(row[i][step.column] - step.low) > step.span);
                change |= to ^ at[i];
                at[i] = to;
            }
            moved = change != 0;
        }
        const std::int32_t* leaves = &leaves_[static_cast<std::size_t>(starts_[tree])];
        for (std::size_t i = 0; i < n; ++i) out[i * trees] = leaves[at[i]];
    }

    std::vector<Step> steps_;
    std::vector<std::int32_t> leaves_;  // (node) number of the leaf
    std::vector<std::uint64_t> columns_below_;  // (node) column_bit of the columns split on here and below
    std::vector<std::int64_t> starts_;
};

}  // namespace deciban
