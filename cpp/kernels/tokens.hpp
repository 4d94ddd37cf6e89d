// Terms of documents: counted by class, looked up and scored.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "terms.hpp"

namespace deciban {

constexpr std::size_t DOCUMENTS_PER_RUN = 64;  // documents that a thread takes at once
constexpr std::size_t MIN_BYTES_PER_THREAD = 1 << 16;  // of text

// Documents in buffers: column j of row i is `length` bytes from `start` of a buffer, or missing if length < 0.
struct Documents {
    const char* const* buffers;
    const std::int64_t* spans;  // (rows, columns, 3) buffer, start, length
    std::size_t rows, columns;

    template <class AnyTokenizer>
    void tokenize_row(std::size_t row, AnyTokenizer& tokenizer) const {
        for (std::size_t j = 0; j < columns; ++j) {
            const std::int64_t* span = spans + 3 * (row * columns + j);
            if (span[2] < 0) continue;
            const char* at = buffers[span[0]] + span[1];
            tokenizer.add_text(at, at + span[2]);
        }
    }

    std::size_t bytes() const {
        std::size_t total = 0;
        for (std::size_t i = 0; i < rows * columns; ++i) total += std::max<std::int64_t>(spans[3 * i + 2], 0);
        return total;
    }
};

inline unsigned threads_for(const Documents& documents) {
    return thread_count(documents.bytes(), MIN_BYTES_PER_THREAD);
}

// Calls each(worker, row), with one worker per thread; idle threads take the next run of documents.
template <class Make, class Each>
void for_each_document(const Documents& documents, unsigned threads, const Make& make, const Each& each) {
    std::atomic<std::size_t> next{0};
    parallel(threads, threads, [&](unsigned part, std::size_t, std::size_t) {
        auto worker = make(part);
        for (;;) {
            const std::size_t begin = next.fetch_add(DOCUMENTS_PER_RUN),
                              end = std::min(begin + DOCUMENTS_PER_RUN, documents.rows);
            if (begin >= documents.rows) return;
            for (std::size_t row = begin; row < end; ++row) each(worker, row);
        }
    });
}

// Numbers terms by an open-addressing hash table whose slots hold 32 bits of the hash beside the number.
class TermTable {
public:
    static constexpr std::uint32_t NONE = 0xFFFFFFFF;

    explicit TermTable(std::size_t expected = 1 << 10) {
        std::size_t size = 1 << 11;
        while (size < 2 * expected) size *= 2;
        slots_.assign(size, 0);
    }

    std::size_t size() const { return records_.size(); }
    const char* begin(std::size_t id) const { return text_.data() + (records_[id].where >> 16); }
    std::size_t length(std::size_t id) const { return (records_[id].where & 0x7FFF) + gram(id); }
    std::size_t bytes() const { return text_.size(); }

    // The term without readable bytes beyond its end.
    Term operator[](std::size_t id) const {
        return {begin(id) + gram(id), static_cast<std::uint32_t>(records_[id].where & 0x7FFF), gram(id),
                records_[id].head, hashes_[id]};
    }

    void fetch(const Term& term) const { prefetch(&slots_[term.hash & (slots_.size() - 1)]); }

    // The likely number of a term; prefetches its record.
    std::uint32_t probe(const Term& term) const {
        const auto id = static_cast<std::uint32_t>(slots_[term.hash & (slots_.size() - 1)]) - 1;
        if (id != NONE) prefetch(&records_[id]);
        return id;
    }

    std::uint32_t find(const Term& term) const {
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t i = term.hash & mask;; i = (i + 1) & mask) {
            const std::uint64_t slot = slots_[i];
            if (!slot) return NONE;
            if (slot >> 32 == term.hash >> 32 && same(static_cast<std::uint32_t>(slot) - 1, term))
                return static_cast<std::uint32_t>(slot) - 1;
        }
    }

    std::uint32_t find_or_add(const Term& term) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t i = term.hash & mask;
        for (; slots_[i]; i = (i + 1) & mask)
            if (slots_[i] >> 32 == term.hash >> 32 && same(static_cast<std::uint32_t>(slots_[i]) - 1, term))
                return static_cast<std::uint32_t>(slots_[i]) - 1;
        const std::size_t id = records_.size();
        if (id >= NONE - 1) throw std::length_error("there are too many terms: use hash_bits");
        records_.push_back({term.head, std::uint64_t{text_.size()} << 16 | std::uint64_t{term.gram} << 15 | term.size});
        if (term.gram) text_.push_back('~');
        text_.insert(text_.end(), term.at, term.at + term.size);
        hashes_.push_back(term.hash);
        slots_[i] = term.hash >> 32 << 32 | (id + 1);
        if (2 * records_.size() > slots_.size()) grow();
        return static_cast<std::uint32_t>(id);
    }

private:
    struct Record {
        std::uint64_t head;  // the first eight bytes
        std::uint64_t where;  // 48 bits position in the text, 1 bit character n-gram, 15 bits size
    };

    std::vector<std::uint64_t> slots_;  // upper half of the hash, and number + 1; 0: free
    std::vector<Record> records_;
    std::vector<char> text_;
    std::vector<std::uint64_t> hashes_;

    bool gram(std::size_t id) const { return records_[id].where >> 15 & 1; }

    bool same(std::uint32_t id, const Term& term) const {
        const Record& record = records_[id];
        if (record.head != term.head || (record.where & 0xFFFF) != (std::uint64_t{term.gram} << 15 | term.size))
            return false;
        return term.size <= 8 || !std::memcmp(begin(id) + term.gram + 8, term.at + 8, term.size - 8);
    }

    void grow() {
        std::vector<std::uint64_t> slots(2 * slots_.size(), 0);
        const std::size_t mask = slots.size() - 1;
        for (std::size_t id = 0; id < records_.size(); ++id) {
            std::size_t i = hashes_[id] & mask;
            while (slots[i]) i = (i + 1) & mask;
            slots[i] = hashes_[id] >> 32 << 32 | (id + 1);
        }
        slots_.swap(slots);
    }
};

// Occurrences of each term in each class, or, if binary, documents that contain it.
class TermCounts {
public:
    TermCounts(std::size_t classes, bool binary) : classes_(classes), binary_(binary) {}

    TermTable table;

    void start(std::size_t label) {
        label_ = label;
        ++document_;
    }

    void operator()(const Term* terms, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) table.fetch(terms[i]);
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t id = table.probe(terms[i]);
            if (std::size_t{id} * classes_ < counts_.size())
                prefetch<true>(&counts_[std::size_t{id} * classes_ + label_]);
        }
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t id = table.find_or_add(terms[i]);
            if (std::size_t{id} * classes_ >= counts_.size()) grow(id);
            if (binary_) {
                if (last_[id] == document_) continue;
                last_[id] = document_;
            }
            counts_[id * classes_ + label_] += 1;
        }
    }

    void add(const TermCounts& other) {
        for (std::size_t id = 0; id < other.table.size(); ++id) {
            const auto own_id = table.find_or_add(other.table[id]);
            if (own_id * classes_ >= counts_.size()) grow(own_id);
            for (std::size_t c = 0; c < classes_; ++c)
                counts_[own_id * classes_ + c] += other.counts_[id * classes_ + c];
        }
    }

    const double* of(std::size_t id) const { return &counts_[id * classes_]; }

private:
    std::size_t classes_;
    bool binary_;
    std::size_t label_ = 0;
    std::uint64_t document_ = 0;
    std::vector<double> counts_;  // (terms, classes)
    std::vector<std::uint64_t> last_;  // (term) last document that contained it

    void grow(std::size_t id) {
        const std::size_t capacity = std::max<std::size_t>(1 << 10, 2 * id);
        counts_.resize(capacity * classes_, 0.0);
        if (binary_) last_.resize(capacity, 0);
    }
};

inline TermCounts count_terms(const Documents& documents, const TokenizerOptions& options, const std::int32_t* labels,
                              std::size_t classes, bool binary) {
    const unsigned threads = threads_for(documents);
    std::vector<TermCounts> parts(threads, TermCounts(classes, binary));
    struct Worker {
        TermCounts& counts;
        Tokenizer<TermCounts> tokenizer;
    };
    for_each_document(
        documents, threads,
        [&](unsigned part) { return Worker{parts[part], Tokenizer<TermCounts>(options, parts[part])}; },
        [&](Worker& worker, std::size_t row) {
            worker.counts.start(labels[row]);
            documents.tokenize_row(row, worker.tokenizer);
        });
    for (std::size_t part = 1; part < parts.size(); ++part) parts[0].add(parts[part]);
    return std::move(parts[0]);
}

// The numbers of the terms, sorted by their bytes.
inline std::vector<std::uint32_t> sorted_ids(const TermTable& table) {
    struct Key {
        std::uint64_t head;  // the first eight bytes
        std::uint32_t id;
    };
    std::vector<Key> keys(table.size());
    for (std::size_t id = 0; id < keys.size(); ++id) {
        unsigned char head[8] = {};
        std::memcpy(head, table.begin(id), std::min<std::size_t>(8, table.length(id)));
        std::uint64_t value = 0;
        for (const unsigned char byte : head) value = value << 8 | byte;
        keys[id] = {value, static_cast<std::uint32_t>(id)};
    }
    std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
        if (a.head != b.head) return a.head < b.head;
        const std::size_t m = table.length(a.id), n = table.length(b.id);
        const int compared = std::memcmp(table.begin(a.id), table.begin(b.id), std::min(m, n));
        return compared ? compared < 0 : m < n;
    });
    std::vector<std::uint32_t> order(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) order[i] = keys[i].id;
    return order;
}

// A lookup table of a list of terms.
class Vocabulary {
public:
    Vocabulary(const char* text, const std::int64_t* ends, std::size_t n) : table_(n) {
        std::vector<char> padded;
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t from = i ? ends[i - 1] : 0, size = ends[i] - from;
            if (size > 0x7FFF) throw std::invalid_argument("terms: a term is too long");
            padded.assign(text + from, text + from + size);
            padded.resize(size + 9);
            const bool gram = size && padded[0] == '~';
            if (table_.find_or_add(term_at(padded.data() + gram, size - gram, gram)) != i)
                throw std::invalid_argument("terms: a term occurs twice");
        }
    }

    std::size_t size() const { return table_.size(); }
    const TermTable& table() const { return table_; }

private:
    TermTable table_;
};

// out (rows, classes) += evidence (terms, padded) of every term of the document, or, if binary, of every distinct term.
class TermScores {
public:
    TermScores(const TermTable& table, const double* evidence, std::size_t padded, std::size_t classes, bool binary)
        : table_(table), evidence_(evidence), padded_(padded), classes_(classes), sums_(padded),
          last_(binary ? table.size() : 0) {}

    void start() {
        ++document_;
        std::fill(sums_.begin(), sums_.end(), 0.0);
    }

    void operator()(const Term* terms, std::size_t n) {
        std::uint32_t ids[QUEUE];
        for (std::size_t i = 0; i < n; ++i) table_.fetch(terms[i]);
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t id = table_.probe(terms[i]);
            if (id != TermTable::NONE) prefetch(evidence_ + std::size_t{id} * padded_);
        }
        for (std::size_t i = 0; i < n; ++i) ids[i] = table_.find(terms[i]);
        for (std::size_t i = 0; i < n; ++i) {
            if (ids[i] == TermTable::NONE) continue;
            if (!last_.empty()) {
                if (last_[ids[i]] == document_) continue;
                last_[ids[i]] = document_;
            }
            const double* row = evidence_ + std::size_t{ids[i]} * padded_;
            for (std::size_t c = 0; c < padded_; ++c) sums_[c] += row[c];
        }
    }

    void finish(double* out) const {
        for (std::size_t c = 0; c < classes_; ++c) out[c] += sums_[c];
    }

private:
    const TermTable& table_;
    const double* evidence_;
    std::size_t padded_, classes_;
    std::vector<double> sums_;
    std::vector<std::uint32_t> last_;
    std::uint32_t document_ = 0;
};

inline void add_terms(const Documents& documents, const TokenizerOptions& options, const TermTable& table,
                      const double* evidence, std::size_t padded, std::size_t classes, bool binary, double* out) {
    struct Worker {
        std::unique_ptr<TermScores> scores;
        Tokenizer<TermScores> tokenizer;
    };
    for_each_document(
        documents, threads_for(documents),
        [&](unsigned) {
            auto scores = std::make_unique<TermScores>(table, evidence, padded, classes, binary);
            TermScores& sink = *scores;
            return Worker{std::move(scores), Tokenizer<TermScores>(options, sink)};
        },
        [&](Worker& worker, std::size_t row) {
            worker.scores->start();
            documents.tokenize_row(row, worker.tokenizer);
            worker.scores->finish(out + row * classes);
        });
}

// The counts of the known terms of one document, by ascending number.
class TermRow {
public:
    explicit TermRow(const TermTable& table) : table_(table), count_(table.size(), 0) {}

    void operator()(const Term* terms, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) table_.fetch(terms[i]);
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t id = table_.find(terms[i]);
            if (id == TermTable::NONE) continue;
            if (!count_[id]++) ids_.push_back(id);
        }
    }

    std::vector<std::pair<std::uint32_t, double>> take_row() {
        std::sort(ids_.begin(), ids_.end());
        std::vector<std::pair<std::uint32_t, double>> row;
        row.reserve(ids_.size());
        for (const std::uint32_t id : ids_) {
            row.emplace_back(id, static_cast<double>(count_[id]));
            count_[id] = 0;
        }
        ids_.clear();
        return row;
    }

private:
    const TermTable& table_;
    std::vector<std::uint64_t> count_;
    std::vector<std::uint32_t> ids_;
};

using TermRows = std::vector<std::vector<std::pair<std::uint32_t, double>>>;

inline TermRows term_rows(const Documents& documents, const TokenizerOptions& options, const TermTable& table) {
    TermRows rows(documents.rows);
    struct Worker {
        std::unique_ptr<TermRow> row;
        Tokenizer<TermRow> tokenizer;
    };
    for_each_document(
        documents, threads_for(documents),
        [&](unsigned) {
            auto row = std::make_unique<TermRow>(table);
            TermRow& sink = *row;
            return Worker{std::move(row), Tokenizer<TermRow>(options, sink)};
        },
        [&](Worker& worker, std::size_t row) {
            documents.tokenize_row(row, worker.tokenizer);
            rows[row] = worker.row->take_row();
        });
    return rows;
}

// The terms of a text, in order.
inline std::vector<std::string> tokenize(const char* text, std::size_t size, const TokenizerOptions& options) {
    std::vector<std::string> out;
    auto sink = [&](const Term* terms, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i)
            out.push_back((terms[i].gram ? "~" : "") + std::string(terms[i].at, terms[i].size));
    };
    Tokenizer<decltype(sink)> tokenizer(options, sink);
    tokenizer.add_text(text, text + size);
    return out;
}

// Whether terms are sorted by their bytes, without duplicates.
inline bool ascending_terms(const char* text, const std::int64_t* ends, std::size_t n) {
    for (std::size_t i = 1; i < n; ++i) {
        const std::size_t from = i > 1 ? ends[i - 2] : 0, m = ends[i - 1] - from, k = ends[i] - ends[i - 1];
        const int compared = std::memcmp(text + from, text + ends[i - 1], std::min(m, k));
        if (compared > 0 || (!compared && m >= k)) return false;
    }
    return true;
}

// The union of two sorted lists of terms, and the index of each of their terms in it.
struct MergedTerms {
    std::vector<char> text;
    std::vector<std::int64_t> ends, first, second;
};

inline MergedTerms merge_terms(const char* a, const std::int64_t* a_ends, std::size_t n, const char* b,
                               const std::int64_t* b_ends, std::size_t m) {
    MergedTerms out;
    out.text.reserve((n ? a_ends[n - 1] : 0) + (m ? b_ends[m - 1] : 0));
    out.ends.reserve(n + m);
    out.first.resize(n);
    out.second.resize(m);
    for (std::size_t i = 0, j = 0; i < n || j < m;) {
        const std::size_t a_from = i && i < n ? a_ends[i - 1] : 0, b_from = j && j < m ? b_ends[j - 1] : 0;
        const std::size_t a_size = i < n ? a_ends[i] - a_from : 0, b_size = j < m ? b_ends[j] - b_from : 0;
        int compared = i == n ? 1 : j == m ? -1 : std::memcmp(a + a_from, b + b_from, std::min(a_size, b_size));
        if (!compared && a_size != b_size) compared = a_size < b_size ? -1 : 1;
        const auto index = static_cast<std::int64_t>(out.ends.size());
        if (compared <= 0) out.text.insert(out.text.end(), a + a_from, a + a_from + a_size);
        else out.text.insert(out.text.end(), b + b_from, b + b_from + b_size);
        out.ends.push_back(static_cast<std::int64_t>(out.text.size()));
        if (compared <= 0) out.first[i++] = index;
        if (compared >= 0) out.second[j++] = index;
    }
    return out;
}

}  // namespace deciban
