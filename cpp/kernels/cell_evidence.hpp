// Weights of evidence of cells: e_k = log(N_k(v) + s π_k) − log π_k, less the mean over the classes.
// Of a row of class y that is left out, with weight w, N_y(v) − w are counted among n_y − w rows: they are put in proportion to n_y.
#pragma once
#include <cmath>
#include <memory>

#include "tables.hpp"

namespace deciban {

// (N_k − w)·n_k/(n_k − w) + s π_k: what is left of a cell without a row, as if there were as many rows of the class as before.
DECIBAN_INLINE double left_out(double count, double weight, double rows, double pseudo) {
    const double left = count - weight;
    return left > 0 ? left * rows / (rows - weight) + pseudo : pseudo;
}

class CellEvidence {
public:
    // counts (cells, classes), rows (classes) n_k. Few codes occupy few cells: then logs are taken of those only.
    CellEvidence(const Matrix<std::int32_t>& codes, const std::int64_t* offsets, const double* counts, const double* rows,
                 std::size_t classes, double smoothing, const std::int32_t* labels, const double* weights)
        : codes_(codes), offsets_(offsets), counts_(counts), rows_(rows), labels_(labels), weights_(weights), classes_(classes),
          pseudo_(classes), log_prior_(classes) {
        const auto cells = static_cast<std::size_t>(offsets[codes.columns]);
        double total = 0.0;
        for (std::size_t k = 0; k < classes; ++k) total += rows[k];
        for (std::size_t k = 0; k < classes; ++k) pseudo_[k] = smoothing * rows[k] / total, log_prior_[k] = std::log(rows[k] / total);
        const bool few = codes.rows * codes.columns < cells;
        std::vector<std::uint8_t> used(few ? cells : 0);
        if (few)
            for (std::size_t i = 0; i < codes.rows; ++i)
                for (std::size_t j = 0; j < codes.columns; ++j)
                    if (has(i, j)) used[cell(i, j)] = 1;
        const bool many = labels && !weights && codes.rows * codes.columns >= cells * classes;
        table_.reset(new double[std::max<std::size_t>(1, cells * classes)]);
        if (many) changes_.reset(new double[std::max<std::size_t>(1, cells * classes)]);
        parallel(cells, thread_count(few ? codes.rows * codes.columns * classes : cells * classes, 1 << 13), [&](unsigned, std::size_t begin, std::size_t end) {
            for (std::size_t v = begin; v < end; ++v) {
                if (few && !used[v]) continue;
                fill(&table_[v * classes], counts + v * classes);
                if (many)
                    for (std::size_t k = 0; k < classes; ++k) changes_[v * classes + k] = log_change(v, k, 1.0);
            }
        });
    }

    std::size_t rows() const { return codes_.rows; }
    std::size_t columns() const { return codes_.columns; }
    std::size_t classes() const { return classes_; }
    bool leaves_out() const { return labels_ != nullptr; }
    std::size_t label(std::size_t i) const { return static_cast<std::size_t>(labels_[i]); }
    bool has(std::size_t i, std::size_t j) const { return holds(offsets_, j, codes_.at(i, j)); }
    std::size_t cell(std::size_t i, std::size_t j) const { return static_cast<std::size_t>(offsets_[j] + codes_.at(i, j)); }
    const double* of(std::size_t v) const { return &table_[v * classes_]; }

    // What leaving row i out of its own class adds to the log of that class.
    double change(std::size_t i, std::size_t v) const {
        if (changes_) return changes_[v * classes_ + label(i)];
        return log_change(v, label(i), weights_ ? weights_[i] : 1.0);
    }

private:
    void fill(double* e, const double* counts) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < classes_; ++k) {
            e[k] = std::log(counts[k] + pseudo_[k]) - log_prior_[k];
            sum += e[k];
        }
        const double mean = sum / static_cast<double>(classes_);
        for (std::size_t k = 0; k < classes_; ++k) e[k] -= mean;
    }
    double log_change(std::size_t v, std::size_t k, double weight) const {
        const double count = counts_[v * classes_ + k];
        return std::log(left_out(count, weight, rows_[k], pseudo_[k]) / (count + pseudo_[k]));
    }

    Matrix<std::int32_t> codes_;
    const std::int64_t* offsets_;
    const double *counts_, *rows_;
    const std::int32_t* labels_;
    const double* weights_;
    std::size_t classes_;
    std::vector<double> pseudo_, log_prior_;
    std::unique_ptr<double[]> table_, changes_;  // (cells, classes); not zeroed: cells that do not occur are never read
};

// out (rows, columns, classes)
template <class T>
void cell_evidence(const CellEvidence& evidence, T* out) {
    const std::size_t m = evidence.columns(), classes = evidence.classes();
    parallel(evidence.rows(), thread_count(evidence.rows() * m * classes, 1 << 15), [&](unsigned, std::size_t begin, std::size_t end) {
        T* to = out + begin * m * classes;
        for (std::size_t i = begin; i < end; ++i)
            for (std::size_t j = 0; j < m; ++j, to += classes) {
                if (!evidence.has(i, j)) {
                    std::fill_n(to, classes, T{0});
                    continue;
                }
                const std::size_t v = evidence.cell(i, j);
                const double* e = evidence.of(v);
                const double change = evidence.leaves_out() ? evidence.change(i, v) : 0.0, shift = change / static_cast<double>(classes);
                for (std::size_t k = 0; k < classes; ++k) to[k] = static_cast<T>(e[k] - shift);
                if (evidence.leaves_out()) to[evidence.label(i)] = static_cast<T>(e[evidence.label(i)] + (change - shift));
            }
    });
}

// out (rows, classes): the mean over the columns that are there and not skipped.
inline void mean_cell_evidence(const CellEvidence& evidence, const bool* skip, double* out) {
    const std::size_t m = evidence.columns(), classes = evidence.classes();
    parallel(evidence.rows(), thread_count(evidence.rows() * m * classes, 1 << 15), [&](unsigned, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            double* to = out + i * classes;
            std::fill_n(to, classes, 0.0);
            std::size_t taken = 0;
            double change = 0.0;
            for (std::size_t j = 0; j < m; ++j) {
                if ((skip && skip[i * m + j]) || !evidence.has(i, j)) continue;
                const std::size_t v = evidence.cell(i, j);
                const double* e = evidence.of(v);
                for (std::size_t k = 0; k < classes; ++k) to[k] += e[k];
                if (evidence.leaves_out()) change += evidence.change(i, v);
                ++taken;
            }
            if (!taken) continue;
            if (evidence.leaves_out()) {
                const double shift = change / static_cast<double>(classes);
                for (std::size_t k = 0; k < classes; ++k) to[k] -= shift;
                to[evidence.label(i)] += change;
            }
            for (std::size_t k = 0; k < classes; ++k) to[k] /= static_cast<double>(taken);
        }
    });
}

}  // namespace deciban
