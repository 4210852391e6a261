"""What a plan would do to an environment, in people's words; what it may not do; what it costs at worst. Pure."""

from ironburst.plan.comment import Drift, Shown, comment
from ironburst.plan.difference import difference
from ironburst.plan.money import Money, money
from ironburst.plan.policy import Refusal, judge, let_through
from ironburst.plan.preview import Change, Preview, UnreadablePreview, read_preview, read_refresh

__all__ = [
    "Change",
    "Drift",
    "Money",
    "Preview",
    "Refusal",
    "Shown",
    "UnreadablePreview",
    "comment",
    "difference",
    "judge",
    "let_through",
    "money",
    "read_preview",
    "read_refresh",
]
