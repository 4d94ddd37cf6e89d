// Evidence of cells: e_k = log(N_k(v) + s π_k) − log π_k, centred over the classes.
// Without a row of class y and weight w, the count is N_y(v) − w out of n_y − w rows, rescaled to n_y rows.
#pragma once
#include <cmath>
#include <memory>

#include "tables.hpp"

namespace deciban {

// (N_k − w)·n_k/(n_k − w) + s π_k: the smoothed count without one row, rescaled to n_k rows.
DECIBAN_INLINE double leave_one_out_count(double count, double weight, double rows, double pseudo) {
    const double remaining = count - weight;
    return remaining > 0 ? remaining * rows / (rows - weight) + pseudo : pseudo;
}

class CellEvidence {
public:
    // counts (cells, classes), rows (classes) n_k. With fewer codes than cells, only the cells in use are filled.
    CellEvidence(const Matrix<std::int32_t>& codes, const std::int64_t* offsets, const double* counts,
                 const double* rows, std::size_t classes, double smoothing, const std::int32_t* labels,
                 const double* weights)
        : codes_(codes), offsets_(offsets), counts_(counts), rows_(rows), labels_(labels), weights_(weights),
          classes_(classes), pseudo_(classes), log_prior_(classes) {
        const auto cells = static_cast<std::size_t>(offsets[codes.columns]);
        double total = 0.0;
        for (std::size_t k = 0; k < classes; ++k) total += rows[k];
        for (std::size_t k = 0; k < classes; ++k)
            pseudo_[k] = smoothing * rows[k] / total, log_prior_[k] = std::log(rows[k] / total);
        const bool few_rows = codes.rows * codes.columns < cells;
        std::vector<std::uint8_t> used(few_rows ? cells : 0);
        if (few_rows)
            for (std::size_t i = 0; i < codes.rows; ++i)
                for (std::size_t j = 0; j < codes.columns; ++j)
                    if (has(i, j)) used[cell(i, j)] = 1;
        const bool many_rows = labels && !weights && codes.rows * codes.columns >= cells * classes;
        table_.reset(new double[std::max<std::size_t>(1, cells * classes)]);
        if (many_rows) changes_.reset(new double[std::max<std::size_t>(1, cells * classes)]);
        parallel(cells, thread_count(few_rows ? codes.rows * codes.columns * classes : cells * classes, 1 << 13),
                 [&](unsigned, std::size_t begin, std::size_t end) {
                     for (std::size_t v = begin; v < end; ++v) {
                         if (few_rows && !used[v]) continue;
                         fill(&table_[v * classes], counts + v * classes);
                         if (many_rows)
                             for (std::size_t k = 0; k < classes; ++k)
                                 changes_[v * classes + k] = log_change(v, k, 1.0);
                     }
                 });
    }

    std::size_t rows() const { return codes_.rows; }
    std::size_t columns() const { return codes_.columns; }
    std::size_t classes() const { return classes_; }
    bool leave_one_out() const { return labels_ != nullptr; }
    std::size_t label(std::size_t i) const { return static_cast<std::size_t>(labels_[i]); }
    bool has(std::size_t i, std::size_t j) const { return in_range(offsets_, j, codes_.at(i, j)); }
    std::size_t cell(std::size_t i, std::size_t j) const {
        return static_cast<std::size_t>(offsets_[j] + codes_.at(i, j));
    }
    const double* at(std::size_t v) const { return &table_[v * classes_]; }

    // The change of the log count of row i's class when row i is left out.
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
        return std::log(leave_one_out_count(count, weight, rows_[k], pseudo_[k]) / (count + pseudo_[k]));
    }

    Matrix<std::int32_t> codes_;
    const std::int64_t* offsets_;
    const double *counts_, *rows_;
    const std::int32_t* labels_;
    const double* weights_;
    std::size_t classes_;
    std::vector<double> pseudo_, log_prior_;
    std::unique_ptr<double[]> table_, changes_;  // (cells, classes); not zeroed: unused cells are never read
};

// out (rows, columns, classes)
template <class T>
void cell_evidence(const CellEvidence& evidence, T* out) {
    const std::size_t m = evidence.columns(), classes = evidence.classes();
    parallel(evidence.rows(), thread_count(evidence.rows() * m * classes, 1 << 15),
             [&](unsigned, std::size_t begin, std::size_t end) {
                 T* target = out + begin * m * classes;
                 for (std::size_t i = begin; i < end; ++i)
                     for (std::size_t j = 0; j < m; ++j, target += classes) {
                         if (!evidence.has(i, j)) {
                             std::fill_n(target, classes, T{0});
                             continue;
                         }
                         const std::size_t v = evidence.cell(i, j);
                         const double* e = evidence.at(v);
                         const double change = evidence.leave_one_out() ? evidence.change(i, v) : 0.0,
                                      shift = change / static_cast<double>(classes);
                         for (std::size_t k = 0; k < classes; ++k) target[k] = static_cast<T>(e[k] - shift);
                         if (evidence.leave_one_out())
                             target[evidence.label(i)] = static_cast<T>(e[evidence.label(i)] + (change - shift));
                     }
             });
}

// out (rows, classes): the mean over the columns that are in range and not skipped.
inline void mean_cell_evidence(const CellEvidence& evidence, const bool* skip, double* out) {
    const std::size_t m = evidence.columns(), classes = evidence.classes();
    parallel(evidence.rows(), thread_count(evidence.rows() * m * classes, 1 << 15),
             [&](unsigned, std::size_t begin, std::size_t end) {
                 for (std::size_t i = begin; i < end; ++i) {
                     double* target = out + i * classes;
                     std::fill_n(target, classes, 0.0);
                     std::size_t used_columns = 0;
                     double change = 0.0;
                     for (std::size_t j = 0; j < m; ++j) {
                         if ((skip && skip[i * m + j]) || !evidence.has(i, j)) continue;
                         const std::size_t v = evidence.cell(i, j);
                         const double* e = evidence.at(v);
                         for (std::size_t k = 0; k < classes; ++k) target[k] += e[k];
                         if (evidence.leave_one_out()) change += evidence.change(i, v);
                         ++used_columns;
                     }
                     if (!used_columns) continue;
                     if (evidence.leave_one_out()) {
                         const double shift = change / static_cast<double>(classes);
                         for (std::size_t k = 0; k < classes; ++k) target[k] -= shift;
                         target[evidence.label(i)] += change;
                     }
                     for (std::size_t k = 0; k < classes; ++k) target[k] /= static_cast<double>(used_columns);
                 }
             });
}

}  // namespace deciban
