import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from speech import Mels, Conformer

scaler = torch.amp.GradScaler("cuda")
model = Conformer(80, 256).to("cuda")
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
dl = DataLoader(Mels("librispeech"), batch_size=32, num_workers=8, pin_memory=True, collate_fn=Mels.collate)


def train_one_epoch(epoch):
    model.train()
    for mel, mel_len, text, text_len in dl:
        mel = mel.to("cuda", non_blocking=True)
        text = text.to("cuda", non_blocking=True)
        opt.zero_grad()
        with torch.autocast("cuda"):
            logp = model(mel).log_softmax(-1)
            loss = F.ctc_loss(logp.transpose(0, 1), text, mel_len, text_len)
        scaler.scale(loss).backward()
        scaler.update()
        scaler.step(opt)
    return loss.item()


for epoch in range(30):
    print(epoch, train_one_epoch(epoch))
