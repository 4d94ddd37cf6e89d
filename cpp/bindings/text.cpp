#include <nanobind/stl/string.h>

#include "../kernels/tokens.hpp"
#include "arrays.hpp"

namespace deciban {

using Buffers = std::vector<In<std::uint8_t, 1>>;
using Places = In<std::int64_t, 3>;
using Ends = In<std::int64_t, 1>;
using Text = In<std::uint8_t, 1>;
using Cut = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, bool, unsigned>;

static const char* chars(const Text& text) { return reinterpret_cast<const char*>(text.data()); }

static Cutting cutting_of(const Cut& cut) {
    const auto [least_words, most_words, least_characters, most_characters, shapes, hash_bits] = cut;
    expect(most_words <= MOST_GRAMS && most_characters <= MOST_GRAMS, "cut: n-grams are too long");
    expect(least_words >= 1 && least_characters >= 1, "cut: n-grams have one word or character at least");
    expect(hash_bits <= 31, "cut: at most 31 bits of a hash");
    return {least_words, most_words, least_characters, most_characters, shapes, hash_bits};
}

// Documents whose places are all within their buffers.
class CheckedDocuments {
public:
    CheckedDocuments(const Buffers& buffers, const Places& places) {
        expect(places.shape(2) == 3, "places: buffer, start and length");
        for (const auto& buffer : buffers) buffers_.push_back(chars(buffer));
        bool within = true;
        const std::int64_t* place = places.data();
        for (std::size_t i = 0; i < places.shape(0) * places.shape(1); ++i, place += 3) {
            if (place[2] < 0) continue;
            if (place[0] < 0 || static_cast<std::size_t>(place[0]) >= buffers.size() || place[1] < 0) {
                within = false;
                break;
            }
            const auto size = static_cast<std::int64_t>(buffers[place[0]].shape(0));
            within &= place[1] <= size && place[2] <= size - place[1];
        }
        expect(within, "places: a text is not within its buffer");
        documents = {buffers_.data(), places.data(), places.shape(0), places.shape(1)};
    }

    Documents documents;

private:
    std::vector<const char*> buffers_;
};

static std::size_t expect_terms(const char* what, const Text& text, const Ends& ends) {
    const std::size_t n = ends.shape(0);
    bool ascending = true;
    std::int64_t before = 0;
    for (std::size_t i = 0; i < n; ++i) {
        ascending &= ends.data()[i] >= before;
        before = ends.data()[i];
    }
    expect(ascending && before == static_cast<std::int64_t>(text.shape(0)), what);
    return n;
}

static nb::tuple bind_count_terms(const Buffers& buffers, Places places, Cut cut, Labels labels, std::size_t classes, bool once) {
    const CheckedDocuments checked(buffers, places);
    const Cutting cutting = cutting_of(cut);
    expect_labels(labels, checked.documents.rows, classes);
    std::optional<TermCounts> counts;
    std::vector<std::uint32_t> order;
    {
        nb::gil_scoped_release release;
        counts = count_terms(checked.documents, cutting, labels.data(), classes, once);
        order = in_order(counts->table);
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

static void bind_add_terms(const Buffers& buffers, Places places, Cut cut, const Vocabulary& vocabulary, In<double, 2> evidence, bool once, Out<double, 2> out) {
    const CheckedDocuments checked(buffers, places);
    const Cutting cutting = cutting_of(cut);
    const std::size_t classes = out.shape(1);
    expect_shape("out", out, {checked.documents.rows, classes});
    expect_shape("evidence", evidence, {vocabulary.size(), (classes + 3) / 4 * 4});
    nb::gil_scoped_release release;
    add_terms(checked.documents, cutting, vocabulary.table(), evidence.data(), evidence.shape(1), classes, once, out.data());
}

static nb::tuple bind_term_rows(const Buffers& buffers, Places places, Cut cut, const Vocabulary& vocabulary) {
    const CheckedDocuments checked(buffers, places);
    const Cutting cutting = cutting_of(cut);
    TermRows rows;
    {
        nb::gil_scoped_release release;
        rows = term_rows(checked.documents, cutting, vocabulary.table());
    }
    std::size_t total = 0;
    for (const auto& row : rows) total += row.size();
    auto data = new_array<double>({total});
    auto indices = new_array<std::int64_t>({total});
    auto indptr = new_array<std::int64_t>({rows.size() + 1});
    std::size_t at = 0;
    indptr.data()[0] = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (const auto& [id, count] : rows[i]) {
            indices.data()[at] = id;
            data.data()[at++] = count;
        }
        indptr.data()[i + 1] = static_cast<std::int64_t>(at);
    }
    return nb::make_tuple(data, indices, indptr);
}

static nb::list bind_terms_of(Text text, Cut cut) {
    nb::list out;
    for (const auto& term : terms_of(chars(text), text.shape(0), cutting_of(cut)))
        out.append(nb::steal(PyUnicode_DecodeUTF8(term.data(), static_cast<Py_ssize_t>(term.size()), "replace")));
    return out;
}

static nb::tuple bind_merge_terms(Text a, Ends a_ends, Text b, Ends b_ends) {
    const std::size_t n = expect_terms("a: the ends of terms are not those of the text", a, a_ends);
    const std::size_t m = expect_terms("b: the ends of terms are not those of the text", b, b_ends);
    MergedTerms merged;
    {
        nb::gil_scoped_release release;
        merged = merge_terms(chars(a), a_ends.data(), n, chars(b), b_ends.data(), m);
    }
    const auto copied = [](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        using Kept = std::conditional_t<std::is_same_v<T, char>, std::uint8_t, T>;
        auto out = new_array<Kept>({values.size()});
        if (!values.empty()) std::memcpy(out.data(), values.data(), values.size() * sizeof(T));
        return out;
    };
    return nb::make_tuple(copied(merged.text), copied(merged.ends), copied(merged.first), copied(merged.second));
}

static bool bind_ascending_terms(Text text, Ends ends) {
    return ascending_terms(chars(text), ends.data(), expect_terms("the ends of terms are not those of the text", text, ends));
}

void bind_text(nb::module_& m) {
    nb::class_<Vocabulary>(m, "Vocabulary")
        .def("__init__", [](Vocabulary* self, Text text, Ends ends) {
            const std::size_t n = expect_terms("the ends of terms are not those of the text", text, ends);
            new (self) Vocabulary(chars(text), ends.data(), n);
        }, nb::arg("text"), nb::arg("ends"))
        .def("__len__", &Vocabulary::size);
    m.def("count_terms", &bind_count_terms, nb::arg("buffers"), nb::arg("places").noconvert(), nb::arg("cut"), nb::arg("labels"), nb::arg("classes"), nb::arg("once"));
    m.def("add_terms", &bind_add_terms, nb::arg("buffers"), nb::arg("places").noconvert(), nb::arg("cut"), nb::arg("vocabulary"), nb::arg("evidence"), nb::arg("once"), nb::arg("out").noconvert());
    m.def("term_rows", &bind_term_rows, nb::arg("buffers"), nb::arg("places").noconvert(), nb::arg("cut"), nb::arg("vocabulary"));
    m.def("terms_of", &bind_terms_of, nb::arg("text"), nb::arg("cut"));
    m.def("ascending_terms", &bind_ascending_terms, nb::arg("text"), nb::arg("ends"));
    m.def("merge_terms", &bind_merge_terms, nb::arg("a"), nb::arg("a_ends"), nb::arg("b"), nb::arg("b_ends"));
}

}  // namespace deciban
