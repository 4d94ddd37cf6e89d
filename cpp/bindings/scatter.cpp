#include "../kernels/scatter.hpp"

#include "arrays.hpp"

namespace deciban {

// count (words, K, 1), skipped (words, K, 1), sum (K, d), products (K or 1, d, d) as full symmetric matrices
static nb::tuple bind_scatter_rows(AnyMatrix x, Labels codes, Weights weights, In<double, 2> origin, bool shared) {
    const std::size_t classes = origin.shape(0), d = x.shape(1), groups = shared ? 1 : classes;
    expect_shape("origin", origin, {classes, d});
    expect_labels(codes, x.shape(0), classes);
    expect_weights(weights, x.shape(0));
    expect_cells(groups, expect_cells(d, d));
    Scatter result = with_floats(x, [&](const auto& matrix) {
        nb::gil_scoped_release release;
        return scatter(matrix, codes.data(), data_or_null(weights), origin.data(), classes, shared);
    });
    auto sum = new_array<double>({classes, d}), products = new_array<double>({groups, d, d});
    std::copy(result.sum.begin(), result.sum.end(), sum.data());
    for (std::size_t g = 0; g < groups; ++g)
        for (std::size_t i = 0; i < d; ++i)
            for (std::size_t j = i; j < d; ++j) {
                const double value = result.products[(g * result.width + i) * result.width + j];
                products.data()[(g * d + i) * d + j] = products.data()[(g * d + j) * d + i] = value;
            }
    return nb::make_tuple(canonical_words(result.count, classes, 1), canonical_words(result.skipped, classes, 1), sum,
                          products);
}

void bind_scatter(nb::module_& m) {
    m.def("scatter", &bind_scatter_rows, nb::arg("x"), nb::arg("codes"), nb::arg("weights").none(), nb::arg("origin"),
          nb::arg("shared"));
}

}  // namespace deciban
