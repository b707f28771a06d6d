import json
import random
import unicodedata

import pytest

from elmo_tasks.data.tokens import Token, tokenize


def words(text, **options):
    return [token.word for token in tokenize(text, **options)]


def test_a_token_knows_where_it_stands():
    assert tokenize(" It's  5\u00a0% ") == [
        Token("It", 1, 3),
        Token("'s", 3, 5),
        Token("5", 7, 8),
        Token("%", 9, 10),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t\r\n\u00a0\u2028\u3000\x85", ""),
        ("don't", "do n't"),
        ("DON'T", "DO N'T"),
        ("Don’t", "Do n’t"),
        ("WON’T!", "WO N’T !"),
        ("can't've", "ca n't 've"),
        ("cannot", "cannot"),
        ("n't", "n't"),
        ("it's", "it 's"),
        ("IT'S", "IT 'S"),
        ("it’s", "it ’s"),
        ("John's.", "John 's ."),
        ("I'm, we're, she'd, they'll, I've", "I 'm , we 're , she 'd , they 'll , I 've"),
        ("the dogs' toys", "the dogs ' toys"),
        ("O'Neil", "O ' Neil"),
        ("O'Leary's", "O ' Leary 's"),
        ("rock 'n' roll", "rock ' n ' roll"),
        ("the 'same'", "the ' same '"),
        ("the ’90s", "the ’ 90s"),
        ("U.S.", "U.S."),
        ("the U.S.A.'s", "the U.S.A. 's"),
        ("e.g., this", "e.g. , this"),
        ("J.R.R. Tolkien", "J.R.R. Tolkien"),
        ("Plan B.", "Plan B ."),
        ("Mr. Smith", "Mr. Smith"),
        ("Dr. No vs. Mrs. B", "Dr. No vs. Mrs. B"),
        ("I saw Mr.", "I saw Mr ."),
        ("It ends. Then", "It ends . Then"),
        ("It ends.", "It ends ."),
        ("Really?!", "Really ? !"),
        ("1,000.50", "1,000.50"),
        ("3.14.", "3.14 ."),
        ("1,5,", "1,5 ,"),
        ("15–1", "15 – 1"),
        ("1/2", "1 / 2"),
        ("7:30", "7 : 30"),
        ("1990s", "1990s"),
        ("a -- b --- c", "a -- b --- c"),
        ("a--b", "a -- b"),
        ("a—b", "a — b"),
        ("-", "-"),
        ("-x-", "- x -"),
        ("...", "..."),
        ("wait...what", "wait ... what"),
        ("etc..", "etc .."),
        ("$5", "$ 5"),
        ("50%", "50 %"),
        ("€1,000m", "€ 1,000 m"),
        ('("so")', '( " so " )'),
        ("“so”", "“ so ”"),
        ("snake_case", "snake _ case"),
        ("#1 @home", "# 1 @ home"),
        ("京都 (Kyoto)", "京都 ( Kyoto )"),
        ("日本語、です。", "日本語 、 です 。"),
        ("cafe\u0301s", "cafe\u0301s"),  # a combining mark is no word's end
        ("\u0301a", "\u0301 a"),
        ("😀x😀😀", "😀 x 😀 😀"),
        ("a\u200bb", "a \u200b b"),
        ("हिन्दी में किताब।", "हिन्दी में किताब ।"),
        ("كِتَاب جديد", "كِتَاب جديد"),
        ("שָׁלוֹם!", "שָׁלוֹם !"),
        ("ภาษาไทย ที่นี่", "ภาษาไทย ที่นี่"),
        ("தமிழ் மொழி", "தமிழ் மொழி"),
        ("𑀓𑀸 𑀓", "𑀓𑀸 𑀓"),
        ("my co\u00adoperation", "my co\u00adoperation"),
        ("می\u200cخواهم بروم", "می\u200cخواهم بروم"),
        ("അവന്\u200d വന്നു", "അവന്\u200d വന്നു"),  # a joiner after a mark ends a word of Malayalam
        ("a\u200d b\u00ad\n", "a \u200d b \u00ad"),  # after a letter it joins nothing
        ("would\u00adn't E\u0301.U.", "would\u00ad n't E\u0301.U."),
        ("😀\ufe0f 1\u20e3", "😀 \ufe0f 1\u20e3"),
    ],
)
@pytest.mark.parametrize("split_hyphens", [False, True])
def test_words_numbers_and_punctuation(text, expected, split_hyphens):
    assert words(text, split_hyphens=split_hyphens) == expected.split()


@pytest.mark.parametrize(
    ("text", "whole", "split"),
    [
        ("well-known", "well-known", "well - known"),
        ("a state-of-the-art film", "a state-of-the-art film", "a state - of - the - art film"),
        ("mid-1990s", "mid-1990s", "mid - 1990s"),
        ("15-1", "15-1", "15 - 1"),
        ("re-e\u0301dit", "re-e\u0301dit", "re - e\u0301dit"),
        ("first- and", "first - and", "first - and"),
        ("one--two-three", "one -- two-three", "one -- two - three"),
    ],
)
def test_hyphens_hold_a_word_together_unless_split(text, whole, split):
    assert words(text) == whole.split()
    assert words(text, split_hyphens=True) == split.split()


SPACES = " \t\n\r\x0b\x0c\x1c\x1f\x85\u00a0\u1680\u2003\u2009\u2028\u2029\u202f\u205f\u3000"
LETTERS = "abnstvyANSTVé\u00dfßΩжא\u0627हिक्ʼªⅣ²½٣５ﬁ"
SIGNS = "!\"#$%&()*+,./:;<=>?@[\\]^_`{|}~-'‘’“”–—…·¿€№\u00ad\u200b\u200d\u2060\ufeff\U0001f600\U0001f1e9"
MARKS = "\u0300\u0301\u0308\u0327\u036f\u0483\u20dd\u3099\ufe0f"
CJK = "日本語京都한국어かなカナ。、「」\U00020000"
PIECES = ["n't", "N’T", "'s", "’ll", "U.S.", "e.g.", "Mr.", "No. ", "1,000.5", "--", "...", "well-known"]


def random_text(rng):
    kinds = [SPACES, LETTERS, "0123456789", SIGNS, "'’.,-–", MARKS, CJK, PIECES]
    return "".join(rng.choice(rng.choice(kinds)) for _ in range(rng.randint(0, 40)))


@pytest.mark.parametrize("split_hyphens", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_tokens_of_any_text_are_literal_and_cover_all_but_white_space_once(seed, split_hyphens):
    rng = random.Random(seed)
    for _ in range(1000):
        text = random_text(rng)
        tokens = tokenize(text, split_hyphens=split_hyphens)
        assert [text[token.start : token.stop] for token in tokens] == [token.word for token in tokens], repr(text)
        covered = [k for token in tokens for k in range(token.start, token.stop)]
        assert covered == [k for k, character in enumerate(text) if not character.isspace()], repr(text)
        assert all(token.word for token in tokens), repr(text)


@pytest.mark.parametrize("seed", range(3))
def test_amount_and_kind_of_white_space_do_not_matter(seed):
    rng = random.Random(seed)
    for _ in range(1000):
        text = random_text(rng)
        wide = "".join(" \u3000\n" if character.isspace() else character for character in text)
        assert words(wide) == words(text), repr(text)


def test_composed_and_combining_letters_make_the_same_words():
    text = "Une café-crème à Orléans, naïve coöperation. Żółć?"
    for split in (False, True):
        apart = words(unicodedata.normalize("NFD", text), split_hyphens=split)
        assert [unicodedata.normalize("NFC", word) for word in apart] == words(text, split_hyphens=split)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        "." * 200_000,
        "a." * 100_000,
        "1," * 100_000,
        "x-" * 100_000,
        "a\u0301" * 50_000,
        "a" + "\u0301\u200d" * 50_000,
    ],
)
def test_a_text_of_one_kind_of_character_is_tokenised_fast(text):
    assert "".join(words(text)) == text


def test_nearly_all_answers_of_the_real_set_are_stretches_of_tokens(shared):
    content = json.loads((shared / "data" / "squad" / "dev-subset-v1.1.json").read_text("utf-8"))
    n = missed = 0
    for paragraph in (paragraph for article in content["data"] for paragraph in article["paragraphs"]):
        tokens = tokenize(paragraph["context"], split_hyphens=True)
        starts, stops = ({token[k] for token in tokens} for k in (1, 2))
        for answer in (answer for question in paragraph["qas"] for answer in question["answers"]):
            n += 1
            start = answer["answer_start"] + len(answer["text"]) - len(answer["text"].lstrip())
            missed += start not in starts or start + len(answer["text"].strip()) not in stops
    assert n == 23_176
    assert missed <= 0.005 * n
