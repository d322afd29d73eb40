"""One place has the version: CMakeLists.txt."""

from __future__ import annotations

from importlib.metadata import version as installed_version

import pytest
from recipes.sources import PACKAGING, ROOT, pyproject, version
from scikit_build_core.metadata.regex import Provider

import lacuna

pytestmark = pytest.mark.check


def test_pyproject_reads_the_version_of_cmake(monkeypatch: pytest.MonkeyPatch) -> None:
    project = pyproject()
    assert project["project"]["dynamic"] == ["version"]
    (entry,) = project["tool"]["dynamic-metadata"]
    settings = {name: value for name, value in entry.items() if name != "provider"}
    monkeypatch.chdir(ROOT)
    assert Provider.dynamic_metadata(settings, project["project"]) == {"version": version()}


def test_the_installed_package_has_it() -> None:
    assert (lacuna.__version__, installed_version("lacuna")) == (version(), version())


def test_the_list_of_changes_of_the_debian_package_begins_with_it() -> None:
    assert (PACKAGING / "debian" / "changelog").read_text().startswith(f"lacuna ({version()}) ")


def test_the_changelog_begins_with_it() -> None:
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == version()
