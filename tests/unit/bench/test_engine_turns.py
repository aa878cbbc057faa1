"""An engine's side of its turns."""

import io
import json
import time

from contest.turns import Prompts, Streams


class _Counter:
    """Answers each prompt with numbers from its first token on, and works for a while after the first."""

    def play(self, prompts: Prompts, *, num_tokens: int) -> tuple[list[list[int]], float]:
        first_s = time.perf_counter()
        return [[prompt[0] + index for index in range(num_tokens)] for prompt in prompts], first_s


class _Silent:
    """Answers each prompt with itself."""

    def play(self, prompts: Prompts, *, num_tokens: int) -> tuple[list[list[int]], None]:
        return [list(prompt[:num_tokens]) for prompt in prompts], None


def test_settings_come_first_and_then_an_answer_for_each_request() -> None:
    requests = [json.dumps({"prompts": [[5], [7]], "num_tokens": num_tokens}) for num_tokens in (1, 3)]
    answers = io.StringIO()
    Streams(requests, answers).serve_player(_Counter(), settings={"dtype": "float32"})
    settings, short, long = map(json.loads, answers.getvalue().splitlines())
    assert settings == {"settings": {"dtype": "float32"}}
    assert short["outputs"] == [[5], [7]]
    assert long["outputs"] == [[5, 6, 7], [7, 8, 9]]
    assert 0 <= long["first_s"] <= long["total_s"]
    assert long["cpu_s"] >= 0


def test_what_is_not_known_is_not_told() -> None:
    answers = io.StringIO()
    request = json.dumps({"prompts": [[5]], "num_tokens": 1})
    Streams([request], answers).serve_player(_Silent(), settings={}, is_one_process=False)
    answer = json.loads(answers.getvalue().splitlines()[1])
    assert answer["first_s"] is None
    assert answer["cpu_s"] is None
