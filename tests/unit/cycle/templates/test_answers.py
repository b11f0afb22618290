"""What an answer is worth: each way in which generators go wrong, and answers that are right."""

from dataclasses import replace

import pytest

from jupiterd.cycle.domain.filters import judge_sample
from jupiterd.cycle.templates.answers import judge_answer
from jupiterd.cycle.templates.prompt import WrittenAnswer
from jupiterd.cycle.templates.refusal import Refusal, RefusedAnswer
from jupiterd.cycle.templates.short_tasks import SUMMARY as SUMMARY_WORDS
from jupiterd.cycle.templates.short_tasks import Subject, words_of
from jupiterd.cycle.templates.texts import RULES, TEMPLATES
from tests.support.workers.data_material import real

PASSAGE = (
    "Sourdough bread rises because wild yeast and bacteria live together in it. The bacteria "
    "make lactic and acetic acid, which give the bread its sour taste and keep mould away. "
    "A starter is fed with flour and water each day. It is ready when it has doubled within six "
    "hours, and a spoon of it floats on water. A warm kitchen makes it faster than a cold one does."
)

FAQ = """\
Why does sourdough bread rise without bought yeast?
Wild yeast that lives in the flour ferments sugar, and the gas lifts the dough while it rests.

What makes the loaf taste sour?
Bacteria beside the yeast produce two acids. Both of them also protect the loaf against mould.

How can a baker tell that the starter may be used?
It should grow to twice its size in about six hours. A little of it dropped into a glass stays up.

Does the temperature of the room matter?
Yes, warmth speeds fermentation up, so in a cool room more patience is needed.
"""
TUTORIAL = """\
A starter of your own saves money and gives better bread than any packet from a shop.

1. Mix equal weights of flour and water in a jar, because the wild yeast needs both of them.
2. Feed the mixture every morning, since hungry yeast grows slowly and lets other microbes win.
3. Look how far it climbs after a feeding. Twice the height within six hours tells you it is strong.
4. Drop a spoonful into a glass. If it stays at the top there is enough gas in it to lift a loaf.
"""
PROBLEM = """\
A baker keeps a jar of starter that fills 200 ml after feeding. Four hours later it fills 300 ml,
and after six hours 410 ml. May the baker use it for bread today, and how could that be confirmed?

The rule says that a strong starter doubles within six hours. Twice 200 ml is 400 ml.

After six hours there are 410 ml in the jar, which is more than 400 ml. So the starter is strong
enough. To confirm it, the baker lets a spoonful fall into water and sees whether it stays on top.
"""
TABLE = """\
| Thing | What it does | How to see it |
|---|---|---|
| Wild yeast | makes gas that lifts the dough | the jar's content doubles |
| Bacteria | produce two acids | the crumb tastes sour |
| Warmth | speeds everything up | less time until it is ready |

Wild yeast turns sugar into gas, and that gas is what lifts a loaf before it is baked.

Bacteria produce lactic and acetic acid. They are the reason for the taste, and mould dislikes them.

Warmth shortens the time that all of this takes, so bakers in cold rooms have to wait longer for it.
"""
PROSE = PROBLEM.replace("A baker", "Somebody")
QUESTION_ANSWER = """\
Question: Why does sourdough bread rise without any bought yeast?
Answer: Wild yeast lives in the flour and ferments its sugar. The gas that comes of it lifts the
dough while it rests. A warm kitchen makes all of this faster.

Question: What gives the loaf its taste?
Answer: Bacteria that live beside the yeast make two acids. They taste sour and keep mould away.
"""
EXERCISE = f"Exercise: {PROBLEM.strip()}".replace("\n\nThe rule", "\n\nSolution: The rule")
SUMMARY = """\
Sourdough holds wild yeast beside bacteria. The yeast lifts the bread, and the bacteria give it \
the sour taste by two acids that also fight mould. Somebody feeds the starter daily with water and \
flour, and keeps it in a jar. It may be used once it doubles in six hours. Warmth speeds that up.
"""
RIGHT = {
    "question_answer": QUESTION_ANSWER,
    "summary": SUMMARY,
    "exercise": EXERCISE,
    "faq": FAQ,
    "tutorial": TUTORIAL,
    "worked_problem": PROBLEM,
    "explanation": PROSE,
    "table": TABLE,
    "rewrite": PROSE,
}


def judged(
    kind: str, text: str, language: str = "en", *, is_whole: bool = True
) -> str | RefusedAnswer:
    return judge_answer(TEMPLATES[kind], WrittenAnswer(text, 100, is_whole), PASSAGE, language)


def refusal_of(answer: str | RefusedAnswer) -> Refusal | None:
    return answer.reason if isinstance(answer, RefusedAnswer) else None


ELSEWHERE = (
    "Planets move around the Sun on ellipses, and those that are further away take longer. Kepler "
    "found this out by looking at observations of Mars which Brahe had written down with great "
    "care. Newton showed later that one law of gravity explains all three of his rules."
)


@pytest.mark.parametrize("kind", sorted(TEMPLATES))
def test_a_good_answer_is_taken_and_passes_the_filters_that_follow(kind: str):
    text = judged(kind, RIGHT[kind])
    assert text == RIGHT[kind].strip()
    sample = replace(real(""), text=str(text), template=kind)
    assert judge_sample(sample, "en").reason is None


@pytest.mark.parametrize(
    ("kind", "text", "refusal"),
    [
        ("faq", "  \n", Refusal.EMPTY),
        ("faq", "<think>What might people ask? " + FAQ, Refusal.EMPTY),
        ("rewrite", "Bread rises.", Refusal.TOO_SHORT),
        ("rewrite", "It rises because it rises. " * 40, Refusal.REPEATED),
        ("rewrite", "The dough rests.\n" * 12 + PROSE[:100], Refusal.REPEATED),
        ("rewrite", PASSAGE, Refusal.COPY),
        ("explanation", "Bread is old. " + PASSAGE, Refusal.COPY),
        ("rewrite", f"{RULES}\n\n{PROSE}", Refusal.LEAKS_PROMPT),
        ("faq", FAQ + "\n<doc>\nMore about bread", Refusal.LEAKS_PROMPT),
        ("faq", FAQ + "\n<|im_start|>user\nAnother one", Refusal.LEAKS_PROMPT),
        ("faq", "I'm sorry, but I can't help with that. " + FAQ, Refusal.DECLINED),
        ("tutorial", "As an AI language model I have never baked. " + TUTORIAL, Refusal.DECLINED),
        ("faq", PROSE.replace("?", "."), Refusal.MALFORMED),
        ("tutorial", PROSE.replace("200", "some").replace("400", "more"), Refusal.MALFORMED),
        ("table", PROSE, Refusal.MALFORMED),
        ("worked_problem", PROSE.replace("\n\n", "\n"), Refusal.MALFORMED),
        ("question_answer", PROSE.replace("?", "."), Refusal.MALFORMED),
        ("question_answer", " ".join(PROSE.split()) + "?", Refusal.MALFORMED),
        ("exercise", PROSE, Refusal.MALFORMED),
        ("exercise", f"Solution: {PROSE}", Refusal.MALFORMED),
        ("summary", "The dough rests in a bowl. " * 40, Refusal.TOO_SHORT),
        ("summary", PROSE, Refusal.MALFORMED),
        ("explanation", ELSEWHERE, Refusal.UNGROUNDED),
        ("explanation", f"The text above is about bread. {PROSE}", Refusal.LEAKS_PROMPT),
        (
            "explanation",
            f"The answer to this question is found there. {PROSE}",
            Refusal.LEAKS_PROMPT,
        ),
        ("explanation", f"El texto anterior trata de pan. {PROSE}", Refusal.LEAKS_PROMPT),
    ],
)
def test_what_goes_wrong_is_refused_with_its_reason(kind: str, text: str, refusal: Refusal):
    assert refusal_of(judged(kind, text)) is refusal


def test_a_refusal_tells_what_was_measured_and_the_limit_that_was_missed():
    assert judged("rewrite", "Bread rises.") == RefusedAnswer(Refusal.TOO_SHORT, "words", 2, 30)
    copied = judged("rewrite", PASSAGE)
    assert copied == RefusedAnswer(Refusal.COPY, "copied", 1.0, 0.6)
    elsewhere = judged("explanation", ELSEWHERE)
    assert isinstance(elsewhere, RefusedAnswer)
    assert elsewhere.measure == "grounded"
    assert elsewhere.value < elsewhere.limit == 0.2
    assert judged("faq", PROSE.replace("?", ".")) == RefusedAnswer(
        Refusal.MALFORMED, "questions", 0, 2
    )


def test_what_was_cut_off_is_refused_unless_its_end_had_been_written():
    assert refusal_of(judged("faq", FAQ, is_whole=False)) is Refusal.TRUNCATED
    assert judged("faq", FAQ + "</faq>\n<doc>\nThe next", is_whole=False) == FAQ.strip()


@pytest.mark.parametrize(
    "wrapped",
    [
        f"Sure! Here are the questions:\n\n{FAQ}",
        f"```markdown\n{FAQ}```",
        f"<think>\nLet me see.\n</think>\n\n{FAQ}",
        f"<faq>\n{FAQ}</faq>",
    ],
)
def test_wrappings_are_taken_off(wrapped: str):
    assert judged("faq", wrapped) == FAQ.strip()


def test_what_goes_round_in_circles_ends_where_it_began_to():
    looped = (
        QUESTION_ANSWER + "\nQuestion: Why does sourdough bread rise without any bought yeast?\n"
    )
    assert judged("question_answer", looped, is_whole=False) == QUESTION_ANSWER.strip()
    assert refusal_of(judged("faq", FAQ * 4)) is Refusal.REPEATED, (
        "larger models are to know better"
    )


@pytest.mark.parametrize(
    "written",
    [
        QUESTION_ANSWER.replace("?\nAnswer:", "? Answer:"),
        QUESTION_ANSWER.replace("yeast?", 'yeast?"').replace("taste?", 'taste?"'),
        QUESTION_ANSWER.replace("Question:", "**Question:**").replace("Answer:", "**Answer:**"),
        QUESTION_ANSWER.replace("Question:", "Pregunta:").replace("Answer:", "Respuesta:"),
        QUESTION_ANSWER.split("\n\n", maxsplit=1)[0],
    ],
)
def test_a_question_and_its_answer_may_stand_as_their_model_likes(written: str):
    assert judged("question_answer", written) == written.strip()


def test_an_answer_ends_where_its_model_asks_itself_the_same_again():
    asked = words_of(SUMMARY_WORDS, Subject.DOCUMENTATION, "en")
    assert judged("summary", f"{SUMMARY}\n---\n{asked}\n\nBread is") == SUMMARY.strip()
    ruled = QUESTION_ANSWER.replace("\n\nQ", "\n\n---\n\nQ")
    assert judged("question_answer", ruled) == ruled.strip()


@pytest.mark.parametrize(
    "label",
    ["**Solution:**", "### Solution\n", "Solución:", "**Answer**:", "Solution to the exercise:"],
)
def test_a_solution_may_be_labelled_as_its_model_likes(label: str):
    labelled = EXERCISE.replace("Solution:", label)
    assert judged("exercise", labelled) == labelled.strip()


CHINESE = (
    "\u9178\u9762\u5305\u80fd\u591f\u53d1\u8d77\u6765,\u662f\u56e0\u4e3a\u9762\u56e2\u91cc\u540c"
    "\u65f6\u751f\u6d3b\u7740\u91ce\u751f\u9175\u6bcd\u548c\u7ec6\u83cc\u3002\u7ec6\u83cc\u4ea7"
    "\u751f\u4e73\u9178\u548c\u918b\u9178,\u8ba9\u9762\u5305\u6709\u9178\u5473,\u8fd8\u80fd\u9632"
    "\u6b62\u53d1\u9709\u3002\u6bcf\u5929\u8981\u7528\u9762\u7c89\u548c\u6c34\u5582\u517b\u9175\u79cd"
)


def test_a_language_without_spaces_is_counted_in_letters():
    written = WrittenAnswer(f"\u9898\u76ee:{CHINESE}", 100, is_whole=True)
    assert refusal_of(judge_answer(TEMPLATES["rewrite"], written, CHINESE, "zh")) is Refusal.COPY
    again = WrittenAnswer(CHINESE[:20] * 8, 100, is_whole=True)
    assert refusal_of(judge_answer(TEMPLATES["rewrite"], again, "", "zh")) is Refusal.REPEATED
    assert judge_answer(TEMPLATES["rewrite"], written, "", "zh") == written.text
