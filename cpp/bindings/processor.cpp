// The instruction set that the kernels run with, for `deciban --version`.
#include <nanobind/nanobind.h>

#include "../kernels/simd.hpp"

namespace nb = nanobind;

namespace deciban {

#define DECIBAN_TEXT(...) #__VA_ARGS__
#define DECIBAN_EXPANDED(...) DECIBAN_TEXT(__VA_ARGS__)

// "x86-64-v3" or "x86-64", whichever was chosen when the kernels were loaded; "" where they were compiled once.
static const char* instruction_set() {
#if defined(__x86_64__) && defined(__GNUC__)
    const bool cloned = sizeof(DECIBAN_EXPANDED(DECIBAN_CLONES)) > 1;
    if (cloned) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "x86-64-v3" : "x86-64";
#endif
    return "";
}

void bind_processor(nb::module_& m) { m.def("instruction_set", &instruction_set); }

}  // namespace deciban
