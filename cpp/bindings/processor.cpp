// The instruction set that the kernels run with, for `deciban --version`.
#include <nanobind/nanobind.h>

#include "../kernels/portability.hpp"

namespace nb = nanobind;

namespace deciban {

void bind_processor(nb::module_& m) { m.def("instruction_set", &instruction_set); }

}  // namespace deciban
