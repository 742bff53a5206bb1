"""Tiny models made on the spot, the same bits for the same seed.

Written as plain ``config.json`` + ``model.safetensors`` + tokenizer files, so that
nothing is downloaded. A folder is complete once it has the marker file.
"""

# ruff: noqa: PLC0415 - only the making of a model needs these libraries

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

HIDDEN = 128
HEADS = 4  # head size 32, the least that the CPU attention kernel takes
LAYERS = 2
VOCABULARY = 256
MAX_LENGTH = 512
_VERSION = "2"


def _llama_config(architecture: str, layers: int) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "num_hidden_layers": layers,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": MAX_LENGTH,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
        "initializer_range": 0.02,
    }


def _layer_shapes(index: int) -> dict[str, tuple[int, ...]]:
    prefix = f"model.layers.{index}."
    square, wide, tall = (HIDDEN, HIDDEN), (2 * HIDDEN, HIDDEN), (HIDDEN, 2 * HIDDEN)
    return {
        **{f"{prefix}self_attn.{name}_proj.weight": square for name in "qkvo"},
        f"{prefix}mlp.gate_proj.weight": wide,
        f"{prefix}mlp.up_proj.weight": wide,
        f"{prefix}mlp.down_proj.weight": tall,
        f"{prefix}input_layernorm.weight": (HIDDEN,),
        f"{prefix}post_attention_layernorm.weight": (HIDDEN,),
    }


def _shapes(kind: str) -> dict[str, tuple[int, ...]]:
    embed = (VOCABULARY, HIDDEN)
    layers = 1 if kind == "eagle" else LAYERS
    shapes = {k: v for i in range(layers) for k, v in _layer_shapes(i).items()}
    if kind == "eagle":
        # An eagle head shares embedding and output matrix with its target.
        del shapes["model.layers.0.input_layernorm.weight"]
        shapes = {k.removeprefix("model."): v for k, v in shapes.items()}
        shapes["fc.weight"] = (HIDDEN, 2 * HIDDEN)
        return shapes
    shapes["model.embed_tokens.weight"] = embed
    shapes["model.norm.weight"] = (HIDDEN,)
    if kind == "classify":
        shapes["score.weight"] = (3, HIDDEN)
    else:
        shapes["lm_head.weight"] = embed
    return shapes


def _scale(kind: str, name: str) -> float:
    """Standard deviation of a matrix.

    The embedding outweighs the layers, so that the next token depends mostly on
    the last one; the draft head passes the embedding on and nearly nothing else.
    So some of its drafts are accepted and some are not.
    """
    if "embed" in name or "lm_head" in name:
        return 1.0
    return 0.01 if kind == "eagle" else 0.08


def _write_weights(folder: Path, kind: str, seed: int) -> None:
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in sorted(_shapes(kind).items()):
        if "norm" in name:
            tensors[name] = torch.ones(shape)
        else:
            scale = _scale(kind, name)
            tensors[name] = torch.randn(shape, generator=generator) * scale
    if kind == "eagle":
        tensors["fc.weight"][:, :HIDDEN] += torch.eye(HIDDEN)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _write_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<unk>", "<s>", "</s>", *'{}[]":,', *"0123456789"]
    words += ["yes", "no", "true", "false", "null", "name"]
    words += [f"w{i}" for i in range(VOCABULARY - len(words))]
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<unk>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "model_max_length": MAX_LENGTH,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "embed": "LlamaForCausalLM",
    "classify": "LlamaForSequenceClassification",
    "eagle": "EagleLlamaForCausalLM",
}


def make(kind: str, root: Path, *, seed: int = 0) -> Path:
    """The folder of a tiny model, made below ``root`` if it is not there.

    Args:
        kind: ``llama``, ``embed``, ``classify`` or ``eagle`` (a draft head for
            ``llama``).
        root: Where model folders are kept.
        seed: Of the random weights.
    """
    folder = root / f"{kind}-{seed}-v{_VERSION}"
    if (folder / "complete").exists():
        return folder
    building = Path(tempfile.mkdtemp(dir=root))
    config = _llama_config(_ARCHITECTURES[kind], 1 if kind == "eagle" else LAYERS)
    if kind == "classify":
        config |= {"num_labels": 3, "id2label": {"0": "a", "1": "b", "2": "c"}}
    (building / "config.json").write_text(json.dumps(config, indent=1))
    _write_weights(building, kind, seed)
    _write_tokenizer(building)
    (building / "complete").touch()
    try:
        building.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(building)
    return folder
