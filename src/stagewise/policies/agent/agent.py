"""An agent: a policy with its memory and its seed, for use by hand."""

import time
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from stagewise.files.paths import content_of, path_of
from stagewise.policies.agent.adopted import check_new, sent
from stagewise.policies.agent.frames import Asked, rows_in
from stagewise.policies.agent.health import Health, acknowledge, health_of
from stagewise.policies.agent.identity import Identity
from stagewise.policies.agent.logs import log_of
from stagewise.policies.agent.overdue import Overdue
from stagewise.policies.agent.ownership import Ownership
from stagewise.policies.agent.repeats import check_first, mark_of, remember
from stagewise.policies.agent.report import Report, report_of
from stagewise.policies.agent.saved import Saved, check_same, read, written
from stagewise.policies.agent.saved_waits import Waits
from stagewise.policies.agent.snapshot import Snapshot
from stagewise.policies.agent.told import health_with
from stagewise.policies.encoded import check_kind
from stagewise.policies.learning import Learning
from stagewise.policies.policy import Played, Policy, State
from stagewise.policies.problem import Problem
from stagewise.problem.checks import switch
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.records.decision import Decision


class Agent(Overdue):
    """Decide, learn, save, load.

    Outcomes may come late, in any order or never, where that does not depend on what they are: the confidence sets hold
    for all rounds at once, so deciding on older knowledge is only more cautious. They are learned in the order of the
    decisions: an outcome is held until every earlier decision is answered or given up. `order="arrival"` learns each
    at once, which is valid only under one more promise: nothing that is offered depends on outcomes that exist but were
    not learned yet (docs/how-to/guide.md). A signal of a decision can be given once, all signals together or each when
    it comes; where the policy keeps them `apart`, each is learned by itself. `windows` say after which time a missing
    signal counts as what; `clock` tells the time where a call does not. Threads may share an agent: one call at a time
    has its memory, the others wait.

    Ids and random numbers follow from `seed` and `name`: two agents that share both share them.

    >>> import stagewise as sw
    >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5), seed=1)
    >>> decision = agent.decide(sw.Arms(2))
    >>> agent.learn(decision.id, reward=0.7)
    >>> agent.round, agent.waiting, agent.held
    (1, 1, 1)
    >>> agent.learn(decision.id, cost=0.1)
    >>> agent.round, agent.waiting, agent.held
    (1, 0, 0)
    """

    def learn_log(self, features: Any, rewards: Any, costs: Any = None, *, again: bool = False) -> None:
        """Take in logged data of any earlier policy: rewards (n,) and costs (n,) or (n, m) of what was done.

        `features` are those of the actions (n, d), or arms (n,).

        Costs may also be a mapping of columns by name, or a data frame whose columns have the limits' names. True and
        False count as 1 and 0.

        The bounds stay valid as long as each logged action was chosen without looking at its own outcome or later ones.
        A log is one batch, in whatever order its rows stand, and is learned at once, also while decisions are open:
        then nothing offered so far may depend on its outcomes, nor its actions on the outcomes that are still open.
        A log that was learned already is refused, also in another order or in part (docs/how-to/bring-a-log.md says
        what is known again), unless `again` says that these are other outcomes.
        """
        policy = self._learner("a log is")
        self._learn_rows(policy, *log_of(policy, features, rewards, costs), again)

    def learn_frame(
        self,
        frame: Any,
        *,
        reward: Any = None,
        action: Any = None,
        costs: Any = None,
        context: Any = None,
        names: Any = None,
        again: bool = False,
    ) -> None:
        """Take in logged data from a frame of pandas, polars or Arrow, or a mapping of columns: all of it, or nothing.

        A path is read as a file (.csv, .parquet, .jsonl).

        Columns are taken by their names, wherever they stand. `action` names the column of the arms, counted from 0 or,
        with `names` in their order, by name; for actions with features `context` lists the columns of the features of
        what was played. `costs` maps each limit to its column; left out, the columns have the limits' names. True and
        False count as 1 and 0. For a problem all columns have its names, and the action's is "action", where nothing
        else is said; `costs` and `context` map its names to others. What `learn_log` says of a log, and of `again`,
        holds here.

        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold={"opt_out": 0.02})
        >>> agent = sw.Agent(policy)
        >>> sent = {"opted": [False, True], "template": ["nothing", "offer"], "click": [False, True]}
        >>> told = {"names": ["nothing", "offer"], "costs": {"opt_out": "opted"}}
        >>> agent.learn_frame(sent, action="template", reward="click", **told)
        >>> agent.learn_frame(sent, action="templte", reward="click", **told)
        Traceback (most recent call last):
        stagewise.problem.errors.InvalidActions: action names 'templte', which is no column of the frame (did you mean
        'template'?); its columns are ['opted', 'template', 'click']
        """
        policy = self._learner("a log is")
        rows = rows_in(policy, frame, Asked(reward, action, costs, context, names))
        if rows is not None:
            self._learn_rows(policy, rows.actions, rows.values, again)

    def _learn_rows(self, policy: Learning, actions: Any, values: Any, again: bool) -> None:
        """Take in a log that was read for this policy, once; it has another policy once an action is added."""
        mark = mark_of(actions, values)
        with self._alone:
            if self._ours is not policy:
                raise InvalidOutcome(
                    "an action was added while this log was read; nothing of it is learned, give it again"
                )
            check_first(self._notes, mark, again)
            self._state, self._learned = policy.learn_log(self._state, actions, values), self._learned + 1
            self._look(at_once=True)
            remember(self._notes, mark, again)

    def add_action(self, name: str) -> None:
        """Add an action, by its `name`, to the problem; what was learned of the others, and what waits, stays.

        >>> import stagewise as sw
        >>> told = {"reward": sw.Reward("click"), "limits": {"opt_out": sw.Limit(0.02, safe=0.0)}}
        >>> agent = sw.Agent(sw.Problem(actions=["nothing", "offer"], safe="nothing", **told))
        >>> agent.add_action("sale")
        >>> list(agent.decide().probabilities)
        ['nothing', 'offer', 'sale']
        """
        with self._alone:
            policy: Any = self.policy
            if self._ours is None or self._ours.problem is None:
                raise InvalidProblem("this agent has a policy and no problem; only actions of a problem have names")
            more = policy.problem.with_action(name).policy()
            self._state, self.policy = more.grown(policy, self._state), more
            self._learned += 1
            self._notes.forget_marks()
            self._take_verbs()

    def health(self) -> Health:
        """Return what was declared, held against the data: a verdict and a sentence each; `print` shows a table.

        What contradicts safety is also the fallback of every decision, until it is acknowledged.

        >>> import stagewise as sw
        >>> safe = sw.SafeAction(arm=0, reward=0.0, cost=0.001)
        >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"opt_out": 0.02}, radius="kl"))
        >>> agent.learn_log([0] * 400, [0.0] * 400, [1.0, 0.0] * 200)
        >>> agent.health()["safe cost of opt_out"].verdict, agent.decide(sw.Arms(2)).action
        ('contradicted', 0)
        """
        with self._alone:
            return health_with(self.policy, health_of(self.policy, self._state, self._notes), self._told)

    def acknowledge(self, name: str, note: str = "") -> None:
        """Go on although something contradicts safety, by its name in `health()`; a note says who decided so, and why.

        The bounds rest on what was declared, and after this on your word. Where a declared value is wrong, a new agent
        with true values that is given the log is the better answer.
        """
        if self._ours is None:
            raise InvalidProblem("this policy has only start, decide and learn, and nothing of it is ever in doubt")
        with self._alone:
            acknowledge(self._ours, self._state, self._notes, name, note)

    def report(self, names: Any = None) -> Report:
        """Return where traffic goes, what it earns against the safe action, and what limits and actions still need.

        `names` are those of the listed actions, in their order. `print` shows a table, `sw.draw_report` draws it.

        >>> import stagewise as sw
        >>> safe = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
        >>> agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold=0.5), seed=1)
        >>> for _ in range(10):
        ...     agent.learn(agent.decide(sw.Arms(2)), reward=0.6, cost=0.1)
        >>> report = agent.report(names=["nothing", "offer"])
        >>> report.rounds, [action.name for action in report.actions], report.limits[0].slack >= 0.0
        (10, ['offer', 'nothing'], True)
        """
        with self._alone:
            told = getattr(self.policy, "names", None) if names is None else names
            return report_of(self.policy, self._state, self._notes, told, self._told)

    def adopt(self, decision: Decision | Mapping[str, Any], now: Any = None) -> int:
        """Take in a decision of a `Replica`, itself or as its `plain` wrote it; return its round in this agent's order.

        Outcomes then come by its id. Adopt a decision before its outcome exists, as by logging it before it is acted
        on: decisions count in the order in which they are adopted (docs/theory/order.md). `now` is the time, where the
        clock is not to be asked.
        """
        made, policy = sent(decision), self._learner("replicas are")
        with self._alone:
            check_new(made, self._who, self._adopted)
            played = policy.made(Played(made.action, made.index, made.step, made._safe))
            if made._unfollowed:
                policy.follow(self._state, made)  # a rehearsal: what is refused changes nothing
            told = self._pass(now) if self._deadlines is not None or now is not None else 0.0
            if made._unfollowed:
                self._state, self._learned = policy.follow(self._state, made), self._learned + 1
            place, self._plainly = self.round, False
            self._adopted.add(made.id, place)
            self._ledger.open[place] = Played(played.action) if made._unfollowed else played
            if self._deadlines is not None:
                self._deadlines.date(place, told)
            if self._told is not None:
                self._told.add(place, played.ray, self._ledger)
            self.round = place + 1
            return place

    def snapshot(self) -> Snapshot:
        """Return what is known now as a value that does not change, for a `Replica`; with what contradicts safety."""
        with self._alone:
            policy: Any = self._ours
            check_kind(policy)
            said = dict(self._notes.doubts), dict(self._notes.accepted)
            return Snapshot(copy(policy), self._state.memory.tobytes(), self._learned, self.seed, self.name, *said)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write policy, memory, seed and all that waits to a JSON file, all or nothing; others decide meanwhile.

        The path must be new, or hold what this agent loaded or saved there last: then nobody else went on from it.
        `overwrite` replaces any plain file.
        """
        place, replaces = path_of(path), switch(overwrite, "overwrite")
        check_kind(self.policy)
        with self._saving:
            with self._alone:
                saved = self._saved()
            self._files.write(place, written(saved, self._files.stamp()), saved.round, replaces)

    def _saved(self) -> Saved:
        """Return a moment of the agent that later calls do not change."""
        policy: Any = self._ours
        deadlines = None if self._deadlines is None else self._deadlines.copied()
        costs = None if self._told is None else self._told.copied()
        waits = Waits(self._ledger.copied(), deadlines, self._adopted.copied(), costs)
        return Saved(
            policy, self._state.memory.copy(), self.seed, self.round, self.order, waits, self._files.generation,
            self.name, self._who.former, self._learned, self._notes.copied(),
        )  # fmt: skip

    @classmethod
    def load(
        cls,
        path: str | Path,
        policy: Policy | Problem | None = None,
        *,
        name: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> "Agent":
        """Return the agent saved at `path`; it goes on as if it had never stopped, to the bit.

        It has the policy of the file, and `clock` tells it the time. With `policy` a file of another policy, or of
        other settings, is refused. Of several that load one file the first to save keeps it, and the others are
        refused. After a crash decisions may have been made that the file does not know: under a new `name` none of
        their ids and random numbers come again, and what waits keeps its ids.
        """
        place = path_of(path)
        content = content_of(place)
        saved = read(place, content)
        if policy is not None:
            check_same(place, saved.policy, policy.policy() if isinstance(policy, Problem) else policy)
        agent = cls(saved.policy, saved.seed, saved.order, name=saved.name, clock=clock)
        agent.round, agent._learned = saved.round, saved.learned
        agent._who = Identity(saved.seed, saved.name, saved.former)
        agent._who = agent._who if name is None else agent._who.renamed(name, saved.round)
        agent._state = State(saved.memory)
        agent._ledger, agent._deadlines, agent._adopted, agent._told = saved.waits
        agent._plainly = agent._deadlines is None and not agent._adopted.met
        agent._files, agent._notes = Ownership(saved.generation), saved.notes
        agent._files.learn(place, content, saved.round)
        return agent
