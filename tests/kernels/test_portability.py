"""Only cpp/kernels/portability.hpp depends on the compiler: all other files are standard C++17."""

import re
from pathlib import Path

CPP = Path(__file__).parents[2] / "cpp"
OF_A_COMPILER = re.compile(
    r"__builtin_|__attribute__|__asm__|__int128|__restrict|__typeof__|vector_size|\b_mm\d*_|intrin\.h"
    r"|__(GNUC|clang|SSE|AVX|ARM|x86_64|aarch64)|_MSC_VER|_Pragma|#\s*pragma (?!once)|(?<![\w>])\(\{"
)


def test_compiler_specific_code_is_in_one_header() -> None:
    found = {
        str(path.relative_to(CPP)): match.group()
        for path in sorted(CPP.rglob("*.?pp"))
        if (match := OF_A_COMPILER.search(path.read_text(encoding="utf-8")))
    }
    assert set(found) == {"kernels/portability.hpp"}, found
