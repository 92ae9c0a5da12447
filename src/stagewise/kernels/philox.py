"""Philox4x32-10: 128 random bits as a function of a counter and a key, without state (Salmon et al. 2011)."""

from stagewise.kernels.compile import kernel

WORD = 0xFFFFFFFF
ROUNDS = 10
FIRST_MULTIPLIER = 0xD2511F53
SECOND_MULTIPLIER = 0xCD9E8D57
FIRST_WEYL = 0x9E3779B9
SECOND_WEYL = 0xBB67AE85


@kernel
def philox(
    first: int, second: int, third: int, fourth: int, first_key: int, second_key: int
) -> tuple[int, int, int, int]:
    """Return the four random words that belong to a counter of four words and a key of two.

        (c₀, c₁, c₂, c₃) ← (hi(M₁c₂) ⊕ c₁ ⊕ k₀, lo(M₁c₂), hi(M₀c₀) ⊕ c₃ ⊕ k₁, lo(M₀c₀))
        (k₀, k₁) ← (k₀ + W₀, k₁ + W₁) mod 2³²                ten times (Salmon et al. 2011)

    A word is an integer in [0, 2³²), stored in 64 signed bits, because Numba converts the sum of an unsigned and a
    signed integer to float. A product may reach the sign bit; the mask after the shift removes it.
    """
    for _ in range(ROUNDS):
        first_product = FIRST_MULTIPLIER * first
        second_product = SECOND_MULTIPLIER * third
        first = ((second_product >> 32) & WORD) ^ second ^ first_key
        second = second_product & WORD
        third = ((first_product >> 32) & WORD) ^ fourth ^ second_key
        fourth = first_product & WORD
        first_key = (first_key + FIRST_WEYL) & WORD
        second_key = (second_key + SECOND_WEYL) & WORD
    return first, second, third, fourth
