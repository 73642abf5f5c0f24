import gc

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, default_data_collator

from tasks import gsm8k_eval, gsm8k_train


def train(model, loader, epochs, lr):
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    model.train()
    for epoch in range(epochs):
        tot = torch.zeros((), device="cuda")
        for batch in loader:
            batch = {k: v.to("cuda", non_blocking=True) for k, v in batch.items()}
            loss = model(**batch).loss
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            tot += loss.detach()
        print("epoch", epoch, "loss", tot.item() / len(loader))


@torch.inference_mode()
def generate(model, tok, prompts, bs=32):
    model.eval()
    outs = []
    for i in range(0, len(prompts), bs):
        enc = tok(prompts[i:i + bs], return_tensors="pt", padding=True).to("cuda")
        gen = model.generate(**enc, max_new_tokens=256, do_sample=False)
        outs += tok.batch_decode(gen[:, enc["input_ids"].size(1):], skip_special_tokens=True)
    return outs


def main():
    name = "Qwen/Qwen2.5-1.5B"
    tok = AutoTokenizer.from_pretrained(name, padding_side="left")
    base = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16).cuda()
    model = get_peft_model(base, LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    loader = DataLoader(gsm8k_train(tok), batch_size=8, shuffle=True, collate_fn=default_data_collator,
                        num_workers=4, pin_memory=True)
    train(model, loader, 2, 1e-4)
    model.save_pretrained("lora_out")
    merged = model.merge_and_unload()
    del model, base, loader
    gc.collect()
    torch.cuda.empty_cache()

    prompts, answers = gsm8k_eval()
    preds = generate(merged, tok, prompts)
    print("exact", sum(a in p for p, a in zip(preds, answers)) / len(answers))


if __name__ == "__main__":
    main()
