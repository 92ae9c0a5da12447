"""MovieLens: which genre to recommend to whom, or nothing, under a cap on recommendations that are disliked."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import stagewise as sw
from stagewise.engine.compile import Ints
from stagewise_studies import drawing, tally
from stagewise_studies.cases.movielens.ratings import Ratings, build_ratings
from stagewise_studies.columns import parse_text
from stagewise_studies.replay import Learner, People, StudyPolicy, always, find_best_under, give_each
from stagewise_studies.source import Source
from stagewise_studies.study import (
    DRAWN,
    GUARDED,
    POSSIBLE,
    SAFE,
    TODAY,
    UNGUARDED,
    Claim,
    Size,
    at_least,
    at_most,
)

TITLE = "MovieLens: can recommendations be learned while at most 15 of a hundred are disliked, by every kind of user?"
FOLDER = "recbole/dataset_example/ml-100k/ml-100k"
SOURCE = Source(
    package="recbole",
    version="1.2.1",
    wheel="recbole-1.2.1-py3-none-any.whl",
    digest="9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
    files={
        f"{FOLDER}.inter": "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff",
        f"{FOLDER}.item": "51d7cdf777ce5c0f5b32c1d947a4a81fe07d75e78abbe761e0cd4d0756064532",
        f"{FOLDER}.user": "4f670007d9cfbeb9807e757209af1555b9bcc186bde25e767f67cb67c6dd5972",
    },
    licence=(
        "MIT; the data are MovieLens-100K of GroupLens, University of Minnesota: for research, not to be redistributed "
        "without permission and not for commercial use."
    ),
)
SIZE = Size(seeds=20, rounds=20_000)
NOTHING = "nothing"
FILMS, USERS = 3, 200  # so many films of a genre rated later, so that it is on offer; to so many users: an action
QUARTERS = ("harshest", "harsh", "mild", "mildest")
LIMIT, OTHER_LIMITS = 0.15, (0.10, 0.20)
CONTEXT = {"age": (0.0, 100.0), "female": (0.0, 1.0), "generous": (0.0, 1.0)}


class Audience(NamedTuple):
    """The users, and the two written policies that need to know more than `People` says."""

    people: People
    popular: Ints  # (n,) the index of the offered genre with most ratings
    favourite: Ints  # (n,) of the offered genre that the user liked most before


def data(files: Mapping[str, bytes]) -> Audience:
    """Return the users; an outcome is a later rating of theirs, drawn from those in the genre."""
    tables = [parse_text(files[f"{FOLDER}.{kind}"], "\t") for kind in ("inter", "item", "user")]
    return build_audience(build_ratings(*tables))


def build_audience(ratings: Ratings, users: int = USERS) -> Audience:
    """Return the users as a population: a genre is on offer to those who rated some films of it later."""
    offered = ratings.later >= FILMS
    kept = np.flatnonzero(offered.sum(axis=0) >= users)
    kept = kept[np.argsort(-ratings.before.sum(axis=0)[kept], kind="stable")]  # the most popular first
    on = offered[:, kept]
    quarter = 3 - np.digitize(ratings.harsh, np.quantile(ratings.harsh, [0.25, 0.5, 0.75]))
    numbers = {"age": ratings.age, "female": ratings.female, "generous": ratings.generous}
    rows = zip(*(column.tolist() for column in numbers.values()), quarter.tolist(), strict=True)
    young = np.digitize(ratings.age, [25.0, 40.0])
    people = People(
        actions=(NOTHING, *(ratings.genres[genre] for genre in kept)),
        contexts=[
            dict(zip(("age", "female", "generous"), r[:3], strict=True)) | {"quarter": QUARTERS[r[3]]} for r in rows
        ],
        reward=prepend_zeros(np.where(on, ratings.liked[:, kept], 0.0)),
        cost=prepend_zeros(np.where(on, ratings.disliked[:, kept], 0.0)),
        groups={
            "quarter": quarter,
            "quarter and sex": 2 * quarter + ratings.female.astype(int),
            "quarter and age": 3 * quarter + young,
            "the very user": np.arange(quarter.size),
        },
        offered=np.column_stack([np.ones(quarter.size, dtype=bool), on]),
    )
    none = ~on.any(axis=1)
    popular = np.where(none, 0, 1 + on.argmax(axis=1))
    smoothed = (ratings.liked_before * ratings.before + 1.0) / (ratings.before + 2.0)
    favourite = np.where(none, 0, 1 + np.where(on, smoothed[:, kept], -1.0).argmax(axis=1))
    return Audience(people, popular, favourite)


def prepend_zeros(table: Any) -> Any:
    """Return a table with a column of zeros before it: nothing is neither liked nor disliked."""
    return np.column_stack([np.zeros(len(table)), table])


def problem(people: People, limit: float, by: str | None = "quarter", linear: bool = False) -> sw.Problem:
    """Return what is declared: likes linear in the user, dislikes a rate for each genre in every quarter."""
    cap = (
        sw.Limit(limit, safe_bound=0.0, model="linear")
        if linear
        else sw.Limit(limit, safe_bound=0.0, by=by, model="rates")
    )
    reward = sw.Reward("liked", model="linear")
    return sw.Problem(
        action_names=people.actions, safe_name=NOTHING, context=CONTEXT, reward=reward, limits={"disliked": cap}
    )


def policies(data: Audience) -> Mapping[str, StudyPolicy]:
    """Return who plays; `unguarded` is the same learner, whose limit of 99.99 % never matters."""
    people = data.people
    problems = {
        GUARDED: problem(people, LIMIT),
        UNGUARDED: problem(people, 0.9999),
        "guarded, linear": problem(people, LIMIT, linear=True),
        "guarded, one rate": problem(people, LIMIT, by=None),
        **{f"guarded at {limit:.0%}": problem(people, limit) for limit in OTHER_LIMITS},
    }
    written = {SAFE: always(people, NOTHING), TODAY: give_each(people, data.popular)}
    written[POSSIBLE] = find_best_under(people, "quarter", LIMIT, NOTHING)
    learners = {name: Learner(one) for name, one in problems.items()}
    return {**learners, **written, "the user's favourite": give_each(people, data.favourite)}


def play(data: Audience, policies: Mapping[str, StudyPolicy], size: Size) -> dict[str, Any]:
    """Play all."""
    people = data.people
    tracks = tally.simulate_policies(people, policies, *size)
    limits = {f"guarded at {limit:.0%}": limit for limit in OTHER_LIMITS}
    features = np.array([[one[name] for name in CONTEXT] for one in people.contexts])
    return {
        **tally.build_result(tracks, "quarter", LIMIT, limits),
        "users": len(people.contexts),
        "genres": list(people.actions[1:]),
        "offered": round(float(people.on_offer()[:, 1:].sum(axis=1).mean()), 2),
        "by_group": {name: tally.compute_costs_by_group(people, tracks[name], "quarter") for name in DRAWN},
        "one_rate_by_group": tally.compute_costs_by_group(people, tracks["guarded, one rate"], "quarter"),
        "likes_by_group": {
            name: tally.compute_costs_by_group(people, tracks[name], "quarter", "reward") for name in DRAWN
        },
        "finer": {
            n: tally.compute_shares_over(tracks[n], list(people.groups), LIMIT) for n in (GUARDED, "guarded, linear")
        },
        "calibration": tally.compute_calibration(tracks[GUARDED]),
        "linear_misfit": tally.measure_linear_misfit(features, people),
        "caption": CAPTION,
        "remarks": list(REMARKS),
    }


CAPTION = (
    "Real users, drawn with replacement; bands hold the middle four fifths of the seeds. Above left: recommendations "
    "that are liked (4 or 5 stars), beside recommending nothing. Above right and below left: recommendations that are "
    "disliked (1 or 2 stars); the limit holds in every quarter of users by how much they disliked before, not "
    "only on average. Possible: the best under the limit for who knows every quarter's rates. Below right: what each "
    "quarter likes."
)
REMARKS = (
    "Rounds over the limit: the expected share of dislikes among all users of the same quarter who can be given the "
    "genre, under the mixture that was drawn from (for written policies: under what they do to each user of it).",
    "Outcomes are known only for films that a user chose to watch and to rate. Whoever is recommended a film at random "
    "would like it less; the rates here are those of genres that the user rated, and no other genre is on offer.",
)


def picture(result: Mapping[str, Any]) -> Any:
    """Return the figure."""
    labels = {
        SAFE: "safe: nothing", TODAY: "today: most popular genre",
        "reward": "liked", "cost": "disliked", "limit": "disliked", "groups": "earlier dislikes", "round": "visit",
    }  # fmt: skip
    figure, panel = drawing.draw_study(result, labels, QUARTERS)
    drawing.draw_bars(
        panel, {policy: result["likes_by_group"][policy] for policy in (GUARDED, UNGUARDED, SAFE, TODAY)}, QUARTERS
    )
    drawing.format_panel(panel, "liked, by earlier dislikes")
    return figure


def claims(result: Mapping[str, Any]) -> list[Claim]:
    """Return what the figures say."""
    rows, seeds = {row["policy"]: row for row in result["rows"]}, result["size"]["seeds"]
    ours, free, end = rows[GUARDED], rows[UNGUARDED], "reward, last fifth"
    return [
        at_most("guarded: share of runs with a round over the limit", ours["runs over the limit"] / seeds, 0.05),
        at_most("guarded: dislikes of the worst quarter", max(result["by_group"][GUARDED]), LIMIT),
        at_least("guarded: liked in the last fifth, beside three quarters of unguarded", ours[end], 0.75 * free[end]),
        at_least("unguarded: dislikes of the worst quarter", max(result["by_group"][UNGUARDED]), LIMIT),
        at_least("today: dislikes of the worst quarter", max(result["by_group"][TODAY]), LIMIT),
        at_least("one rate for everybody: dislikes of the worst quarter", max(result["one_rate_by_group"]), LIMIT),
    ]
