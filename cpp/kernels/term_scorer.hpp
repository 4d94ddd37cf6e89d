// Scores of documents in several columns by tables of terms, which are read from bytes: what a mail filter needs.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "softmax.hpp"
#include "tokens.hpp"

namespace deciban {

// A fingerprint of 128 bits, to find an entry of a cache. It is not cryptographic.
inline std::array<std::uint64_t, 2> fingerprint(const char* bytes, std::size_t size) {
    std::array<std::uint64_t, 2> hash{0x9E3779B97F4A7C15u ^ size, 0xD6E8FEB86659FD93u + size};
    for (std::size_t at = 0; at < size; at += 16) {
        std::uint64_t words[2] = {0, 0};
        std::memcpy(words, bytes + at, std::min<std::size_t>(16, size - at));
        hash[0] = mix_product(hash[0] ^ words[0], words[1] ^ 0xA0761D6478BD642Fu) ^ hash[0] << 1;
        hash[1] = mix_product(hash[1] ^ words[1], words[0] ^ 0xE7037ED1A0B428DBu) ^ hash[1] << 1;
    }
    return hash;
}

// Reads numbers and text from bytes that may be damaged: a length is checked before anything is allocated for it.
class ByteReader {
public:
    ByteReader(const char* at, std::size_t size) : at_(at), left_(size) {}

    std::uint64_t number() {
        std::uint64_t value;
        std::memcpy(&value, take(8), 8);
        return value;
    }

    // A number of things of which each takes at least `bytes`.
    std::size_t count(std::size_t bytes) {
        const std::uint64_t n = number();
        if (n > left_ / bytes) throw std::invalid_argument("tables: a length is beyond the end");
        return static_cast<std::size_t>(n);
    }

    std::string text() {
        const std::size_t size = count(1);
        return {take(size), size};
    }

    template <class T>
    std::vector<T> array(std::size_t n) {
        if (n > left_ / sizeof(T)) throw std::invalid_argument("tables: an array is beyond the end");
        std::vector<T> values(n);
        if (n) std::memcpy(values.data(), take(n * sizeof(T)), n * sizeof(T));
        return values;
    }

    void expect_end() const {
        if (left_) throw std::invalid_argument("tables: there are bytes after the end");
    }

private:
    const char* at_;
    std::size_t left_;

    const char* take(std::size_t n) {
        if (n > left_) throw std::invalid_argument("tables: they end too early");
        const char* const here = at_;
        at_ += n;
        left_ -= n;
        return here;
    }
};

// The best class of a document, its probability, and its lead over the runner-up in nats.
struct BestClass {
    std::size_t label;
    double probability, nats;
};

// z = start + Σ_tables (absent + Σ_t evidence[t] + Σ_distinct t once[t]) over the terms t of the table's columns. With
// a prior share ε, scores become log ((1 − ε)·softmax(z) + ε·prior).
//
// The bytes hold 64-bit numbers in the machine's order: columns, each by name; classes, each by name; start (K),
// log prior (K), ε; columns without which a document is not scored; tables, each with columns, options of the tokenizer
// (6), terms (V), the length of their text, the ends of the terms (V), evidence (V, K), once (V, K), absent (K), and
// the text.
class TermScorer {
public:
    TermScorer(const char* bytes, std::size_t size) {
        ByteReader reader(bytes, size);
        for (std::size_t n = reader.count(8); n; --n) columns.push_back(reader.text());
        for (std::size_t n = reader.count(8); n; --n) classes.push_back(reader.text());
        const std::size_t k = classes.size();
        if (k < 2) throw std::invalid_argument("tables: there must be at least two classes");
        start_ = reader.array<double>(k);
        log_prior_ = reader.array<double>(k);
        share_ = reader.array<double>(1)[0];
        needed_ = reader.array<std::uint64_t>(reader.count(8));
        expect_columns(needed_, columns.size());
        for (std::size_t n = reader.count(8); n; --n) tables_.push_back(std::make_unique<Table>(reader, columns, k));
        reader.expect_end();
    }
    TermScorer(const TermScorer&) = delete;
    TermScorer& operator=(const TermScorer&) = delete;

    std::vector<std::string> columns, classes;

    // The documents have the columns of the tables.
    std::vector<BestClass> best(const Documents& documents) const {
        const std::size_t k = classes.size();
        std::vector<double> scores(documents.rows * k);
        for_each_document(
            documents, threads_for(documents), [&](unsigned) { return std::make_unique<Worker>(tables_, k); },
            [&](std::unique_ptr<Worker>& worker, std::size_t row) {
                worker->score(documents, row, start_, &scores[row * k]);
            });
        limit(scores);
        std::vector<double> p = scores;
        normalise(p.data(), documents.rows, k, log_prior_.data(), false);
        std::vector<BestClass> best(documents.rows);
        for (std::size_t row = 0; row < documents.rows; ++row) {
            const double *of = &p[row * k], *z = &scores[row * k];
            const std::size_t label = std::max_element(of, of + k) - of;
            std::size_t other = label ? 0 : 1;
            for (std::size_t c = 0; c < k; ++c)
                if (c != label && z[c] > z[other]) other = c;
            best[row] = {label, of[label], z[label] - z[other]};
        }
        return best;
    }

    // Whether a document has all the columns without which its weights would be others.
    bool scores(const Documents& documents, std::size_t row) const {
        for (const auto column : needed_)
            if (documents.spans[3 * (row * documents.columns + column) + 2] < 0) return false;
        return true;
    }

private:
    static void expect_columns(const std::vector<std::uint64_t>& columns, std::size_t n) {
        for (const auto column : columns)
            if (column >= n) throw std::invalid_argument("tables: there is no such column");
    }

    struct Table {
        std::vector<std::uint64_t> columns;
        TokenizerOptions options;
        std::unique_ptr<Vocabulary> vocabulary;
        std::size_t width;  // of a row of evidence: K for every occurrence, then K for the first one
        std::vector<double> evidence;  // (V, width)
        std::vector<double> absent;  // (K)

        Table(ByteReader& reader, const std::vector<std::string>& names, std::size_t k) {
            columns = reader.array<std::uint64_t>(reader.count(8));
            expect_columns(columns, names.size());
            const auto cut = reader.array<std::uint64_t>(6);
            if (cut[0] < 1 || cut[2] < 1 || cut[1] > MAX_NGRAM || cut[3] > MAX_NGRAM || cut[5] > 31)
                throw std::invalid_argument("tables: terms cannot be cut in this way");
            options = {cut[0], cut[1], cut[2], cut[3], cut[4] != 0, static_cast<unsigned>(cut[5])};
            const std::size_t n = reader.count(8 + 8 * k);
            const std::uint64_t text_bytes = reader.number(), parts = reader.number();
            const auto ends = reader.array<std::int64_t>(n);
            const auto often = reader.array<double>(parts & 1 ? n * k : 0);
            const auto once = reader.array<double>(parts & 2 ? n * k : 0);
            absent = reader.array<double>(k);
            const auto text = reader.array<char>(text_bytes);
            std::int64_t before = 0;
            for (const std::int64_t end : ends) {
                if (end < before) throw std::invalid_argument("tables: the ends of terms are not ascending");
                before = end;
            }
            if (static_cast<std::uint64_t>(before) != text_bytes)
                throw std::invalid_argument("tables: the ends of terms do not fit their text");
            vocabulary = std::make_unique<Vocabulary>(text.data(), ends.data(), n);
            width = 2 * k;
            evidence.assign(n * width, 0.0);
            for (std::size_t t = 0; t < n; ++t)
                for (std::size_t c = 0; c < k; ++c) {
                    if (!often.empty()) evidence[t * width + c] = often[t * k + c];
                    if (!once.empty()) evidence[t * width + k + c] = once[t * k + c];
                }
        }
    };
    using Tables = std::vector<std::unique_ptr<Table>>;

    // Adds the evidence of the terms of one document and one table.
    class Sink {
    public:
        explicit Sink(const Tables& tables, std::size_t k) : k_(k), sums_(2 * k) {
            for (const auto& table : tables) last_.emplace_back(table->vocabulary->size(), 0);
        }

        void start(const Table& table, std::size_t index) {
            table_ = &table;
            last_of_table_ = last_[index].data();
            std::fill(sums_.begin(), sums_.end(), 0.0);
        }

        void next_document() { ++document_; }

        void operator()(const Term* terms, std::size_t n) {
            const TermTable& index = table_->vocabulary->table();
            std::uint32_t ids[QUEUE];
            for (std::size_t i = 0; i < n; ++i) index.fetch(terms[i]);
            for (std::size_t i = 0; i < n; ++i) {
                const std::uint32_t id = index.probe(terms[i]);
                if (id != TermTable::NONE) prefetch(&table_->evidence[id * table_->width]);
            }
            for (std::size_t i = 0; i < n; ++i) ids[i] = index.find(terms[i]);
            for (std::size_t i = 0; i < n; ++i) {
                if (ids[i] == TermTable::NONE) continue;
                const double* row = &table_->evidence[ids[i] * table_->width];
                const bool again = last_of_table_[ids[i]] == document_;
                last_of_table_[ids[i]] = document_;
                const std::size_t used = again ? k_ : 2 * k_;
                for (std::size_t c = 0; c < used; ++c) sums_[c] += row[c];
            }
        }

        void finish(double* z) const {
            for (std::size_t c = 0; c < k_; ++c) z[c] += sums_[c] + sums_[k_ + c];
        }

    private:
        std::size_t k_;
        std::vector<double> sums_;
        std::vector<std::vector<std::uint32_t>> last_;  // of each table, the last document with a term
        std::uint32_t* last_of_table_ = nullptr;
        std::uint32_t document_ = 0;
        const Table* table_ = nullptr;
    };

    // What a thread needs: it keeps its address, since tokenizers refer to the sink.
    class Worker {
    public:
        Worker(const Tables& tables, std::size_t k) : tables_(tables), sink_(tables, k) {
            for (const auto& table : tables) {
                std::size_t same = 0;
                while (!same_options(tables[same]->options, table->options)) ++same;
                tokenizer_of_.push_back(tables[same] == table ? tokenizers_.size() : tokenizer_of_[same]);
                if (tables[same] == table)
                    tokenizers_.push_back(std::make_unique<Tokenizer<Sink>>(table->options, sink_));
            }
        }

        void score(const Documents& documents, std::size_t row, const std::vector<double>& start, double* z) {
            std::copy(start.begin(), start.end(), z);
            sink_.next_document();
            for (std::size_t i = 0; i < tables_.size(); ++i) {
                const Table& table = *tables_[i];
                bool present = false;
                sink_.start(table, i);
                for (const auto column : table.columns) {
                    const std::int64_t* span = documents.spans + 3 * (row * documents.columns + column);
                    if (span[2] < 0) continue;
                    present = true;
                    const char* at = documents.buffers[span[0]] + span[1];
                    tokenizers_[tokenizer_of_[i]]->add_text(at, at + span[2]);
                }
                if (!present) continue;
                for (std::size_t c = 0; c < start.size(); ++c) z[c] += table.absent[c];
                sink_.finish(z);
            }
        }

    private:
        const Tables& tables_;
        Sink sink_;
        std::vector<std::unique_ptr<Tokenizer<Sink>>> tokenizers_;  // one for each kind of terms
        std::vector<std::size_t> tokenizer_of_;

        static bool same_options(const TokenizerOptions& a, const TokenizerOptions& b) {
            return a.min_words == b.min_words && a.max_words == b.max_words && a.min_characters == b.min_characters &&
                   a.max_characters == b.max_characters && a.shapes == b.shapes && a.hash_bits == b.hash_bits;
        }
    };

    std::vector<double> start_, log_prior_;
    double share_ = 0.0;
    std::vector<std::uint64_t> needed_;
    Tables tables_;

    void limit(std::vector<double>& scores) const {
        if (share_ == 0.0) return;
        const std::size_t k = classes.size();
        normalise(scores.data(), scores.size() / k, k, log_prior_.data(), false);
        for (std::size_t i = 0; i < scores.size(); ++i)
            scores[i] = std::log(scores[i] * (1.0 - share_) + share_ * std::exp(log_prior_[i % k]));
    }
};

}  // namespace deciban
