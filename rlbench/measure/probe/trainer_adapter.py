"""TRL's GRPOTrainer, set up as the job says, and what watches it.

The prompts are rendered as our engine renders them and tokenised without further special tokens; every stop id
that the engine knows ends a completion here too; sampling and cap are the subject's.
"""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl import GRPOConfig, GRPOTrainer

from rlbench.core.card import ModeSpec
from rlbench.core.job import Attempt, GrpoProbe, Job
from rlbench.core.sample import Sample
from rlbench.core.subject import Sampling
from rlbench.engines import card_of
from rlbench.engines.chat import finish_reason, render, split
from rlbench.engines.transformers import all_stop_ids, load_tokenizer
from rlbench.grading.generated import GeneratedPrompt
from rlbench.measure.context import Context
from rlbench.measure.probe.evaluation import grade
from rlbench.measure.probe.ledger import Ledger, StepSeconds
from rlbench.measure.probe.prompts import mode_spec, probe_settings, training_order
from rlbench.measure.probe.summary import training_phase
from rlbench.measure.probe.training import COMPLETE

SECONDS_BETWEEN_CHECKPOINTS = 120.0
"""What a kill can lose. Each one writes 12 bytes per parameter: 5 s for smollm2-135m on a CPU, of 30 s a step."""

LORA_ALPHA_PER_RANK = 4


class StepWatch(TrainerCallback):  # type: ignore[misc]
    """Sees every step of the trainer: grades and stores its rollouts, times its halves, asks for checkpoints.

    A step begins with its rollouts; the reward function is called when they are done; the rest is the update.
    """

    def __init__(
        self, job: Job, context: Context, ledger: Ledger, spec: ModeSpec, prompts: Sequence[GeneratedPrompt]
    ) -> None:
        """Watch a training on `prompts`."""
        self._job = job
        self._context = context
        self._ledger = ledger
        self._spec = spec
        self._prompts = {prompt.id: prompt for prompt in prompts}
        self._began = self._rolled_out = self._ended = self._saved = time.perf_counter()
        self.tokenizer: Any = None
        self.stop_ids: frozenset[int] = frozenset()

    def reward(self, completion_ids: list[list[int]], **columns: Any) -> list[float]:
        """TRL's reward function: the strict score of each completion."""
        self._rolled_out = time.perf_counter()
        step = columns["trainer_state"].global_step + 1
        taken: dict[str, int] = {}
        rewards = []
        for prompt_id, length, ids in zip(columns["prompt_id"], columns["prompt_tokens"], completion_ids, strict=True):
            index = taken[prompt_id] = taken.get(prompt_id, -1) + 1
            sample = grade(self._sample(step, prompt_id, index, length, ids), self._prompts[prompt_id], self._spec)
            self._context.sink(sample)
            rewards.append(sample.strict or 0.0)
        return rewards

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._began = time.perf_counter()

    def on_step_end(self, _: TrainingArguments, state: TrainerState, control: TrainerControl, **__: Any) -> None:
        """Note the step; save when it is time to, or when the time is up."""
        self._ended = time.perf_counter()
        seconds = StepSeconds(self._rolled_out - self._began, self._ended - self._rolled_out)
        self._ledger.add_step(state.global_step, seconds)
        self._context.progress("training", state.global_step, state.max_steps)
        left = self._context.deadline.remaining()
        if state.global_step < state.max_steps:
            control.should_training_stop = left is not None and left <= 0
            late = self._ended - self._saved >= SECONDS_BETWEEN_CHECKPOINTS
            control.should_save = control.should_training_stop or late

    def on_save(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:
        """Mark the checkpoint as whole, and only then remove the ones before it."""
        current = Path(args.output_dir or "") / f"checkpoint-{state.global_step}"
        (current / COMPLETE).touch()
        for other in current.parent.glob("checkpoint-*"):
            if other != current:
                shutil.rmtree(other)
        self._saved = time.perf_counter()
        self._ledger.add("save", self._saved - self._ended)

    def _sample(self, step: int, prompt_id: str, index: int, prompt_tokens: int, ids: list[int]) -> Sample:
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        parts = split(text, self._spec)
        thinking = len(self.tokenizer(parts.thinking, add_special_tokens=False)["input_ids"]) if parts.thinking else 0
        thinking = min(thinking, len(ids))
        return Sample(
            phase=training_phase(step),
            prompt_id=prompt_id,
            index=index,
            seed=self._job.seed,
            prompt_tokens=prompt_tokens,
            thinking_tokens=thinking,
            answer_tokens=len(ids) - thinking,
            finish_reason=finish_reason(parts, stopped=bool(ids) and ids[-1] in self.stop_ids),
            text=text,
        )


def make_trainer(job: Job, attempt: Attempt, watch: StepWatch, steps: int, checkpoints: Path) -> GRPOTrainer:
    """The trainer, with the base model loaded in fp32 (the optimizer's precision; a GPU computes in bf16)."""
    settings = probe_settings(job)
    tokenizer = _tokenizer_as_given(attempt.model_path)
    model = AutoModelForCausalLM.from_pretrained(
        attempt.model_path, dtype=torch.float32, use_safetensors=True, local_files_only=True
    )
    stop_ids = all_stop_ids(card_of(job, attempt).stop_token_ids, tokenizer, model)
    model.generation_config.eos_token_id = stop_ids
    watch.tokenizer, watch.stop_ids = tokenizer, frozenset(stop_ids)
    return GRPOTrainer(
        model=model,
        reward_funcs=watch.reward,
        args=_config(job, settings, steps, checkpoints),
        train_dataset=_dataset(job, attempt, tokenizer, steps),
        processing_class=tokenizer,
        callbacks=[watch],
        peft_config=_lora(settings) if settings.method == "lora" else None,
    )


def _config(job: Job, settings: GrpoProbe, steps: int, checkpoints: Path) -> GRPOConfig:
    sampling = job.subject.sampling or Sampling()
    on_cpu = job.device == "cpu"
    return GRPOConfig(
        output_dir=str(checkpoints),
        max_steps=steps,
        per_device_train_batch_size=settings.micro_batch,
        gradient_accumulation_steps=settings.prompts_per_step * settings.group_size // settings.micro_batch,
        num_generations=settings.group_size,
        shuffle_dataset=False,
        max_completion_length=job.subject.max_new_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=sampling.min_p or None,
        repetition_penalty=sampling.repetition_penalty,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=settings.warmup_steps,
        beta=settings.beta,
        loss_type=settings.loss_type,
        scale_rewards="group",
        epsilon_high=0.28,
        use_vllm=False,
        use_cpu=on_cpu,
        bf16=not on_cpu and job.engine.dtype == "bfloat16",
        fp16=not on_cpu and job.engine.dtype == "float16",
        gradient_checkpointing=not on_cpu,
        dataloader_pin_memory=not on_cpu,
        seed=job.seed,
        save_strategy="no",
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
    )


def _dataset(job: Job, attempt: Attempt, tokenizer: Any, steps: int) -> Dataset:
    card = card_of(job, attempt)
    mode, spec = job.subject.mode or card.default_mode, mode_spec(job, attempt)
    rows = []
    for prompt in training_order(job, steps):
        text = render(tokenizer, [{"role": "user", "content": prompt.prompt}], mode, spec)
        tokens = len(tokenizer(text, add_special_tokens=False)["input_ids"])
        rows.append({"prompt": text, "prompt_id": prompt.id, "prompt_tokens": tokens})
    return Dataset.from_list(rows)


def _tokenizer_as_given(model_path: Path) -> Any:
    """A tokenizer that adds no special tokens: TRL asks for them, and the rendered prompts have theirs."""
    from tokenizers.processors import ByteLevel

    tokenizer = load_tokenizer(model_path)
    # ByteLevel as a post-processor only moves offsets, which nobody reads here.
    tokenizer.backend_tokenizer.post_processor = ByteLevel(trim_offsets=False)
    return tokenizer


def _lora(settings: GrpoProbe) -> Any:
    from peft import LoraConfig

    return LoraConfig(
        r=settings.lora_rank,
        lora_alpha=LORA_ALPHA_PER_RANK * settings.lora_rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
