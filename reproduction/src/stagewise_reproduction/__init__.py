"""Reproduction of the paper, figure by figure; a separate package in the same repository."""
