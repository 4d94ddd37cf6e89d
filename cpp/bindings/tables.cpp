#include "../kernels/tables.hpp"
#include "../kernels/histogram.hpp"
#include "../kernels/sparse.hpp"
#include "codes.hpp"
#include "sparse_rows.hpp"

namespace deciban {

static New<double> bind_count(Codes codes, Offsets offsets, Labels labels, Weights weights, std::size_t classes) {
    const auto matrix = view<std::int32_t>(codes);
    const std::size_t total = total_codes(offsets, matrix.columns);
    expect_labels(labels, matrix.rows, classes);
    expect_weights(weights, matrix.rows);
    expect_cells(classes, total);
    nb::gil_scoped_release release;
    ExactSums sums = count_codes(matrix, offsets.data(), labels.data(), data_or_null(weights), classes);
    nb::gil_scoped_acquire acquire;
    return canonical_words(sums, classes, total);
}

static New<double> bind_count_labels(Labels labels, std::size_t classes) {
    expect_labels(labels, labels.shape(0), classes);
    const auto counts = count_labels(labels.data(), labels.shape(0), classes);
    auto out = new_array<double>({classes});
    std::copy(counts.begin(), counts.end(), out.data());
    return out;
}

static void bind_add_table(Codes codes, Offsets offsets, In<double, 2> table, std::size_t classes, Out<double, 2> out) {
    const auto matrix = view<std::int32_t>(codes);
    expect_shape("table", table, {total_codes(offsets, matrix.columns), padded(classes)});
    expect_shape("out", out, {matrix.rows, classes});
    nb::gil_scoped_release release;
    add_table(matrix, offsets.data(), table.data(), classes, out.data());
}

template <class Body>
static auto with_integers(const AnyMatrix& x, const Body& body) {
    if (x.dtype() == nb::dtype<std::int64_t>()) return body(view<std::int64_t>(x));
    if (x.dtype() == nb::dtype<std::int32_t>()) return body(view<std::int32_t>(x));
    if (x.dtype() == nb::dtype<std::int16_t>()) return body(view<std::int16_t>(x));
    if (x.dtype() == nb::dtype<std::int8_t>()) return body(view<std::int8_t>(x));
    if (x.dtype() == nb::dtype<std::uint8_t>()) return body(view<std::uint8_t>(x));
    throw nb::type_error("the matrix must hold signed integers or bytes");
}

static nb::tuple bind_range(AnyMatrix x) {
    expect(x.shape(0) > 0, "no rows");
    auto low = new_array<std::int64_t>({x.shape(1)}), high = new_array<std::int64_t>({x.shape(1)});
    with_integers(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        integer_range(matrix, low.data(), high.data());
    });
    return nb::make_tuple(low, high);
}

static New<std::int32_t> bind_encode(AnyMatrix x, Offsets low, Offsets offsets, In<std::int32_t, 1> lut,
                                     std::int32_t outside) {
    expect_shape("low", low, {x.shape(1)});
    expect_shape("lut", lut, {total_codes(offsets, x.shape(1))});
    auto codes = new_array<std::int32_t>({x.shape(0), x.shape(1)});
    with_integers(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        encode_integers(matrix, low.data(), offsets.data(), lut.data(), outside, codes.data());
    });
    return codes;
}

template <class Index>
static nb::object bind_sum_sparse(In<double, 1> values, Indices<Index> columns, Indices<Index> starts,
                                  std::size_t width, Labels labels, Weights weights, std::size_t classes) {
    const auto rows = sparse(values, columns, starts, width);
    expect_labels(labels, rows.rows, classes);
    expect_weights(weights, rows.rows);
    expect_cells(classes, width);
    bool valid;
    nb::gil_scoped_release release;
    ExactSums sums = sum_sparse(rows, labels.data(), data_or_null(weights), classes, valid);
    nb::gil_scoped_acquire acquire;
    return valid ? nb::cast(canonical_words(sums, classes, width)) : nb::none();
}

template <class Index>
static void bind_add_sparse(In<double, 1> values, Indices<Index> columns, Indices<Index> starts, In<double, 2> table,
                            std::size_t classes, Out<double, 2> out) {
    const auto rows = sparse(values, columns, starts, table.shape(0));
    expect_shape("table", table, {rows.width, padded(classes)});
    expect_shape("out", out, {rows.rows, classes});
    nb::gil_scoped_release release;
    add_sparse(rows, table.data(), classes, out.data());
}

static nb::tuple bind_histogram(AnyMatrix x, std::size_t column, std::size_t cap) {
    expect(column < x.shape(1), "column out of range");
    expect(cap > 0, "cap must be at least 1");
    std::vector<std::int64_t> keys;
    auto codes = new_array<std::int32_t>({x.shape(0)});
    const int level = with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        return histogram_column(matrix, column, std::min(cap, matrix.rows), keys, codes.data());
    });
    auto out = new_array<std::int64_t>({keys.size()});
    std::copy(keys.begin(), keys.end(), out.data());
    return nb::make_tuple(level, out, codes);
}

void bind_tables(nb::module_& m) {
    m.def("count_codes", &bind_count, nb::arg("codes"), nb::arg("offsets"), nb::arg("labels"),
          nb::arg("weights").none(), nb::arg("classes"));
    m.def("count_labels", &bind_count_labels, nb::arg("labels"), nb::arg("classes"));
    m.def("add_table", &bind_add_table, nb::arg("codes"), nb::arg("offsets"), nb::arg("table"), nb::arg("classes"),
          nb::arg("out").noconvert());
    m.def("integer_range", &bind_range, nb::arg("x"));
    m.def("encode_integers", &bind_encode, nb::arg("x"), nb::arg("low"), nb::arg("offsets"), nb::arg("lut"),
          nb::arg("outside"));
    m.def("sum_sparse", &bind_sum_sparse<std::int32_t>, nb::arg("values"), nb::arg("columns"), nb::arg("starts"),
          nb::arg("width"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("classes"));
    m.def("sum_sparse", &bind_sum_sparse<std::int64_t>, nb::arg("values"), nb::arg("columns"), nb::arg("starts"),
          nb::arg("width"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("classes"));
    m.def("add_sparse", &bind_add_sparse<std::int32_t>, nb::arg("values"), nb::arg("columns"), nb::arg("starts"),
          nb::arg("table"), nb::arg("classes"), nb::arg("out").noconvert());
    m.def("add_sparse", &bind_add_sparse<std::int64_t>, nb::arg("values"), nb::arg("columns"), nb::arg("starts"),
          nb::arg("table"), nb::arg("classes"), nb::arg("out").noconvert());
    m.def("histogram_column", &bind_histogram, nb::arg("x"), nb::arg("column"), nb::arg("cap"));
}

}  // namespace deciban
