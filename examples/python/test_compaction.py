"""Run with `pytest`, where the wheel `proctor-bench` is installed."""

import importlib
import os

compact = importlib.import_module(os.environ.get("COMPACTION", "compaction")).compact


def test_laws(compaction, compaction_law):
    """One test for each law."""
    compaction(compact).keeps(compaction_law)


def test_costs_no_more_than_doing_nothing(compaction):
    assert compaction(compact).bill() <= 1.02 * compaction("full").bill()


def test_keeps_as_much_as_the_newest_messages(compaction):
    assert compaction(compact).facts() >= compaction("tail@20000").facts() - 0.05
