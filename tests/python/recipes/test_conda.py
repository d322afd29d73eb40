"""conda's recipe, read and rendered by rattler-build's own parser, agrees with the build. No package is built."""

from __future__ import annotations

import re
from typing import Any

import pytest
import rattler_build
from recipes.sources import PACKAGING, dependencies, least_cmake, options, pyproject, version

pytestmark = pytest.mark.check

COMPILERS = {
    "c_stdlib": ["sysroot"],
    "c_stdlib_version": ["2.34"],
    "cxx_compiler": ["gxx"],
    "cxx_compiler_version": ["14"],
}
"""As conda-forge names them."""
OTHER_NAMES = {"matplotlib": "matplotlib-base"}
"""Of packages that conda-forge names otherwise. This one comes without a window system."""


@pytest.fixture(scope="module")
def outputs() -> dict[str, dict[str, Any]]:
    recipe = rattler_build.Stage0Recipe.from_file(PACKAGING / "conda" / "recipe.yaml")
    platform = rattler_build.PlatformConfig(target_platform="linux-64")
    rendered = recipe.render(rattler_build.VariantConfig(COMPILERS), rattler_build.RenderConfig(platform))
    return {one.recipe.package.name: one.recipe.to_dict() for one in rendered}


def specs(requirements: list[str]) -> dict[str, str]:
    """The ranges of packages, by name."""
    parts = (one.partition(" ") for one in requirements)
    return {name: wanted for name, _, wanted in parts}


def test_both_packages_have_the_version_of_the_build(outputs: dict[str, dict[str, Any]]) -> None:
    assert {name: one["package"]["version"] for name, one in outputs.items()} == {
        "liblacuna": version(),
        "lacuna": version(),
    }


@pytest.mark.parametrize("name", ["liblacuna", "lacuna"])
def test_each_is_built_with_what_the_build_looks_for(outputs: dict[str, dict[str, Any]], name: str) -> None:
    wanted = outputs[name]["requirements"]
    build = specs(wanted["build"])
    assert build["cmake"] == f">={least_cmake()}"
    assert build["sysroot_linux-64"] == "2.34.*"
    python = {"python", "pip", "scikit-build-core", "nanobind"} if name == "lacuna" else set()
    found = {one.conda for one in dependencies() if one.conda}
    assert set(specs(wanted["host"])) | {"pkg-config"} == found | python
    assert "pkg-config" in build


@pytest.mark.parametrize("name", ["liblacuna", "lacuna"])
def test_definitions_are_options_of_the_build(outputs: dict[str, dict[str, Any]], name: str) -> None:
    script = outputs[name]["build"]["script"]
    defined = re.findall(r"-D(\w+)=", script if isinstance(script, str) else "\n".join(script))
    assert "LACUNA_CUDA" in defined
    assert [one for one in defined if one not in options() | {"CMAKE_BUILD_TYPE"}] == []


def test_the_python_package_needs_what_pyproject_says(outputs: dict[str, dict[str, Any]]) -> None:
    project = pyproject()["project"]
    extras = project.get("optional-dependencies", {}).values()
    wanted = [*project["dependencies"], *(one for extra in extras for one in extra)]
    names = {re.split(r"[<>=]", one)[0]: one for one in wanted}
    expected = {OTHER_NAMES.get(name, name): one.removeprefix(name) for name, one in names.items()}
    expected["python"] = project["requires-python"]
    assert specs(outputs["lacuna"]["requirements"]["run"]) == expected


def test_it_is_built_by_what_pyproject_says(outputs: dict[str, dict[str, Any]]) -> None:
    required = [one for one in pyproject()["build-system"]["requires"] if not one.startswith("nvidia-")]
    host = specs(outputs["lacuna"]["requirements"]["host"])
    assert [f"{name}{host[name]}" for name in ("scikit-build-core", "nanobind")] == required
