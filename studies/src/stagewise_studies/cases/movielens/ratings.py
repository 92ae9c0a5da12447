"""MovieLens-100K: who rated what, split by time into what is known of a user and what is still to come."""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise_studies.columns import Columns

LIKED, DISLIKED = 4.0, 2.0  # a rating from here up; a rating from here down


class Ratings(NamedTuple):
    """Users and genres: what came of the later ratings, and what the earlier ones tell."""

    genres: tuple[str, ...]
    later: Ints  # (n, G) how many films of the genre were rated later
    liked: Floats  # (n, G) which share of them was liked
    disliked: Floats  # (n, G)
    before: Ints  # (n, G) how many were rated before
    liked_before: Floats  # (n, G) which share of them was liked
    generous: Floats  # (n,) which share of all earlier ratings was a like
    harsh: Floats  # (n,) a dislike
    age: Floats
    female: Floats


def build_ratings(ratings: Columns, films: Columns, users: Columns) -> Ratings:
    """Return the ratings by user and genre; the earlier half of each user's ratings, by the clock, is the past.

    A film counts in every genre that it has.
    """
    genres = tuple(sorted({genre for kinds in films["class:token_seq"].tolist() for genre in kinds.split()}))
    film = {name: index for index, name in enumerate(films["item_id:token"].tolist())}
    kinds = np.array([[genre in row.split() for genre in genres] for row in films["class:token_seq"].tolist()])
    user = {name: index for index, name in enumerate(users["user_id:token"].tolist())}
    rater = np.array([user[name] for name in ratings["user_id:token"].tolist()])
    genres_of_rating = kinds[[film[name] for name in ratings["item_id:token"].tolist()]]
    stars, past = (
        ratings["rating:float"].astype(float),
        find_earlier_half(rater, ratings["timestamp:float"].astype(float)),
    )
    everything = np.ones((len(genres_of_rating), 1), dtype=bool)

    def count(rows: Ints, columns: Ints) -> Ints:
        sums = np.zeros((len(user), columns.shape[1]), dtype=np.int64)
        np.add.at(sums, rater[rows], columns[rows])
        return sums

    def share(rows: Ints, columns: Ints, counts: Ints) -> Floats:
        return np.asarray(count(rows, columns) / np.maximum(counts, 1))

    later, before, known = count(~past, genres_of_rating), count(past, genres_of_rating), count(past, everything)
    return Ratings(
        genres=genres,
        later=later,
        liked=share(~past & (stars >= LIKED), genres_of_rating, later),
        disliked=share(~past & (stars <= DISLIKED), genres_of_rating, later),
        before=before,
        liked_before=share(past & (stars >= LIKED), genres_of_rating, before),
        generous=share(past & (stars >= LIKED), everything, known)[:, 0],
        harsh=share(past & (stars <= DISLIKED), everything, known)[:, 0],
        age=users["age:token"].astype(float),
        female=(users["gender:token"] == "F").astype(float),
    )


def find_earlier_half(rater: Ints, when: Floats) -> Ints:
    """Say which ratings are in the earlier half of their user's."""
    past = np.zeros(rater.size, dtype=bool)
    for user in np.unique(rater):
        own = np.flatnonzero(rater == user)
        past[own[np.argsort(when[own], kind="stable")][: own.size // 2]] = True
    return past
