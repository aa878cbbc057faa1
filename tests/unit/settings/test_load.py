"""How settings are put together, and how everything that is wrong is told at once."""

from pathlib import Path

import pytest

from edgeweave.errors import InvalidSettingsError
from edgeweave.settings import CloudSettings, EdgeSettings, GatewaySettings, SchedulerSettings, load


def _written(folder: Path, text: str) -> list[str]:
    path = folder / "site.yaml"
    path.write_text(text, encoding="utf-8")
    return ["--config", str(path)]


def _lines(error: pytest.ExceptionInfo[InvalidSettingsError]) -> list[str]:
    return str(error.value).splitlines()


def test_defaults_serve_a_mesh_on_loopback() -> None:
    """Without file, variables and flags, only what has no sensible default is asked for."""
    scheduler = load(SchedulerSettings, [], {})
    assert (scheduler.listen, scheduler.edge, scheduler.cloud) == (
        "127.0.0.1:50050",
        load(EdgeSettings, ["--model", "m"], {}).listen,
        load(CloudSettings, ["--model", "m"], {}).listen,
    )
    with pytest.raises(InvalidSettingsError, match=r"^gateway\.model: is required.*EDGEWEAVE_GATEWAY__MODEL.*--model$"):
        load(GatewaySettings, [], {})


@pytest.mark.parametrize(
    ("file", "environ", "flags", "expected"),
    [
        ("common: {threads: 2}", {}, [], 2),
        ("common: {threads: 2}\nedge: {threads: 3}", {}, [], 3),
        ("edge: {threads: 3}", {"EDGEWEAVE_COMMON__THREADS": "4"}, [], 4),
        ("edge: {threads: 3}", {"EDGEWEAVE_COMMON__THREADS": "4", "EDGEWEAVE_EDGE__THREADS": "5"}, [], 5),
        ("edge: {threads: 3}", {"EDGEWEAVE_EDGE__THREADS": "5"}, ["--threads", "6"], 6),
        ("edge: {threads: 3}", {"EDGEWEAVE_CLOUD__THREADS": "5"}, [], 3),
    ],
)
def test_order(tmp_path: Path, file: str, environ: dict[str, str], flags: list[str], expected: int) -> None:
    """A flag beats a variable, a variable the file, the file the default; a service's own beats `common`."""
    argv = [*_written(tmp_path, file), "--model", "m", *flags]
    assert load(EdgeSettings, argv, environ).threads == expected


@pytest.mark.parametrize("settings", [EdgeSettings, CloudSettings])
def test_an_engine_has_a_model_or_a_profile(settings: type[EdgeSettings | CloudSettings]) -> None:
    """One of the two is required; both at once contradict each other, wherever they were written."""
    assert load(settings, ["--emulate", "npu"], {}).model is None
    assert load(settings, ["--model", "m"], {}).emulate is None
    name = settings.section
    with pytest.raises(InvalidSettingsError, match=rf"^{name}\.model: is required.*{name.upper()}__MODEL.*--model$"):
        load(settings, [], {})
    environ = {f"EDGEWEAVE_{name.upper()}__EMULATE": "npu"}
    with pytest.raises(InvalidSettingsError, match=rf"^{name}\.model \(--model\): .*m'.* emulate is set as well"):
        load(settings, ["--model", "m"], environ)
    assert load(GatewaySettings, ["--model", "m"], environ).model == Path("m")


def test_every_error_is_reported_at_once(tmp_path: Path) -> None:
    """One line for each wrong setting of any section and source: key, place, what is wrong, what is legal."""
    argv = _written(
        tmp_path,
        """
        common: {log_level: loud, port: 1}
        gateway: {prot: 80}
        scheduler: {plan: 3p, max_steps: 0}
        edge: {tls: {ca_file: ca.pem}}
        cloud: 5
        scheduled: {}
        """,
    )
    with pytest.raises(InvalidSettingsError) as caught:
        load(EdgeSettings, [*argv, "--split", "1:x", "--nope", "3"], {"EDGEWEAVE_CLOUD__DTYPE": "int8"})
    text = "\n".join(_lines(caught))
    for beginning, legal in [
        ("edge (--nope): no such flag", "--head-piece-tokens"),
        ("common.port (site.yaml): no such setting", "log_level"),
        ("common.log_level (site.yaml): 'loud' is not legal", "'debug', 'info', 'warning' or 'error'"),
        ("gateway.prot (site.yaml): no such setting; did you mean port?", "max_body_bytes"),
        ("scheduler.plan (site.yaml): '3p' is not legal", "'serial', '1p1d', '2p1d' or 'adaptive'"),
        ("scheduler.max_steps (site.yaml): 0 is not legal", "at least 1"),
        ("edge.model: is required", "--model"),
        ("edge.tls.cert_file: is required", "EDGEWEAVE_EDGE__TLS__CERT_FILE"),
        ("edge.tls.key_file: is required", "--tls-key-file"),
        ("edge.split (--split): '1:x' is not legal", "such as 1:1"),
        ("cloud (site.yaml): 5 is no mapping", "settings"),
        ("cloud.dtype (EDGEWEAVE_CLOUD__DTYPE): 'int8' is not legal", "'float32', 'bfloat16' or 'float16'"),
        ("scheduled (site.yaml): no such section; did you mean scheduler?", "gateway"),
    ]:
        assert any(line.startswith(beginning) and legal in line for line in _lines(caught)), (beginning, text)
    assert len(_lines(caught)) == 13, text


def test_a_key_is_never_shown() -> None:
    """A wrong value of a secret is told without the value."""
    with pytest.raises(InvalidSettingsError) as caught:
        load(GatewaySettings, ["--model", "m"], {"EDGEWEAVE_GATEWAY__API_KEYS__0": "s3cret"})
    assert "gateway.api_keys" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(load(GatewaySettings, ["--model", "m", "--api-keys", "s3cret"], {}))


@pytest.mark.parametrize("word", ["none", "", "None", "null"])
def test_none_as_text(word: str) -> None:
    """A variable or flag can say that there is no cloud."""
    assert load(SchedulerSettings, ["--cloud", word], {}).cloud is None
    assert load(SchedulerSettings, [], {"EDGEWEAVE_SCHEDULER__CLOUD": word}).cloud is None


def test_text_forms() -> None:
    """Sizes take units, lists commas, flags either - or _, and `=` as well as a blank."""
    gateway = load(GatewaySettings, ["--model=m", "--max_body_bytes", "2MiB", "--api-keys", "a, b"], {})
    assert (gateway.max_body_bytes, gateway.api_keys) == (2 << 20, ["a", "b"])


def test_tls_of_all_and_of_one() -> None:
    """`common` may hold mutual TLS, and one service can have its own key or none at all."""
    environ = {f"EDGEWEAVE_COMMON__TLS__{name}_FILE": name for name in ("CA", "CERT", "KEY")}
    edge = load(EdgeSettings, ["--model", "m", "--tls-key-file", "mine"], environ)
    assert edge.tls is not None
    assert (edge.tls.ca_file, edge.tls.key_file) == (Path("CA"), Path("mine"))
    assert load(EdgeSettings, ["--model", "m"], environ | {"EDGEWEAVE_EDGE__TLS": "none"}).tls is None


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--config", "no-such-file.yaml"], r"^no-such-file.yaml: No such file.*readable YAML"),
        (["--listen"], r"^flags: .*--listen: expected one argument"),
        (
            ["--connect-backoff-s", "9"],
            r"^scheduler: max_connect_backoff_s 5.0 is below connect_backoff_s 9.0",
        ),
        (["--edge", "127.0.0.1:0"], r"^scheduler.edge \(--edge\): .*port 0"),
        (["--edge", "h:70000"], r"^scheduler.edge \(--edge\): .*0 to 65535"),
        (["--drain-s", "nan"], r"^scheduler.drain_s \(--drain-s\): 'nan' is not legal"),
        (["stray"], r"^scheduler \(stray\): no such flag"),
    ],
)
def test_one_error(argv: list[str], message: str) -> None:
    """Each kind of mistake is one line."""
    with pytest.raises(InvalidSettingsError, match=message) as caught:
        load(SchedulerSettings, argv, {})
    assert len(_lines(caught)) == 1


def test_help_lists_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` ends well and names each flag with its meaning."""
    with pytest.raises(SystemExit) as ended:
        load(EdgeSettings, ["--help"], {})
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, field in EdgeSettings.model_fields.items():
        if name != "tls":
            assert f"--{name.replace('_', '-')} VALUE" in shown
            assert " ".join(str(field.description).split()) in shown


@pytest.mark.parametrize("settings", [GatewaySettings, SchedulerSettings, EdgeSettings, CloudSettings])
def test_every_field_has_a_meaning(settings: type[GatewaySettings]) -> None:
    """No setting is without a description."""
    assert all(field.description for field in settings.model_fields.values())


PASTED = """
"ScheduleConfig": {
    "maxPrefillBatchSize": 20,  # sequences
    "maxPrefillTokens": 4096,
    "layerwiseDisaggregated": {"nextPHeadPrior": False,},
},
"""
AS_JSON = '{"BackendConfig": {"ScheduleConfig": {"maxPrefillBatchSize": 20, "maxPrefillTokens": 4096,\n'
AS_JSON += '\t"layerwiseDisaggregated": {"nextPHeadPrior": false}}}}'
MIXED = "scheduler: {drain_s: 5}\nBackendConfig:\n  " + PASTED.strip().rstrip(",").replace("\n", "\n  ")


@pytest.mark.parametrize("text", [PASTED, AS_JSON, MIXED])
def test_a_pasted_schedule_config(tmp_path: Path, text: str) -> None:
    """MindIE's ScheduleConfig is read in its printed form and as JSON, alone and beside sections of ours."""
    settings = load(SchedulerSettings, _written(tmp_path, text), {})
    assert (settings.max_prefill_batch_size, settings.max_prefill_tokens, settings.plan) == (20, 4096, "1p1d")
    assert settings.drain_s == (5.0 if text is MIXED else 30.0)


def test_our_own_section_is_stronger_than_a_pasted_one(tmp_path: Path) -> None:
    """What is said in our words holds; what is wrong on either side is told together."""
    argv = _written(tmp_path, MIXED.replace("drain_s: 5", "max_prefill_tokens: 100"))
    assert load(SchedulerSettings, argv, {}).max_prefill_tokens == 100
    argv = _written(tmp_path, MIXED.replace("drain_s", "drains").replace("20", "yes") + "\nedge: 5")
    with pytest.raises(InvalidSettingsError) as caught:
        load(SchedulerSettings, argv, {})
    lines = _lines(caught)
    assert len(lines) == 3
    assert lines[0].startswith("BackendConfig.ScheduleConfig.maxPrefillBatchSize: 'yes' is not legal")
