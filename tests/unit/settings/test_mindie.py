"""A ScheduleConfig that works with MindIE can be pasted, and means the same here."""

import json

import pytest

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings.mindie import parse_schedule_config
from edgeweave.settings.scheduler import SchedulerSettings

AS_DOCUMENTED = """
"ScheduleConfig" :
{
"layerwiseDisaggregated":
{
"nextPHeadPrior" : True, # next P head before the tail of this P: True is 2p1d, False is 1p1d
}
}
"""

SECTION = {
    "templateType": "Standard",
    "cacheBlockSize": 128,
    "maxPrefillBatchSize": 50,
    "maxPrefillTokens": 8192,
    "maxBatchSize": 200,
    "maxQueueDelayMicroseconds": 5000,
    "layerwiseDisaggregated": {"nextPHeadPrior": False},
}
SECTION_FIELDS = {
    "max_prefill_batch_size": 50,
    "max_prefill_tokens": 8192,
    "max_batch_size": 200,
    "plan": "1p1d",
}
WHOLE_FILE = {
    "Version": "1.0.0",
    "ServerConfig": {"port": 1025, "layerwiseDisaggregated": True},
    "BackendConfig": {
        "backendName": "mindieservice_llm_engine",
        "ModelDeployConfig": {"maxSeqLen": 2560, "maxInputTokenLen": 2048, "ModelConfig": [{"modelName": "qwen"}]},
        "ScheduleConfig": SECTION,
    },
}


def problems_of(text: str) -> list[str]:
    """Return the lines of the error that `text` raises."""
    with pytest.raises(InvalidSettingsError) as raised:
        parse_schedule_config(text)
    return str(raised.value).splitlines()


def test_the_form_of_the_documentation_is_read() -> None:
    """Python's True, a comment, a comma at the end, no braces around."""
    assert parse_schedule_config(AS_DOCUMENTED).fields == {"plan": "2p1d"}


@pytest.mark.parametrize(
    "text",
    [
        "{" + AS_DOCUMENTED + "}",
        '{"BackendConfig": {' + AS_DOCUMENTED + "}}",
        "# pasted\n\n{" + AS_DOCUMENTED + "}",
        AS_DOCUMENTED.strip() + ",",
        '{\n\t"layerwiseDisaggregated":\t{"nextPHeadPrior": true}\n}',
        '{"ScheduleConfig":{"layerwiseDisaggregated":{"nextPHeadPrior":true}}}',
    ],
)
def test_braces_comments_tabs_and_spaces_do_not_matter(text: str) -> None:
    """What is said counts, not how it is written."""
    assert parse_schedule_config(text).fields == {"plan": "2p1d"}


@pytest.mark.parametrize(
    "content", [SECTION, {"ScheduleConfig": SECTION}, {"BackendConfig": {"ScheduleConfig": SECTION}}]
)
def test_the_section_is_found_alone_at_the_top_and_in_the_backend(content: dict[str, object]) -> None:
    """As strict JSON, wherever the user cut it out."""
    assert parse_schedule_config(json.dumps(content)).fields == SECTION_FIELDS


def test_a_whole_file_gives_its_section_and_the_sequence_length_from_where_it_is_there() -> None:
    """Other sections are named, the keys of this section one by one."""
    config = parse_schedule_config(json.dumps(WHOLE_FILE, indent=4))
    assert config.fields == SECTION_FIELDS | {"max_seq_len": 2560}
    assert config.ignored == (
        "Version",
        "ServerConfig",
        "BackendConfig",
        "BackendConfig.ModelDeployConfig",
        "BackendConfig.ScheduleConfig.templateType",
        "BackendConfig.ScheduleConfig.cacheBlockSize",
        "BackendConfig.ScheduleConfig.maxQueueDelayMicroseconds",
    )


def test_a_sequence_length_in_the_section_is_stronger_than_the_one_of_the_deployment() -> None:
    """It was written for this purpose."""
    both = {"ModelDeployConfig": {"maxSeqLen": 2560}, "ScheduleConfig": {"maxSeqLen": 4096}}
    assert parse_schedule_config(json.dumps(both)).fields == {"max_seq_len": 4096}


@pytest.mark.parametrize("written", [0, -1])
@pytest.mark.parametrize(("others", "meant"), [({"maxBatchSize": 64}, 64), ({}, 200)])
def test_no_prefill_batch_size_means_the_batch_size(written: int, others: dict[str, int], meant: int) -> None:
    """MindIE's rule, with MindIE's default where the batch size is not written."""
    config = parse_schedule_config(json.dumps({"maxPrefillBatchSize": written, **others}))
    assert config.fields["max_prefill_batch_size"] == meant


def test_every_field_is_a_setting_of_the_scheduler() -> None:
    """What is returned can be given to the settings as it is."""
    config = parse_schedule_config(json.dumps(WHOLE_FILE))
    assert SchedulerSettings.model_validate(config.fields).max_seq_len == 2560


def test_an_empty_section_sets_nothing() -> None:
    """Every key has a default."""
    assert parse_schedule_config('{"ScheduleConfig": {}}').fields == {}


def test_all_wrong_values_are_told_together() -> None:
    """One run shows everything that is wrong."""
    wrong = {
        "maxPrefillBatchSize": "50",
        "maxPrefillTokens": 0,
        "maxSeqLen": 25.5,
        "maxBatchSize": 819_201,
        "layerwiseDisaggregated": {"nextPHeadPrior": 1},
    }
    lines = problems_of(json.dumps({"ScheduleConfig": wrong}))
    assert [line.split(":")[0].removeprefix("ScheduleConfig.") for line in lines] == [
        "maxPrefillBatchSize",
        "maxPrefillTokens",
        "maxSeqLen",
        "maxBatchSize",
        "layerwiseDisaggregated.nextPHeadPrior",
    ]
    assert all("legal: " in line for line in lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"maxBatchSize": true}', "maxBatchSize: True is not legal"),
        ('{"maxBatchSize": null}', "maxBatchSize: None is not legal"),
        ('{"ScheduleConfig": 5}', "ScheduleConfig: 5 is not legal"),
        ('{"layerwiseDisaggregated": true}', "layerwiseDisaggregated: True is not legal"),
        ('{"ScheduleConfig": {"maxPrefillToken": 1}}', "did you mean maxPrefillTokens?"),
        ('{"layerwiseDisaggregated": {"nextPheadPrior": true}}', "did you mean layerwiseDisaggregated.nextPHeadPrior?"),
        ('{"maxBatchSize": 1, "maxBatchSize": 2}', "written twice"),
        ('{"maxBatchSize": 1', "line 1"),
        ('{"LogConfig": {}}', "not found; paste ScheduleConfig"),
        ("", "not found; paste ScheduleConfig"),
        ("[1, 2]", "ScheduleConfig"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, said: str) -> None:
    """The line names the place, and what to do where that is not plain."""
    (line,) = problems_of(text)
    assert said in line
