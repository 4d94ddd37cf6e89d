#include "../kernels/boosting.hpp"
#include "codes.hpp"

namespace deciban {

static void expect_depth(std::size_t depth) {
    expect(depth > 0 && depth <= max_tree_depth, "depth must be between 1 and 8");
}

static nb::tuple bind_boost(Bytes codes, Sizes sizes, In<bool, 1> ordered, Labels labels, Weights weights,
                            std::size_t classes, std::size_t ensembles, std::size_t max_rounds, std::size_t depth,
                            double learning_rate, double l2, double row_fraction, double column_fraction,
                            std::uint64_t seed) {
    const auto matrix = expect_bytes_below(codes, sizes);
    expect_shape("ordered", ordered, {matrix.columns});
    expect_labels(labels, matrix.rows, classes);
    expect_positive_weights(weights, matrix.rows);
    expect_depth(depth);
    expect(matrix.columns > 0, "there are no columns");
    expect(classes >= 2, "there must be at least two classes");
    expect(ensembles > 0 && ensembles <= 256, "ensembles must be between 1 and 256");
    expect(max_rounds > 0 && max_rounds <= 1 << 16, "max_rounds must be between 1 and 65,536");
    expect(learning_rate > 0 && l2 > 0, "learning_rate and l2 must be above 0");
    expect(row_fraction > 0 && row_fraction <= 1, "row_fraction must be above 0 and at most 1");
    expect(column_fraction > 0 && column_fraction <= 1, "column_fraction must be above 0 and at most 1");
    Ensembles grown;
    {
        nb::gil_scoped_release release;
        grown =
            boost(matrix, sizes.data(), ordered.data(), labels.data(), data_or_null(weights),
                  {classes, ensembles, max_rounds, depth, learning_rate, l2, row_fraction, column_fraction, seed}, [] {
                      nb::gil_scoped_acquire acquire;
                      if (PyErr_CheckSignals() != 0) throw nb::python_error();
                  });
    }
    const SymmetricTrees& all = grown.trees;
    const std::size_t trees = all.trees();
    auto starts = new_array<std::int64_t>({ensembles + 1});
    auto column = new_array<std::int32_t>({trees, depth}), code = new_array<std::int32_t>({trees, depth});
    auto value = new_array<double>({trees, all.leaves(), all.outputs}), rows = new_array<double>({trees, all.leaves()});
    std::copy(grown.starts.begin(), grown.starts.end(), starts.data());
    std::copy(all.column.begin(), all.column.end(), column.data());
    std::copy(all.code.begin(), all.code.end(), code.data());
    std::copy(all.value.begin(), all.value.end(), value.data());
    std::copy(all.rows.begin(), all.rows.end(), rows.data());
    return nb::make_tuple(starts, column, code, value, rows);
}

static New<std::int32_t> bind_find_ensembles(Bytes codes, std::size_t ensembles, std::uint64_t seed) {
    const auto matrix = expect_bytes(codes);
    expect(ensembles > 0, "there are no ensembles");
    auto out = new_array<std::int32_t>({matrix.rows});
    nb::gil_scoped_release release;
    find_ensembles(ByteRows(matrix), ensembles, seed, out.data());
    return out;
}

using Splits = In<std::int32_t, 2>;
using Means = In<double, 3>;
using NodeRows = In<double, 2>;
using Unknown = std::optional<In<bool, 2>>;

static SymmetricWalk make_walk(const Matrix<std::uint8_t>& codes, const Splits& column, const Splits& code,
                               const In<bool, 1>& ordered, const Means& mean, const NodeRows& rows) {
    const std::size_t trees = column.shape(0), depth = column.shape(1);
    expect_depth(depth);
    expect_shape("code", code, {trees, depth});
    expect_shape("ordered", ordered, {codes.columns});
    expect_shape("mean", mean, {trees, std::size_t{2} << depth});
    expect_shape("rows", rows, {trees, std::size_t{2} << depth});
    bool known = true;
    for (std::size_t i = 0; i < trees * depth; ++i)
        known &= column.data()[i] >= -1 && column.data()[i] < static_cast<std::int64_t>(codes.columns);
    expect(known, "a tree splits an unknown column");
    return {trees, depth, mean.shape(2), column.data(), code.data(), ordered.data(), mean.data(), rows.data()};
}

static New<double> bind_leaf_values(Bytes codes, Unknown unknown, Splits column, Splits code, In<bool, 1> ordered,
                                    Means mean, NodeRows rows, In<std::int32_t, 1> part, std::size_t parts,
                                    std::optional<In<std::int32_t, 1>> ensemble_of_row,
                                    In<std::int32_t, 1> ensemble_of_tree) {
    const auto matrix = expect_bytes(codes);
    const auto walk = make_walk(matrix, column, code, ordered, mean, rows);
    const std::size_t trees = column.shape(0), outputs = mean.shape(2);
    expect_shape("part", part, {trees});
    expect_shape("ensemble_of_tree", ensemble_of_tree, {trees});
    if (ensemble_of_row) expect_shape("ensemble_of_row", *ensemble_of_row, {matrix.rows});
    if (unknown) expect_shape("unknown", *unknown, {matrix.rows, matrix.columns});
    bool within = true;
    for (std::size_t t = 0; t < trees; ++t)
        within &= part.data()[t] >= 0 && static_cast<std::size_t>(part.data()[t]) < parts;
    expect(within, "a tree is of an unknown part");
    auto out = new_array<double>({matrix.rows, parts, outputs});
    nb::gil_scoped_release release;
    std::fill_n(out.data(), matrix.rows * parts * outputs, 0.0);
    const auto mask = unknown ? view<bool>(*unknown) : Matrix<bool>{};
    walk.add_values(matrix, unknown ? &mask : nullptr, part.data(), parts,
                    ensemble_of_row ? ensemble_of_row->data() : nullptr, ensemble_of_tree.data(), out.data());
    return out;
}

static New<double> bind_symmetric_contributions(Bytes codes, Unknown unknown, Splits column, Splits code,
                                                In<bool, 1> ordered, Means mean, NodeRows rows) {
    const auto matrix = expect_bytes(codes);
    const auto walk = make_walk(matrix, column, code, ordered, mean, rows);
    if (unknown) expect_shape("unknown", *unknown, {matrix.rows, matrix.columns});
    auto out = new_array<double>({matrix.rows, matrix.columns, mean.shape(2)});
    nb::gil_scoped_release release;
    std::fill_n(out.data(), matrix.rows * matrix.columns * mean.shape(2), 0.0);
    const auto mask = unknown ? view<bool>(*unknown) : Matrix<bool>{};
    walk.add_contributions(matrix, unknown ? &mask : nullptr, out.data());
    return out;
}

// noconvert: a conversion to bytes would wrap codes beyond 255 around.
void bind_boosting(nb::module_& m) {
    m.def("boost", &bind_boost, nb::arg("codes").noconvert(), nb::arg("sizes"), nb::arg("ordered"), nb::arg("labels"),
          nb::arg("weights").none(), nb::arg("classes"), nb::arg("ensembles"), nb::arg("max_rounds"), nb::arg("depth"),
          nb::arg("learning_rate"), nb::arg("l2"), nb::arg("row_fraction"), nb::arg("column_fraction"),
          nb::arg("seed"));
    m.def("find_ensembles", &bind_find_ensembles, nb::arg("codes").noconvert(), nb::arg("ensembles"), nb::arg("seed"));
    m.def("leaf_values", &bind_leaf_values, nb::arg("codes").noconvert(), nb::arg("unknown").none(), nb::arg("column"),
          nb::arg("code"), nb::arg("ordered"), nb::arg("mean"), nb::arg("rows"), nb::arg("part"), nb::arg("parts"),
          nb::arg("ensemble_of_row").none(), nb::arg("ensemble_of_tree"));
    m.def("symmetric_contributions", &bind_symmetric_contributions, nb::arg("codes").noconvert(),
          nb::arg("unknown").none(), nb::arg("column"), nb::arg("code"), nb::arg("ordered"), nb::arg("mean"),
          nb::arg("rows"));
}

}  // namespace deciban
