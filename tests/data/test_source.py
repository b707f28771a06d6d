import gzip

import pytest

from elmo_tasks.data.coref import CorefReader
from elmo_tasks.data.corpus import TextFiles
from elmo_tasks.data.pos import PosReader
from elmo_tasks.data.source import Files
from elmo_tasks.data.srl import SrlReader
from elmo_tasks.data.sst5 import SstReader
from elmo_tasks.errors import UserError

TREES, FRAMES = SstReader(phrases=False), SrlReader(max_training_tokens=100)


class Dividing(SrlReader):
    """Chooses the files of each split."""

    def division(self, folder):
        return ""


@pytest.fixture
def files(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f"(3 {name})\n")
    return {"train": "a", "dev": "b", "test": "c"}


def test_each_split_is_read_from_its_own_file(files, tmp_path):
    source = Files(str(tmp_path), files, TREES)
    assert [source.read(TREES, split)[0].tokens for split in ("train", "dev", "test")] == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_file_that_has_changed_since_the_digest_is_refused(files, tmp_path, split):
    source = Files(str(tmp_path), files, TREES)
    source.check_unchanged()
    (tmp_path / files[split]).write_text("(1 other)\n")
    with pytest.raises(UserError, match=r": the files have changed since the run began; start it again$"):
        source.check_unchanged()


def test_a_folder_that_is_not_there_is_named(files, tmp_path):
    with pytest.raises(UserError, match=r"^data\.root=.*/elsewhere: no such folder$"):
        Files(str(tmp_path / "elsewhere"), files, TREES)


@pytest.mark.parametrize("split", ["dev", "test"])
@pytest.mark.parametrize("name", ["a", "link"])
def test_a_file_of_train_is_in_no_other_split(files, tmp_path, split, name):
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(UserError, match=rf"/{name} is in both train and {split}; expected files of its own for each$"):
        Files(str(tmp_path), files | {split: name}, TREES)


@pytest.mark.parametrize(("train", "dev"), [("data", "data/dev"), ("data", "data"), ("data/train", "data")])
def test_a_folder_of_train_holds_no_file_of_another_split(tmp_path, train, dev):
    for split in ("train", "dev"):
        (tmp_path / "data" / split).mkdir(parents=True)
        (tmp_path / "data" / split / "a.gold_conll").write_text("#begin")
    found = {"train": train, "dev": dev, "test": None}
    with pytest.raises(
        UserError, match=r"/a\.gold_conll is in both train and dev; expected files of its own for each$"
    ):
        Files(str(tmp_path), found, FRAMES)
    if train == dev:  # a reader that chooses the files of each split
        Files(str(tmp_path), found, Dividing(max_training_tokens=100))
    Files(str(tmp_path), found | {"train": "data/train", "dev": "data/dev"}, FRAMES)


@pytest.mark.parametrize("dev", ["dev", "dev.txt", None])
def test_a_folder_that_is_divided_is_that_of_all_splits(tmp_path, dev):
    for folder in ("trees", "dev"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.mrg").write_text(f"( (S (NN {folder}) ))")
    (tmp_path / "dev.txt").write_text("a NN\n")
    found = {"train": "trees", "dev": "trees", "test": None}
    assert Files(str(tmp_path), found, PosReader()).splits == ["train", "dev"]
    sentence = (
        rf"task\.files\.train is the folder .*trees, which is divided .*, but task\.files\.dev is .*{dev or 'null'};"
    )
    with pytest.raises(UserError, match=sentence):
        Files(str(tmp_path), found | {"dev": dev}, PosReader())


def test_held_out_text_is_not_in_the_training_text(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("some text\n")
    with pytest.raises(UserError, match=r"/b\.txt is in both train and dev; expected files of its own for each$"):
        TextFiles(root=str(tmp_path), train="*.txt", heldout="b.txt")


def test_digest_of_files_changes_with_any_of_them_and_with_their_order(files, tmp_path):
    first = Files(str(tmp_path), files, TREES).digest
    assert Files(str(tmp_path), files, TREES).digest == first
    assert Files(str(tmp_path), {"train": "b", "dev": "a", "test": "c"}, TREES).digest != first
    (tmp_path / "b").write_text("(2 b)\n")
    assert Files(str(tmp_path), files, TREES).digest != first


def test_digest_of_folders_changes_where_train_ends_and_dev_begins(tmp_path):
    """Also where both are one folder, which a reader splits by the names of its files."""
    found = []
    for k, (train, dev) in enumerate([("ab", "cd"), ("a", "bcd"), ("abc", "d"), ("abcd", None), ("abcd", "abcd")]):
        folders = {"train": f"train{k}", "dev": None if dev is None else f"dev{k}" if dev != train else f"train{k}"}
        for folder, names in ((folders["train"], train), (folders["dev"], dev or "")):
            for name in names:
                (tmp_path / folder).mkdir(exist_ok=True)
                (tmp_path / folder / f"{name}_conll").write_text(f"(3 {name})\n")
        reader = Dividing(max_training_tokens=100) if train == dev else FRAMES
        found.append(Files(str(tmp_path), folders, reader).digest)
        if dev not in ("d", None, train):
            text = TextFiles(root=str(tmp_path), train=f"{folders['train']}/*", heldout=f"{folders['dev']}/*")
            assert text.digest == found[-1]
    # (abc, d) and (abcd, none) read the same files in the same order: task.dev_share, which the latter needs, differs
    assert found[2] == found[3]
    assert len({*found}) == len(found) - 1


def test_digest_of_a_divided_folder_changes_with_the_sections_that_divide_it(tmp_path):
    """The names alone decide then: contents and order of the files stay the same."""
    found = []
    for k, name in enumerate(("{:04}", "wsj_{:04}", "wsj_{:04}")):
        (tmp_path / str(k)).mkdir()
        for n in range(1, 25):
            path = tmp_path / str(k) / f"{name.format(100 * n)}.mrg"
            path.write_text(f"( (S (NN n{n}) ))")
        folders = dict.fromkeys(("train", "dev", "test"), str(k))
        files = Files(str(tmp_path), folders, PosReader())
        found.append((files.digest, files.test_digest))
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]
    assert found[1] == found[2]


def test_the_test_file_has_a_digest_of_its_own(files, tmp_path):
    first = Files(str(tmp_path), files, TREES)
    (tmp_path / "c").write_text("(2 c)\n")
    changed, missing = Files(str(tmp_path), files, TREES), Files(str(tmp_path), files | {"test": None}, TREES)
    assert first.digest == changed.digest == missing.digest
    assert len({first.test_digest, changed.test_digest, None}) == 3
    assert missing.test_digest is None


def test_digest_of_a_folder_covers_what_is_linked_below_it(files, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x_conll").write_text("(3 x)\n")
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "folder" / "gone").symlink_to(tmp_path / "nowhere")
    first = Files(str(tmp_path), files | {"train": "folder"}, FRAMES).digest
    (tmp_path / "elsewhere" / "x_conll").write_text("(2 x)\n")
    assert Files(str(tmp_path), files | {"train": "folder"}, FRAMES).digest != first
    (tmp_path / "folder" / "gone_conll").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"/folder/gone_conll: cannot be read as a file"):
        Files(str(tmp_path), files | {"train": "folder"}, FRAMES)


@pytest.mark.parametrize(
    ("reader", "name"),
    [(FRAMES, "{}_conll"), (CorefReader(max_training_sentences=9), "{}_conll"), (PosReader(), "{}.mrg")],
)
def test_digest_of_a_folder_is_that_of_the_files_that_are_read(tmp_path, reader, name):
    """A file that is renamed out of the way changes the data; one that is never read does not."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for k in range(10):
        (folder / name.format(k)).write_text(f"{k}\n")
    splits = {"train": "folder", "dev": "folder" if isinstance(reader, PosReader) else "dev", "test": None}
    (tmp_path / "dev").write_text("dev\n")
    first = Files(str(tmp_path), splits, reader).digest
    (folder / "README").write_text("what it is\n")
    assert Files(str(tmp_path), splits, reader).digest == first
    (folder / name.format(3)).rename(folder / f"{name.format(3)}.off")
    assert Files(str(tmp_path), splits, reader).digest != first


def test_a_folder_is_no_file(files, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=r"/folder: a folder; expected a file$"):
        Files(str(tmp_path), files | {"train": "folder"}, TREES)


def test_a_pattern_means_the_one_file_that_matches(files, tmp_path):
    (tmp_path / "train-part.x").write_text("(3 part)\n")
    source = Files(str(tmp_path), files | {"train": "train*.x"}, TREES)
    assert source.read(TREES, "train")[0].tokens == ["part"]
    (tmp_path / "train-whole.x").touch()
    with pytest.raises(
        UserError, match=r"train-part\.x and train-whole\.x match, but one is expected; set task\.files\.train"
    ):
        Files(str(tmp_path), files | {"train": "train*.x"}, TREES)


def test_a_file_may_be_named_by_its_whole_path(files, tmp_path):
    elsewhere = tmp_path / "elsewhere[1]"
    elsewhere.write_text("(3 far)\n")
    assert Files(str(tmp_path), files | {"dev": str(elsewhere)}, TREES).paths["dev"] == elsewhere


def test_only_the_test_set_may_be_missing(files, tmp_path):
    (tmp_path / "c").unlink()
    assert Files(str(tmp_path), files, TREES).splits == ["train", "dev"]
    assert Files(str(tmp_path), files | {"test": None}, TREES).splits == ["train", "dev"]


def test_missing_places_are_named_with_the_option_to_set(files, tmp_path):
    with pytest.raises(UserError, match=r"data\.root is not set; add data\.root=DIR"):
        Files(None, files, TREES)
    with pytest.raises(UserError, match=r"data\.root=.*nowhere: no such folder"):
        Files(str(tmp_path / "nowhere"), files, TREES)
    with pytest.raises(UserError, match=r"/x: no such file; set data\.root, or task\.files\.dev"):
        Files(str(tmp_path), files | {"dev": "x"}, TREES)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train": 5}, r"task\.files\.train must be a path or pattern, or null, found 5"),
        ({"train": ["a", "b"]}, r"task\.files\.train must be a path or pattern, or null, found \['a', 'b'\]"),
        ({"train": ""}, r"task\.files\.train must be a path or pattern, or null, found ''"),
        ({"train": None}, r"task\.files\.train must be a path or pattern, found null"),
        ({"train": "**a"}, r"task\.files\.train='\*\*a' is no path or pattern"),
    ],
)
def test_paths_must_be_strings(files, message, tmp_path):
    with pytest.raises(UserError, match=message):
        Files(str(tmp_path), files | {"dev": None, "test": None}, TREES)


def test_a_text_that_is_there_twice_or_is_no_text_is_refused(tmp_path):
    (tmp_path / "train-1.txt").write_text("some text\n")
    (tmp_path / "heldout.txt").write_text("other text\n")
    options = {"root": str(tmp_path), "train": "train-*.txt*", "heldout": "heldout.txt*"}
    TextFiles(**options)
    with gzip.open(tmp_path / "train-1.txt.gz", "wt") as file:
        file.write("some text\n")
    with pytest.raises(UserError, match=r"train-1\.txt\.gz: the same text as train-1\.txt; expected only one of them$"):
        TextFiles(**options)
    (tmp_path / "train-1.txt.gz").unlink()
    (tmp_path / "heldout.txt.sha256").write_text("0123 heldout.txt\n")
    with pytest.raises(
        UserError, match=r"heldout\.txt\.sha256: a checksum or a backup, but it matches task\.lm\.heldout"
    ):
        TextFiles(**options)
