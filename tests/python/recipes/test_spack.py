"""Spack's recipe has the layout that Spack wants since 1.0, and agrees with the build. Spack itself is not run."""

from __future__ import annotations

import ast

import pytest
from recipes.sources import PACKAGING, dependencies, least_cmake, options, version

pytestmark = pytest.mark.check

REPOSITORY = PACKAGING / "spack" / "spack_repo" / "lacuna"
RECIPE = REPOSITORY / "packages" / "lacuna" / "package.py"


def tree() -> ast.Module:
    return ast.parse(RECIPE.read_text())


def calls(name: str) -> list[list[object]]:
    """The constants that a function of Spack is called with, for each call."""
    found = [node for node in ast.walk(tree()) if isinstance(node, ast.Call)]
    named = [
        node
        for node in found
        if (isinstance(node.func, ast.Name) and node.func.id == name)
        or (isinstance(node.func, ast.Attribute) and node.func.attr == name)
    ]
    return [[argument.value for argument in node.args if isinstance(argument, ast.Constant)] for node in named]


def test_the_repository_has_the_layout_since_1_0() -> None:
    assert (REPOSITORY / "repo.yaml").read_text() == "repo:\n  namespace: lacuna\n  api: v2.0\n"
    imports = [ast.unparse(node) for node in tree().body if isinstance(node, ast.ImportFrom)]
    assert imports == [
        "from spack_repo.builtin.build_systems.cmake import CMakePackage",
        "from spack.package import *",
    ]
    (package,) = [node for node in tree().body if isinstance(node, ast.ClassDef)]
    assert package.name.lower() == RECIPE.parent.name
    assert [ast.unparse(base) for base in package.bases] == ["CMakePackage"]


def test_the_version_is_that_of_the_build() -> None:
    assert calls("version") == [[version()]]


def test_variants_and_definitions_are_options_of_the_build() -> None:
    variants = [variant for variant, *_ in calls("variant")]
    from_variants = calls("define_from_variant")
    assert sorted(variant for _, variant in from_variants) == sorted(variants)
    defined = [name for name, *_ in (*from_variants, *calls("define"))]
    assert "LACUNA_TESTS" in defined
    assert [name for name in defined if name not in options()] == []


def test_it_depends_on_what_the_build_looks_for() -> None:
    specs = [str(spec).rstrip(":").partition("@") for spec, *_ in calls("depends_on")]
    least = {name: number for name, _, number in specs}
    assert set(least) == {"cxx", "cmake"} | {names.spack for names in dependencies() if names.spack}
    assert least["cmake"] == least_cmake()
