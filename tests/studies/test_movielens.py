"""MovieLens on tables that are made up: the past is the earlier half, and only genres that were rated are on offer."""

import json

import numpy as np

from stagewise_studies.cases import movielens
from stagewise_studies.cases.movielens.ratings import build_ratings
from stagewise_studies.columns import Columns, parse_text
from stagewise_studies.study import Size

FILMS = parse_text(b"item_id:token\tclass:token_seq\n1\tDrama\n2\tDrama War\n3\tWar\n4\tDrama\n", "\t")
USERS = parse_text(b"user_id:token\tage:token\tgender:token\n7\t30\tF\n8\t61\tM\n", "\t")


def rated(rows: list[tuple[int, int, int, int]]) -> Columns:
    names = ("user_id:token", "item_id:token", "rating:float", "timestamp:float")
    return {name: np.array([str(row[place]) for row in rows]) for place, name in enumerate(names)}


def test_the_later_half_is_what_is_still_to_come() -> None:
    rows = [(7, 1, 5, 40), (7, 2, 1, 10), (7, 3, 2, 20), (7, 4, 4, 30), (8, 1, 3, 1), (8, 2, 4, 2)]
    result = build_ratings(rated(rows), FILMS, USERS)
    assert result.genres == ("Drama", "War")
    assert result.later.tolist() == [[2, 0], [1, 1]]  # user 7 rated films 4 and 1 last, user 8 film 2
    assert result.liked.tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert result.disliked.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert result.before.tolist() == [[1, 2], [1, 0]]
    assert result.harsh.tolist() == [1.0, 0.0]
    assert result.generous.tolist() == [0.0, 0.0]
    assert (result.age.tolist(), result.female.tolist()) == ([30.0, 61.0], [1.0, 0.0])


def many(users: int = 40) -> tuple[Columns, Columns, Columns]:
    """Return users who rated eight films of each of two genres; some like them less."""
    chance = np.random.default_rng(1)
    films = "item_id:token\tclass:token_seq\n" + "\n".join(f"{i}\t{'Drama' if i % 2 else 'War'}" for i in range(16))
    people = "user_id:token\tage:token\tgender:token\n" + "\n".join(
        f"{u}\t{20 + u}\t{'MF'[u % 2]}" for u in range(users)
    )
    rows = [(u, i, int(np.clip(chance.integers(1, 6) - u % 3, 1, 5)), int(chance.integers(1000)))
            for u in range(users) for i in range(16 if u else 2)]  # fmt: skip
    return rated(rows), parse_text(films.encode(), "\t"), parse_text(people.encode(), "\t")


def test_a_genre_is_on_offer_to_those_who_rated_it_later() -> None:
    audience = movielens.build_audience(build_ratings(*many()), users=20)
    people = audience.people
    assert people.actions[0] == "nothing"
    assert set(people.actions[1:]) == {"Drama", "War"}
    assert people.offered is not None
    assert people.offered[:, 0].all()
    assert not people.offered[0, 1:].any()
    assert audience.popular[0] == audience.favourite[0] == 0
    assert not people.cost[:, 0].any()
    assert not people.reward[:, 0].any()
    assert (people.reward + people.cost).max() <= 1.0
    assert people.offered[np.arange(40), audience.popular].all()
    assert people.offered[np.arange(40), audience.favourite].all()


def test_the_first_quarter_is_the_harshest() -> None:
    ratings = build_ratings(*many())
    quarter = movielens.build_audience(ratings, users=20).people.groups["quarter"]
    assert ratings.harsh[quarter == 0].min() >= ratings.harsh[quarter == 3].max()


def test_all_of_it_plays_and_says_what_came_out() -> None:
    audience = movielens.build_audience(build_ratings(*many()), users=20)
    size = Size(seeds=1, rounds=60)
    result = {"size": size._asdict(), **movielens.play(audience, movielens.policies(audience), size)}
    assert {row["policy"] for row in result["rows"]} >= {"guarded", "unguarded", "safe", "today", "possible"}
    assert len(movielens.claims(json.loads(json.dumps(result)))) == 6
    assert len(movielens.picture(result).axes) == 4
