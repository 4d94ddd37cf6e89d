#include <nanobind/stl/string.h>

#include "../kernels/mail_headers.hpp"
#include "../kernels/term_scorer.hpp"
#include "../kernels/tokens.hpp"
#include "arrays.hpp"

namespace deciban {

using Buffers = std::vector<In<std::uint8_t, 1>>;
using Spans = In<std::int64_t, 3>;
using Ends = In<std::int64_t, 1>;
using Text = In<std::uint8_t, 1>;
using OptionsTuple = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, bool, unsigned>;

static const char* chars(const Text& text) { return reinterpret_cast<const char*>(text.data()); }

static TokenizerOptions tokenizer_options(const OptionsTuple& options) {
    const auto [min_words, max_words, min_characters, max_characters, shapes, hash_bits] = options;
    expect(max_words <= MAX_NGRAM && max_characters <= MAX_NGRAM, "options: n-grams are too long");
    expect(min_words >= 1 && min_characters >= 1, "options: n-grams need at least one word or character");
    expect(hash_bits <= 31, "options: hash_bits must be at most 31");
    return {min_words, max_words, min_characters, max_characters, shapes, hash_bits};
}

// Documents whose spans all lie within their buffers.
class CheckedDocuments {
public:
    CheckedDocuments(const Buffers& buffers, const Spans& spans) {
        expect(spans.shape(2) == 3, "spans must be (buffer, start, length)");
        for (const auto& buffer : buffers) buffers_.push_back(chars(buffer));
        bool within = true;
        const std::int64_t* span = spans.data();
        for (std::size_t i = 0; i < spans.shape(0) * spans.shape(1); ++i, span += 3) {
            if (span[2] < 0) continue;
            if (span[0] < 0 || static_cast<std::size_t>(span[0]) >= buffers.size() || span[1] < 0) {
                within = false;
                break;
            }
            const auto size = static_cast<std::int64_t>(buffers[span[0]].shape(0));
            within &= span[1] <= size && span[2] <= size - span[1];
        }
        expect(within, "spans: a text is not within its buffer");
        documents = {buffers_.data(), spans.data(), spans.shape(0), spans.shape(1)};
    }

    Documents documents;

private:
    std::vector<const char*> buffers_;
};

static std::size_t expect_terms(const char* what, const Text& text, const Ends& ends) {
    const std::size_t n = ends.shape(0);
    bool ascending = true;
    std::int64_t previous_end = 0;
    for (std::size_t i = 0; i < n; ++i) {
        ascending &= ends.data()[i] >= previous_end;
        previous_end = ends.data()[i];
    }
    expect(ascending && previous_end == static_cast<std::int64_t>(text.shape(0)), what);
    return n;
}

static nb::tuple bind_count_terms(const Buffers& buffers, Spans spans, OptionsTuple options_tuple, Labels labels,
                                  std::size_t classes, bool binary) {
    const CheckedDocuments checked(buffers, spans);
    const TokenizerOptions options = tokenizer_options(options_tuple);
    expect_labels(labels, checked.documents.rows, classes);
    std::optional<TermCounts> counts;
    std::vector<std::uint32_t> order;
    {
        nb::gil_scoped_release release;
        counts = count_terms(checked.documents, options, labels.data(), classes, binary);
        order = sorted_ids(counts->table);
    }
    const TermTable& table = counts->table;
    auto text = new_array<std::uint8_t>({table.bytes()});
    auto ends = new_array<std::int64_t>({order.size()});
    auto values = new_array<double>({1, classes, order.size()});
    std::size_t filled = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        std::memcpy(text.data() + filled, table.begin(order[i]), table.length(order[i]));
        filled += table.length(order[i]);
        ends.data()[i] = static_cast<std::int64_t>(filled);
        for (std::size_t c = 0; c < classes; ++c) values.data()[c * order.size() + i] = counts->of(order[i])[c];
    }
    return nb::make_tuple(text, ends, values);
}

static void bind_add_terms(const Buffers& buffers, Spans spans, OptionsTuple options_tuple,
                           const Vocabulary& vocabulary, In<double, 2> evidence, bool binary, Out<double, 2> out) {
    const CheckedDocuments checked(buffers, spans);
    const TokenizerOptions options = tokenizer_options(options_tuple);
    const std::size_t classes = out.shape(1);
    expect_shape("out", out, {checked.documents.rows, classes});
    expect_shape("evidence", evidence, {vocabulary.size(), (classes + 3) / 4 * 4});
    nb::gil_scoped_release release;
    add_terms(checked.documents, options, vocabulary.table(), evidence.data(), evidence.shape(1), classes, binary,
              out.data());
}

static nb::tuple bind_term_rows(const Buffers& buffers, Spans spans, OptionsTuple options_tuple,
                                const Vocabulary& vocabulary) {
    const CheckedDocuments checked(buffers, spans);
    const TokenizerOptions options = tokenizer_options(options_tuple);
    TermRows rows;
    {
        nb::gil_scoped_release release;
        rows = term_rows(checked.documents, options, vocabulary.table());
    }
    std::size_t total = 0;
    for (const auto& row : rows) total += row.size();
    auto data = new_array<double>({total});
    auto indices = new_array<std::int64_t>({total});
    auto indptr = new_array<std::int64_t>({rows.size() + 1});
    std::size_t position = 0;
    indptr.data()[0] = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (const auto& [id, count] : rows[i]) {
            indices.data()[position] = id;
            data.data()[position++] = count;
        }
        indptr.data()[i + 1] = static_cast<std::int64_t>(position);
    }
    return nb::make_tuple(data, indices, indptr);
}

static nb::list bind_tokenize(Text text, OptionsTuple options) {
    nb::list out;
    for (const auto& term : tokenize(chars(text), text.shape(0), tokenizer_options(options)))
        out.append(nb::steal(PyUnicode_DecodeUTF8(term.data(), static_cast<Py_ssize_t>(term.size()), "replace")));
    return out;
}

static nb::tuple bind_merge_terms(Text a, Ends a_ends, Text b, Ends b_ends) {
    const std::size_t n = expect_terms("a: the ends of terms do not match the text", a, a_ends);
    const std::size_t m = expect_terms("b: the ends of terms do not match the text", b, b_ends);
    MergedTerms merged;
    {
        nb::gil_scoped_release release;
        merged = merge_terms(chars(a), a_ends.data(), n, chars(b), b_ends.data(), m);
    }
    const auto to_array = [](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        using Element = std::conditional_t<std::is_same_v<T, char>, std::uint8_t, T>;
        auto out = new_array<Element>({values.size()});
        if (!values.empty()) std::memcpy(out.data(), values.data(), values.size() * sizeof(T));
        return out;
    };
    return nb::make_tuple(to_array(merged.text), to_array(merged.ends), to_array(merged.first),
                          to_array(merged.second));
}

static bool bind_ascending_terms(Text text, Ends ends) {
    return ascending_terms(chars(text), ends.data(),
                           expect_terms("the ends of terms do not match the text", text, ends));
}

// A name that was read from bytes.
static nb::str decoded(const std::string& name) {
    PyObject* const text = PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "surrogatepass");
    if (!text) nb::raise_python_error();  // UnicodeDecodeError, a ValueError
    return nb::steal<nb::str>(text);
}

// Columns of texts, each a dict with the columns of a scorer: spans of their UTF-8, and what keeps it in memory.
class DictDocuments {
public:
    DictDocuments(const nb::list& rows, const std::vector<std::string>& columns) {
        std::vector<nb::str> keys;
        for (const auto& column : columns) keys.push_back(decoded(column));
        for (const nb::handle row : rows)
            for (const auto& key : keys) add(nb::cast<nb::dict>(row)[key]);
        documents = {buffers_.data(), spans_.data(), nb::len(rows), columns.size()};
    }

    Documents documents;

private:
    std::vector<nb::object> held_;
    std::vector<const char*> buffers_;
    std::vector<std::int64_t> spans_;

    void add(nb::object text) {
        Py_ssize_t size = -1;
        const char* bytes = nullptr;
        if (!text.is_none()) {
            if (!PyUnicode_Check(text.ptr())) throw nb::type_error("a text must be str or None");
            bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
            if (!bytes) {  // lone surrogates
                PyErr_Clear();
                text = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
                if (!text.is_valid()) nb::raise_python_error();
                bytes = PyBytes_AS_STRING(text.ptr());
                size = PyBytes_GET_SIZE(text.ptr());
            }
        }
        spans_.insert(spans_.end(), {static_cast<std::int64_t>(buffers_.size()), 0, size});
        buffers_.push_back(bytes);
        held_.push_back(std::move(text));
    }
};

static nb::list bind_best(const TermScorer& scorer, nb::list rows) {
    const DictDocuments texts(rows, scorer.columns);
    std::vector<BestClass> best;
    {
        nb::gil_scoped_release release;
        best = scorer.best(texts.documents);
    }
    nb::list out;
    for (std::size_t i = 0; i < best.size(); ++i) {
        if (scorer.scores(texts.documents, i))
            out.append(nb::make_tuple(best[i].label, best[i].probability, best[i].nats));
        else out.append(nb::none());
    }
    return out;
}

static nb::tuple texts_of(const std::vector<std::string>& names) {
    nb::list out;
    for (const auto& name : names) out.append(decoded(name));
    return nb::tuple(out);
}

// {name: values} of the wanted headers, unfolded; where the body begins; whether there were more lines.
static nb::tuple bind_read_headers(nb::bytes data, std::size_t begin, std::size_t end, nb::frozenset wanted,
                                   std::size_t max_lines) {
    expect(begin <= end && end <= data.size(), "the range is not within the data");
    const char* const bytes = data.c_str();
    nb::dict out;
    nb::object values;  // of the current header: a list, or nothing if it is not wanted
    std::string value;
    const auto finish = [&] {
        if (values.is_valid()) nb::cast<nb::list>(values).append(nb::bytes(value.data(), value.size()));
    };
    const HeadersEnd read = read_headers(
        bytes, begin, end, max_lines,
        [&](const std::string& name) {
            finish();
            values = nb::object();
            const nb::bytes key(name.data(), name.size());
            if (!wanted.contains(key)) return;
            if (!out.contains(key)) out[key] = nb::list();
            values = out[key];
            value.clear();
        },
        [&](std::size_t from, std::size_t to) {
            if (values.is_valid()) value.append(bytes + from, to - from);
        });
    finish();
    return nb::make_tuple(out, read.body, read.truncated);
}

void bind_text(nb::module_& m) {
    m.def("read_headers", &bind_read_headers, nb::arg("data"), nb::arg("begin"), nb::arg("end"), nb::arg("wanted"),
          nb::arg("max_lines"));
    const auto range = [](const nb::bytes& data, std::size_t begin) {
        expect(begin <= data.size(), "the range is not within the data");
        return std::pair{data.c_str() + begin, data.size() - begin};
    };
    m.def(
        "fingerprint",
        [range](nb::bytes data, std::size_t begin) {
            const auto [bytes, size] = range(data, begin);
            const auto hash = fingerprint(bytes, size);
            return nb::bytes(reinterpret_cast<const char*>(hash.data()), sizeof(hash));
        },
        nb::arg("data"), nb::arg("begin") = 0);
    nb::class_<TermScorer>(m, "TermScorer")
        .def(
            "__init__",
            [range](TermScorer* self, nb::bytes data, std::size_t begin) {
                const auto [bytes, size] = range(data, begin);
                new (self) TermScorer(bytes, size);
            },
            nb::arg("tables"), nb::arg("begin") = 0)
        .def_prop_ro("columns", [](const TermScorer& self) { return texts_of(self.columns); })
        .def_prop_ro("classes", [](const TermScorer& self) { return texts_of(self.classes); })
        .def("best", &bind_best, nb::arg("rows"));
    nb::class_<Vocabulary>(m, "Vocabulary")
        .def(
            "__init__",
            [](Vocabulary* self, Text text, Ends ends) {
                const std::size_t n = expect_terms("the ends of terms do not match the text", text, ends);
                new (self) Vocabulary(chars(text), ends.data(), n);
            },
            nb::arg("text"), nb::arg("ends"))
        .def("__len__", &Vocabulary::size);
    m.def("count_terms", &bind_count_terms, nb::arg("buffers"), nb::arg("spans").noconvert(), nb::arg("options"),
          nb::arg("labels"), nb::arg("classes"), nb::arg("binary"));
    m.def("add_terms", &bind_add_terms, nb::arg("buffers"), nb::arg("spans").noconvert(), nb::arg("options"),
          nb::arg("vocabulary"), nb::arg("evidence"), nb::arg("binary"), nb::arg("out").noconvert());
    m.def("term_rows", &bind_term_rows, nb::arg("buffers"), nb::arg("spans").noconvert(), nb::arg("options"),
          nb::arg("vocabulary"));
    m.def("tokenize", &bind_tokenize, nb::arg("text"), nb::arg("options"));
    m.def("ascending_terms", &bind_ascending_terms, nb::arg("text"), nb::arg("ends"));
    m.def("merge_terms", &bind_merge_terms, nb::arg("a"), nb::arg("a_ends"), nb::arg("b"), nb::arg("b_ends"));
}

}  // namespace deciban
