"""The import graph: who may import whom, held over every module and every import in it."""

from __future__ import annotations

import sys
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.source import Import, imports, module_files, project_settings

# From the bottom up. Rooms in one layer do not import each other, but for PEERS.
LAYERS = (
    ("geneb.errors",),
    ("geneb.base",),
    (
        "geneb.benchmark",
        "geneb.demo",
        "geneb.extractors",
        "geneb.leaderboard",
        "geneb.stores",
        "geneb.tasks",
    ),
    ("geneb.results",),
    ("geneb.embedding", "geneb.probing"),
    ("geneb.analysis", "geneb.diagnosis", "geneb.reporting"),
    ("geneb.cli",),
    ("geneb.__main__", "geneb"),
)

# Tasks are selected by the labels and categories that the spec gives them.
PEERS = {("geneb.tasks", "geneb.benchmark")}

# Shipped for other people's tests: stands on everything below the command line, and only tests
# stand on it.
FOR_TESTS = "geneb.testing"

# Packages that only these modules (and what is in them) may import.
CONFINED = {
    "click": ("geneb.cli",),
    "cuml": ("geneb.probing.cuml_backend",),
    "cupy": ("geneb.probing.cuml_backend",),
    "pytest": (FOR_TESTS,),
    "rich": ("geneb.cli.console",),
    "torch": ("geneb.extractors", "geneb.probing.torch_backend"),
    "transformers": ("geneb.extractors",),
}

# What brings packages that cannot be installed without a GPU's libraries, hence not be looked up.
BRINGERS = {"cuml": ["cuml-cu12"], "cupy": ["cuml-cu12"]}

UNPICKLERS = ("cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve")


def within(module: str, room: str) -> bool:
    """Whether a module is a room or stands in it."""
    return module == room or (room != "geneb" and module.startswith(f"{room}."))


def room_of(module: str) -> str:
    """The layer's member that a module belongs to."""
    rooms = [room for layer in LAYERS for room in layer if within(module, room)]
    assert len(rooms) == 1, f"{module} has no place in LAYERS; give it one"
    return rooms[0]


def height(module: str) -> int:
    """How high a module stands."""
    if within(module, FOR_TESTS):
        return height("geneb.cli") - 1
    room = room_of(module)
    return next(level for level, layer in enumerate(LAYERS) if room in layer)


def allowed(importer: str, used: Import) -> bool:
    """Whether a module may import another one of the program."""
    if used.target == "geneb":
        return used.names == ("__version__",) or importer == "geneb.__main__"
    if within(used.target, FOR_TESTS):
        return within(importer, FOR_TESTS)
    if within(importer, FOR_TESTS):
        return height(used.target) <= height(importer)
    rooms = room_of(importer), room_of(used.target)
    if rooms[0] == rooms[1] or rooms in PEERS:
        return True
    return height(used.target) < height(importer)


@pytest.fixture(scope="module")
def graph(root) -> dict[str, list[Import]]:
    """Each module and its imports."""
    files = module_files(root)
    return {
        name: list(imports(path.read_text(encoding="utf-8"), files)) for name, path in files.items()
    }


def offences(graph, is_wrong) -> list[str]:
    """Every import that a rule forbids, as a sentence."""
    return [
        f"{module}, line {used.line}: imports {used.target}"
        for module, found in graph.items()
        for used in found
        if is_wrong(module, used)
    ]


def test_the_graph_sees_every_kind_of_import():
    """At the start, in functions, submodules taken from a package, relative and by name."""
    source = """
import a.b
from geneb import base, __version__
from . import sibling
def later():
    from geneb.base.files import lock
    importlib.import_module("geneb.errors")
"""

    found = set(imports(source, {"geneb", "geneb.base", "geneb.base.files"}))

    assert {
        Import("a.b", 2, at_start=True),
        Import("geneb.base", 3, at_start=True),
        Import("geneb", 3, at_start=True, names=("__version__",)),
        Import("", 4, at_start=True, relative=True, names=("sibling",)),
        Import("geneb.base.files", 6, at_start=False, names=("lock",)),
        Import("geneb.errors", 7, at_start=False),
    } == found


@pytest.mark.parametrize(
    ("importer", "target", "expected"),
    [
        ("geneb.embedding.run", "geneb.stores.reader", True),
        ("geneb.stores.reader", "geneb.stores.layout", True),
        ("geneb.stores.reader", "geneb.embedding.run", False),
        ("geneb.stores.reader", "geneb.extractors.base", False),
        ("geneb.embedding.run", "geneb.probing.run", False),
        ("geneb.tasks.select", "geneb.benchmark.spec", True),
        ("geneb.benchmark.spec", "geneb.tasks.select", False),
        ("geneb.base.files", "geneb.errors", True),
        ("geneb.errors", "geneb.base.files", False),
        ("geneb.testing.extractors", "geneb.embedding.engine", True),
        ("geneb.extractors.base", "geneb.testing.extractors", False),
        ("geneb.base.env", "geneb", False),
    ],
)
def test_the_rule_tells_down_from_up(importer, target, expected):
    """What this file holds the program to would notice an import in the wrong direction."""
    assert expected == allowed(importer, Import(target, 1, at_start=True))


def test_imports_go_downwards_only(graph):
    """cli -> reporting, analysis -> embedding, probing -> results -> rooms -> base -> errors."""
    program = set(graph)

    wrong = offences(
        graph, lambda module, used: used.target in program and not allowed(module, used)
    )

    assert not wrong, "\n".join(wrong)


def test_nothing_of_the_program_is_imported_that_is_not_there(graph):
    """Every geneb.* name in an import, also in a function that seldom runs, is a module."""
    wrong = offences(
        graph,
        lambda _, used: used.target.partition(".")[0] == "geneb" and used.target not in graph,
    )

    assert not wrong, "\n".join(wrong)


def test_modules_do_not_import_each_other_in_a_circle(graph):
    """What is imported at a module's start has an order, so that any module can come first."""
    TopologicalSorter(
        {
            module: {used.target for used in found if used.at_start and used.target in graph}
            for module, found in graph.items()
        }
    ).prepare()


def test_imports_are_absolute(graph):
    """Rooms are mapped into geneb: a relative import would depend on where the folder stands."""
    wrong = offences(graph, lambda _, used: used.relative)

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", CONFINED)
def test_a_package_is_imported_only_where_it_belongs(graph, package):
    """One module speaks rich, the command line speaks click, extractors speak torch."""
    wrong = offences(
        graph,
        lambda module, used: (
            used.target.partition(".")[0] == package
            and not any(within(module, home) for home in CONFINED[package])
        ),
    )

    assert not wrong, "\n".join(wrong)


def test_nothing_can_unpickle(graph):
    """Files come from strangers."""
    wrong = offences(graph, lambda _, used: used.target.partition(".")[0] in UNPICKLERS)

    assert not wrong, "\n".join(wrong)


def test_what_is_imported_is_declared(root, graph):
    """Third-party packages are in the dependencies; in functions and extractors, or in an extra."""
    project = project_settings(root)["project"]
    core = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    extras = {
        canonicalize_name(Requirement(line).name)
        for lines in project["optional-dependencies"].values()
        for line in lines
    }
    providers = {**BRINGERS, **packages_distributions()}

    def undeclared(module: str, used: Import) -> bool:
        top = used.target.partition(".")[0]
        if used.relative or top == "geneb" or top in sys.stdlib_module_names:
            return False
        by = {canonicalize_name(name) for name in providers.get(top, [top])}
        optional = not used.at_start or any(within(module, home) for home in CONFINED.get(top, ()))
        return not by & (core | extras if optional else core)

    wrong = offences(graph, undeclared)

    assert not wrong, "\n".join(wrong)
