// How much more two columns say together than one by one, each row being left out of what it is judged by.
#pragma once
#include <cmath>

#include "byte_rows.hpp"
#include "cell_evidence.hpp"

namespace deciban {

// With a_k = N_k(u) + s π_k, b_k and c_k alike of the other column and of the pair, the classes' probabilities are
// proportional to c_k for the pair and to a_k b_k / π_k for one column after the other; π_k, too, is that of the rows left. No log is taken but that of
// the quotient of the two.
class PairGains {
public:
    PairGains(const Matrix<std::uint8_t>& codes, const std::int32_t* sizes, const std::int32_t* labels, const double* weights,
              std::size_t classes, double smoothing)
        : columns_(codes.columns), classes_(classes), smoothing_(smoothing), sizes_(sizes, sizes + codes.columns),
          pseudo_(classes), inverse_(classes), of_class_(classes), margins_(codes.columns) {
        std::vector<std::uint32_t> order;
        if (weights) {
            order = canonical_order(ByteRows(codes), labels, weights);
            weights_ = in_order(weights, order);
        } else {
            order.resize(codes.rows);
            std::iota(order.begin(), order.end(), 0u);
        }
        labels_ = in_order(labels, order);
        rows_ = order.size();
        for (std::size_t i = 0; i < rows_; ++i) of_class_[static_cast<std::size_t>(labels_[i])] += weight(i);
        for (const double sum : of_class_) total_ += sum;
        for (std::size_t k = 0; k < classes; ++k) {
            if (of_class_[k] == 0) continue;  // its pseudo-counts are 0, and so it is left out of every sum
            const double prior = of_class_[k] / total_;
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

    void find(const std::int32_t* pairs, std::size_t n, double* gains) const {
        parallel(n, thread_count(n * std::max<std::size_t>(1, rows_), 1 << 14), [&](unsigned, std::size_t begin, std::size_t end) {
            Room room(classes_);
            for (std::size_t q = begin; q < end; ++q)
                gains[q] = total_ > 0 ? gain(static_cast<std::size_t>(pairs[2 * q]), static_cast<std::size_t>(pairs[2 * q + 1]), room) / total_ : 0.0;
        });
    }

private:
    struct Room {
        std::vector<double> table;            // (cell, class): N_k(u, v)
        std::vector<std::uint32_t> ends;      // of each cell, among the rows sorted by cell
        std::vector<std::int32_t> labels;     // of those rows
        std::vector<double> weights;
        std::vector<double> here, apart, after;  // of a cell, by class: N_k(u, v), a_k b_k / π_k, the sum of those from k on
        explicit Room(std::size_t classes) : here(classes), apart(classes), after(classes + 1) {}
    };

    double weight(std::size_t i) const { return weights_.empty() ? 1.0 : weights_[i]; }

    // A table is counted where there are rows enough to fill it; else rows are sorted by cell.
    double gain(std::size_t a, std::size_t b, Room& room) const {
        const auto across = static_cast<std::size_t>(sizes_[b]), cells = static_cast<std::size_t>(sizes_[a]) * across;
        const double *of_a = margins_[a].data(), *of_b = margins_[b].data();
        double sum = 0.0;
        if (cells * classes_ <= 2 * rows_) {
            count(a, b, cells, room);
            for (std::size_t cell = 0; cell < cells; ++cell)
                sum += gain_of_cell(of_a + cell / across * classes_, of_b + cell % across * classes_, &room.table[cell * classes_], room);
            return sum;
        }
        sort_rows(a, b, cells, room);
        std::uint32_t begin = 0;
        for (std::size_t cell = 0; cell < cells; ++cell) {
            const std::uint32_t end = room.ends[cell];
            if (begin == end) continue;
            std::fill(room.here.begin(), room.here.end(), 0.0);
            for (; begin < end; ++begin) room.here[static_cast<std::size_t>(room.labels[begin])] += weights_.empty() ? 1.0 : room.weights[begin];
            sum += gain_of_cell(of_a + cell / across * classes_, of_b + cell % across * classes_, room.here.data(), room);
        }
        return sum;
    }

    void count(std::size_t a, std::size_t b, std::size_t cells, Room& room) const {
        const std::uint8_t *first = &bytes_[a * rows_], *second = &bytes_[b * rows_];
        const auto across = static_cast<std::size_t>(sizes_[b]);
        room.table.assign(cells * classes_, 0.0);
        for (std::size_t i = 0; i < rows_; ++i)
            room.table[(first[i] * across + second[i]) * classes_ + static_cast<std::size_t>(labels_[i])] += weight(i);
    }

    void sort_rows(std::size_t a, std::size_t b, std::size_t cells, Room& room) const {
        const std::uint8_t *first = &bytes_[a * rows_], *second = &bytes_[b * rows_];
        const auto across = static_cast<std::size_t>(sizes_[b]);
        room.labels.resize(rows_), room.weights.resize(weights_.size());
        room.ends.assign(cells + 1, 0);
        for (std::size_t i = 0; i < rows_; ++i) ++room.ends[first[i] * across + second[i] + 1];
        for (std::size_t cell = 0; cell < cells; ++cell) room.ends[cell + 1] += room.ends[cell];
        for (std::size_t i = 0; i < rows_; ++i) {
            const std::uint32_t to = room.ends[first[i] * across + second[i]]++;
            room.labels[to] = labels_[i];
            if (!weights_.empty()) room.weights[to] = weights_[i];
        }
    }

    double gain_of_cell(const double* a, const double* b, const double* here, Room& room) const {
        double total = 0.0;
        for (std::size_t k = 0; k < classes_; ++k) total += here[k];
        if (!(total > 0)) return 0.0;
        for (std::size_t k = classes_; k-- > 0;) {
            room.apart[k] = (a[k] + pseudo_[k]) * (b[k] + pseudo_[k]) * inverse_[k];
            room.after[k] = room.after[k + 1] + room.apart[k];
        }
        double sum = 0.0, before = 0.0;
        for (std::size_t k = 0; k < classes_; before += room.apart[k++]) {
            const double n = here[k];
            if (!(n > 0)) continue;
            const double w = std::min(1.0, n);
            const double rows = of_class_[k], share = (rows - w) / rows;  // of the class, that is left
            if (!(share > 1e-9)) continue;                               // without its only row nothing is known of it
            const double own = share * left_out(a[k], w, rows, pseudo_[k]) * left_out(b[k], w, rows, pseudo_[k]) * inverse_[k];
            const double apart = own / (before + own + room.after[k + 1]);
            const double here_own = share * left_out(n, w, rows, pseudo_[k]);
            const double together = here_own / (total - n + smoothing_ - pseudo_[k] + here_own);
            sum += n * std::log(together / apart);
        }
        return sum;
    }

    std::size_t columns_, rows_ = 0, classes_;
    double smoothing_, total_ = 0.0;
    std::vector<std::int32_t> sizes_, labels_;
    std::vector<double> weights_, pseudo_, inverse_, of_class_;  // of rows; of classes s π_k, 1 / π_k and n_k
    std::vector<std::uint8_t> bytes_;                 // (column, row)
    std::vector<std::vector<double>> margins_;        // of each column (code, class): N_k
};

}  // namespace deciban
