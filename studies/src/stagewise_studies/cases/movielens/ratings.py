"""MovieLens-100K: who rated what, split by time into what is known of a user and what is still to come."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints
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


def ratings_of(ratings: Columns, films: Columns, users: Columns) -> Ratings:
    """Return the ratings by user and genre; the earlier half of each user's ratings, by the clock, is the past.

    A film counts in every genre that it has.
    """
    genres = tuple(sorted({genre for kinds in films["class:token_seq"].tolist() for genre in kinds.split()}))
    film = {name: place for place, name in enumerate(films["item_id:token"].tolist())}
    kinds = np.array([[genre in row.split() for genre in genres] for row in films["class:token_seq"].tolist()])
    user = {name: place for place, name in enumerate(users["user_id:token"].tolist())}
    who = np.array([user[name] for name in ratings["user_id:token"].tolist()])
    of = kinds[[film[name] for name in ratings["item_id:token"].tolist()]]
    stars, past = ratings["rating:float"].astype(float), earlier_half(who, ratings["timestamp:float"].astype(float))
    everything = np.ones((len(of), 1), dtype=bool)

    def counted(rows: Ints, columns: Ints) -> Ints:
        sums = np.zeros((len(user), columns.shape[1]), dtype=np.int64)
        np.add.at(sums, who[rows], columns[rows])
        return sums

    def share(rows: Ints, columns: Ints, counts: Ints) -> Floats:
        return np.asarray(counted(rows, columns) / np.maximum(counts, 1))

    later, before, known = counted(~past, of), counted(past, of), counted(past, everything)
    return Ratings(
        genres=genres,
        later=later,
        liked=share(~past & (stars >= LIKED), of, later),
        disliked=share(~past & (stars <= DISLIKED), of, later),
        before=before,
        liked_before=share(past & (stars >= LIKED), of, before),
        generous=share(past & (stars >= LIKED), everything, known)[:, 0],
        harsh=share(past & (stars <= DISLIKED), everything, known)[:, 0],
        age=users["age:token"].astype(float),
        female=(users["gender:token"] == "F").astype(float),
    )


def earlier_half(who: Ints, when: Floats) -> Ints:
    """Say which ratings are in the earlier half of their user's."""
    past = np.zeros(who.size, dtype=bool)
    for user in np.unique(who):
        mine = np.flatnonzero(who == user)
        past[mine[np.argsort(when[mine], kind="stable")][: mine.size // 2]] = True
    return past
