import re
import unicodedata
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from elmo_tasks.data.labelled import LabelledText
from elmo_tasks.data.nsmc import NsmcReader, tokenize_korean
from elmo_tasks.data.text import read_lines
from elmo_tasks.errors import UserError
from elmo_tasks.places import BUNDLED

HEADER = "id\tdocument\tlabel\n"
SAMPLE = BUNDLED / "sample" / "nsmc"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t\u00a0\u3000\u200b\ufeff", ""),
        ("이 영화 재밌다", "이 영화 재밌다"),
        ("재밌다ㅋㅋㅋㅋㅋ ㅠㅠ", "재밌다ㅋㅋㅋㅋㅋ ㅠㅠ"),  # jamo are letters
        ("ㅠ.ㅠ ㅡㅡ;;", "ㅠ . ㅠ ㅡㅡ ;;"),
        ("좋다.그런데", "좋다 . 그런데"),
        ("음..글쎄... 뭐.....", "음 .. 글쎄 ... 뭐 ..."),
        ("와!!!!!?~~^^;", "와 !!! ? ~~ ^^ ;"),
        ("♥♥♥♥♡", "♥♥♥ ♡"),
        ("3.5점, 2015년 9,800명의 2:0으로", "3.5점 , 2015년 9,800명의 2:0으로"),
        ("10점!", "10점 !"),
        ("1,2편", "1,2편"),
        ("1950-60년대 2/3", "1950 - 60년대 2 / 3"),
        ("U-21 트라피스트-1 코미디-액션", "U-21 트라피스트-1 코미디 - 액션"),
        ("R&B TCP/IP AT&T D.C. I'm", "R&B TCP/IP AT&T D.C . I'm"),
        ("OST가 b급영화", "OST가 b급영화"),
        ("별_로 100%", "별 _ 로 100 %"),
        ("\u201c명작\u201d \u2018굿\u2019 `음`", "\" 명작 \" ' 굿 ' ' 음 '"),
        ("글쎄\u2026 1\u20132 \u2014", "글쎄 ... 1 - 2 --"),
        ("ＯＫ！ １０점～", "OK ! 10점 ~"),
        ("<b>[스포]=", "< b > [ 스포 ] ="),
        ("감동\u200b적 재\u00ad미", "감동적 재미"),
    ],
)
def test_eojeol_are_separated_from_numbers_and_punctuation(text, expected):
    assert tokenize_korean(text) == expected.split()


def test_composed_and_decomposed_hangul_make_the_same_words():
    text = "정말 재밌는 café 영화ㅋㅋ!"
    apart = unicodedata.normalize("NFD", text)
    assert apart != text
    assert tokenize_korean(apart) == tokenize_korean(text) == ["정말", "재밌는", "café", "영화ㅋㅋ", "!"]


@pytest.mark.parametrize(
    ("encoding", "text", "name"),
    [
        ("cp949", "재미있는 영화", "cp949"),
        ("cp949", "똠방각하 최고 뷁", "cp949"),
        ("euc-kr", "최고!!!", "cp949"),
        ("latin-1", "déjà vu Ärger ÄÖÜ", "latin-1"),
        ("cp1251", "Привет, мир", "latin-1"),
        ("shift_jis", "この映画は面白い", "latin-1"),
        ("gbk", "我们喜欢这个电影", "latin-1"),
        ("euc_jp", "この映画は面白い", "latin-1"),
    ],
)
def test_korean_is_known_by_its_bytes(tmp_path, encoding, text, name):
    (tmp_path / "ratings.txt").write_bytes(f"id\tdocument\tlabel\n1\t{text}\t1\n".encode(encoding))
    with pytest.raises(
        UserError, match=rf"ratings\.txt:2: not UTF-8 .*; set task\.reader\.encoding .* such as {name}$"
    ):
        NsmcReader().read_file(tmp_path / "ratings.txt", "train")


@pytest.mark.parametrize(
    ("token", "expected"), [("!!!!!", "!!!"), ("ㅋㅋㅋㅋㅋ", "ㅋㅋㅋㅋㅋ"), ("Ｏ“Ｋ”", 'O"K"'), ("cafe\u0301", "café")]
)
def test_a_given_token_is_spelt_as_those_of_a_comment_and_not_cut(token, expected):
    assert NsmcReader().from_json({"text": [token]}, "x").tokens == [expected]


def test_tokenised_text_stays_as_it_is():
    for split in ("train", "dev", "test"):
        for _, line in read_lines(SAMPLE / f"ratings_{split}.txt"):
            tokens = tokenize_korean(line)
            assert tokenize_korean(" ".join(tokens)) == tokens


def test_the_korean_text_for_language_models_is_tokenised_in_the_same_way(shared):
    n = 0
    for _, line in read_lines(shared / "data" / "lm" / "ko" / "heldout.txt.xz"):
        assert tokenize_korean(line) == unicodedata.normalize("NFC", line).split(" ")
        n += 1
    assert n == 9_254


def read(tmp_path: Path, content: str | bytes):
    path = tmp_path / "ratings"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    reader = NsmcReader()
    return reader.read_file(path, "train"), reader.left_out


def test_comments_and_labels_and_how_many_were_empty(tmp_path):
    lines = '1\t"최고"다!\t1\n2\t\t0\n\n3\t별로\t0\r\n4\t \u200b \t1\n5\t"따옴표 하나\t0\n'
    items, left_out = read(tmp_path, HEADER + lines)
    assert items == [
        LabelledText(['"', "최고", '"', "다", "!"], 1),
        LabelledText(["별로"], 0),
        LabelledText(['"', "따옴표", "하나"], 0),
    ]
    assert left_out == {"empty comments": 2}


def test_a_line_separator_within_a_comment_ends_no_line(tmp_path):
    assert read(tmp_path, HEADER + "1\t좋다\u2028\x85\x0b좋아\t1\n")[0] == [LabelledText(["좋다", "좋아"], 1)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"ratings:1: expected the header id, document, label with tabs between, found ''"),
        ("1\t좋다\t1\n", r"ratings:1: expected the header .*, found '1\\t좋다\\t1'"),
        ("id,document,label\n", r"ratings:1: expected the header"),
        (HEADER + "1\t좋다\t1\n2\t좋다\n", r"ratings:3: expected 3 columns .*, found 2: '2\\t좋다'"),
        (HEADER + "\n1\t좋\t다\t1\n", r"ratings:3: expected 3 columns .*, found 4"),
        (HEADER + "1\t좋다\t2\n", r"ratings:2: label '2' is not one of 0, 1"),
        (HEADER + "1\t좋다\t\n", r"ratings:2: label '' is not one of 0, 1"),
        (HEADER + "1\t\tx\n", r"ratings:2: label 'x' is not one of 0, 1"),
        (HEADER + "7\t좋다\t1\n8\t별로\t0\n7\t\t1\n", r"ratings:4: id '7' is also in line 2"),
        (HEADER + "1\t" + "ㅋ" * 1001 + "\t1\n", r"ratings:2: a token of 1001 characters"),
        (HEADER.encode() + "1\t좋다\t1\n".encode("cp949"), r"ratings:2: not UTF-8"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path, content, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, content)


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path):
    assert len(read(tmp_path, b"\xef\xbb\xbf" + (HEADER + "1\t좋다\t1\n").encode())[0]) == 1


def comments(folder: Path, split: str) -> list[str]:
    return [line.split("\t")[1] for _, line in read_lines(folder / f"ratings_{split}.txt")][1:]


def test_the_sample_is_what_its_card_says():
    card = (SAMPLE / "README.md").read_text("utf-8")
    seen = []
    for split, n_empty in (("train", 1), ("dev", 0), ("test", 0)):
        reader = NsmcReader()
        items = reader.read_file(SAMPLE / f"ratings_{split}.txt", split)
        labels = [item.label for item in items]
        n_tokens = sum(len(item.tokens) for item in items)
        counts = [len(items), n_tokens, labels.count(0), labels.count(1)]
        assert f"| `ratings_{split}.txt` | {' | '.join(map(str, counts))} |" in card
        assert reader.left_out.get("empty comments", 0) == n_empty
        seen += [letters(comment) for comment in comments(SAMPLE, split) if comment]
    assert len(set(seen)) == len(seen) == 280


def letters(comment: str) -> str:
    return re.sub(r"[\W_]", "", comment)


def test_no_comment_of_the_sample_is_one_of_the_corpus(shared):
    ours = {letters(comment) for split in ("train", "dev", "test") for comment in comments(SAMPLE, split) if comment}
    for split in ("train", "dev", "test"):
        assert not ours & {letters(comment) for comment in comments(shared / "data" / "nsmc", split)}


@pytest.mark.parametrize(("split", "n"), [("train", 10_000), ("dev", 5_000), ("test", 5_000)])
def test_the_real_comments_are_all_read(shared, split, n):
    reader = NsmcReader()
    items = reader.read_file(shared / "data" / "nsmc" / f"ratings_{split}.txt", split)
    assert len(items) == n
    assert sum(item.label for item in items) == n // 2
    assert reader.left_out == {}


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["task=nsmc"], "random"),
        (["task=sst5"], "glove"),
        (["task=nsmc", "words=glove"], "glove"),
        (["words=glove", "task=nsmc"], "glove"),
        (["words=random", "task=sst5"], "random"),
    ],
)
def test_the_task_chooses_its_word_vectors_unless_the_command_line_does(overrides, name):
    conf = Path(__file__).parents[2] / "conf"
    with initialize_config_dir(str(conf), version_base="1.3"):
        words = compose("config", overrides).words
    assert {"name": name, "path": None, "dim": 50, "lowercase": True}.items() <= words.items()
