"""The processes that compute: whoever ends them, the jobs are done or it is said why not."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count

import pytest

from pairlens.studio import worker
from pairlens.studio.worker import MOST_DEATHS, Worker, WorkerError
from tests.studio.conftest import PATIENCE, Person, link


@pytest.fixture
def children(monkeypatch, quick_children):
    """The children that were started; the first `dying` of them end as soon as they are asked anything."""
    start = worker.start_child

    class Children(list):
        dying = 0
        numbers = count()

        def child(self):
            # Two threads may ask at once: each gets a number of its own.
            found = _dying() if next(self.numbers) < self.dying else start()
            self.append(found)
            return found

    started = Children()
    monkeypatch.setattr("pairlens.studio.worker.start_child", started.child)
    return started


def _dying():
    command = [sys.executable, "-c", "import sys; sys.stdin.read(1); sys.exit(7)"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_jobs_of_a_child_that_died_go_to_a_new_one(children):
    children.dying = MOST_DEATHS - 1
    computing = Worker()
    jobs = [computing.submit("operator:is_not", None), computing.submit("operator:is_", None)]
    assert [job.result(PATIENCE) for job in jobs] == [True, False]
    assert len(children) == MOST_DEATHS
    children[-1].kill()
    children[-1].wait()
    assert computing.submit("operator:is_not", None).result(PATIENCE)
    computing.close()


def test_a_job_fails_with_words_when_its_children_keep_dying(children):
    children.dying = MOST_DEATHS
    computing = Worker()
    with pytest.raises(WorkerError, match=r"has ended 3 times \(code 7\); is there enough memory\?"):
        computing.submit("operator:is_not", None).result(PATIENCE)
    assert len(children) == MOST_DEATHS
    assert computing.submit("operator:is_not", None).result(PATIENCE)
    computing.close()


def test_a_job_fails_with_words_when_no_child_can_be_started(monkeypatch):
    starts = iter([_dying])
    monkeypatch.setattr("pairlens.studio.worker.start_child", lambda: next(starts, _refused)())
    with pytest.raises(WorkerError, match=r"cannot be started: .*no process is left"):
        Worker().submit("operator:is_not", None).result(PATIENCE)


def _refused():
    raise OSError(11, "no process is left")


def test_a_job_that_fails_leaves_the_child_as_it_is(children):
    computing = Worker()
    with pytest.raises(WorkerError, match="ModuleNotFoundError"):
        computing.submit("nowhere:nothing").result(PATIENCE)
    assert computing.submit("operator:is_not", None).result(PATIENCE)
    assert len(children) == 1
    computing.close()
    with pytest.raises(WorkerError, match="closing"):
        computing.submit("operator:is_not", None).result(PATIENCE)


def test_questions_come_if_both_processes_die_at_the_start(children, studio, table):
    children.dying = 2
    person = Person.enter(link(studio(table)))
    assert person.question()
    assert person.answer("same").status_code == 200
    assert len(children) == 4


def test_a_studio_without_its_processes_says_so(children, studio, table):
    children.dying = 2 * MOST_DEATHS
    running = studio(table)
    person = Person.enter(link(running))
    with pytest.raises(WorkerError):
        running._session.prepared.result(PATIENCE)
    status = running.call(lambda session: session.status())
    assert not status["ready"]
    assert "There will be no questions; start the studio again. All answers are safe." in status["trouble"]
    reply = person.client.get("/api/progress")
    assert (reply.status_code, reply.json()["error"]) == (503, status["trouble"])


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="priorities of processes")
def test_what_somebody_waits_for_is_computed_at_full_speed(children):
    """A report, or the first question; only fits and maps in the background step back."""
    computing = Worker()
    assert computing.submit("operator:is_not", None).result(PATIENCE)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, children[0].pid) == own
    for _ in range(2):
        computing.submit("pairlens.studio.worker:step_back").result(PATIENCE)
    assert os.getpriority(os.PRIO_PROCESS, children[0].pid) == min(own + 10, 19)
    computing.close()
