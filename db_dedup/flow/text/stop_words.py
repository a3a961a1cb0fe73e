"""The default stop words, which have no meaning of their own. They are part of the recipe."""

from typing import Final

_PARTICLES = (
    "的 了 着 过 地 得 之 所 吗 呢 吧 啊 呀 嘛 哦 么 们 等 者 而 且 与 及 和 或 但 并 又 也 都 就 才 "
    "还 再 很 太 最 更"
)
_VERBS_AND_PRONOUNS = (
    "是 在 有 为 被 把 将 对 从 向 到 以 于 由 给 让 使 会 能 可 要 我 你 您 他 她 它 这 那 其 此 该 "
    "本 各 每 某"
)
_COMPOUNDS = (
    "我们 你们 他们 她们 它们 咱们 自己 这个 那个 这些 那些 这样 那样 这里 那里 什么 怎么 如何 为什么 "
    "因为 所以 但是 可是 而且 并且 或者 以及 如果 虽然 然而 因此 由于 对于 关于 根据 按照 通过 已经 "
    "正在 一直 一个 一些 一下 没有 不是 就是 还是 只是 可以 应该 能够"
)
_ENGLISH = (
    "a an the of to in on at by for with from and or but if then as is are was were be been being am "
    "it its this that these those i me my we us our you your he him his she her they them their do "
    "does did have has had not no so such there here which who what when where why how will would can "
    "could should may might must shall"
)

STOP_WORDS: Final[tuple[str, ...]] = tuple(
    dict.fromkeys(f"{_PARTICLES} {_VERBS_AND_PRONOUNS} {_COMPOUNDS} {_ENGLISH}".split())
)
"""Chinese particles, pronouns and connectives, and the English function words."""
