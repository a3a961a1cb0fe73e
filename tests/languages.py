"""Made-up documents in several languages: their function words and letters, and invented content words.

No text is copied from anywhere. What matters for the comparison of texts is like in real ones: few letters or
many characters, frequent short words, rarer long ones, and in each document some words of its own subject.
"""

from dataclasses import dataclass
from random import Random
from typing import Final


@dataclass(frozen=True)
class Language:
    """How documents of a language are made.

    Attributes:
        small: function words, the most frequent first.
        parts: syllables or characters of which content words are made.
        endings: of content words.
        space: between words.
        stop: at the end of a sentence.
        has_long_grams: whether long texts in it are compared by long grams.
    """

    small: tuple[str, ...]
    parts: tuple[str, ...]
    endings: tuple[str, ...]
    space: str = " "
    stop: str = ". "
    has_long_grams: bool = True


def _language(
    small: str, parts: str, endings: str, space: str = " ", stop: str = ". ", *, has_long_grams: bool = True
) -> Language:
    return Language(
        tuple(small.split()), tuple(parts.split()), ("", *endings.split()), space, stop, has_long_grams
    )


LANGUAGES: Final = {
    "English": _language(
        "the of to and a in that is it was for on are with as they be at this have from or by not but what",
        "ac ban cer dis en for gre hel in jec kin lam mor nes or pres qui res stra ter un ver win yel "
        "con pro ta "
        "ble man tion al ber cho der fin",
        "s ed ing er ly ment",
    ),
    "Spanish": _language(
        "de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le",
        "ca ban ción den es for gra hi in ju li mor nue or pre qui res tra ter un ver zo con pro ta ble "
        "man do al "
        "ber cha der fin lla ño",
        "s es do mente ar ía",
    ),
    "German": _language(
        "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an "
        "werden aus",
        "ab ban cher dis ein for grü hel in jah kin lam mor nis ord pres quel rei stra ter un ver win "
        "zeit kon "
        "pro tag ble man schaft al ber schu der fin",
        "en er ung lich keit te",
    ),
    "Ukrainian": _language(
        "і в на що не з та до у це за як для я він є але від про б ми по ти так ви вже",
        "ба вер гра ді жи зна їх ка ло ми на ор пра ро сто та ук фі хо це ча шко юн ясн кон про ста бле "
        "ман ці ал "
        "бер де фін",
        "и а ів ати ний ення",
    ),
    "Arabic": _language(
        "في من على أن إلى لا ما هذا عن مع كان هذه التي الذي أو كل بعد قد لم بين",
        "با تر جم حس خر دف رس زم سك شر صن ضر طل عم غر فت قر كت لح مد نص هد وص يس كون برو تا بل من سي ال "
        "در في",
        "ة ون ات ين ها",
    ),
    "Hindi": _language(
        "के में की है और से का को पर यह ने हैं भी एक कि लिए नहीं था कर तो",
        "अप बा चर दिन एक फिर गर हम इन जन का लोग मन नया और पर रस सर तर उन वन यो कन प्र ता ब्ल मान दो अल "
        "बेर चा दर फिन",
        "ा ी ों ना ता कर",
    ),
    "Thai": _language(
        "ที่ และ ใน ของ เป็น มี ได้ การ ไม่ ว่า จะ ให้ กับ นี้ จาก แต่ หรือ มา ไป อยู่",
        "กา ขา คน จัด ชา ดี ตา ทำ นา บ้าน ปี พา ฟ้า มือ ยา รา ลม วัน สา หา อา เก เข แก แม โต โร ใจ ไฟ กิน ตก นอก บน",
        "กัน แล้ว ลง ขึ้น",
        space="",
        stop=" ",
    ),
    "Korean": _language(
        "그 이 저 것 수 등 및 더 또 그리고 하지만 때문에 위해 대한 있는 없는 하는 되는",
        "가 각 간 감 강 개 거 건 검 결 경 고 공 과 관 교 구 국 군 권 금 기 길 나 남 내 노 농 단 담 당 대 "
        "도 동 두 라 "
        "로 리 마 만 면 명 목 무 문 물 미 민 바 발 방 배 법 변 보 복 본 부 비 사 산 상 생 서 선 설 성 세 "
        "소 수 시 신 "
        "실 안 양 어 업 연 영 예 오 용 우 원 위 유 육 의 인 일 자 작 장 재 전 정 제 조 주 중 지 직 진 차 "
        "처 청 체 초 "
        "출 치 통 특 평 표 품 하 학 한 해 행 현 호 화 환 활 회",
        "는 가 을 에서 의 으로 와 했다 합니다",
        has_long_grams=False,
    ),
    "Japanese": _language(
        "は が を に の で と も から まで です ます した して いる ある こと ため この その",
        "安 以 医 員 院 運 営 駅 園 横 屋 音 化 科 家 会 開 街 学 間 館 気 期 急 業 区 銀 経 計 建 研 県 "
        "験 言 庫 語 工 公 "
        "広 交 光 考 国 作 産 子 市 私 使 始 思 紙 事 持 室 質 実 写 者 社 主 手 住 春 所 書 乗 食 新 親 "
        "図 世 正 生 青 先 "
        "送 族 村 体 台 題 知 地 茶 着 注 昼 町 鳥 通 店 転 電 都 度 冬 答 同 道 動 特 読 肉 日 売 買 発 "
        "飯 病 品 不 夫 服 "
        "物 文 別 歩 妹 味 民 明 目 問 夜 野 薬 有 曜 用 洋 来 理 旅 力 料 林 話",
        "する した い な",
        space="",
        stop="。",
        has_long_grams=False,
    ),
    "Chinese": _language(
        "的 了 在 是 和 有 不 这 我 们 也 就 与 对 为 而 但 及 被 把",
        "安 办 保 报 北 本 必 边 变 表 部 材 采 参 查 产 厂 场 车 成 城 承 程 处 传 村 达 大 单 当 道 得 "
        "登 地 点 电 调 定 "
        "东 动 都 段 队 发 法 反 方 房 费 分 风 服 府 改 干 高 工 公 共 管 广 规 国 果 过 合 河 后 户 化 "
        "环 回 会 活 机 基 "
        "及 级 极 计 记 济 价 检 建 件 交 角 街 结 解 金 进 近 经 局 决 开 科 空 口 来 劳 理 力 利 联 量 "
        "路 落 门 面 民 明",
        "者 性 化",
        space="",
        stop="。",
        has_long_grams=False,
    ),
}


class Writer:
    """Writes documents in one language, always the same for the same seed."""

    def __init__(self, name: str, seed: int = 1) -> None:
        self._language = LANGUAGES[name]
        self._chance = Random(f"{name} {seed}")
        self._words = [self._content_word() for _ in range(1500)]

    def document(self, length: int) -> str:
        """Return at least so many characters about a subject of its own."""
        subject = self._chance.sample(self._words, 60)
        sentences: list[str] = []
        while sum(map(len, sentences)) < length:
            sentences.append(self._sentence(subject))
        return "".join(sentences).strip()

    def _sentence(self, subject: list[str]) -> str:
        words = [self._word(subject) for _ in range(self._chance.randrange(6, 16))]
        return self._language.space.join(words) + self._language.stop

    def _word(self, subject: list[str]) -> str:
        kind = self._chance.random()
        if kind < 0.45:
            return self._language.small[self._rank(len(self._language.small))]
        return self._chance.choice(subject) if kind < 0.7 else self._words[self._rank(len(self._words))]

    def _rank(self, count: int) -> int:
        """Return a number below count; the small ones are more frequent, as the first words of a "
        "language."""
        return int(count ** self._chance.random()) - 1

    def _content_word(self) -> str:
        parts = self._chance.choices(self._language.parts, k=self._chance.choice((2, 2, 3)))
        return "".join(parts) + self._chance.choice(self._language.endings)

    def edited(self, text: str, count: int) -> str:
        """Return the text with so many characters inserted, replaced or removed."""
        letters = "".join(self._language.parts)
        for _ in range(count):
            at = self._chance.randrange(len(text))
            put = self._chance.choice((self._chance.choice(letters), ""))
            text = text[:at] + put + text[at + (self._chance.random() < 0.5 or not put) :]
        return text

    def reordered(self, text: str) -> str:
        """Return the text with its sentences in another order."""
        sentences = text.split(self._language.stop)
        self._chance.shuffle(sentences)
        return self._language.stop.join(sentences)
