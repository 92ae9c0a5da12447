"""What is wrong with a file or a log: a code with its data, and as text a sentence."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Self

from stagewise.problem.formatting import make_sentence


class SentenceCode(StrEnum):
    """Codes that never change, each with the template of its sentence, which may."""

    template: str

    def __new__(cls, value: str, template: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.template = value, template
        return member


class Fault(NamedTuple):
    """A code and the data of its sentence; as text, the sentence."""

    code: SentenceCode
    details: Mapping[str, Any]

    @classmethod
    def of(cls, code: SentenceCode, /, **details: Any) -> "Fault":
        return cls(code, details)

    def __str__(self) -> str:
        return make_sentence(self.code.template, self.details)
