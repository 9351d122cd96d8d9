"""The project's source as data: which modules there are, and what each one imports."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Import:
    """One import statement, wherever in the module it stands.

    ``target`` is a module: of ``from package import name`` it is ``package.name`` where that is
    one, else ``package``. ``names`` are what is taken out of the target.
    """

    target: str
    line: int
    at_start: bool
    relative: bool = False
    names: tuple[str, ...] = ()


def project_settings(root: Path) -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def package_folders(root: Path) -> dict[str, Path]:
    """Each package that pyproject.toml lists, and the folder that it is made of."""
    settings = project_settings(root)["tool"]["setuptools"]
    mapped = settings["package-dir"]
    folders = {}
    for package in settings["packages"]:
        parent, _, leaf = package.rpartition(".")
        folders[package] = root / mapped[package] if package in mapped else folders[parent] / leaf
    return folders


def module_files(root: Path) -> dict[str, Path]:
    """Each module of the program by its dotted name, and its file."""
    modules = {}
    for package, folder in package_folders(root).items():
        for path in sorted(folder.glob("*.py")):
            name = package if path.stem == "__init__" else f"{package}.{path.stem}"
            modules[name] = path
    return modules


def imports(source: str, modules: Collection[str]) -> Iterator[Import]:
    """What a module's source imports: at its start, in functions, and by ``import_module``."""
    tree = ast.parse(source)
    in_functions = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        at_start = id(node) not in in_functions
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, at_start)
        elif isinstance(node, ast.ImportFrom):
            yield from _imports_from(node, modules, at_start=at_start)
        elif isinstance(node, ast.Call) and (target := _dynamic_target(node)) is not None:
            yield Import(target, node.lineno, at_start)


def _imports_from(
    node: ast.ImportFrom, modules: Collection[str], *, at_start: bool
) -> Iterator[Import]:
    package, relative = node.module or "", node.level > 0
    inner = [alias.name for alias in node.names if f"{package}.{alias.name}" in modules]
    names = tuple(alias.name for alias in node.names if alias.name not in inner)
    for name in inner:
        yield Import(f"{package}.{name}", node.lineno, at_start, relative)
    if names:
        yield Import(package, node.lineno, at_start, relative, names)


def _dynamic_target(call: ast.Call) -> str | None:
    """The module in ``import_module("...")`` or ``__import__("...")``, where it is spelt out."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in ("import_module", "__import__") or not call.args:
        return None
    first = call.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
