"""The words of the pages in Chinese and English."""

from dataclasses import dataclass
from typing import Final

LANGUAGES: Final = ("zh", "en")
WORDS: Final[dict[str, tuple[str, str]]] = {
    "office": ("信访登记", "Petition office"),
    "skip": ("跳到正文", "Skip to the content"),
    "navigation": ("主导航", "Main navigation"),
    "list": ("信访件", "Petitions"),
    "file": ("登记新件", "File a petition"),
    "counts": ("统计", "Counts"),
    "no": ("第 {number} 号", "No. {number}"),
    "filter": ("筛选", "Show"),
    "filter.all": ("全部", "All"),
    "filter.grouped": ("有重复", "In a group"),
    "filter.repeat": ("同一人重复", "Repeats"),
    "filter.joint": ("联名件", "Joint letters"),
    "filter.follow_up": ("追加件", "Follow-ups"),
    "filter.unanswered": ("未答复", "Unanswered"),
    "label.first": ("首件", "First received"),
    "label.repeat": ("同一人重复", "Repeat"),
    "label.joint": ("联名件", "Joint letter"),
    "label.follow_up": ("追加件", "Follow-up"),
    "labels": ("标记：", "Labels:"),
    "answered": ("已答复", "Answered"),
    "unanswered": ("未答复", "Not answered yet"),
    "older": ("更早的信访件", "Older petitions"),
    "empty": ("没有信访件。", "There is no petition."),
    "title": ("标题", "Title"),
    "content": ("内容", "Content"),
    "petitioner": ("信访人", "Petitioner"),
    "phone": ("电话", "Phone"),
    "region": ("地区", "Region"),
    "follows": ("关联到第几号（可不填）", "Link to number (optional)"),
    "received": ("收件时间", "Received"),
    "reason": ("作为新件登记的理由", "Reason for filing it as new"),
    "unknown": ("未填写", "Not given"),
    "check": ("查重并登记", "Check and file"),
    "required": ("必填", "required"),
    "fault.heading": ("请改正以下内容", "Please correct the following"),
    "fault.empty": ("请填写。", "Please fill in."),
    "fault.long": ("内容太长。", "Too long."),
    "fault.follows": ("没有这个编号。", "There is no such number."),
    "fault.reason": ("请填写理由。", "Please give a reason."),
    "similar": ("发现 {number} 件相似的信访件，尚未登记", "{number} similar, not filed yet"),
    "similar.new": ("其中有刚刚登记的，请再看一次。", "Some were filed just now. Please look again."),
    "similar.more": ("另有 {number} 件相似的没有显示。", "{number} more are not shown."),
    "similarity": ("相似度 {percent}%", "{percent}% similar"),
    "reserved": ("另一程序正在登记相同内容。", "Another program is filing the same text at this moment."),
    "legend": ("标注说明：", "Marks:"),
    "only.earlier": ("只在旧件中", "only in the earlier one"),
    "only.later": ("只在新件中", "only in the new one"),
    "open": ("打开第 {number} 号（新窗口）", "Open No. {number} (new tab)"),
    "link": ("关联到第 {number} 号并登记", "File, linked to No. {number}"),
    "anyway": ("仍作为新件登记", "File as new anyway"),
    "edit": ("返回修改", "Change the text"),
    "filed": ("已登记。", "Filed."),
    "answer.stored": ("答复已保存。", "The answer is stored."),
    "waiting": ("{number} 项变更正在比对，请稍后刷新。", "{number} changes are being compared; reload soon."),
    "first": ("首件及其答复", "The first received and its answer"),
    "follows.heading": ("所关联的信访件及其答复", "The petition it is linked to, and its answer"),
    "is_first": ("本件是这一组 {number} 件中的首件。", "This is the first received of {number}."),
    "group": ("同组信访件（{number} 件）", "Its group ({number} petitions)"),
    "group.more": ("另有 {number} 件没有显示。", "{number} more are not shown."),
    "this": ("本件", "this one"),
    "followers": ("关联到本件的信访件", "Petitions linked to this one"),
    "differs": ("与首件的差异", "Differences from the first received"),
    "answer": ("答复", "Answer"),
    "answer.on": ("答复时间", "Answered on"),
    "answer.save": ("保存答复", "Store the answer"),
    "counts.region": ("各地区", "By region"),
    "counts.petitions": ("件数", "Petitions"),
    "counts.later": ("重复件数", "Repeating an earlier one"),
    "counts.share": ("比例", "Share"),
    "counts.groups": ("最大的组", "The largest groups"),
    "counts.size": ("组内件数", "Size"),
    "rule.follow_up": (
        "追加件：登记时关联到更早的信访件，且内容不是其副本。",
        "Follow-up: linked to an earlier petition, and the text is no copy of an earlier one.",
    ),
    "rule.repeat": (
        "同一人重复：同一人在同组中已有更早的信访件，且不是追加件。电话相同视为同一人，没有电话时看姓名。",
        "Repeat: the same person (phone, or without one name) is in the group earlier, and no follow-up.",
    ),
    "rule.joint": (
        "联名件：同组中至少有三人。",
        "Joint letter: at least three persons have a petition in the group.",
    ),
    "error": ("出错了", "Something went wrong"),
    "error.missing": ("没有这个页面。", "There is no such page."),
    "error.form": ("表单已过期，请返回后重试。", "The form has expired. Go back and try again."),
    "error.large": ("内容太大。", "The form is too large."),
    "error.busy": ("系统忙，没有登记。请稍后重试。", "Busy, nothing was filed. Try again in a moment."),
    "error.server": ("系统故障，请联系管理员。", "A fault. Please ask your administrator."),
}


@dataclass(frozen=True)
class Words:
    """The words of one language."""

    language: str

    def __call__(self, word: str, **values: object) -> str:
        """Return a word or sentence with its values filled in."""
        return WORDS[word][LANGUAGES.index(self.language)].format(**values)

    @property
    def tag(self) -> str:
        """The language for HTML."""
        return {"zh": "zh-CN", "en": "en"}[self.language]

    @property
    def other(self) -> str:
        """The other language."""
        return LANGUAGES[1 - LANGUAGES.index(self.language)]
