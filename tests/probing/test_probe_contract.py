"""The probes of all protocols, and a user's own, keep what every probe promises."""

from __future__ import annotations

import pytest

from geneb.probing.own import own_probe
from geneb.probing.protocol import PROTOCOLS
from geneb.testing import ProbeContract


@pytest.fixture(params=sorted(PROTOCOLS))
def protocol(request):
    return PROTOCOLS[request.param]


class TestProtocols(ProbeContract):
    """Each of them in turn."""

    @pytest.fixture(autouse=True)
    def _choose(self, protocol):
        self.protocol = protocol

    def make(self):
        return self.protocol.probe


class TestOwnClass(ProbeContract):
    """A class of scikit-learn's, which takes a seed."""

    def make(self):
        return own_probe("sklearn.tree:DecisionTreeClassifier")


class TestOwnFactory(ProbeContract):
    """A function that takes none."""

    def make(self):
        return own_probe("support.own_estimators:nearest")


class TestOwnProbe(ProbeContract):
    """A stranger's probe, which the one that runs it keeps an eye on."""

    def make(self):
        return own_probe("support.own_estimators:probe")
