"""The store keeps what was measured: through kills, damage, full disks and a second process."""

import errno
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlbench
from rlbench.core.job import AccuracyTask, Attempt, EngineSpec, Job, MemoryCheck, Targets
from rlbench.core.record import AccuracyValues, Record
from rlbench.core.sample import Sample
from rlbench.core.subject import Subject
from rlbench.errors import StoreError
from rlbench.store import Store


def make_job(task: str = "math500", seed: int = 0) -> Job:
    return Job(
        subject=Subject(model="local:0123", task=task),
        settings=AccuracyTask(),
        engine=EngineSpec(),
        versions={"torch": "2.13.0"},
        device="cpu",
        seed=seed,
    )


def make_sample(index: int, text: str = "four") -> Sample:
    return Sample(prompt_id="p", index=index, seed=1, prompt_tokens=3, answer_tokens=2, finish_reason="stop", text=text)


def make_record(job: Job) -> Record:
    return Record(
        subject=job.subject,
        job=job,
        provenance="measured",
        source="a test",
        values=AccuracyValues(accuracy=0.5),
    )


def test_the_key_depends_on_what_is_asked_and_not_on_how_far() -> None:
    assert make_job().key == make_job().key
    assert make_job().key != make_job(seed=1).key
    assert make_job().key != make_job("aime24").key
    memory = make_job().model_copy(update={"settings": MemoryCheck(regime="fp32", seq_len=8, micro_batch=1)})
    assert memory.key.startswith("memory-")


def test_samples_come_back_in_order_and_survive_a_half_written_line(tmp_path: Path) -> None:
    folder = Store(tmp_path).open(make_job())
    with folder.appending() as sink:
        sink(make_sample(0))
        sink(make_sample(1, "a line\nbreak and “quotes”"))
    with folder.samples_path.open("ab") as file:
        file.write(b'{"prompt_id": "p", "ind')
    assert [sample.index for sample in folder.samples()] == [0, 1]
    with folder.appending() as sink:
        sink(make_sample(2))
    assert [sample.index for sample in folder.samples()] == [0, 1, 2]
    assert next(iter(folder.samples())) == make_sample(0)


@given(st.integers(min_value=0, max_value=400))
def test_cutting_the_file_anywhere_loses_only_the_cut_line(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = Store(tmp_path_factory.mktemp("store")).open(make_job())
    with folder.appending() as sink:
        for index in range(3):
            sink(make_sample(index))
    whole = folder.samples_path.read_bytes()
    kept = whole[:cut]
    folder.samples_path.write_bytes(kept)
    assert len(list(folder.samples())) == kept.count(b"\n")


def test_a_damaged_sample_in_the_middle_is_named(tmp_path: Path) -> None:
    folder = Store(tmp_path).open(make_job())
    folder.samples_path.write_text('{"no": "sample"}\n')
    with pytest.raises(StoreError, match="line 1 of .* is not a sample"):
        list(folder.samples())


def test_a_record_is_put_in_place_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_job()
    folder = Store(tmp_path).open(job)
    folder.write_record(make_record(job))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device: free some space"):
        folder.write_record(make_record(job).model_copy(update={"detail": "second"}))
    assert folder.record() == make_record(job)
    assert sorted(path.name for path in folder.path.iterdir()) == ["job.json", "record.json"]


def test_a_damaged_record_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    good, bad = make_job("aime24"), make_job("math500")
    store.open(good).write_record(make_record(good))
    store.open(bad).record_path.write_text('{"schema_version": 1, "subj')
    errors: list[StoreError] = []
    assert store.records(errors.append) == [make_record(good)]
    assert len(errors) == 1
    assert "is damaged" in str(errors[0])


def test_another_schema_version_names_both(tmp_path: Path) -> None:
    folder = Store(tmp_path).open(make_job())
    folder.record_path.write_text(json.dumps({"schema_version": 7}))
    with pytest.raises(StoreError, match="schema version 7; this rlbench reads version 1"):
        folder.record()


def test_a_store_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "results"
    file.write_text("")
    with pytest.raises(StoreError, match="is a file, not a folder"):
        Store(file)


def test_a_second_process_does_not_mix_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Store(tmp_path).open(make_job())
    holder = textwrap.dedent(
        f"""
        import pathlib, sys
        from rlbench.store import JobFolder
        with JobFolder(pathlib.Path({str(folder.path)!r})).lock():
            print("held", flush=True)
            sys.stdin.read()
        """
    )
    monkeypatch.setattr("rlbench.store.LOCK_WAIT_SECONDS", 0.1)
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="another rlbench process is writing"), folder.lock():
            pass
        other.kill()
        other.wait()
        with folder.lock():
            assert folder.job() == make_job()


def test_merging_takes_what_is_not_here_yet(tmp_path: Path) -> None:
    mine, theirs = Store(tmp_path / "mine"), Store(tmp_path / "theirs")
    shared, new = make_job("aime24"), make_job("math500")
    mine.open(shared).write_record(make_record(shared).model_copy(update={"detail": "mine"}))
    theirs.open(shared).write_record(make_record(shared).model_copy(update={"detail": "theirs"}))
    theirs.open(new).write_record(make_record(new))
    assert mine.merge(theirs) == 1
    records = {record.subject.task: record.detail for record in mine.records(pytest.fail)}
    assert records == {"aime24": "mine", "math500": ""}
    assert mine.merge(theirs) == 0


def test_results_load_as_pandas_frames(tmp_path: Path) -> None:
    job = make_job()
    folder = Store(tmp_path).open(job)
    with folder.appending() as sink:
        sink(make_sample(0))
        sink(make_sample(1))
    folder.write_record(make_record(job))
    frames = rlbench.load_results(tmp_path)
    assert frames["records"]["values.accuracy"].tolist() == [0.5]
    assert frames["samples"]["index"].tolist() == [0, 1]
    assert set(frames["samples"]["job"]) == {job.key}
    with pytest.raises(StoreError, match="no results folder"):
        rlbench.load_results(tmp_path / "nowhere")


def test_targets_cover_those_that_ask_for_no_more() -> None:
    done = Targets(limit=20, samples_per_prompt=4)
    assert done.covers(Targets(limit=20, samples_per_prompt=4))
    assert done.covers(Targets(limit=10, samples_per_prompt=1))
    assert not done.covers(Targets(samples_per_prompt=4)), "no limit asks for every prompt"
    assert not done.covers(Targets(limit=20, samples_per_prompt=8))
    assert Targets(steps=8).covers(Targets(limit=5, steps=6))


def test_attempts_are_numbered_and_kept(tmp_path: Path) -> None:
    folder = Store(tmp_path).open(make_job())
    for _ in range(11):
        folder.add_attempt(
            lambda number: Attempt(
                number=number,
                targets=Targets(),
                model_path=tmp_path,
                command="test",
                started="2026-12-01T00:00:00",
            )
        )
    assert [attempt.number for attempt in folder.attempts()] == list(range(1, 12))


def test_a_damaged_job_or_attempt_is_named_and_other_files_are_left_alone(tmp_path: Path) -> None:
    folder = Store(tmp_path).open(make_job())
    (folder.path / "attempts").mkdir()
    (folder.path / "attempts" / "notes.json").write_text("a person's own")
    assert folder.attempts() == []
    (folder.path / "attempts" / "7.json").write_text("{}")
    with pytest.raises(StoreError, match=r"7\.json is not the attempt it should be \(number: Field required\)"):
        folder.attempts()
    (folder.path / "job.json").write_text('{"subject": 5}')
    with pytest.raises(StoreError, match=r"job\.json is not the job it should be .* move it away"):
        folder.job()
    folder.record_path.write_text("[" * 100_000)
    with pytest.raises(StoreError, match="is damaged"):
        folder.record()


def test_bytes_that_are_no_text_do_not_keep_a_record_from_disk(tmp_path: Path) -> None:
    folder = Store(tmp_path).open(make_job())
    folder.write_record(make_record(make_job()).model_copy(update={"source": "rlbench --store \udcff"}))
    assert folder.record() is not None
