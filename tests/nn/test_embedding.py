import numpy as np
import pytest
import torch

from elmo_tasks.batch import Text
from elmo_tasks.nn.characters import character_id_table
from elmo_tasks.nn.embedding import CharacterCNN, WordEmbedding


def make_text(*sentences):
    """Texts with character ids; garbage stands in the padding."""
    lengths = torch.tensor([len(s) for s in sentences])
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    table = character_id_table([word for s in sentences for word in s])
    char_ids = torch.randint(1, 262, (*mask.shape, table.shape[1]))
    char_ids[mask] = table
    return Text(list(sentences), torch.randint(5, mask.shape), char_ids, mask, None)


def make_cnn(widths=(3,)):
    return CharacterCNN(char_dim=4, widths=list(widths), filters=6)


def features(word, cnn):
    """Every window of a word, its marks included; a word shorter than a filter is filled up with zeros."""
    ids = [259, *(byte + 1 for byte in word.encode()), 260]
    x = cnn.embedding.weight.detach().numpy()[ids]
    features = []
    for conv in cnn.convolutions:
        weight, bias = conv.weight.detach().numpy(), conv.bias.detach().numpy()
        width = weight.shape[2]
        filled = np.concatenate([x, np.zeros((max(0, width - len(x)), x.shape[1]))])
        windows = [filled[k : k + width].T for k in range(len(filled) - width + 1)]
        responses = [
            [max(0.0, (f * window).sum() + b) for f, b in zip(weight, bias, strict=True)] for window in windows
        ]
        features.append(np.max(responses, axis=0))
    return np.concatenate(features)


@pytest.mark.parametrize(
    ("widths", "sentences"),
    [
        ((3,), [["dogs", "meow"], ["haus"]]),
        ((2, 4), [["tree", "tree", "näh"]]),
        ((5,), [["a"], ["I", "b"]]),  # with both marks a word of one letter is still shorter than the filter
    ],
)
def test_character_features_are_the_strongest_response_of_each_filter_over_the_word(widths, sentences):
    cnn, text = make_cnn(widths), make_text(*sentences)
    out = cnn(text).detach().numpy()
    assert out.shape == (*text.mask.shape, cnn.dim)
    for row, sentence in zip(out, sentences, strict=True):
        np.testing.assert_allclose(row[: len(sentence)], [features(w, cnn) for w in sentence], atol=1e-6)
        assert not row[len(sentence) :].any()


@pytest.mark.parametrize("widths", [(3,), (2, 5)])
def test_character_features_of_a_word_do_not_depend_on_the_other_words_of_its_batch(widths):
    cnn = make_cnn(widths)
    alone = cnn(make_text(["a", "dog"]))[0]
    beside = cnn(make_text(["a", "dog", "hippopotamus"], ["x" * 80]))[0, :2]
    torch.testing.assert_close(beside, alone)


def test_word_embedding_gives_each_id_its_row():
    matrix = torch.randn(5, 3)
    embedding, text = WordEmbedding(matrix, trainable=True), make_text(["a", "b"], ["c"])
    out = embedding(text)
    for b, t in np.ndindex(*text.mask.shape):
        assert torch.equal(out[b, t], matrix[text.word_ids[b, t]])
    assert embedding.dim == 3


def test_word_embedding_is_trained_only_if_asked_for_and_its_padding_row_never():
    text = make_text(["a", "b", "c"])
    text.word_ids = torch.tensor([[2, 0, 2]])
    embedding = WordEmbedding(torch.randn(4, 3), trainable=True)
    embedding(text).sum().backward()
    assert embedding.weight.grad.tolist() == [[0.0] * 3, [0.0] * 3, [2.0] * 3, [0.0] * 3]
    assert not WordEmbedding(torch.randn(4, 3), trainable=False).weight.requires_grad


@pytest.mark.parametrize(("init_bound", "bound"), [(None, (6 / (262 + 4)) ** 0.5), (0.05, 0.05)])
def test_character_embeddings_start_uniformly_and_zero_where_there_is_no_word(init_bound, bound):
    weight = CharacterCNN(char_dim=4, widths=[3], filters=6, init_bound=init_bound).embedding.weight.detach()
    assert not weight[0].any()
    assert 0.95 * bound < float(weight.abs().max()) <= bound
    assert float(weight[1:].std()) == pytest.approx(bound / 3**0.5, rel=0.1)


def test_character_dropout_is_on_the_elements_of_the_embeddings_in_training_alone():
    cnn, text = CharacterCNN(char_dim=4, widths=[3], filters=6, dropout=0.5), make_text(["some", "words"], ["more"])
    (convolution,), seen = cnn.convolutions, []
    convolution.register_forward_pre_hook(lambda _, x: seen.append(x[0].detach()))
    cnn(text)
    cnn.eval()(text)
    dropped, whole = seen
    assert set((dropped / whole)[whole != 0].unique().tolist()) == {0.0, 2.0}
    assert not dropped[whole == 0].any()
