"""Late imports: nothing is imported before it is used."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.lazy import issparse, lazy, names_of


def alone(code):
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_module_is_imported_when_it_is_first_used():
    code = (
        "import sys; from deciban.lazy import lazy; chunk = lazy('chunk_of_nothing'); wave = lazy('wave');"
        "print('wave' in sys.modules); wave.open; print('wave' in sys.modules)"
    )
    assert alone(code) == ["False", "True"]


def test_it_is_the_module():
    sparse = lazy("scipy.sparse")
    assert sparse.csr_array is sp.csr_array
    assert vars(sparse)["csr_array"] is sp.csr_array  # found without asking the module again
    with pytest.raises(AttributeError, match="nothing"):
        _ = sparse.nothing
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = lazy("no_such_module").anything


def test_sparse_rows_are_known_without_an_import():
    assert issparse(sp.csr_array(np.eye(2)))
    assert issparse(sp.coo_matrix(np.eye(2)))
    assert not issparse(np.eye(2))
    code = (
        "import sys; import numpy as np; from deciban.lazy import issparse;"
        "print(issparse(np.eye(2)), 'scipy' in sys.modules);"
        "import scipy.sparse as sp; print(issparse(sp.eye_array(2)))"
    )
    assert alone(code) == ["False", "False", "True"]


@pytest.mark.parametrize("package", ["deciban.families", "deciban.statistics"])
def test_names_of_a_package_are_all_there(package):
    assert alone(f"import {package} as p; print(all(hasattr(p, name) for name in p.__all__))") == ["True"]
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nothing'"):
        names_of(package, {})("Nothing")
