import dataclasses
import json

import h5py
import numpy as np
import pytest
import torch

import elmo_tasks.bilm.model as model
from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.lstm import ProjectedLSTM
from elmo_tasks.encoders.base import batches_by_length
from elmo_tasks.errors import UserError

SENTENCES = [
    ["the", "cat", "sat", "on", "the", "mat", "."],
    ["Ünïcode", "!"],
    ["word"],
    ["a", "sentence", "of", "another", "length"],
    [],
    ["the", "dog", "sat"],
]


def one_by_one(bilm, sentence, states=None):
    """One sentence by itself, without packing, batches or stretches; its layers and the states it leaves."""
    tokens = bilm.encoder.encode(["<S>", *sentence, "</S>"])
    x, layers, finals = torch.stack([tokens, tokens.flip(0)]), [torch.cat([tokens, tokens], dim=1)], []
    for k, lstm in enumerate(bilm.lstms):
        out, final = lstm(x, [1] * len(tokens), states[k] if states else lstm.initial_state(1))
        x = x + out if k > 0 and bilm.options.skip_connections else out
        layers.append(torch.cat([x[0], x[1].flip(0)], dim=1))
        finals.append(final)
    return torch.stack(layers)[:, 1:-1], finals


def step_by_step(bilm, sentence, states):
    """As :func:`one_by_one` where nothing is projected, in NumPy a step at a time; ``states`` are updated in place."""
    tokens = bilm.encoder.encode(["<S>", *sentence, "</S>"]).numpy()
    x, layers = np.stack([tokens, tokens[::-1]]), [np.concatenate([tokens, tokens], axis=1)]
    for k, lstm in enumerate(bilm.lstms):
        out = np.zeros_like(x)
        for direction in (0, 1):
            weight, bias = lstm.weight[direction].numpy(), lstm.bias[direction].numpy()
            hidden, cell = states.get((k, direction), (np.zeros(lstm.dim), np.zeros(lstm.dim)))
            for step, inputs in enumerate(x[direction]):
                i, j, f, o = np.split(np.concatenate([inputs, hidden]) @ weight + bias, 4)
                cell = cell / (1 + np.exp(-f - 1)) + np.tanh(j) / (1 + np.exp(-i))
                cell = np.clip(cell, -lstm.cell_clip, lstm.cell_clip)
                hidden = out[direction, step] = np.tanh(cell) / (1 + np.exp(-o))
            states[k, direction] = hidden, cell
        x = x + out if k > 0 else out
        layers.append(np.concatenate([x[0], x[1, ::-1]], axis=1))
    return torch.from_numpy(np.stack(layers)[:, 1:-1]).float()


def assert_same(found, expected, atol=1e-5):
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=atol)


@pytest.fixture
def official(shared):
    return BiLM.load(shared / "fixtures" / "elmo")


@pytest.fixture
def official_batches(shared):
    lists = json.loads((shared / "fixtures" / "elmo" / "sentences.json").read_text("utf-8"))
    return [[text.split() for text in batch] for batch in zip(*lists, strict=True)]


@pytest.fixture
def official_top_layers(shared):
    batches = [[] for _ in range(10)]
    for k in range(3):
        with h5py.File(shared / "fixtures" / "elmo" / f"lm_embeddings_{k}.hdf5") as file:
            for i, batch in enumerate(batches):
                forward, backward = torch.from_numpy(file[str(i)][...])
                batch.append(torch.cat([forward, backward], dim=1))
    return batches


def test_carried_over_ten_batches_the_top_layer_is_the_official_one(official, official_batches, official_top_layers):
    for sentences, expected in zip(official_batches, official_top_layers, strict=True):
        assert_same([x[-1] for x in official.layers(sentences, state="carry")], expected)


def test_under_reset_only_the_first_batch_is_the_official_one(official, official_batches, official_top_layers):
    assert_same([x[-1] for x in official.layers(official_batches[0])], official_top_layers[0])
    for sentences, expected in zip(official_batches[1:], official_top_layers[1:], strict=True):
        for found, wanted in zip(official.layers(sentences), expected, strict=True):
            assert (found[-1] - wanted).abs().max() > 1


def test_token_vectors_are_the_official_ones(shared, official):
    folder = shared / "fixtures" / "elmo"
    words = (folder / "vocab_test.txt").read_text("utf-8").split()
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
        expected = torch.from_numpy(file["embedding"][...])
    torch.testing.assert_close(official.encoder.encode(words), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("skip_connections", [True, False])
@pytest.mark.parametrize("n_layers", [1, 3])
def test_packed_batches_give_what_each_sentence_gives_by_itself(tiny_options, shake, skip_connections, n_layers):
    options = dataclasses.replace(tiny_options, skip_connections=skip_connections, n_layers=n_layers)
    bilm = shake(BiLM(options)).eval().requires_grad_(False)
    assert_same(bilm.layers(SENTENCES), [one_by_one(bilm, sentence)[0] for sentence in SENTENCES])


@pytest.mark.parametrize("state", ["reset", "carry", "warm"])
def test_without_a_projection_layers_agree_with_the_step_by_step_cell_also_when_read_back(
    tiny_options, shake, tmp_path, state
):
    """bilm-tf has no projection, and nothing for proj_clip to cut, where projection_dim is no smaller than dim."""
    options = dataclasses.replace(tiny_options, projection_dim=12, proj_clip=0.1, cell_clip=0.7)
    shake(BiLM(options)).save(tmp_path)
    bilm = BiLM.load(tmp_path)
    before = {}
    step_by_step(bilm, SENTENCES[4], before)
    bilm.warm_up([SENTENCES[4]])
    expected, carried = [], {}
    for sentence in SENTENCES:
        start = {"reset": {}, "carry": carried, "warm": dict(before)}[state]
        expected.append(step_by_step(bilm, sentence, start))
    bilm.reset_carried_state()
    found = [bilm.layers([sentence], state)[0] for sentence in SENTENCES]
    assert found[0].shape == (3, 7, 24)
    assert_same(found, expected)


def test_the_skip_connection_makes_a_difference(tiny_bilm, tiny_options, shake):
    without = shake(BiLM(dataclasses.replace(tiny_options, skip_connections=False))).requires_grad_(False)
    difference = (tiny_bilm.layers(SENTENCES[:1])[0] - without.layers(SENTENCES[:1])[0]).abs().amax(dim=(1, 2))
    assert (difference > 0.1).tolist() == [False, False, True]


def test_layer_0_is_the_token_vector_doubled(tiny_bilm):
    [layers] = tiny_bilm.layers(SENTENCES[:1])
    tokens = tiny_bilm.encoder.encode(SENTENCES[0])
    assert layers.shape == (tiny_bilm.n_layers, 7, tiny_bilm.dim) == (3, 7, 12)
    assert_same([layers[0]], [torch.cat([tokens, tokens], dim=1)])


def test_the_forward_half_knows_the_left_context_only_and_the_backward_half_the_right(tiny_bilm):
    one, other = tiny_bilm.layers([["a", "b", "c", "d"], ["a", "b", "c", "x"]])
    differs = ((one - other).abs() > 1e-5)[1:, :3]
    assert not differs[..., :6].any()
    assert differs[..., 6:].any(dim=2).all()


def test_order_and_batch_mates_change_nothing(tiny_bilm):
    alone = [tiny_bilm.layers([sentence])[0] for sentence in SENTENCES]
    assert_same(tiny_bilm.layers(SENTENCES), alone)
    assert_same(tiny_bilm.layers(SENTENCES[::-1])[::-1], alone)
    assert_same(tiny_bilm.layers(SENTENCES * 2), alone * 2)


@pytest.mark.parametrize("state", ["reset", "warm", "carry"])
def test_batch_size_changes_nothing(tiny_bilm, monkeypatch, state):
    tiny_bilm.warm_up(SENTENCES[:1])
    expected = [*tiny_bilm.layers(SENTENCES, state=state), *tiny_bilm.layers(SENTENCES, state=state)]
    tiny_bilm.reset_carried_state()
    monkeypatch.setattr(model, "_BATCH_POSITIONS", 10)
    assert len(list(batches_by_length([len(s) + 2 for s in SENTENCES], 10))) > 2
    assert_same([*tiny_bilm.layers(SENTENCES, state=state), *tiny_bilm.layers(SENTENCES, state=state)], expected)


def test_batches_keep_their_bound_and_lose_no_row():
    lengths = [3, 40, 10, 7, 7, 12, 2, 9]
    batches = list(batches_by_length(lengths, 30))
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    assert all(len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= 30 for rows in batches)


def test_a_very_long_sentence_is_run_in_blocks_with_the_same_result(tiny_bilm, monkeypatch):
    sentences = [[f"w{k % 17}" for k in range(150)], *SENTENCES]
    expected = tiny_bilm.layers(sentences)
    seen, forward = [], ProjectedLSTM.forward

    def spy(lstm, x, *rest):
        seen.append(x.shape[1])
        return forward(lstm, x, *rest)

    monkeypatch.setattr(ProjectedLSTM, "forward", spy)
    monkeypatch.setattr("elmo_tasks.bilm.lstm._BLOCK_FLOATS", 8 * tiny_bilm.options.dim * 9)
    assert_same(tiny_bilm.layers(sentences), expected)
    assert max(seen) <= 9
    assert len(seen) > 2 * 150 / 9


def test_carry_continues_row_by_row_though_the_number_of_rows_changes(tiny_bilm):
    states = {}
    for n_rows in (3, 2, 4, 1, 4):
        sentences = [[f"w{n_rows}", *SENTENCES[row], "x"] for row in range(n_rows)]
        expected = []
        for row, sentence in enumerate(sentences):
            layers, states[row] = one_by_one(tiny_bilm, sentence, states.get(row))
            expected.append(layers)
        assert_same(tiny_bilm.layers(sentences, state="carry"), expected)


def test_forget_clears_the_carried_state_and_reset_never_changes_it(tiny_bilm):
    first, second = (tiny_bilm.layers(SENTENCES[:2], state="carry") for _ in range(2))
    assert (first[0] - second[0]).abs().max() > 0.01
    tiny_bilm.reset_carried_state()
    assert_same(tiny_bilm.layers(SENTENCES[:2], state="carry"), first)
    tiny_bilm.layers(SENTENCES)
    assert_same(tiny_bilm.layers(SENTENCES[:2], state="carry"), second)


def test_warm_is_carry_after_the_warm_up_text_and_does_not_drift(tiny_bilm):
    text, sentences = SENTENCES[:2], SENTENCES[2:]
    expected = []
    for sentence in sentences:
        tiny_bilm.reset_carried_state()
        for line in text:
            tiny_bilm.layers([line], state="carry")
        expected += tiny_bilm.layers([sentence], state="carry")
    tiny_bilm.warm_up(text)
    for _ in range(2):
        assert_same(tiny_bilm.layers(sentences, state="warm"), expected)
    for sentence, layers in zip(sentences, expected, strict=True):
        assert_same(tiny_bilm.layers([sentence], state="warm"), [layers])


def test_warm_needs_a_warm_up_text(tiny_bilm):
    with pytest.raises(UserError, match="warm_up"):
        tiny_bilm.layers(SENTENCES, state="warm")


def test_the_warm_digest_follows_the_warm_up_text(tiny_bilm):
    digests = []
    for text in ([["a", "b"]], [["ab"]], [["a"], ["b"]], [["a", "b"]]):
        tiny_bilm.warm_up(text)
        digests.append(tiny_bilm.warm_digest)
    assert digests[0] == digests[3]
    assert len(set(digests)) == 3


def test_an_empty_sentence_has_no_tokens_and_no_sentences_no_layers(tiny_bilm):
    assert tiny_bilm.layers([[]])[0].shape == (3, 0, 12)
    assert tiny_bilm.layers([]) == []


def test_an_unknown_state_is_refused_with_the_choices(tiny_bilm):
    with pytest.raises(UserError, match=r"bilm\.state must be one of reset, carry, warm, found 'cold'"):
        tiny_bilm.layers(SENTENCES, state="cold")


def test_the_digest_follows_every_parameter(tiny_options, shake):
    digest = shake(BiLM(tiny_options)).digest
    for name, _ in BiLM(tiny_options).named_parameters():
        changed = shake(BiLM(tiny_options))
        with torch.no_grad():
            changed.get_parameter(name).view(-1)[-1] += 1e-3
        assert changed.digest != digest, name


@pytest.mark.parametrize("change", [{"cell_clip": 2.0}, {"proj_clip": float("inf")}, {"skip_connections": False}])
def test_the_digest_follows_the_options_that_are_no_weight(tiny_options, shake, change):
    same, other = BiLM(tiny_options), BiLM(dataclasses.replace(tiny_options, **change))
    assert shake(same).digest == shake(BiLM(tiny_options)).digest != shake(other).digest


def test_the_digest_of_a_saved_bilm_is_the_same_whenever_it_is_loaded(tiny_bilm, tmp_path):
    tiny_bilm.save(tmp_path)
    assert [BiLM.load(tmp_path).digest for _ in range(2)] == [tiny_bilm.digest] * 2


def test_token_vectors_can_come_from_elsewhere(tiny_bilm):
    found = tiny_bilm.layers(SENTENCES, encode=lambda words: 2 * tiny_bilm.encoder.encode(words))
    with torch.no_grad():
        for parameter in tiny_bilm.encoder.projection.parameters():
            parameter.mul_(2)
    assert_same(found, tiny_bilm.layers(SENTENCES))


def test_bfloat16_rounds_products_and_keeps_the_state(tiny_bilm):
    exact = torch.cat(tiny_bilm.layers(SENTENCES), dim=1)
    tiny_bilm.precision = "bfloat16"
    rounded = torch.cat(tiny_bilm.layers(SENTENCES), dim=1)
    assert rounded.dtype == torch.float32
    error = (rounded - exact).square().mean(dim=(1, 2)).sqrt() / exact.square().mean(dim=(1, 2)).sqrt()
    assert ((error > 1e-4) & (error < 0.05)).all(), error  # numbers keep 8 bits: 1/256 of each, in sums of any sign
    tokens = tiny_bilm.encode(SENTENCES[0])
    assert (tokens - tiny_bilm.encoder.encode(SENTENCES[0])).abs().max() > 0
    torch.testing.assert_close(rounded[0, : len(tokens), : tokens.shape[1]], tokens, rtol=0.05, atol=0.01)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_a_precision_without_instructions_is_remarked_on(tiny_bilm, monkeypatch, precision):
    tiny_bilm.precision, words = precision, ["short", "l" * 49]
    truncated = "words longer than 48 bytes are truncated: 1"
    slow = f"this processor has no {precision} instructions, so it is many times slower here than float32; "
    for there in (True, False):
        names = {"avx512_bf16": there, "avx512_vnni": there}
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda names=names: names)
        expected = truncated if there or precision == "float32" else slow + truncated
        assert tiny_bilm.prepare(words).startswith(expected)


def test_int8_rounds_the_products_of_the_lstms_alone(tiny_bilm):
    exact = torch.cat(tiny_bilm.layers(SENTENCES), dim=1)
    tiny_bilm.precision = "int8"
    rounded = torch.cat(tiny_bilm.layers(SENTENCES), dim=1)
    error = (rounded - exact).square().mean(dim=(1, 2)).sqrt() / exact.square().mean(dim=(1, 2)).sqrt()
    assert error[0] == 0
    assert ((error[1:] > 1e-4) & (error[1:] < 0.05)).all(), error


def test_the_first_truncated_words_are_named_in_one_warning(tiny_bilm, tmp_path, recwarn):
    tiny_bilm.layers([["a" * 48]])
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"^words longer than 48 bytes are truncated: 2, such as 'bbb") as caught:
        tiny_bilm.layers([["b" * 60, "a"], ["c" * 49, "b" * 60]])
    assert caught[0].filename == __file__
    tiny_bilm.layers([["d" * 60]])
    assert not recwarn.list


def test_a_user_who_set_the_option_is_not_warned(tiny_bilm, recwarn):
    assert tiny_bilm.prepare(["a" * 60])
    tiny_bilm.layers([["a" * 60]])
    assert not recwarn.list


def test_words_whose_vectors_come_from_elsewhere_are_not_warned_of(tiny_bilm, recwarn):
    tiny_bilm.layers([["a" * 60]], encode=tiny_bilm.encode)
    assert not recwarn.list
