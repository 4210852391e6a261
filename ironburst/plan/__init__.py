"""What a plan would do to an environment, what it may not do, and what it costs at worst. Pure.

- preview: Pulumi's own output; kinds, aws, azure, google: kinds of resources; policy: what is refused without `allow`
- money: the worst case; difference: of two environments; comment: for a pull request; checkpoints: of its `up`
"""

from ironburst.plan.comment import Drift, Shown, comment
from ironburst.plan.difference import difference
from ironburst.plan.money import Money, money
from ironburst.plan.policy import Refusal, judge, let_through
from ironburst.plan.preview import Preview, ResourceChange, UnreadablePreview, read_preview, read_refresh

__all__ = [
    "Drift",
    "Money",
    "Preview",
    "Refusal",
    "ResourceChange",
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
