#include "../kernels/density.hpp"
#include "../kernels/leave_one_out.hpp"
#include "../kernels/merge.hpp"
#include "../kernels/projection.hpp"
#include "../kernels/softmax.hpp"
#include "../kernels/triangle.hpp"
#include "arrays.hpp"

namespace deciban {

using Parameters = In<double, 2>;  // (class, column)

template <bool Quadratic>
static void add_columns(const AnyMatrix& x, const double* mean, const Parameters& factor, const Parameters& constant,
                        const Out<double, 2>& out) {
    const std::size_t classes = factor.shape(0), d = x.shape(1);
    expect_shape("factor", factor, {classes, d});
    expect_shape("constant", constant, {classes, d});
    expect_shape("out", out, {x.shape(0), classes});
    with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        add_log_density<Quadratic>(matrix, mean, factor.data(), constant.data(), classes, out.data());
    });
}

static void bind_quadratic(AnyMatrix x, Parameters mean, Parameters factor, Parameters constant, Out<double, 2> out) {
    expect_shape("mean", mean, {factor.shape(0), x.shape(1)});
    add_columns<true>(x, mean.data(), factor, constant, out);
}

static void bind_linear(AnyMatrix x, Parameters factor, Parameters constant, Out<double, 2> out) {
    add_columns<false>(x, nullptr, factor, constant, out);
}

// out (rows, classes) += constant - |T (x - mean)|^2 / 2
static void bind_add_whitened(AnyMatrix x, In<double, 3> lower, Parameters means, In<double, 1> constants,
                              Out<double, 2> out) {
    const std::size_t classes = lower.shape(0), d = x.shape(1);
    expect_shape("lower", lower, {classes, d, d});
    expect_shape("means", means, {classes, d});
    expect_shape("constants", constants, {classes});
    expect_shape("out", out, {x.shape(0), classes});
    std::vector<Triangle> triangles;
    for (std::size_t k = 0; k < classes; ++k) triangles.emplace_back(d, lower.data() + k * d * d, means.data() + k * d);
    with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        whiten(matrix, triangles, false,
               [&](std::size_t k, std::size_t first, std::size_t rows, const double* squares, const double*) {
                   for (std::size_t i = 0; i < rows; ++i)
                       out.data()[(first + i) * classes + k] += constants.data()[k] - 0.5 * squares[i];
               });
    });
}

static void bind_project_out(In<double, 2> lower, In<bool, 2> unknown, In<std::int64_t, 1> starts,
                             In<std::int64_t, 1> rows, Out<double, 3> vectors, Out<double, 1> log_det) {
    const std::size_t groups = unknown.shape(0), d = lower.shape(0), n = log_det.shape(0);
    expect_shape("lower", lower, {d, d});
    expect_shape("unknown", unknown, {groups, d});
    expect_shape("starts", starts, {groups + 1});
    expect_shape("vectors", vectors, {vectors.shape(0), n, d});
    expect(starts.data()[0] == 0 && std::is_sorted(starts.data(), starts.data() + groups + 1),
           "starts must ascend from 0");
    expect(static_cast<std::size_t>(starts.data()[groups]) == rows.shape(0), "rows do not end where groups do");
    std::vector<bool> seen(n);
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
        const auto row = static_cast<std::size_t>(rows.data()[i]);
        expect(row < n && !seen[row], "a row does not exist, or is in two groups");
        seen[row] = true;
    }
    nb::gil_scoped_release release;
    project_out(lower.data(), d, unknown.data(), groups, starts.data(), rows.data(), vectors.data(), vectors.shape(0),
                n, log_det.data());
}

static New<double> bind_whiten(AnyMatrix x, In<double, 2> lower, In<double, 1> mean) {
    const std::size_t d = x.shape(1);
    expect_shape("lower", lower, {d, d});
    expect_shape("mean", mean, {d});
    const std::vector<Triangle> one{Triangle(d, lower.data(), mean.data())};
    auto out = new_array<double>({x.shape(0), d});
    with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        whiten(matrix, one, true,
               [&](std::size_t, std::size_t first, std::size_t rows, const double*, const double* z) {
                   for (std::size_t i = 0; i < rows; ++i)
                       for (std::size_t j = 0; j < d; ++j) out.data()[(first + i) * d + j] = z[j * Triangle::rows + i];
               });
    });
    return out;
}

// (own, unsafe): each row's log-density under its class estimated without it, and the rows where the downdate loses
// digits.
static nb::tuple bind_leave_one_out(AnyMatrix x, Labels labels, Parameters mean, Parameters scale, Parameters gain,
                                    Parameters constant) {
    const std::size_t classes = mean.shape(0), d = x.shape(1);
    expect_shape("mean", mean, {classes, d});
    expect_shape("scale", scale, {classes, d});
    expect_shape("gain", gain, {classes, d});
    expect_shape("constant", constant, {classes, d});
    expect_labels(labels, x.shape(0), classes);
    auto own = new_array<double>({x.shape(0)});
    auto unsafe = new_array<bool>({x.shape(0)});
    with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        leave_one_out_densities(matrix, labels.data(), mean.data(), scale.data(), gain.data(), constant.data(), classes,
                                own.data(), unsafe.data());
    });
    return nb::make_tuple(own, unsafe);
}

// (values, count_a, count_b): the distinct values of two sorted lists, and how many of each list are at or below them.
static nb::tuple bind_merge_sorted(In<double, 1> a, In<double, 1> b) {
    const std::size_t max_values = a.shape(0) + b.shape(0);
    auto values = std::make_unique<double[]>(max_values + 1);
    auto count_a = std::make_unique<std::int64_t[]>(max_values + 1),
         count_b = std::make_unique<std::int64_t[]>(max_values + 1);
    std::size_t distinct;
    {
        nb::gil_scoped_release release;
        distinct = merge_sorted(a.data(), a.shape(0), b.data(), b.shape(0), values.get(), count_a.get(), count_b.get());
    }
    const auto owned = [&](auto* raw) {
        using T = std::remove_pointer_t<decltype(raw)>;
        nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
        return New<T>(raw, {distinct}, owner);
    };
    return nb::make_tuple(owned(values.release()), owned(count_a.release()), owned(count_b.release()));
}

static New<bool> bind_rows_with_nan(AnyMatrix x) {
    auto incomplete = new_array<bool>({x.shape(0)});
    with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        rows_with_nan(matrix, incomplete.data());
    });
    return incomplete;
}

template <class Joint>
static void expect_classes(const Joint& joint, const In<double, 1>& fallback) {
    expect(joint.shape(1) > 0, "no classes");
    expect_shape("fallback", fallback, {joint.shape(1)});
}

static std::size_t bind_normalise(Out<double, 2> joint, In<double, 1> fallback, bool logs) {
    expect_classes(joint, fallback);
    nb::gil_scoped_release release;
    return normalise(joint.data(), joint.shape(0), joint.shape(1), fallback.data(), logs);
}

static nb::tuple bind_most_probable(In<double, 2> joint, In<double, 1> fallback) {
    expect_classes(joint, fallback);
    auto chosen = new_array<std::int64_t>({joint.shape(0)});
    std::size_t impossible;
    {
        nb::gil_scoped_release release;
        impossible = most_probable(joint.data(), joint.shape(0), joint.shape(1), fallback.data(), chosen.data());
    }
    return nb::make_tuple(chosen, impossible);
}

void bind_densities(nb::module_& m) {
    m.def("add_quadratic", &bind_quadratic, nb::arg("x"), nb::arg("mean"), nb::arg("factor"), nb::arg("constant"),
          nb::arg("out").noconvert());
    m.def("add_linear", &bind_linear, nb::arg("x"), nb::arg("factor"), nb::arg("constant"), nb::arg("out").noconvert());
    m.def("add_whitened", &bind_add_whitened, nb::arg("x"), nb::arg("lower"), nb::arg("means"), nb::arg("constants"),
          nb::arg("out").noconvert());
    m.def("project_out", &bind_project_out, nb::arg("lower"), nb::arg("unknown"), nb::arg("starts"), nb::arg("rows"),
          nb::arg("vectors").noconvert(), nb::arg("log_det").noconvert());
    m.def("whiten", &bind_whiten, nb::arg("x"), nb::arg("lower"), nb::arg("mean"));
    m.def("rows_with_nan", &bind_rows_with_nan, nb::arg("x"));
    m.def("leave_one_out_densities", &bind_leave_one_out, nb::arg("x"), nb::arg("labels"), nb::arg("mean"),
          nb::arg("scale"), nb::arg("gain"), nb::arg("constant"));
    m.def("merge_sorted", &bind_merge_sorted, nb::arg("a"), nb::arg("b"));
    m.def("most_probable", &bind_most_probable, nb::arg("joint"), nb::arg("fallback"));
    m.def("normalise", &bind_normalise, nb::arg("joint").noconvert(), nb::arg("fallback"), nb::arg("logs"));
}

}  // namespace deciban
