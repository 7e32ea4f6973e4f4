"""What became of one sample."""

import re
from dataclasses import asdict, dataclass, field

KINDS = ("passed", "refused", "differs", "crashed", "skipped")


@dataclass
class Outcome:
    """`kind`: passed; refused, eager runs it and Foregrad doesn't compile it; differs; crashed, the process died or hung;
    skipped, eager itself throws."""

    op: str
    variant: str
    dtype: str
    sample: int
    kind: str
    reason: str = ""
    arguments: str = ""
    is_exact: bool = True
    last_resort: dict = field(default_factory=dict)

    def to_json(self):
        return asdict(self)


def one_line(error):
    """The first line of an error's text."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"


# Shapes, numbers and addresses differ from sample to sample; operators are named beside the reason.
_TYPE = re.compile(r"\b(?:[a-z]+\d*|bool)\[[\d,]*\](?:\{[\d,]*\})?(?:\+\d+)?")
_OPERATOR = re.compile(r"`\w+::[\w.]+`")
_NUMBERS = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")


def group_of(reason):
    """The reason without what differs from sample to sample, or operator to operator."""
    text = _OPERATOR.sub("`operator`", _TYPE.sub("T", reason))
    text = re.sub(r"0x[0-9a-f]+", "…", text)
    text = re.sub(r"\[[\d, ]*\]|\([\d, ]*\)", "…", text)
    return _NUMBERS.sub("N", text)[:220]
