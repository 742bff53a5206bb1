"""What an engine is asked to do; every function returns plain JSON.

Each takes a running ``LLM`` and returns results that must be identical, bit for
bit, whenever the same configuration runs again. Floats are written as hex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Token ids, so that the tokenizer has no part in the input. 3 to 255 are words.
SHORT = [[5, 9, 30], [40, 41, 42, 43, 44, 45, 46], [200], [77, 3, 120, 99]]


def prompt(length: int, seed: int) -> list[int]:
    """A prompt of ``length`` tokens that looks random and is always the same."""
    value, tokens = seed + 1, []
    for _ in range(length):
        value = (value * 1103515245 + 12345) % 2**31
        tokens.append(3 + (value >> 16) % 253)
    return tokens


def run(llm: LLM, prompts: Sequence[list[int]], params: Any) -> list[dict[str, Any]]:
    """Generate in one batch and flatten the outputs."""
    inputs = [{"prompt_token_ids": tokens} for tokens in prompts]
    return [flat(o) for o in llm.generate(inputs, params, use_tqdm=False)]


def flat(output: Any) -> dict[str, Any]:
    """A request's output without what differs from run to run (ids, times)."""
    result: dict[str, Any] = {
        "outputs": [
            {
                "tokens": list(one.token_ids),
                "text": one.text,
                "finish": one.finish_reason,
                "stop": one.stop_reason,
                "logprobs": _logprobs(one.logprobs),
                "cumulative": _hex(one.cumulative_logprob),
            }
            for one in output.outputs
        ],
        "cached": output.num_cached_tokens,
    }
    if output.prompt_logprobs is not None:
        result["prompt_logprobs"] = _logprobs(output.prompt_logprobs)
    return result


def _hex(value: float | None) -> str | None:
    return None if value is None else float(value).hex()


def _logprobs(positions: Any) -> Any:
    if positions is None:
        return None
    return [
        None
        if entries is None
        else {str(k): [_hex(v.logprob), v.rank] for k, v in sorted(entries.items())}
        for entries in positions
    ]


def greedy(llm: LLM) -> Any:
    """Four prompts of different lengths, most likely token each time."""
    params = SamplingParams(temperature=0, max_tokens=10, ignore_eos=True)
    return run(llm, SHORT, params)


def sampled(llm: LLM) -> Any:
    """Seeded sampling with every filter and penalty, different for each request."""
    common = {"max_tokens": 6, "ignore_eos": True}
    # vLLM refuses min_p together with speculation.
    speculates = llm.llm_engine.vllm_config.speculative_config is not None
    params = [
        SamplingParams(seed=1, temperature=1.0, **common),
        SamplingParams(seed=2, temperature=0.7, top_k=20, **common),
        SamplingParams(
            seed=3,
            temperature=1.3,
            top_p=0.8,
            min_p=0.0 if speculates else 0.01,
            **common,
        ),
        SamplingParams(
            seed=4,
            temperature=0.9,
            repetition_penalty=1.2,
            frequency_penalty=0.3,
            presence_penalty=0.2,
            **common,
        ),
    ]
    return run(llm, SHORT, params)


def logprobs(llm: LLM) -> Any:
    """Sample and prompt logprobs, next to requests that ask for none."""
    common = {"temperature": 0, "max_tokens": 6, "ignore_eos": True}
    params = [
        SamplingParams(logprobs=5, prompt_logprobs=3, **common),
        SamplingParams(**common),
        SamplingParams(logprobs=0, **common),
        SamplingParams(prompt_logprobs=1, **common),
    ]
    return run(llm, [prompt(9, 1), SHORT[1], SHORT[2], prompt(20, 2)], params)


def parallel(llm: LLM) -> Any:
    """n=3 with a seed."""
    params = SamplingParams(n=3, seed=11, temperature=1.0, max_tokens=6, logprobs=1)
    return run(llm, SHORT[:2], params)


def structured(llm: LLM) -> Any:
    """A choice, a JSON schema and a regular expression next to a free request."""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["name"],
        "additionalProperties": False,
    }
    grammars = [
        StructuredOutputsParams(choice=["yes", "no"]),
        StructuredOutputsParams(json=schema),
        StructuredOutputsParams(regex="[0-9][0-9][0-9]"),
        None,
    ]
    params = [
        SamplingParams(temperature=0, max_tokens=24, structured_outputs=grammar)
        for grammar in grammars
    ]
    return run(llm, SHORT, params)


def stop(llm: LLM) -> Any:
    """Stop tokens, stop strings and min_tokens, chosen from what greedy yields."""
    common = {"temperature": 0, "max_tokens": 10}
    free = run(llm, SHORT, SamplingParams(ignore_eos=True, **common))
    tokens = [one["outputs"][0]["tokens"] for one in free]
    words = [one["outputs"][0]["text"].split() for one in free]
    params = [
        SamplingParams(stop_token_ids=[tokens[0][4]], ignore_eos=True, **common),
        SamplingParams(stop=[words[1][3]], ignore_eos=True, **common),
        SamplingParams(
            stop_token_ids=[tokens[2][1]], min_tokens=6, ignore_eos=True, **common
        ),
        SamplingParams(
            stop=[words[3][5]],
            include_stop_str_in_output=True,
            ignore_eos=True,
            **common,
        ),
    ]
    return run(llm, SHORT, params)


def abort(llm: LLM) -> Any:
    """One of three requests aborted in mid-stream, its slot taken by a fourth."""
    engine = llm.llm_engine
    params = SamplingParams(temperature=0, max_tokens=9, ignore_eos=True)
    for i in range(3):
        engine.add_request(f"abort-{i}", {"prompt_token_ids": SHORT[i]}, params)
    seen: dict[str, Any] = {}
    victim = "abort-1"
    for _ in range(200):
        for output in engine.step():
            seen[output.request_id] = flat(output)
        if victim in seen and len(seen[victim]["outputs"][0]["tokens"]) >= 4:
            engine.abort_request([victim])
            late = {"prompt_token_ids": SHORT[3]}
            engine.add_request("abort-3", late, params)
            victim = ""
        if not engine.has_unfinished_requests():
            return dict(sorted(seen.items()))
    raise AssertionError("requests did not finish")


def chunked(llm: LLM) -> Any:
    """Prompts longer than the token budget of a step, decoding alongside."""
    params = SamplingParams(
        temperature=0, max_tokens=4, ignore_eos=True, logprobs=1, prompt_logprobs=1
    )
    return run(llm, [prompt(150, 3), SHORT[0], prompt(97, 4)], params)


def prefix(llm: LLM) -> Any:
    """The same prefix twice: the second time it comes from the cache."""
    params = SamplingParams(temperature=0, max_tokens=5, ignore_eos=True)
    shared = prompt(96, 5)
    first = run(llm, [[*shared, 7]], params)
    second = run(llm, [[*shared, 8], [*shared, 9, 10]], params)
    if not all(one["cached"] for one in second):
        raise AssertionError("the prefix cache was not used")
    return [first, second]


def preempt(llm: LLM) -> Any:
    """More requests than the KV cache holds, so that some are preempted."""
    params = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)
    return run(llm, [prompt(88 + i, 10 + i) for i in range(8)], params)


def embed(llm: LLM) -> Any:
    """Embeddings; long prompts take several steps whose rows are not valid yet."""
    lengths = [3, 150, 17, 97, 64, 65, 1, 128]
    inputs = [{"prompt_token_ids": prompt(n, 20 + n)} for n in lengths]
    outputs = llm.embed(inputs, use_tqdm=False)
    return [[float(x).hex() for x in one.outputs.embedding] for one in outputs]


WORKLOADS: dict[str, Callable[[LLM], Any]] = {
    function.__name__: function
    for function in (
        greedy,
        sampled,
        logprobs,
        parallel,
        structured,
        stop,
        abort,
        chunked,
        prefix,
        preempt,
        embed,
    )
}
