"""What fairseq, OpenNMT, PyTorch and Transformers call a setting, and what it is called here: who writes `lr` is told
where the learning rate stands, and not which key has the nearest spelling."""

from __future__ import annotations

LEARNING_RATE = "'train.schedule.peak'"
LAYERS = "'model.encoder_layers' and 'model.decoder_layers'"
STEPS = "'train.steps', in steps of the optimizer"
TOKENS = "'train.max_tokens', in tokens with their padding"

# section, or kind of component → its settings here → other names for each
OTHER_NAMES: dict[str, dict[str, str]] = {
    "": {
        "'equal'": "budget",
        "'seeds'": "seed random_seed",
        "'task'": "data dataset",
        "'search'": "beam beam_size num_beams decoding",
        "'evaluate'": "eval validation valid",
        "'train'": "training trainer",
    },
    "model": {
        LAYERS: "n_layers num_layers layers num_hidden_layers depth",
        "'model.d_model'": "dim hidden_size hidden_dim embed_dim embedding_dim d_embed width",
        "'model.num_heads'": "nhead n_heads n_head heads num_attention_heads",
        "'model.d_ff'": "ffn_dim d_inner dim_feedforward intermediate_size ffn_hidden_size",
        "'model.feed_forward'": "activation activation_function activation_fn ffn mlp",
        "'model.position'": "positions pos_encoding positional_encoding position_encoding pos_embedding",
        "'model.placement'": "norm_first pre_norm normalize_before norm_position",
        "'model.norm'": "normalization layer_norm norm_type",
        "'model.max_length'": "max_len max_position_embeddings max_seq_len",
        "'model.head'": "lm_head output generator",
        "'model.initializer'": "init initialization",
    },
    "train": {
        LEARNING_RATE: "lr learning_rate max_lr peak",
        "'train.schedule.warmup'": "warmup warmup_steps warmup_updates num_warmup_steps",
        "'train.schedule'": "scheduler lr_scheduler",
        STEPS: "epochs num_epochs max_epochs num_train_epochs max_steps num_steps train_steps max_update iterations",
        TOKENS: "batch_size batch tokens batch_tokens",
        "'train.accumulate'": "update_freq grad_accum accum_count gradient_accumulation_steps",
        "'train.clip_norm'": "clip grad_clip max_grad_norm gradient_clipping",
        "'train.precision'": "fp16 bf16 amp mixed_precision half",
        "'train.label_smoothing'": "smoothing",
        "'train.optimizer'": "weight_decay betas optim",
        "'evaluate.patience'": "early_stopping",
        "'evaluate.every'": "eval_steps valid_steps eval_every",
        "'seeds'": "seed",
        "'train.from'": "train_from load_model restore_file finetune_from_model init_from pretrained checkpoint",
        "'train.freeze'": "freeze_encoder freeze_decoder freeze_layers frozen",
        "'train.rate_factors'": "lr_multipliers param_groups layerwise_lr",
        "'train.vocabulary'": "update_vocab extend_vocab",
    },
    "tokenizer": {
        "'separator'": "joiner remove_bpe bpe_separator",
        "'file'": "codes bpe_codes model_file spm_model tokenizer_file",
        "'vocabulary.file'": "vocab vocab_file",
    },
    "vocabulary": {
        "'vocabulary.file'": "vocab vocab_file src_vocab tgt_vocab src_vocab_fpath trg_vocab_fpath dict",
        "'vocabulary.symbols'": "special_tokens additional_special_tokens user_defined_symbols glossaries tags",
    },
    "optimizer": {LEARNING_RATE: "lr learning_rate"},
    "schedule": {
        LEARNING_RATE: "lr max_lr base_lr",
        "'train.steps'": "steps total_steps num_training_steps",
    },
}


def name_here(place: str, name: object) -> str:
    """The setting that is called `name` elsewhere, in quotation marks; "" where none is known. `place`: the path of a
    section, or a kind of component; "" for the recipe itself, where what stands in a section may be meant too."""
    for section in (place, "train", "model") if place == "" else (place,):
        for here, names in OTHER_NAMES.get(section, {}).items():
            if name in names.split():
                return here
    return ""
