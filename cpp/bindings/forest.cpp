#include "../kernels/forest.hpp"
#include "../kernels/leaves.hpp"
#include "codes.hpp"

namespace deciban {

static void expect_forest(std::size_t trees, double bag_fraction) {
    expect(trees <= std::size_t{1} << 20, "more than 2^20 trees");
    expect(bag_fraction >= 0 && bag_fraction <= 1, "bag_fraction must be between 0 and 1");
}

static nb::tuple bind_grow(Bytes codes, Sizes sizes, In<bool, 1> ordered, Labels labels, Weights weights,
                           std::size_t classes, std::size_t trees, double bag_fraction, std::size_t max_columns,
                           double min_weight, std::size_t max_depth, std::uint64_t seed) {
    const auto matrix = expect_bytes_below(codes, sizes);
    expect_shape("ordered", ordered, {matrix.columns});
    expect_labels(labels, matrix.rows, classes);
    expect_positive_weights(weights, matrix.rows);
    expect_forest(trees, bag_fraction);
    expect(max_columns > 0, "max_columns must be at least 1");
    expect(min_weight >= 0, "min_weight must not be negative");
    std::vector<Tree> forest;
    {
        nb::gil_scoped_release release;
        forest = grow_forest(matrix, sizes.data(), ordered.data(), labels.data(), data_or_null(weights),
                             {classes, trees, max_columns, max_depth, bag_fraction, min_weight, seed});
    }
    auto starts = new_array<std::int64_t>({trees + 1});
    starts.data()[0] = 0;
    for (std::size_t t = 0; t < trees; ++t)
        starts.data()[t + 1] = starts.data()[t] + static_cast<std::int64_t>(forest[t].column.size());
    const auto nodes = static_cast<std::size_t>(starts.data()[trees]);
    auto column = new_array<std::int32_t>({nodes}), code = new_array<std::int32_t>({nodes}),
         left = new_array<std::int32_t>({nodes});
    for (std::size_t t = 0; t < trees; ++t) {
        const auto first = starts.data()[t];
        std::copy(forest[t].column.begin(), forest[t].column.end(), column.data() + first);
        std::copy(forest[t].code.begin(), forest[t].code.end(), code.data() + first);
        std::copy(forest[t].left.begin(), forest[t].left.end(), left.data() + first);
    }
    return nb::make_tuple(starts, column, code, left);
}

static New<bool> bind_in_bag(Bytes codes, std::size_t trees, double bag_fraction, std::uint64_t seed) {
    const auto matrix = expect_bytes(codes);
    expect_forest(trees, bag_fraction);
    auto out = new_array<bool>({matrix.rows, trees});
    nb::gil_scoped_release release;
    mark_bags(ByteRows(matrix), trees, bag_fraction, seed, out.data());
    return out;
}

using Nodes = In<std::int32_t, 1>;

static ForestWalk make_walk(const Matrix<std::uint8_t>& codes, const Offsets& starts, const Nodes& column,
                            const Nodes& code, const Nodes& left, const In<bool, 1>& ordered) {
    expect_shape("ordered", ordered, {codes.columns});
    expect(starts.shape(0) > 0, "starts is empty");
    expect_shape("code", code, {column.shape(0)});
    expect_shape("left", left, {column.shape(0)});
    ForestWalk walk;
    const char* error = walk.load(starts.shape(0) - 1, starts.data(), column.data(), code.data(), left.data(),
                                  ordered.data(), codes.columns, column.shape(0));
    expect(!error, error);
    return walk;
}

static New<std::int32_t> bind_find_leaves(Bytes codes, Offsets starts, Nodes column, Nodes code, Nodes left,
                                          In<bool, 1> ordered) {
    const auto matrix = expect_bytes(codes);
    const ForestWalk walk = make_walk(matrix, starts, column, code, left, ordered);
    auto out = new_array<std::int32_t>({matrix.rows, starts.shape(0) - 1});
    nb::gil_scoped_release release;
    walk.find(matrix, out.data());
    return out;
}

static New<double> bind_tree_contributions(Bytes codes, Offsets starts, Nodes column, Nodes code, Nodes left,
                                           In<bool, 1> ordered, In<double, 2> node_scores) {
    const auto matrix = expect_bytes(codes);
    const ForestWalk walk = make_walk(matrix, starts, column, code, left, ordered);
    const std::size_t classes = node_scores.shape(1);
    expect_shape("node_scores", node_scores, {column.shape(0), classes});
    auto out = new_array<double>({matrix.rows, matrix.columns, classes});
    nb::gil_scoped_release release;
    std::fill(out.data(), out.data() + matrix.rows * matrix.columns * classes, 0.0);
    walk.add_contributions(matrix, node_scores.data(), classes, out.data());
    return out;
}

using Unknown = In<bool, 2>;

static New<double> bind_pooled_leaf_counts(Bytes codes, Unknown unknown, Offsets starts, Nodes column, Nodes code,
                                           Nodes left, In<bool, 1> ordered, In<double, 2> counts,
                                           std::optional<In<bool, 2>> skip) {
    const auto matrix = expect_bytes(codes);
    const ForestWalk walk = make_walk(matrix, starts, column, code, left, ordered);
    const std::size_t classes = counts.shape(1);
    if (skip) expect_shape("skip", *skip, {matrix.rows, starts.shape(0) - 1});
    expect_shape("unknown", unknown, {matrix.rows, matrix.columns});
    expect_shape("counts", counts, {column.shape(0), classes});
    auto out = new_array<double>({starts.shape(0) - 1, matrix.rows, classes});
    nb::gil_scoped_release release;
    walk.pooled_leaf_counts(matrix, view<bool>(unknown), counts.data(), classes, skip ? skip->data() : nullptr,
                            out.data());
    return out;
}

static New<double> bind_pooled_contributions(Bytes codes, Unknown unknown, Offsets starts, Nodes column, Nodes code,
                                             Nodes left, In<bool, 1> ordered, In<double, 2> counts, In<double, 1> prior,
                                             double smoothing) {
    const auto matrix = expect_bytes(codes);
    const ForestWalk walk = make_walk(matrix, starts, column, code, left, ordered);
    const std::size_t classes = counts.shape(1);
    expect_shape("unknown", unknown, {matrix.rows, matrix.columns});
    expect_shape("counts", counts, {column.shape(0), classes});
    expect_shape("prior", prior, {classes});
    auto out = new_array<double>({matrix.rows, matrix.columns, classes});
    nb::gil_scoped_release release;
    std::fill(out.data(), out.data() + matrix.rows * matrix.columns * classes, 0.0);
    walk.add_pooled_contributions(matrix, view<bool>(unknown), counts.data(), prior.data(), classes, smoothing,
                                  out.data());
    return out;
}

// noconvert: a conversion to bytes would wrap codes beyond 255 around.
void bind_forest(nb::module_& m) {
    m.def("grow_forest", &bind_grow, nb::arg("codes").noconvert(), nb::arg("sizes"), nb::arg("ordered"),
          nb::arg("labels"), nb::arg("weights").none(), nb::arg("classes"), nb::arg("trees"), nb::arg("bag_fraction"),
          nb::arg("max_columns"), nb::arg("min_weight"), nb::arg("max_depth"), nb::arg("seed"));
    m.def("in_bag", &bind_in_bag, nb::arg("codes").noconvert(), nb::arg("trees"), nb::arg("bag_fraction"),
          nb::arg("seed"));
    m.def("find_leaves", &bind_find_leaves, nb::arg("codes").noconvert(), nb::arg("starts"), nb::arg("column"),
          nb::arg("code"), nb::arg("left"), nb::arg("ordered"));
    m.def("tree_contributions", &bind_tree_contributions, nb::arg("codes").noconvert(), nb::arg("starts"),
          nb::arg("column"), nb::arg("code"), nb::arg("left"), nb::arg("ordered"), nb::arg("node_scores"));
    m.def("pooled_leaf_counts", &bind_pooled_leaf_counts, nb::arg("codes").noconvert(), nb::arg("unknown"),
          nb::arg("starts"), nb::arg("column"), nb::arg("code"), nb::arg("left"), nb::arg("ordered"), nb::arg("counts"),
          nb::arg("skip").none());
    m.def("pooled_contributions", &bind_pooled_contributions, nb::arg("codes").noconvert(), nb::arg("unknown"),
          nb::arg("starts"), nb::arg("column"), nb::arg("code"), nb::arg("left"), nb::arg("ordered"), nb::arg("counts"),
          nb::arg("prior"), nb::arg("smoothing"));
}

}  // namespace deciban
