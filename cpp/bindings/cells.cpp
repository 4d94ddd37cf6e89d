#include "../kernels/cell_evidence.hpp"
#include "../kernels/pair_gains.hpp"
#include "../kernels/row_keys.hpp"
#include "codes.hpp"
#include "sparse_rows.hpp"

namespace deciban {

using OptionalLabels = std::optional<Labels>;

static void expect_smoothing(double smoothing) {
    expect(smoothing > 0 && smoothing <= std::numeric_limits<double>::max(), "smoothing must be above 0");
}

// Checks the arguments that both kinds of cell evidence share.
static std::size_t expect_evidence(const Codes& codes, const Offsets& offsets, const In<double, 2>& counts,
                                   const In<double, 1>& rows, double smoothing, const OptionalLabels& labels,
                                   const Weights& weights) {
    const std::size_t classes = rows.shape(0);
    expect(classes > 0, "no classes");
    expect_shape("counts", counts, {total_codes(offsets, codes.shape(1)), classes});
    expect_counts("counts must be finite and not negative", counts.data(), counts.size());
    expect_counts("rows must be finite and not negative", rows.data(), classes);
    expect(*std::min_element(rows.data(), rows.data() + classes) > 0, "rows: a class has no rows");
    expect_smoothing(smoothing);
    if (labels) expect_labels(*labels, codes.shape(0), classes);
    expect_positive_weights(weights, codes.shape(0));
    return classes;
}

template <class T>
static void bind_cell_evidence(Codes codes, Offsets offsets, In<double, 2> counts, In<double, 1> rows, double smoothing,
                               OptionalLabels labels, Weights weights, Out<T, 3> out) {
    const std::size_t classes = expect_evidence(codes, offsets, counts, rows, smoothing, labels, weights);
    expect_shape("out", out, {codes.shape(0), codes.shape(1), classes});
    nb::gil_scoped_release release;
    cell_evidence(CellEvidence(view<std::int32_t>(codes), offsets.data(), counts.data(), rows.data(), classes,
                               smoothing, labels ? labels->data() : nullptr, data_or_null(weights)),
                  out.data());
}

static void bind_mean_cell_evidence(Codes codes, Offsets offsets, In<double, 2> counts, In<double, 1> rows,
                                    double smoothing, OptionalLabels labels, Weights weights,
                                    std::optional<In<bool, 2>> skip, Out<double, 2> out) {
    const std::size_t classes = expect_evidence(codes, offsets, counts, rows, smoothing, labels, weights);
    if (skip) expect_shape("skip", *skip, {codes.shape(0), codes.shape(1)});
    expect_shape("out", out, {codes.shape(0), classes});
    nb::gil_scoped_release release;
    mean_cell_evidence(CellEvidence(view<std::int32_t>(codes), offsets.data(), counts.data(), rows.data(), classes,
                                    smoothing, labels ? labels->data() : nullptr, data_or_null(weights)),
                       skip ? skip->data() : nullptr, out.data());
}

static New<double> bind_pair_gains(Bytes codes, Sizes sizes, Labels labels, Weights weights, std::size_t classes,
                                   double smoothing, In<std::int32_t, 2> pairs) {
    const auto matrix = expect_bytes_below(codes, sizes);
    expect_labels(labels, matrix.rows, classes);
    expect_positive_weights(weights, matrix.rows);
    expect_smoothing(smoothing);
    expect_cells(matrix.columns * 256, classes);
    expect(pairs.shape(1) == 2, "pairs must have two columns");
    bool within = true;
    for (std::size_t i = 0; i < pairs.size(); ++i)
        within &= static_cast<std::uint32_t>(pairs.data()[i]) < matrix.columns;
    expect(within, "pairs: column out of range");
    auto out = new_array<double>({pairs.shape(0)});
    nb::gil_scoped_release release;
    PairGains(matrix, sizes.data(), labels.data(), data_or_null(weights), classes, smoothing)
        .compute(pairs.data(), pairs.shape(0), out.data());
    return out;
}

static void bind_mix_keys(AnyMatrix x, In<std::uint64_t, 1> salts, Out<std::uint64_t, 1> keys) {
    expect_shape("salts", salts, {x.shape(1)});
    expect_shape("keys", keys, {x.shape(0)});
    with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        mix_keys(matrix, salts.data(), keys.data());
    });
}

template <class Index>
static void bind_add_sparse_keys(In<double, 1> values, Indices<Index> columns, Indices<Index> starts,
                                 Out<std::uint64_t, 1> keys) {
    const auto rows = sparse(values, columns, starts, std::numeric_limits<std::size_t>::max());
    expect_shape("keys", keys, {rows.rows});
    nb::gil_scoped_release release;
    add_sparse_keys(rows, keys.data());
}

// noconvert: a conversion of codes could wrap around.
void bind_cells(nb::module_& m) {
    m.def("cell_evidence", &bind_cell_evidence<double>, nb::arg("codes").noconvert(), nb::arg("offsets"),
          nb::arg("counts"), nb::arg("rows"), nb::arg("smoothing"), nb::arg("labels").none(), nb::arg("weights").none(),
          nb::arg("out").noconvert());
    m.def("cell_evidence", &bind_cell_evidence<float>, nb::arg("codes").noconvert(), nb::arg("offsets"),
          nb::arg("counts"), nb::arg("rows"), nb::arg("smoothing"), nb::arg("labels").none(), nb::arg("weights").none(),
          nb::arg("out").noconvert());
    m.def("mean_cell_evidence", &bind_mean_cell_evidence, nb::arg("codes").noconvert(), nb::arg("offsets"),
          nb::arg("counts"), nb::arg("rows"), nb::arg("smoothing"), nb::arg("labels").none(), nb::arg("weights").none(),
          nb::arg("skip").none(), nb::arg("out").noconvert());
    m.def("pair_gains", &bind_pair_gains, nb::arg("codes").noconvert(), nb::arg("sizes"), nb::arg("labels"),
          nb::arg("weights").none(), nb::arg("classes"), nb::arg("smoothing"), nb::arg("pairs"));
    m.def("mix_keys", &bind_mix_keys, nb::arg("x"), nb::arg("salts"), nb::arg("keys").noconvert());
    m.def("add_sparse_keys", &bind_add_sparse_keys<std::int32_t>, nb::arg("values"), nb::arg("columns"),
          nb::arg("starts"), nb::arg("keys").noconvert());
    m.def("add_sparse_keys", &bind_add_sparse_keys<std::int64_t>, nb::arg("values"), nb::arg("columns"),
          nb::arg("starts"), nb::arg("keys").noconvert());
}

}  // namespace deciban
