"""Columns of a table that hold proposals or scores, each row read as a single call reads its `propose` or `scores`."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Flags, Floats
from stagewise.policies.context_encoder import ContextEncoder
from stagewise.problem.checks import check_mapping, is_listing
from stagewise.problem.columns import is_missing, list_names_once, map_unique
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.proposal import SUM_TOLERANCE, Offer, Proposal, check_one_kind, parse_scores, parse_weights

Column = npt.NDArray[Any]


class ProposalRows(NamedTuple):
    """What is proposed for many users."""

    proposal: Proposal
    """Values (n, K)."""
    refused: dict[int, InvalidActions]
    """The errors by row; the values of these rows are not to be used."""


class ProposalColumns(NamedTuple):
    """The columns that hold what is proposed for each user."""

    offer: Offer
    score_range: tuple[float, float]
    is_scores: bool
    named: str | None
    """The column of the names of the proposed actions; None: every action has its own column."""
    by_action: dict[str, str]
    """The columns of the probabilities or scores by action."""

    def read(self, get_column: Callable[[str], Column]) -> ProposalRows:
        """Return what the rows of a table propose; a row that cannot be used stops no other one."""
        if self.named is not None:
            return self.collect(map_unique(get_column(self.named).tolist(), self.parse))
        columns = [get_column(name) for name in self.by_action.values()]
        numbers = [one if one.dtype.kind in "iuf" else np.full(one.size, math.nan) for one in columns]
        given = np.column_stack(numbers).astype(np.float64)
        values, good = self.complete(given)
        refused = dict[int, InvalidActions]()
        for row in np.flatnonzero(~good).tolist():
            entries = zip(self.by_action, (column[row : row + 1].tolist()[0] for column in columns), strict=True)
            found = self.parse(dict(entries))
            if isinstance(found, InvalidActions):
                refused[row] = found
            else:
                values[row] = found
        return ProposalRows(Proposal(values, self.is_scores), refused)

    def parse(self, given: Any) -> Floats | InvalidActions:
        """Return the values (K,) of one row, or the error."""
        try:
            if is_missing(given):
                text = "the row proposes nothing; fill in the safe action where nothing else is wanted"
                raise InvalidActions(ErrorCode.MISSING_VALUE, text)
            return (
                parse_scores(given, self.offer, self.score_range)
                if self.is_scores
                else parse_weights(given, self.offer)
            )
        except InvalidActions as error:
            return error

    def collect(self, found: list[Any]) -> ProposalRows:
        """Return the values and the errors of rows that were read one by one."""
        refused = {row: one for row, one in enumerate(found) if isinstance(one, InvalidActions)}
        nothing = np.zeros(len(self.offer.names))
        values = np.array([nothing if isinstance(one, InvalidActions) else one for one in found])
        return ProposalRows(Proposal(values.reshape(len(found), nothing.size), self.is_scores), refused)

    def complete(self, given: Floats) -> tuple[Floats, Flags]:
        """Return the values (n, K) of numbers (n, columns), bitwise equal to one by one, and which rows are valid."""
        low, high = self.score_range if self.is_scores else (0.0, 1.0 + SUM_TOLERANCE)
        at = [self.offer.get_index(name) for name in self.by_action]
        good = np.asarray(((given >= low) & (given <= high)).all(axis=1))
        values = np.zeros((len(given), len(self.offer.names)))
        if self.is_scores:
            values[:, at] = (given - low) / (high - low)
            return values, good
        values[:, at] = given
        total = np.array(list(map(math.fsum, np.where(good[:, np.newaxis], given, 0.0).tolist())))
        good &= (total > 0.0) & (total <= high)
        values /= np.where(good & (total > 1.0), total, 1.0)[:, np.newaxis]
        values[:, self.offer.safe_index] += np.where(good & (total <= 1.0), 1.0 - total, 0.0)
        return values, good


def parse_proposal_columns(problem: ContextEncoder, propose: Any, scores: Any) -> ProposalColumns | None:
    """Return the columns of proposals that a call names; None: the problem's own policy decides."""
    check_one_kind(propose, scores, problem.needs_proposal)
    given, is_scores = (scores, True) if propose is None else (propose, False)
    if given is None:
        return None
    if isinstance(given, str) and not is_scores:
        return ProposalColumns(problem._offer, problem.score_range, False, given, {})
    what, of = ("scores", "scores") if is_scores else ("propose", "probabilities")
    by_action = {name: name for name in list_names_once(given)} if is_listing(given) else given
    if not isinstance(by_action, Mapping) or not by_action:
        rule = f"a mapping from actions to the columns of their {of}, or a list of columns that are named as actions"
        rule += "" if is_scores else ", or the column of the proposed actions"
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, what, given, rule)
    columns = check_mapping(by_action, what, InvalidActions)
    for name in columns:
        problem.get_action_index(name)
    if is_scores:  # a column that lacks is an error of the table
        parse_scores(dict.fromkeys(columns, problem.score_range[0]), problem._offer, problem.score_range)
    return ProposalColumns(problem._offer, problem.score_range, is_scores, None, columns)
