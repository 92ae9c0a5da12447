"""The paper, figure by figure: a package beside stagewise, in the same repository."""
