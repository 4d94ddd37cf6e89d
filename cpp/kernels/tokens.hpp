// Tokens: terms of documents counted by class, looked up, and added up.
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

constexpr std::size_t RUN = 64;  // documents that a thread takes at a time
constexpr std::size_t LEAST_BYTES = 1 << 16;  // of text, for which a thread is worth its start

// Documents where they lie: column j of row i is `length` bytes, from `start` of a buffer; none if length < 0.
struct Documents {
    const char* const* buffers;
    const std::int64_t* places;  // (rows, columns, 3) buffer, start, length
    std::size_t rows, columns;

    template <class Cut>
    void cut(std::size_t row, Cut& cutter) const {
        for (std::size_t j = 0; j < columns; ++j) {
            const std::int64_t* place = places + 3 * (row * columns + j);
            if (place[2] < 0) continue;
            const char* at = buffers[place[0]] + place[1];
            cutter.text(at, at + place[2]);
        }
    }

    std::size_t bytes() const {
        std::size_t total = 0;
        for (std::size_t i = 0; i < rows * columns; ++i) total += std::max<std::int64_t>(places[3 * i + 2], 0);
        return total;
    }
};

inline unsigned threads_for(const Documents& documents) { return thread_count(documents.bytes(), LEAST_BYTES); }

// each(worker, row), a worker for each thread: runs of documents are dealt to threads as they become free.
template <class Make, class Each>
void over_documents(const Documents& documents, unsigned threads, const Make& make, const Each& each) {
    std::atomic<std::size_t> next{0};
    parallel(threads, threads, [&](unsigned part, std::size_t, std::size_t) {
        auto worker = make(part);
        for (;;) {
            const std::size_t begin = next.fetch_add(RUN), end = std::min(begin + RUN, documents.rows);
            if (begin >= documents.rows) return;
            for (std::size_t row = begin; row < end; ++row) each(worker, row);
        }
    });
}

// Terms by number: a table of places, open addressing; 32 bits of the hash are kept beside the number.
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

    // A term as it stands here. Nothing more can be read behind it.
    Term operator[](std::size_t id) const {
        return {begin(id) + gram(id), static_cast<std::uint32_t>(records_[id].where & 0x7FFF), gram(id), records_[id].head, hashes_[id]};
    }

    void fetch(const Term& term) const { __builtin_prefetch(&slots_[term.hash & (slots_.size() - 1)]); }

    // The number of a term that is likely this one, whose record is then fetched.
    std::uint32_t likely(const Term& term) const {
        const auto id = static_cast<std::uint32_t>(slots_[term.hash & (slots_.size() - 1)]) - 1;
        if (id != NONE) __builtin_prefetch(&records_[id]);
        return id;
    }

    std::uint32_t find(const Term& term) const {
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t i = term.hash & mask;; i = (i + 1) & mask) {
            const std::uint64_t slot = slots_[i];
            if (!slot) return NONE;
            if (slot >> 32 == term.hash >> 32 && same(static_cast<std::uint32_t>(slot) - 1, term)) return static_cast<std::uint32_t>(slot) - 1;
        }
    }

    std::uint32_t find_or_add(const Term& term) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t i = term.hash & mask;
        for (; slots_[i]; i = (i + 1) & mask)
            if (slots_[i] >> 32 == term.hash >> 32 && same(static_cast<std::uint32_t>(slots_[i]) - 1, term)) return static_cast<std::uint32_t>(slots_[i]) - 1;
        const std::size_t id = records_.size();
        if (id >= NONE - 1) throw std::length_error("more terms than can be numbered: use hash_bits");
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
        std::uint64_t where;  // 48 bits: its place in the text; one: whether it is of characters; 15: its size
    };

    std::vector<std::uint64_t> slots_;  // the hash's upper half, and number + 1; 0: free
    std::vector<Record> records_;
    std::vector<char> text_;
    std::vector<std::uint64_t> hashes_;

    bool gram(std::size_t id) const { return records_[id].where >> 15 & 1; }

    bool same(std::uint32_t id, const Term& term) const {
        const Record& record = records_[id];
        if (record.head != term.head || (record.where & 0xFFFF) != (std::uint64_t{term.gram} << 15 | term.size)) return false;
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

// How often each class has each term; or, `once`, in how many of its documents.
class TermCounts {
public:
    TermCounts(std::size_t classes, bool once) : classes_(classes), once_(once) {}

    TermTable table;

    void start(std::size_t label) {
        label_ = label;
        ++document_;
    }

    void operator()(const Term* terms, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) table.fetch(terms[i]);
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t id = table.likely(terms[i]);
            if (std::size_t{id} * classes_ < counts_.size()) __builtin_prefetch(&counts_[std::size_t{id} * classes_ + label_], 1);
        }
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t id = table.find_or_add(terms[i]);
            if (std::size_t{id} * classes_ >= counts_.size()) grow(id);
            if (once_) {
                if (last_[id] == document_) continue;
                last_[id] = document_;
            }
            counts_[id * classes_ + label_] += 1;
        }
    }

    void add(const TermCounts& other) {
        for (std::size_t id = 0; id < other.table.size(); ++id) {
            const auto mine = table.find_or_add(other.table[id]);
            if (mine * classes_ >= counts_.size()) grow(mine);
            for (std::size_t c = 0; c < classes_; ++c) counts_[mine * classes_ + c] += other.counts_[id * classes_ + c];
        }
    }

    const double* of(std::size_t id) const { return &counts_[id * classes_]; }

private:
    std::size_t classes_;
    bool once_;
    std::size_t label_ = 0;
    std::uint64_t document_ = 0;
    std::vector<double> counts_;  // (terms, classes)
    std::vector<std::uint64_t> last_;  // document that had the term

    void grow(std::size_t id) {
        const std::size_t room = std::max<std::size_t>(1 << 10, 2 * id);
        counts_.resize(room * classes_, 0.0);
        if (once_) last_.resize(room, 0);
    }
};

inline TermCounts count_terms(const Documents& documents, const Cutting& cutting, const std::int32_t* labels, std::size_t classes, bool once) {
    const unsigned threads = threads_for(documents);
    std::vector<TermCounts> found(threads, TermCounts(classes, once));
    struct Worker {
        TermCounts& counts;
        Cutter<TermCounts> cutter;
    };
    over_documents(
        documents, threads, [&](unsigned part) { return Worker{found[part], Cutter<TermCounts>(cutting, found[part])}; },
        [&](Worker& worker, std::size_t row) {
            worker.counts.start(labels[row]);
            documents.cut(row, worker.cutter);
        });
    for (std::size_t part = 1; part < found.size(); ++part) found[0].add(found[part]);
    return std::move(found[0]);
}

// The numbers of terms in the order of their bytes.
inline std::vector<std::uint32_t> in_order(const TermTable& table) {
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

// A list of terms that can be looked up.
class Vocabulary {
public:
    Vocabulary(const char* text, const std::int64_t* ends, std::size_t n) : table_(n) {
        std::vector<char> padded;
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t from = i ? ends[i - 1] : 0, size = ends[i] - from;
            if (size > 0x7FFF) throw std::invalid_argument("terms: one is too long");
            padded.assign(text + from, text + from + size);
            padded.resize(size + 9);
            const bool gram = size && padded[0] == '~';
            if (table_.find_or_add(term_at(padded.data() + gram, size - gram, gram)) != i) throw std::invalid_argument("terms: one stands twice");
        }
    }

    std::size_t size() const { return table_.size(); }
    const TermTable& table() const { return table_; }

private:
    TermTable table_;
};

// out (rows, classes) += the rows of `evidence` (terms, padded) for the terms of each document; `once`: for each that it has.
class TermScores {
public:
    TermScores(const TermTable& table, const double* evidence, std::size_t padded, std::size_t classes, bool once)
        : table_(table), evidence_(evidence), padded_(padded), classes_(classes), sums_(padded), last_(once ? table.size() : 0) {}

    void start() {
        ++document_;
        std::fill(sums_.begin(), sums_.end(), 0.0);
    }

    void operator()(const Term* terms, std::size_t n) {
        std::uint32_t ids[QUEUE];
        for (std::size_t i = 0; i < n; ++i) table_.fetch(terms[i]);
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t id = table_.likely(terms[i]);
            if (id != TermTable::NONE) __builtin_prefetch(evidence_ + std::size_t{id} * padded_);
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

inline void add_terms(const Documents& documents, const Cutting& cutting, const TermTable& table, const double* evidence, std::size_t padded,
                      std::size_t classes, bool once, double* out) {
    struct Worker {
        std::unique_ptr<TermScores> scores;
        Cutter<TermScores> cutter;
    };
    over_documents(
        documents, threads_for(documents),
        [&](unsigned) {
            auto scores = std::make_unique<TermScores>(table, evidence, padded, classes, once);
            TermScores& sink = *scores;
            return Worker{std::move(scores), Cutter<TermScores>(cutting, sink)};
        },
        [&](Worker& worker, std::size_t row) {
            worker.scores->start();
            documents.cut(row, worker.cutter);
            worker.scores->finish(out + row * classes);
        });
}

// The known terms of each document and how often it has them: a row of numbers, ascending, for each.
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

    std::vector<std::pair<std::uint32_t, double>> taken() {
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

inline TermRows term_rows(const Documents& documents, const Cutting& cutting, const TermTable& table) {
    TermRows rows(documents.rows);
    struct Worker {
        std::unique_ptr<TermRow> row;
        Cutter<TermRow> cutter;
    };
    over_documents(
        documents, threads_for(documents),
        [&](unsigned) {
            auto row = std::make_unique<TermRow>(table);
            TermRow& sink = *row;
            return Worker{std::move(row), Cutter<TermRow>(cutting, sink)};
        },
        [&](Worker& worker, std::size_t row) {
            documents.cut(row, worker.cutter);
            rows[row] = worker.row->taken();
        });
    return rows;
}

// The terms of a text, one after the other.
inline std::vector<std::string> terms_of(const char* text, std::size_t size, const Cutting& cutting) {
    std::vector<std::string> found;
    auto sink = [&](const Term* terms, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) found.push_back((terms[i].gram ? "~" : "") + std::string(terms[i].at, terms[i].size));
    };
    Cutter<decltype(sink)> cutter(cutting, sink);
    cutter.text(text, text + size);
    return found;
}

// Whether terms stand in the order of their bytes, none twice.
inline bool ascending_terms(const char* text, const std::int64_t* ends, std::size_t n) {
    for (std::size_t i = 1; i < n; ++i) {
        const std::size_t from = i > 1 ? ends[i - 2] : 0, m = ends[i - 1] - from, k = ends[i] - ends[i - 1];
        const int compared = std::memcmp(text + from, text + ends[i - 1], std::min(m, k));
        if (compared > 0 || (!compared && m >= k)) return false;
    }
    return true;
}

// The union of two lists of terms, each in order, and the place of each term in it.
struct MergedTerms {
    std::vector<char> text;
    std::vector<std::int64_t> ends, first, second;
};

inline MergedTerms merge_terms(const char* a, const std::int64_t* a_ends, std::size_t n, const char* b, const std::int64_t* b_ends, std::size_t m) {
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
        const auto place = static_cast<std::int64_t>(out.ends.size());
        if (compared <= 0)
            out.text.insert(out.text.end(), a + a_from, a + a_from + a_size);
        else
            out.text.insert(out.text.end(), b + b_from, b + b_from + b_size);
        out.ends.push_back(static_cast<std::int64_t>(out.text.size()));
        if (compared <= 0) out.first[i++] = place;
        if (compared >= 0) out.second[j++] = place;
    }
    return out;
}

}  // namespace deciban
