// Leave-one-out gain of the joint evidence of two columns over the sum of their separate evidence.
#pragma once
#include <cmath>

#include "byte_rows.hpp"
#include "cell_evidence.hpp"

namespace deciban {

// With a_k = N_k(u) + s π_k, and b_k and c_k likewise for the other column and for the pair, the class probabilities
// are proportional to c_k for the pair and to a_k b_k / π_k for the two columns separately, with π_k of the remaining
// rows. The only log is that of their quotient.
class PairGains {
public:
    PairGains(const Matrix<std::uint8_t>& codes, const std::int32_t* sizes, const std::int32_t* labels,
              const double* weights, std::size_t classes, double smoothing)
        : columns_(codes.columns), classes_(classes), smoothing_(smoothing), sizes_(sizes, sizes + codes.columns),
          pseudo_(classes), inverse_(classes), class_weight_(classes), margins_(codes.columns) {
        std::vector<std::uint32_t> order;
        if (weights) {
            order = canonical_order(ByteRows(codes), labels, weights);
            weights_ = permuted(weights, order);
        } else {
            order.resize(codes.rows);
            std::iota(order.begin(), order.end(), 0u);
        }
        labels_ = permuted(labels, order);
        rows_ = order.size();
        for (std::size_t i = 0; i < rows_; ++i) class_weight_[static_cast<std::size_t>(labels_[i])] += weight(i);
        for (const double sum : class_weight_) total_ += sum;
        for (std::size_t k = 0; k < classes; ++k) {
            if (class_weight_[k] == 0) continue;  // its pseudo-counts stay 0, so it drops out of every sum
            const double prior = class_weight_[k] / total_;
            pseudo_[k] = smoothing * prior;
            inverse_[k] = 1 / prior;
        }
        bytes_.resize(columns_ * rows_);
        parallel(columns_, thread_count(columns_ * rows_, 1 << 16), [&](unsigned, std::size_t begin, std::size_t end) {
            for (std::size_t j = begin; j < end; ++j) {
                auto& margin = margins_[j];
                margin.assign(static_cast<std::size_t>(sizes_[j]) * classes, 0.0);
                for (std::size_t i = 0; i < rows_; ++i) {
                    const std::uint8_t code = codes.at(order[i], j);
                    bytes_[j * rows_ + i] = code;
                    margin[code * classes + static_cast<std::size_t>(labels_[i])] += weight(i);
                }
            }
        });
    }

    void compute(const std::int32_t* pairs, std::size_t n, double* gains) const {
        parallel(n, thread_count(n * std::max<std::size_t>(1, rows_), 1 << 14),
                 [&](unsigned, std::size_t begin, std::size_t end) {
                     Scratch scratch(classes_);
                     for (std::size_t q = begin; q < end; ++q)
                         gains[q] = total_ > 0 ? gain(static_cast<std::size_t>(pairs[2 * q]),
                                                      static_cast<std::size_t>(pairs[2 * q + 1]), scratch) /
                                                     total_
                                               : 0.0;
                 });
    }

private:
    struct Scratch {
        std::vector<double> table;            // (cell, class): N_k(u, v)
        std::vector<std::uint32_t> ends;      // (cell) ends among the rows sorted by cell
        std::vector<std::int32_t> labels;     // of the sorted rows
        std::vector<double> weights;
        std::vector<double> counts, separate, suffix;  // (class) N_k(u, v), a_k b_k / π_k, and its suffix sums
        explicit Scratch(std::size_t classes) : counts(classes), separate(classes), suffix(classes + 1) {}
    };

    double weight(std::size_t i) const { return weights_.empty() ? 1.0 : weights_[i]; }

    // With enough rows a table is counted, otherwise rows are sorted by cell.
    double gain(std::size_t a, std::size_t b, Scratch& scratch) const {
        const auto width = static_cast<std::size_t>(sizes_[b]), cells = static_cast<std::size_t>(sizes_[a]) * width;
        const double *margin_a = margins_[a].data(), *margin_b = margins_[b].data();
        double sum = 0.0;
        if (cells * classes_ <= 2 * rows_) {
            count(a, b, cells, scratch);
            for (std::size_t cell = 0; cell < cells; ++cell)
                sum += cell_gain(margin_a + cell / width * classes_, margin_b + cell % width * classes_,
                                 &scratch.table[cell * classes_], scratch);
            return sum;
        }
        sort_rows(a, b, cells, scratch);
        std::uint32_t begin = 0;
        for (std::size_t cell = 0; cell < cells; ++cell) {
            const std::uint32_t end = scratch.ends[cell];
            if (begin == end) continue;
            std::fill(scratch.counts.begin(), scratch.counts.end(), 0.0);
            for (; begin < end; ++begin)
                scratch.counts[static_cast<std::size_t>(scratch.labels[begin])] +=
                    weights_.empty() ? 1.0 : scratch.weights[begin];
            sum += cell_gain(margin_a + cell / width * classes_, margin_b + cell % width * classes_,
                             scratch.counts.data(), scratch);
        }
        return sum;
    }

    void count(std::size_t a, std::size_t b, std::size_t cells, Scratch& scratch) const {
        const std::uint8_t *first = &bytes_[a * rows_], *second = &bytes_[b * rows_];
        const auto width = static_cast<std::size_t>(sizes_[b]);
        scratch.table.assign(cells * classes_, 0.0);
        for (std::size_t i = 0; i < rows_; ++i)
            scratch.table[(first[i] * width + second[i]) * classes_ + static_cast<std::size_t>(labels_[i])] +=
                weight(i);
    }

    void sort_rows(std::size_t a, std::size_t b, std::size_t cells, Scratch& scratch) const {
        const std::uint8_t *first = &bytes_[a * rows_], *second = &bytes_[b * rows_];
        const auto width = static_cast<std::size_t>(sizes_[b]);
        scratch.labels.resize(rows_), scratch.weights.resize(weights_.size());
        scratch.ends.assign(cells + 1, 0);
        for (std::size_t i = 0; i < rows_; ++i) ++scratch.ends[first[i] * width + second[i] + 1];
        for (std::size_t cell = 0; cell < cells; ++cell) scratch.ends[cell + 1] += scratch.ends[cell];
        for (std::size_t i = 0; i < rows_; ++i) {
            const std::uint32_t to = scratch.ends[first[i] * width + second[i]]++;
            scratch.labels[to] = labels_[i];
            if (!weights_.empty()) scratch.weights[to] = weights_[i];
        }
    }

    double cell_gain(const double* a, const double* b, const double* counts, Scratch& scratch) const {
        double total = 0.0;
        for (std::size_t k = 0; k < classes_; ++k) total += counts[k];
        if (!(total > 0)) return 0.0;
        for (std::size_t k = classes_; k-- > 0;) {
            scratch.separate[k] = (a[k] + pseudo_[k]) * (b[k] + pseudo_[k]) * inverse_[k];
            scratch.suffix[k] = scratch.suffix[k + 1] + scratch.separate[k];
        }
        double sum = 0.0, before = 0.0;
        for (std::size_t k = 0; k < classes_; before += scratch.separate[k++]) {
            const double n = counts[k];
            if (!(n > 0)) continue;
            const double w = std::min(1.0, n);
            const double rows = class_weight_[k], share = (rows - w) / rows;  // remaining share of the class
            if (!(share > 1e-9)) continue;                               // its only row
            const double own = share * leave_one_out_count(a[k], w, rows, pseudo_[k]) *
                               leave_one_out_count(b[k], w, rows, pseudo_[k]) * inverse_[k];
            const double separate = own / (before + own + scratch.suffix[k + 1]);
            const double own_pair = share * leave_one_out_count(n, w, rows, pseudo_[k]);
            const double joint = own_pair / (total - n + smoothing_ - pseudo_[k] + own_pair);
            sum += n * std::log(joint / separate);
        }
        return sum;
    }

    std::size_t columns_, rows_ = 0, classes_;
    double smoothing_, total_ = 0.0;
    std::vector<std::int32_t> sizes_, labels_;
    std::vector<double> weights_, pseudo_, inverse_, class_weight_;  // (row); (class) s π_k, 1 / π_k, n_k
    std::vector<std::uint8_t> bytes_;                 // (column, row)
    std::vector<std::vector<double>> margins_;        // per column (code, class): N_k
};

}  // namespace deciban
