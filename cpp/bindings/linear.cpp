#include "../kernels/linear.hpp"

#include "../kernels/sparse_linear.hpp"
#include "arrays.hpp"
#include "sparse_rows.hpp"

namespace deciban {

using Vector = In<double, 1>;

static Predictors make_predictors(const AnyMatrix& x, const In<double, 2>& w, const Vector& constant,
                                  const Vector& origin) {
    const std::size_t m = w.shape(0), d = x.shape(1);
    expect_shape("w", w, {m, d});
    expect_shape("constant", constant, {m});
    expect_shape("origin", origin, {d});
    return {m, d, w.data(), constant.data(), origin.data()};
}

// (m, d + 1), with the intercept last
static New<double> gradient_of(const Pass& pass, std::size_t m, std::size_t d, std::size_t row_stride,
                               std::size_t column_stride) {
    auto out = new_array<double>({m, d + 1});
    for (std::size_t k = 0; k < m; ++k) {
        for (std::size_t j = 0; j < d; ++j) out.data()[k * (d + 1) + j] = pass.sums[k * row_stride + j * column_stride];
        out.data()[k * (d + 1) + d] = pass.residuals[k];
    }
    return out;
}

static nb::tuple bind_softmax_pass(AnyMatrix x, In<double, 2> w, Vector constant, Vector origin, Labels labels,
                                   Weights weights) {
    const auto p = make_predictors(x, w, constant, origin);
    expect_labels(labels, x.shape(0), p.m + 1);
    expect_weights(weights, x.shape(0));
    const Pass pass = with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        return softmax_pass(matrix, p, labels.data(), data_or_null(weights));
    });
    return nb::make_tuple(pass.loss, gradient_of(pass, p.m, p.d, p.width, 1));
}

static New<double> bind_predictors(AnyMatrix x, In<double, 2> w, Vector constant, Vector origin) {
    const auto p = make_predictors(x, w, constant, origin);
    auto out = new_array<double>({x.shape(0), p.m});
    with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        predictors(matrix, p, out.data());
    });
    return out;
}

static New<double> bind_residual_sums(AnyMatrix x, Vector origin, In<double, 2> residual) {
    const std::size_t m = residual.shape(1), d = x.shape(1);
    expect_shape("residual", residual, {x.shape(0), m});
    expect_shape("origin", origin, {d});
    const std::vector<double> zeros(expect_cells(m, d), 0.0);
    const Predictors p(m, d, zeros.data(), nullptr, origin.data());
    const Pass pass = with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        return residual_sums(matrix, p, residual.data());
    });
    return gradient_of(pass, m, d, p.width, 1);
}

static New<double> bind_column_sums(AnyMatrix x, Vector origin, Vector weights) {
    const std::size_t d = x.shape(1);
    expect_shape("weights", weights, {x.shape(0)});
    expect_shape("origin", origin, {d});
    const std::vector<double> zeros(d, 0.0);
    const Predictors p(1, d, zeros.data(), nullptr, origin.data());
    const Pass pass = with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        return column_sums(matrix, p, weights.data());
    });
    auto out = new_array<double>({2, d});
    for (std::size_t k = 0; k < 2; ++k) std::copy_n(pass.sums.data() + k * p.width, d, out.data() + k * d);
    return out;
}

template <class Index>
static nb::tuple bind_sparse_softmax_pass(Vector values, Indices<Index> columns, Indices<Index> starts, In<double, 2> w,
                                          Vector constant, Labels labels, Weights weights) {
    const std::size_t m = w.shape(1);
    const auto x = sparse(values, columns, starts, w.shape(0));
    expect_shape("constant", constant, {m});
    expect_labels(labels, x.rows, m + 1);
    expect_weights(weights, x.rows);
    nb::gil_scoped_release release;
    const Pass pass = softmax_pass(x, m, w.data(), constant.data(), labels.data(), data_or_null(weights));
    nb::gil_scoped_acquire acquire;
    return nb::make_tuple(pass.loss, gradient_of(pass, m, x.width, 1, m));
}

template <class Index>
static New<double> bind_sparse_predictors(Vector values, Indices<Index> columns, Indices<Index> starts, In<double, 2> w,
                                          Vector constant) {
    const std::size_t m = w.shape(1);
    const auto x = sparse(values, columns, starts, w.shape(0));
    expect_shape("constant", constant, {m});
    auto out = new_array<double>({x.rows, m});
    nb::gil_scoped_release release;
    predictors(x, m, w.data(), constant.data(), out.data());
    return out;
}

template <class Index>
static New<double> bind_sparse_residual_sums(Vector values, Indices<Index> columns, Indices<Index> starts,
                                             std::size_t width, In<double, 2> residual) {
    const auto x = sparse(values, columns, starts, width);
    const std::size_t m = residual.shape(1);
    expect_shape("residual", residual, {x.rows, m});
    expect_cells(m, width);
    nb::gil_scoped_release release;
    const Pass pass = residual_sums(x, m, residual.data());
    nb::gil_scoped_acquire acquire;
    return gradient_of(pass, m, width, 1, m);
}

template <class Index>
static void bind_sparse_linear(nb::module_& m) {
    m.def("sparse_softmax_pass", &bind_sparse_softmax_pass<Index>, nb::arg("values"), nb::arg("columns"),
          nb::arg("starts"), nb::arg("w"), nb::arg("constant"), nb::arg("labels"), nb::arg("weights").none());
    m.def("sparse_predictors", &bind_sparse_predictors<Index>, nb::arg("values"), nb::arg("columns"), nb::arg("starts"),
          nb::arg("w"), nb::arg("constant"));
    m.def("sparse_residual_sums", &bind_sparse_residual_sums<Index>, nb::arg("values"), nb::arg("columns"),
          nb::arg("starts"), nb::arg("width"), nb::arg("residual"));
}

void bind_linear(nb::module_& m) {
    m.def("softmax_pass", &bind_softmax_pass, nb::arg("x"), nb::arg("w"), nb::arg("constant"), nb::arg("origin"),
          nb::arg("labels"), nb::arg("weights").none());
    m.def("predictors", &bind_predictors, nb::arg("x"), nb::arg("w"), nb::arg("constant"), nb::arg("origin"));
    m.def("residual_sums", &bind_residual_sums, nb::arg("x"), nb::arg("origin"), nb::arg("residual"));
    m.def("column_sums", &bind_column_sums, nb::arg("x"), nb::arg("origin"), nb::arg("weights"));
    bind_sparse_linear<std::int32_t>(m);
    bind_sparse_linear<std::int64_t>(m);
}

}  // namespace deciban
