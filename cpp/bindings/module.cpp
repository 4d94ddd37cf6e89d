#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace deciban {
void bind_sums(nb::module_&);
void bind_densities(nb::module_&);
void bind_scatter(nb::module_&);
void bind_tables(nb::module_&);
void bind_linear(nb::module_&);
void bind_records(nb::module_&);
void bind_forest(nb::module_&);
void bind_boosting(nb::module_&);
void bind_cells(nb::module_&);
void bind_text(nb::module_&);
void bind_processor(nb::module_&);
void bind_weights(nb::module_&);
}  // namespace deciban

NB_MODULE(_kernels, m) {
    nb::set_leak_warnings(false);  // objects alive at interpreter exit are not a bug
    m.doc() = "The hot loops of deciban.";
    deciban::bind_sums(m);
    deciban::bind_densities(m);
    deciban::bind_scatter(m);
    deciban::bind_tables(m);
    deciban::bind_linear(m);
    deciban::bind_records(m);
    deciban::bind_forest(m);
    deciban::bind_boosting(m);
    deciban::bind_cells(m);
    deciban::bind_text(m);
    deciban::bind_processor(m);
    deciban::bind_weights(m);
}
