// The leaf of each row in each tree of a forest, and what the steps on the way to it change. The trees may come from a file that lies.
// Where a node asks for a column that is unknown in a row, the row goes both ways: it has the rows of several leaves to go by.
#pragma once
#include <cmath>
#include <limits>
#include <memory>

#include "byte_rows.hpp"

namespace deciban {

// A node to walk through: left if code − low, as a byte, is at most `span`. A leaf leads to itself.
struct Step {
    std::int32_t left;
    std::uint16_t column;
    std::uint8_t low, span;
};

class Walk {
public:
    // What is wrong with the nodes, or nullptr. A child comes after its parent, so that no walk is endless.
    const char* read(std::size_t trees, const std::int64_t* starts, const std::int32_t* column, const std::int32_t* code,
                     const std::int32_t* left, const bool* ordered, std::size_t columns, std::size_t nodes) {
        if (starts[0] != 0 || starts[trees] != static_cast<std::int64_t>(nodes)) return "starts: not those of the nodes";
        for (std::size_t t = 0; t < trees; ++t)
            if (starts[t] < 0 || starts[t + 1] <= starts[t]) return "starts: a tree has a node at least";
        steps_.resize(nodes), leaves_.resize(nodes), asked_.assign(nodes, 0), starts_.assign(starts, starts + trees + 1);
        for (std::size_t t = 0; t < trees; ++t) {
            const std::int64_t size = starts[t + 1] - starts[t];
            if (size > std::numeric_limits<std::int32_t>::max()) return "starts: more nodes than a tree has";
            std::int32_t leaf = 0;
            for (std::int64_t i = 0; i < size; ++i) {
                const auto at = static_cast<std::size_t>(starts[t] + i);
                if (column[at] == -1) {
                    if (left[at] != leaf) return "left: leaves are numbered in order";
                    leaves_[at] = leaf++;
                    steps_[at] = {static_cast<std::int32_t>(i), 0, 0, 255};
                    continue;
                }
                if (column[at] < 0 || static_cast<std::size_t>(column[at]) >= columns) return "column: there is none of that number";
                if (code[at] < 0 || code[at] > 255) return "code: not a byte";
                if (left[at] <= i || left[at] >= size - 1) return "left: children come after their parent, in the same tree";
                const auto byte = static_cast<std::uint8_t>(code[at]);
                const bool rising = ordered[column[at]];
                steps_[at] = {left[at], static_cast<std::uint16_t>(column[at]), rising ? std::uint8_t{0} : byte, rising ? byte : std::uint8_t{0}};
            }
            for (std::int64_t i = size; i-- > 0;) {
                const auto at = static_cast<std::size_t>(starts[t] + i);
                if (column[at] < 0) continue;
                const auto child = static_cast<std::size_t>(starts[t] + left[at]);
                asked_[at] = bit(static_cast<std::size_t>(column[at])) | asked_[child] | asked_[child + 1];
            }
        }
        return nullptr;
    }

    // out (rows, trees): the leaf of each row. Eight rows walk at once, as each step of one waits for memory.
    void find(const Matrix<std::uint8_t>& codes, std::int32_t* out) const {
        const std::size_t trees = starts_.size() - 1, width = std::max<std::size_t>(1, codes.columns);
        const std::size_t block_rows = std::clamp<std::size_t>((1 << 16) / width, 64, 1024);  // stay in cache, with a tree
        parallel(codes.rows, thread_count(codes.rows * trees, 1 << 12), [&](unsigned, std::size_t begin, std::size_t end) {
            std::vector<std::uint8_t> block(block_rows * width);
            for (std::size_t first = begin; first < end; first += block_rows) {
                const std::size_t rows = std::min(block_rows, end - first);
                pack_rows(codes, first, rows, width, block.data());
                for (std::size_t t = 0; t < trees; ++t)
                    for (std::size_t i = 0; i < rows; i += at_once)
                        walk(t, &block[i * width], width, std::min(at_once, rows - i), out + (first + i) * trees + t, trees);
            }
        });
    }

    // out (rows, columns, classes) += for every step, said[child] − said[node], at the column that the node asks for.
    void share(const Matrix<std::uint8_t>& codes, const double* said, std::size_t classes, double* out) const {
        const std::size_t trees = starts_.size() - 1, width = std::max<std::size_t>(1, codes.columns);
        constexpr std::size_t block_rows = 256;  // stay in cache, with a tree
        parallel(codes.rows, thread_count(codes.rows * trees, 1 << 10), [&](unsigned, std::size_t begin, std::size_t end) {
            std::vector<std::uint8_t> block(block_rows * width);
            for (std::size_t first = begin; first < end; first += block_rows) {
                const std::size_t rows = std::min(block_rows, end - first);
                pack_rows(codes, first, rows, width, block.data());
                for (std::size_t t = 0; t < trees; ++t)
                    for (std::size_t i = 0; i < rows; i += at_once) {
                        const Some some{&block[i * width], width, std::min(at_once, rows - i), out + (first + i) * codes.columns * classes,
                                        codes.columns * classes};
                        if (classes == 1) share_rows<1>(t, some, said, classes);
                        else share_rows<0>(t, some, said, classes);
                    }
            }
        });
    }

    // out (trees, rows, classes): the counts of all leaves that a row may be in; counts (nodes, classes). A tree that is skipped
    // (rows, trees) has those of its root.
    void pool(const Matrix<std::uint8_t>& codes, const Matrix<bool>& unknown, const double* counts, std::size_t classes, const bool* skip,
              double* out) const {
        const std::size_t trees = starts_.size() - 1;
        each_pooled(codes, unknown, counts, classes, [&](std::size_t row, std::size_t tree, Pooling& pooling) {
            while (!(skip && skip[row * trees + tree]) && pooling.descend()) {}
            std::copy_n(pooling.counts(), classes, out + (tree * codes.rows + row) * classes);
        });
    }

    // out (rows, columns, classes) += for every level of a tree, what it changes of e = log(N + sπ) − log π, less its mean over the
    // classes. The columns that rule out rows at a level share what it changes by how many they rule out.
    void share_pooled(const Matrix<std::uint8_t>& codes, const Matrix<bool>& unknown, const double* counts, const double* prior,
                      std::size_t classes, double smoothing, double* out) const {
        each_pooled(codes, unknown, counts, classes, [&](std::size_t row, std::size_t, Pooling& pooling) {
            std::vector<double> before(classes), after(classes);
            evidence(pooling.counts(), prior, classes, smoothing, before.data());
            while (pooling.descend()) {
                double total = 0.0;
                for (const auto& [column, rows] : pooling.ruled_out()) total += rows;
                if (total <= 0) continue;
                evidence(pooling.counts(), prior, classes, smoothing, after.data());
                for (const auto& [column, rows] : pooling.ruled_out())
                    for (std::size_t k = 0; k < classes; ++k)
                        out[(row * codes.columns + column) * classes + k] += rows / total * (after[k] - before[k]);
                before.swap(after);
            }
        });
    }

private:
    static constexpr std::size_t at_once = 8;

    static std::uint64_t bit(std::size_t column) { return std::uint64_t{1} << (column % 64); }

    static void evidence(const double* counts, const double* prior, std::size_t classes, double smoothing, double* out) {
        double mean = 0.0;
        for (std::size_t k = 0; k < classes; ++k) {
            out[k] = std::log(counts[k] + smoothing * prior[k]) - std::log(prior[k]);
            mean += out[k] / static_cast<double>(classes);
        }
        for (std::size_t k = 0; k < classes; ++k) out[k] -= mean;
    }

    // All nodes that a row may be at, level by level.
    class Pooling {
    public:
        Pooling(const Walk& walk, const double* counts, std::size_t classes) : walk_(walk), of_nodes_(counts), classes_(classes), done_(classes), counts_(classes) {}

        void start(std::size_t tree, const std::uint8_t* row, const bool* unknown, std::size_t columns) {
            row_ = row, unknown_ = unknown, root_ = static_cast<std::size_t>(walk_.starts_[tree]);
            known_ = 0;
            for (std::size_t j = 0; j < columns; ++j)
                if (!unknown[j]) known_ |= bit(j);
            std::fill(done_.begin(), done_.end(), 0.0);
            nodes_.assign(1, 0);
            sum();
        }
        const double* counts() const { return counts_.data(); }
        const std::vector<std::pair<std::size_t, double>>& ruled_out() const { return ruled_out_; }

        // One level down; false where no node asks for a column that is known.
        bool descend() {
            next_.clear(), ruled_out_.clear();
            for (const auto node : nodes_) {
                const std::size_t at = root_ + static_cast<std::size_t>(node);
                if (!(walk_.asked_[at] & known_)) {
                    add(done_, at);
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
            for (std::size_t k = 0; k < classes_; ++k) to[k] += of_nodes_[at * classes_ + k];
        }
        void sum() {
            counts_ = done_;
            for (const auto node : nodes_) add(counts_, root_ + static_cast<std::size_t>(node));
        }
        void rule_out(std::size_t column, std::size_t at) {
            double rows = 0.0;
            for (std::size_t k = 0; k < classes_; ++k) rows += of_nodes_[at * classes_ + k];
            for (auto& [known, total] : ruled_out_)
                if (known == column) {
                    total += rows;
                    return;
                }
            ruled_out_.push_back({column, rows});
        }

        const Walk& walk_;
        const double* of_nodes_;
        std::size_t classes_, root_ = 0;
        const std::uint8_t* row_ = nullptr;
        const bool* unknown_ = nullptr;
        std::uint64_t known_ = 0;  // the columns, as `bit` has them
        std::vector<std::int32_t> nodes_, next_;
        std::vector<double> done_, counts_;  // of nodes that no known column parts further; of all
        std::vector<std::pair<std::size_t, double>> ruled_out_;
    };

    template <class Body>
    void each_pooled(const Matrix<std::uint8_t>& codes, const Matrix<bool>& unknown, const double* counts, std::size_t classes,
                     const Body& body) const {
        const std::size_t trees = starts_.size() - 1;
        parallel(codes.rows, thread_count(codes.rows * trees, 1 << 8), [&](unsigned, std::size_t begin, std::size_t end) {
            Pooling pooling(*this, counts, classes);
            std::vector<std::uint8_t> row(codes.columns + 1);
            std::unique_ptr<bool[]> of_row(new bool[codes.columns + 1]);
            for (std::size_t i = begin; i < end; ++i) {
                for (std::size_t j = 0; j < codes.columns; ++j) row[j] = codes.at(i, j), of_row[j] = unknown.at(i, j);
                for (std::size_t t = 0; t < trees; ++t) {
                    pooling.start(t, row.data(), of_row.get(), codes.columns);
                    body(i, t, pooling);
                }
            }
        });
    }

    // A few rows, and where their shares are added up.
    struct Some {
        const std::uint8_t* rows;
        std::size_t width, n;
        double* out;
        std::size_t out_width;
    };

    template <std::size_t Classes>  // 0: as many as there are
    void share_rows(std::size_t tree, const Some& some, const double* said, std::size_t classes) const {
        const std::size_t each = Classes ? Classes : classes;
        const auto root = static_cast<std::size_t>(starts_[tree]);
        const Step* steps = &steps_[root];
        const double* of_tree = said + root * each;
        const std::uint8_t* row[at_once];
        double* out[at_once];
        for (std::size_t i = 0; i < some.n; ++i) row[i] = some.rows + i * some.width, out[i] = some.out + i * some.out_width;
        std::int32_t at[at_once] = {};
        for (std::int32_t change = 1; change;) {
            change = 0;
            for (std::size_t i = 0; i < some.n; ++i) {
                const Step step = steps[at[i]];
                const std::int32_t to = step.left + (static_cast<std::uint8_t>(row[i][step.column] - step.low) > step.span);
                const double* here = of_tree + static_cast<std::size_t>(at[i]) * each;
                const double* there = of_tree + static_cast<std::size_t>(to) * each;
                double* share = out[i] + step.column * each;
                for (std::size_t k = 0; k < each; ++k) share[k] += there[k] - here[k];  // a leaf leads to itself, and adds 0
                change |= to ^ at[i];
                at[i] = to;
            }
        }
    }

    void walk(std::size_t tree, const std::uint8_t* rows, std::size_t width, std::size_t n, std::int32_t* out, std::size_t trees) const {
        const Step* steps = &steps_[static_cast<std::size_t>(starts_[tree])];
        const std::uint8_t* row[at_once];
        for (std::size_t i = 0; i < at_once; ++i) row[i] = rows + (i < n ? i * width : 0);
        std::int32_t at[at_once] = {};
        for (bool moved = true; moved;) {
            std::int32_t change = 0;
            DECIBAN_UNROLL
            for (std::size_t i = 0; i < at_once; ++i) {
                const Step step = steps[at[i]];
                const std::int32_t to = step.left + (static_cast<std::uint8_t>(row[i][step.column] - step.low) > step.span);
                change |= to ^ at[i];
                at[i] = to;
            }
            moved = change != 0;
        }
        const std::int32_t* leaves = &leaves_[static_cast<std::size_t>(starts_[tree])];
        for (std::size_t i = 0; i < n; ++i) out[i * trees] = leaves[at[i]];
    }

    std::vector<Step> steps_;
    std::vector<std::int32_t> leaves_;  // which leaf, of those nodes that are leaves
    std::vector<std::uint64_t> asked_;  // the columns that a node and those below it ask for, as `bit` has them
    std::vector<std::int64_t> starts_;
};

}  // namespace deciban
