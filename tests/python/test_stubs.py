"""The stubs say what the extension module has, and nothing else."""

import ast
import pathlib

import foregrad
from foregrad import _C


def names_in(body):
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id, node


def check(stub_body, real, where):
    stubbed = dict(names_in(stub_body))
    for name, node in stubbed.items():
        assert hasattr(real, name), f"{where}.{name} is in the stubs only"
        if isinstance(node, ast.ClassDef):
            check(node.body, getattr(real, name), f"{where}.{name}")
            assert getattr(real, name).__doc__ == ast.get_docstring(node)
    missing = {name for name in vars(real) if not name.startswith("_")} - stubbed.keys()
    assert not missing, f"{where}: {missing} are missing in the stubs"


def test_stubs():
    path = pathlib.Path(foregrad.__file__).parent / "_C.pyi"
    check(ast.parse(path.read_text()).body, _C, "_C")


def test_what_is_public_is_documented():
    for name in foregrad.__all__:
        if name != "__version__":
            assert getattr(foregrad, name).__doc__, name
