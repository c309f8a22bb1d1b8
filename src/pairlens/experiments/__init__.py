"""Long experiments that can be stopped at any moment: tasks in parallel, results stored as they come.

The papers' experiments (``pairlens reproduce``) and the league of methods (``make league``) are run by this.
"""

from pairlens.experiments.runner import Task, work
from pairlens.experiments.store import Store

__all__ = ["Store", "Task", "work"]
