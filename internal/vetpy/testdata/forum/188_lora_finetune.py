import logging

import torch
from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import (AutoModelForCausalLM, AutoTokenizer,
                          DataCollatorForLanguageModeling,
                          get_cosine_schedule_with_warmup)

logging.basicConfig(level=logging.INFO)
log = logging.getLogger(__name__)

MODEL = "meta-llama/Llama-2-7b-hf"
MAX_LEN = 1024
EPOCHS = 1
ACCUM = 8


def build_dataset(tokenizer):
    ds = load_dataset("yahma/alpaca-cleaned", split="train")

    def fmt(ex):
        text = f"### Instruction:\n{ex['instruction']}\n### Response:\n{ex['output']}"
        return tokenizer(text, truncation=True, max_length=MAX_LEN)

    return ds.map(fmt, remove_columns=ds.column_names)


def main():
    device = torch.device("cuda")
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(MODEL, torch_dtype=torch.bfloat16)
    model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05,
                                             target_modules=["q_proj", "v_proj"],
                                             task_type="CAUSAL_LM"))
    model.to(device)
    model.print_trainable_parameters()

    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    loader = DataLoader(build_dataset(tokenizer), batch_size=2, shuffle=True,
                        collate_fn=collate, num_workers=4, pin_memory=True)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=3e-4)
    total = EPOCHS * len(loader) // ACCUM
    scheduler = get_cosine_schedule_with_warmup(optimizer, 100, total)

    model.train()
    for epoch in range(EPOCHS):
        pbar = tqdm(loader, desc=f"epoch {epoch}")
        for step, batch in enumerate(pbar):
            batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
            loss = model(**batch).loss / ACCUM
            loss.backward()
            if (step + 1) % ACCUM == 0:
                torch.nn.utils.clip_grad_norm_(trainable, 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad(set_to_none=True)
            pbar.set_postfix(loss=loss.item() * ACCUM)
            # otherwise i get OOM after ~300 steps??
            torch.cuda.empty_cache()
    model.save_pretrained("llama2-alpaca-lora")
    log.info("done")


if __name__ == "__main__":
    main()
