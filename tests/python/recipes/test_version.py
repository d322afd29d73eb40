"""One place has the version: CMakeLists.txt."""

from __future__ import annotations

from importlib.metadata import version as installed_version

import pytest
from recipes.sources import ROOT, pyproject, version
from scikit_build_core.metadata.regex import dynamic_metadata

import lacuna

pytestmark = pytest.mark.check


def test_pyproject_reads_the_version_of_cmake(monkeypatch: pytest.MonkeyPatch) -> None:
    project = pyproject()
    assert project["project"]["dynamic"] == ["version"]
    settings = {k: v for k, v in project["tool"]["scikit-build"]["metadata"]["version"].items() if k != "provider"}
    monkeypatch.chdir(ROOT)
    assert dynamic_metadata("version", settings) == version()


def test_the_installed_package_has_it() -> None:
    assert (lacuna.__version__, installed_version("lacuna")) == (version(), version())


def test_the_changelog_begins_with_it() -> None:
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == version()
