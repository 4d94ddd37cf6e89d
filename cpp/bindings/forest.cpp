#include "../kernels/forest.hpp"
#include "../kernels/leaves.hpp"
#include "codes.hpp"

namespace deciban {

static void expect_forest(std::size_t trees, double share) {
    expect(trees <= std::size_t{1} << 20, "more than 2^20 trees");
    expect(share >= 0 && share <= 1, "share is not between 0 and 1");
}

static nb::tuple bind_grow(Bytes codes, Sizes sizes, In<bool, 1> ordered, Labels labels, Weights weights, std::size_t classes,
                           std::size_t trees, double share, std::size_t tries, double least, std::size_t most_deep, std::uint64_t seed) {
    const auto matrix = expect_bytes_below(codes, sizes);
    expect_shape("ordered", ordered, {matrix.columns});
    expect_labels(labels, matrix.rows, classes);
    expect_positive_weights(weights, matrix.rows);
    expect_forest(trees, share);
    expect(tries > 0, "tries: a node tries a column at least");
    expect(least >= 0, "least is negative");
    std::vector<Tree> forest;
    {
        nb::gil_scoped_release release;
        forest = grow_forest(matrix, sizes.data(), ordered.data(), labels.data(), data_or_null(weights), {classes, trees, tries, most_deep, share, least, seed});
    }
    auto starts = new_array<std::int64_t>({trees + 1});
    starts.data()[0] = 0;
    for (std::size_t t = 0; t < trees; ++t) starts.data()[t + 1] = starts.data()[t] + static_cast<std::int64_t>(forest[t].column.size());
    const auto nodes = static_cast<std::size_t>(starts.data()[trees]);
    auto column = new_array<std::int32_t>({nodes}), code = new_array<std::int32_t>({nodes}), left = new_array<std::int32_t>({nodes});
    for (std::size_t t = 0; t < trees; ++t) {
        const auto at = starts.data()[t];
        std::copy(forest[t].column.begin(), forest[t].column.end(), column.data() + at);
        std::copy(forest[t].code.begin(), forest[t].code.end(), code.data() + at);
        std::copy(forest[t].left.begin(), forest[t].left.end(), left.data() + at);
    }
    return nb::make_tuple(starts, column, code, left);
}

static New<bool> bind_in_bag(Bytes codes, std::size_t trees, double share, std::uint64_t seed) {
    const auto matrix = expect_bytes(codes);
    expect_forest(trees, share);
    auto out = new_array<bool>({matrix.rows, trees});
    nb::gil_scoped_release release;
    mark_bags(ByteRows(matrix), trees, share, seed, out.data());
    return out;
}

using Nodes = In<std::int32_t, 1>;

static Walk walk_of(const Matrix<std::uint8_t>& codes, const Offsets& starts, const Nodes& column, const Nodes& code, const Nodes& left,
                    const In<bool, 1>& ordered) {
    expect_shape("ordered", ordered, {codes.columns});
    expect(starts.shape(0) > 0, "starts is empty");
    expect_shape("code", code, {column.shape(0)});
    expect_shape("left", left, {column.shape(0)});
    Walk walk;
    const char* wrong = walk.read(starts.shape(0) - 1, starts.data(), column.data(), code.data(), left.data(), ordered.data(), codes.columns, column.shape(0));
    expect(!wrong, wrong);
    return walk;
}

static New<std::int32_t> bind_find_leaves(Bytes codes, Offsets starts, Nodes column, Nodes code, Nodes left, In<bool, 1> ordered) {
    const auto matrix = expect_bytes(codes);
    const Walk walk = walk_of(matrix, starts, column, code, left, ordered);
    auto out = new_array<std::int32_t>({matrix.rows, starts.shape(0) - 1});
    nb::gil_scoped_release release;
    walk.find(matrix, out.data());
    return out;
}

static New<double> bind_tree_shares(Bytes codes, Offsets starts, Nodes column, Nodes code, Nodes left, In<bool, 1> ordered, In<double, 2> said) {
    const auto matrix = expect_bytes(codes);
    const Walk walk = walk_of(matrix, starts, column, code, left, ordered);
    const std::size_t classes = said.shape(1);
    expect_shape("said", said, {column.shape(0), classes});
    auto out = new_array<double>({matrix.rows, matrix.columns, classes});
    nb::gil_scoped_release release;
    std::fill(out.data(), out.data() + matrix.rows * matrix.columns * classes, 0.0);
    walk.share(matrix, said.data(), classes, out.data());
    return out;
}

using Unknown = In<bool, 2>;

static New<double> bind_pooled_leaves(Bytes codes, Unknown unknown, Offsets starts, Nodes column, Nodes code, Nodes left, In<bool, 1> ordered,
                                      In<double, 2> counts, std::optional<In<bool, 2>> skip) {
    const auto matrix = expect_bytes(codes);
    const Walk walk = walk_of(matrix, starts, column, code, left, ordered);
    const std::size_t classes = counts.shape(1);
    if (skip) expect_shape("skip", *skip, {matrix.rows, starts.shape(0) - 1});
    expect_shape("unknown", unknown, {matrix.rows, matrix.columns});
    expect_shape("counts", counts, {column.shape(0), classes});
    auto out = new_array<double>({starts.shape(0) - 1, matrix.rows, classes});
    nb::gil_scoped_release release;
    walk.pool(matrix, view<bool>(unknown), counts.data(), classes, skip ? skip->data() : nullptr, out.data());
    return out;
}

static New<double> bind_pooled_shares(Bytes codes, Unknown unknown, Offsets starts, Nodes column, Nodes code, Nodes left, In<bool, 1> ordered,
                                      In<double, 2> counts, In<double, 1> prior, double smoothing) {
    const auto matrix = expect_bytes(codes);
    const Walk walk = walk_of(matrix, starts, column, code, left, ordered);
    const std::size_t classes = counts.shape(1);
    expect_shape("unknown", unknown, {matrix.rows, matrix.columns});
    expect_shape("counts", counts, {column.shape(0), classes});
    expect_shape("prior", prior, {classes});
    auto out = new_array<double>({matrix.rows, matrix.columns, classes});
    nb::gil_scoped_release release;
    std::fill(out.data(), out.data() + matrix.rows * matrix.columns * classes, 0.0);
    walk.share_pooled(matrix, view<bool>(unknown), counts.data(), prior.data(), classes, smoothing, out.data());
    return out;
}

// Codes are not converted: numbers beyond 255 would become others.
void bind_forest(nb::module_& m) {
    m.def("grow_forest", &bind_grow, nb::arg("codes").noconvert(), nb::arg("sizes"), nb::arg("ordered"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("classes"), nb::arg("trees"), nb::arg("share"), nb::arg("tries"), nb::arg("least"), nb::arg("most_deep"), nb::arg("seed"));
    m.def("in_bag", &bind_in_bag, nb::arg("codes").noconvert(), nb::arg("trees"), nb::arg("share"), nb::arg("seed"));
    m.def("find_leaves", &bind_find_leaves, nb::arg("codes").noconvert(), nb::arg("starts"), nb::arg("column"), nb::arg("code"), nb::arg("left"), nb::arg("ordered"));
    m.def("tree_shares", &bind_tree_shares, nb::arg("codes").noconvert(), nb::arg("starts"), nb::arg("column"), nb::arg("code"), nb::arg("left"), nb::arg("ordered"), nb::arg("said"));
    m.def("pooled_leaves", &bind_pooled_leaves, nb::arg("codes").noconvert(), nb::arg("unknown"), nb::arg("starts"), nb::arg("column"), nb::arg("code"), nb::arg("left"), nb::arg("ordered"), nb::arg("counts"), nb::arg("skip").none());
    m.def("pooled_shares", &bind_pooled_shares, nb::arg("codes").noconvert(), nb::arg("unknown"), nb::arg("starts"), nb::arg("column"), nb::arg("code"), nb::arg("left"), nb::arg("ordered"), nb::arg("counts"), nb::arg("prior"), nb::arg("smoothing"));
}

}  // namespace deciban
