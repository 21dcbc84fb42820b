"""
Recipes of published recurrent models: settings that differ from the defaults, with sources.

A comment names the source; “ours” marks a choice for which no source was found. For all recipes
except recurrent-small:

- Batches are counted in tokens here and in sentences in the papers. A recipe multiplies the number
  of sentences by their mean length.
- The loss is a mean over tokens here. Some papers use SGD with a mean over sentences. Their recipes
  multiply the learning rate, and divide the clipping norm, by the number of tokens per sentence.
- Adam replaces Adadelta, which heedful lacks. A run has one optimizer, so the second phase of
  GNMT's training, with SGD, is a run of its own (`docs/explain/recurrent.md`).
- The vocabularies of both languages are equally large. Embeddings and output matrix are not shared.
- LSTM and GRU are torch's, with two biases per gate. Bahdanau's GRU applies its
  reset gate before the matrix multiplication.
- The linear layers of the first state, of the readout and of Deep-Att's memory have biases, which
  the papers do not mention.
"""

from typing import Any

from heedful.families.family import Recipe

Settings = dict[str, Any]

_ALL: Settings = {
    "model.encoder": "recurrent",
    "model.decoder": "recurrent",
    "model.tie_embeddings": "none",
    "data.shared_vocabulary": False,
    "train.warmup": 0,
    "train.label_smoothing": 0.0,  # none of these models has label smoothing
    "search.length_penalty": "none",
}
_WORDS: Settings = {"data.subwords": "word"}
_ADAM: Settings = {"train.beta2": 0.999, "train.epsilon": 1e-8}  # Kingma and Ba 2015

_FRENCH = 29  # words per sentence: Sutskever et al., section 3.1: 348M words in 12M sentences
_SUTSKEVER_EPOCH = 12_000_000 // 128  # section 3.1, and batches of 128

_SUTSKEVER: Settings = {  # Sutskever, Vinyals, Le 2014
    **_ALL,
    **_WORDS,
    "model.d_model": 1000,  # section 3.4
    "model.encoder_layers": 4,  # section 3.4
    "model.decoder_layers": 4,  # section 3.4
    "model.dropout": 0.0,  # none mentioned
    "model.recurrent.direction": "forward",  # section 2
    "model.recurrent.reverse_source": True,  # section 3.3
    "model.recurrent.score": "none",
    "model.recurrent.feed": "none",
    "model.recurrent.readout": "state",
    "model.recurrent.start": "final",  # section 2
    "model.recurrent.initial_range": 0.08,  # section 3.4
    "model.recurrent.forget_bias": 0.0,  # none mentioned
    "data.vocabulary_size": 80_000,  # section 3.1: target; the source has 160,000
    "train.optimizer": "sgd",  # section 3.4: without momentum
    "train.schedule": "step",
    "train.batch_tokens": 128 * _FRENCH,  # section 3.4: 128 sequences
    "train.learning_rate": 0.7 * _FRENCH,  # section 3.4: 0.7, for a mean over sequences
    "train.clip_norm": 5 / _FRENCH,  # section 3.4: 5, for a mean over sequences
    "train.decay_start": 5 * _SUTSKEVER_EPOCH,  # section 3.4: after 5 epochs
    "train.decay_steps": _SUTSKEVER_EPOCH // 2,  # section 3.4: halved every half epoch
    "train.steps": 15 * _SUTSKEVER_EPOCH // 2,  # section 3.4: 7.5 epochs
    "search.beam": 12,  # Table 1
}

_BAHDANAU: Settings = {  # RNNsearch-50: GroundHog experiments/nmt/state.py, prototype_search_state
    **_ALL,
    **_WORDS,
    **_ADAM,
    "model.d_model": 620,  # rank_n_approx
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.dropout": 0.0,  # state.py: “not tested and probably does not work”
    "model.recurrent.cell": "gru",  # enc_rec_gating, enc_rec_reseting
    "model.recurrent.hidden_size": 1000,  # dim
    "model.recurrent.direction": "bidirectional",  # forward, backward
    "model.recurrent.score": "additive",  # Bahdanau et al. 2015, section A.1.2
    "model.recurrent.query": "previous",  # section 3.1: s_(i-1) and h_j
    "model.recurrent.feed": "context",  # section A.2.2
    "model.recurrent.readout": "maxout",  # deep_out, Maxout(2)
    "model.recurrent.readout_size": 500,  # section A.2.3
    "model.recurrent.start": "backward",  # section A.2.2
    "model.recurrent.initialisation": "glorot",  # ours; original: orthogonal, and normal (0.01)
    "data.vocabulary_size": 30_000,  # null_sym_source
    "data.max_length": 50,  # seqlen
    "train.schedule": "constant",
    "train.learning_rate": 2e-4,  # ours; the original Adadelta has none
    "train.batch_tokens": 80 * 25,  # bs 80; 25 words per sentence are ours
    "train.clip_norm": 1.0,  # cutoff
    "train.steps": 300_000,  # ours; loopIters is not meant to be reached
    "search.beam": 12,  # ours
}

_ENGLISH = 25  # words per sentence; ours
_LUONG_EPOCH = 4_500_000 // 128  # WMT 2014 English-German, and batches of 128

_LUONG: Settings = {  # Luong, Pham, Manning 2015, by README.md of their code, lmthang/nmt.hybrid
    **_ALL,
    **_WORDS,
    "model.d_model": 1000,  # section 4.1
    "model.encoder_layers": 4,  # section 4.1
    "model.decoder_layers": 4,  # section 4.1
    "model.dropout": 0.2,  # dropout 0.8, the probability of keeping an element
    "model.recurrent.direction": "forward",  # Figure 1
    "model.recurrent.reverse_source": True,  # isReverse
    "model.recurrent.score": "general",  # attnOpt 2; the equations are of section 3.1
    "model.recurrent.query": "current",  # section 3.1
    "model.recurrent.feed": "readout",  # feedInput
    "model.recurrent.readout": "attentional",  # equation 5
    "model.recurrent.readout_dropout": 0.0,  # ours: dropout only before layers
    "model.recurrent.start": "final",  # ours, as in the authors' later tensorflow/nmt
    "model.recurrent.initial_range": 0.1,  # initRange
    "model.recurrent.forget_bias": 0.0,  # ours
    "data.vocabulary_size": 50_000,  # section 4.1
    "data.max_length": 50,  # ours, src_max_len of tensorflow/nmt
    "train.optimizer": "sgd",
    "train.schedule": "step",
    "train.batch_tokens": 128 * _ENGLISH,  # batchSize
    "train.learning_rate": 1.0 * _ENGLISH,  # learningRate 1.0, for a mean over sentences
    "train.clip_norm": 5 / _ENGLISH,  # maxGradNorm 5, for a mean over sentences
    "train.decay_start": 5 * _LUONG_EPOCH,  # finetuneEpoch
    "train.decay_steps": _LUONG_EPOCH,  # “we start halving our learning rate each epoch”
    "train.steps": 10 * _LUONG_EPOCH,  # numEpoches
    "search.beam": 10,  # ours
}

_GNMT: Settings = {  # Wu et al. 2016; sizes and wiring also in tensorflow/nmt, gnmt_model.py
    **_ALL,
    **_ADAM,
    "model.d_model": 1024,  # num_units
    "model.encoder_layers": 8,  # section 3.1
    "model.decoder_layers": 8,  # section 3.1
    "model.dropout": 0.2,  # section 8.3: English-French; 0.3 for English-German
    "model.recurrent.direction": "first-bidirectional",  # section 3.2
    "model.recurrent.residual_from": 3,  # num_encoder_residual_layers = num_encoder_layers - 2
    "model.recurrent.score": "additive",  # section 3: a network with one hidden layer
    "model.recurrent.query": "previous",  # section 3: the bottom layer's last output
    "model.recurrent.feed": "context",  # section 3
    "model.recurrent.feed_layers": "all",  # section 3; tf-nmt's `gnmt`, not its `gnmt_v2`
    "model.recurrent.readout": "state",
    "model.recurrent.readout_dropout": 0.0,  # ours: dropout only before layers, as in tf-nmt
    "model.recurrent.start": "final",  # tensorflow/nmt passes the encoder's state
    "model.recurrent.initial_range": 0.1,  # ours, init_weight of tensorflow/nmt
    "data.vocabulary_size": 32_000,  # section 4.1: WPM-32K
    "data.subwords": "unigram",  # stands in for word-piece
    "data.shared_vocabulary": True,  # section 4.1: one word-piece model of both languages
    "train.schedule": "constant",
    "train.learning_rate": 2e-4,  # section 8.3: Adam
    "train.steps": 60_000,  # section 8.3: then SGD, in a run of its own
    "train.batch_tokens": 128 * 32,  # section 8.3: 128; 32 pieces per sentence are ours
    "train.clip_norm": 5.0,  # section 8.3
    "search.beam": 8,  # section 7: 8 to 12
    "search.length_penalty": "gnmt:0.2",  # section 7
    "search.coverage_penalty": 0.2,  # section 7
}

_DEEP_ATT: Settings = {  # Zhou et al. 2016
    **_ALL,
    **_WORDS,
    **_ADAM,
    "model.d_model": 256,
    "model.encoder_layers": 9,  # n_e; with n_d a depth of 16
    "model.decoder_layers": 7,  # n_d
    "model.dropout": 0.1,
    "model.recurrent.hidden_size": 512,
    "model.recurrent.direction": "interleaved",  # section 3.2: two columns
    "model.recurrent.fast_forward": True,  # section 3.1
    "model.recurrent.score": "additive",
    "model.recurrent.query": "previous",
    "model.recurrent.feed": "context",  # into the first layer
    "model.recurrent.readout": "state",  # ours; the original also reads the last fast-forward part
    "model.recurrent.start": "zero",  # ours
    "model.recurrent.embedding_dropout": 0.0,  # only states h have dropout
    "model.recurrent.initial_range": 0.1,  # ours, as all settings below except batch_tokens
    "data.vocabulary_size": 30_000,
    "train.schedule": "constant",
    "train.learning_rate": 2e-4,
    "train.batch_tokens": 500 * _FRENCH,  # 500 to 800 sentences
    "train.clip_norm": 5.0,
    "train.steps": 300_000,
    "search.beam": 8,
}

_VIETNAMESE = 25  # words per sentence; ours

_ENVI: Settings = {  # Joey NMT, configs/iwslt_envi_xnmt.yaml
    **_ALL,
    **_WORDS,
    **_ADAM,
    "model.d_model": 128,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.dropout": 0.3,  # on embeddings and readout; a single layer has no other dropout
    "model.recurrent.hidden_size": 512,
    "model.recurrent.direction": "bidirectional",
    "model.recurrent.score": "additive",  # attention: bahdanau
    "model.recurrent.feed": "readout",  # input_feeding
    "model.recurrent.readout": "attentional",
    "model.recurrent.start": "zero",  # init_hidden
    "model.recurrent.initialisation": "glorot",  # initializer: xavier; embeddings ours
    "model.recurrent.forget_bias": 0.0,  # lstm_forget_gate
    "data.vocabulary_size": 17_191,  # English; Vietnamese has 7,709 in the original (--tokenizer)
    "data.max_length": 110,  # max_sent_length
    "train.schedule": "plateau",
    "train.learning_rate": 1e-3,
    "train.min_learning_rate": 5e-5,
    "train.plateau_patience": 1,  # patience
    "train.validate_steps": 1000,  # validation_freq
    "train.batch_tokens": 64 * _VIETNAMESE,  # batch_size
    "train.clip_norm": 1.0 / _VIETNAMESE,  # clip_grad_norm 1.0, for a mean over sentences
    "train.steps": 30 * 133_000 // 64,  # 30 epochs of 133,000 pairs
    "search.beam": 5,
    "search.length_penalty": "gnmt:1.0",  # alpha
    "search.max_length": "150",  # max_output_length
}

_SMALL: dict[str, Any] = {
    "model.encoder": "recurrent",
    "model.decoder": "recurrent",
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.d_model": 256,  # also the width of the readout, which shares the embedding matrix
    "model.dropout": 0.2,
    "model.recurrent.hidden_size": 256,
    "data.vocabulary_size": 4000,  # the output layer needs a third of all operations
    "train.steps": 4400,
    "train.batch_tokens": 1024,
    "train.schedule": "cosine",
    "train.learning_rate": 2e-3,
    "train.warmup": 300,
    "train.clip_norm": 1.0,
    "train.checkpoint_steps": 100,
    "train.validate_steps": 400,
}

RECURRENT_RECIPES: dict[str, Recipe] = {
    "sutskever": Recipe("Sutskever et al. 2014: deep LSTM on the reversed source.", _SUTSKEVER),
    "bahdanau": Recipe(
        "Bahdanau et al. 2015: RNNsearch-50, the first model with attention.", _BAHDANAU
    ),
    "luong": Recipe("Luong et al. 2015: global attention with input feeding.", _LUONG),
    "gnmt": Recipe("Wu et al. 2016: GNMT with 8 + 8 layers, without the final SGD phase.", _GNMT),
    "deep-att": Recipe("Zhou et al. 2016: depth 16 with fast-forward connections.", _DEEP_ATT),
    "envi": Recipe("Joey NMT's iwslt_envi_xnmt: English-Vietnamese on 133,000 pairs.", _ENVI),
    "recurrent-small": Recipe(
        "Train an LSTM with attention on Multi30k, using two cores.",
        _SMALL,
        base="multi30k",
    ),
}
