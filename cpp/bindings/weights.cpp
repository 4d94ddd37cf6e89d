#include "../kernels/changed_weights.hpp"
#include "../kernels/weight_solver.hpp"

#include "arrays.hpp"

namespace deciban {

// theta (C, P + 1), J, the number of Newton steps, and whether it converged
static nb::tuple bind_fit_weights(In<double, 3> values, In<double, 2> offset, Labels labels, Weights weights,
                                  In<std::int32_t, 1> groups, double penalty, double level, double bias, double target,
                                  std::optional<In<double, 2>> start, double tol, int steps, std::size_t wide) {
    const std::size_t scores = values.shape(0), rows = values.shape(1), pieces = values.shape(2);
    expect(scores > 0, "values: one score column is needed");
    expect_cells(scores, expect_cells(rows + 4, pieces + 5));
    expect_shape("offset", offset, {scores, rows});
    expect_labels(labels, rows, std::max<std::size_t>(2, scores));
    expect_weights(weights, rows);
    expect_shape("groups", groups, {pieces});
    for (std::size_t p = 0; p < pieces; ++p)
        expect(groups.data()[p] >= 0 && static_cast<std::size_t>(groups.data()[p]) < pieces, "group out of range");
    if (start) expect_shape("start", *start, {scores, pieces + 1});
    nb::gil_scoped_release release;
    const WeightProblem problem(scores, rows, pieces, values.data(), offset.data(), labels.data(),
                                data_or_null(weights), groups.data(), penalty, level, bias, target);
    Doubles first;
    if (start) {
        first.assign(problem.size(), 0.0);
        for (std::size_t c = 0; c < scores; ++c)
            std::copy_n(start->data() + c * (pieces + 1), pieces + 1, first.data() + c * problem.width);
    }
    const WeightSolution solution = solve_weights(problem, first, tol, steps, wide, [] {
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    });
    nb::gil_scoped_acquire acquire;
    auto theta = new_array<double>({scores, pieces + 1});
    for (std::size_t c = 0; c < scores; ++c)
        std::copy_n(solution.theta.data() + c * problem.width, pieces + 1, theta.data() + c * (pieces + 1));
    return nb::make_tuple(theta, solution.value, solution.steps, solution.converged);
}

static void bind_add_changed(In<double, 3> evidence, In<bool, 2> unknown, In<double, 2> weights, In<double, 3> changes,
                             In<bool, 2> alone, Out<double, 2> out) {
    const std::size_t rows = evidence.shape(0), pieces = weights.shape(0), classes = weights.shape(1);
    const std::size_t features = changes.shape(0);
    expect_shape("evidence", evidence, {rows, pieces, classes});
    expect_shape("unknown", unknown, {rows, features});
    expect_shape("changes", changes, {features, pieces, classes});
    expect_shape("alone", alone, {features, pieces});
    expect_shape("out", out, {rows, classes});
    nb::gil_scoped_release release;
    add_changed({pieces, classes, features, weights.data(), changes.data(), alone.data()}, evidence.data(),
                unknown.data(), rows, out.data());
}

void bind_weights(nb::module_& m) {
    m.def("add_changed", &bind_add_changed, nb::arg("evidence"), nb::arg("unknown"), nb::arg("weights"),
          nb::arg("changes"), nb::arg("alone"), nb::arg("out").noconvert());
    m.def("fit_weights", &bind_fit_weights, nb::arg("values"), nb::arg("offset"), nb::arg("labels"),
          nb::arg("weights").none(), nb::arg("groups"), nb::arg("penalty"), nb::arg("level"), nb::arg("bias"),
          nb::arg("target"), nb::arg("start").none(), nb::arg("tol"), nb::arg("steps"), nb::arg("wide"));
}

}  // namespace deciban
