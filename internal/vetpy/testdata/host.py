"""What makes the host wait, copies, clocks and flags."""
import random
import time
from time import perf_counter

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

device = torch.device("cuda:0")


def every_step(model, loader, optimizer, writer):
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        print(f"step {step}: {loss:.4f}")  # want: R13


def meters(model, loader, optimizer):
    total, hits = 0.0, 0
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x.to(device))
        loss = F.cross_entropy(out, y.to(device))
        loss.backward()
        optimizer.step()
        total += float(loss)  # want: R13
        hits += out.argmax(1).cpu().numpy().sum()


def now_and_then(model, loader, optimizer):
    total = torch.zeros((), device=device)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        total += loss.detach()  # near: R13
        if step % 50 == 0:
            print(step, loss.item())  # near: R13
    print(total.item())


def batches(data, model, optimizer):
    loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=2)
    for batch in loader:
        x = batch["x"].cuda(non_blocking=True)  # want: R14
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


def pinned_by_hand(arrays, model):
    for a in arrays:
        x = torch.from_numpy(a).pin_memory().to(device)  # want: R14
        model(x)


def pinned_well(data, arrays, model):
    loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=2, pin_memory=True)
    for x, y in loader:
        x = x.to(device, non_blocking=True)  # near: R14
        model(x)
    for a in arrays:
        x = torch.from_numpy(a).pin_memory().to(device, non_blocking=True)  # near: R14
        model(x)


def clocked(model, x):
    for _ in range(10):
        model(x)
    start = time.time()
    for _ in range(100):
        out = model(x)
    end = time.time()
    print("ms", (end - start) * 10)  # want: R48


def clocked_step(model, x, y, optimizer):
    for i in range(100):
        t0 = perf_counter()
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        print(perf_counter() - t0)  # want: R48


def clocked_well(model, x):
    torch.cuda.synchronize()
    start = time.time()
    for _ in range(100):
        out = model(x)
    torch.cuda.synchronize()
    print("ms", (time.time() - start) * 10)  # near: R48


def clocked_by_value(model, x, loader, optimizer):
    start = time.time()
    loss = model(x).mean().item()
    print(time.time() - start, loss)  # near: R48
    begin = time.time()
    for a, b in loader:
        optimizer.zero_grad()
        F.mse_loss(model(a.to(device)), b.to(device)).backward()
        optimizer.step()
    print("epoch took", time.time() - begin)  # near: R48


def emptied(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
        del x, y
        torch.cuda.empty_cache()  # want: V10


def emptied_before(model, loader, optimizer):
    for x, y in loader:
        torch.cuda.empty_cache()  # want: V10
        optimizer.zero_grad()
        F.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()


def emptied_seldom(model, loader, optimizer):
    for epoch in range(3):
        for i, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            F.mse_loss(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
            if i % 1000 == 999:
                torch.cuda.empty_cache()  # near: V10
        torch.cuda.empty_cache()  # near: V10


def made_here(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        mask = torch.ones(8, 8).cuda()  # want: V14
        F.mse_loss(model(x.to(device)) * mask, y.to(device)).backward()
        optimizer.step()


def made_there(model, loader, optimizer):
    ones = torch.ones(8, 8).to(device)  # near: V14
    for x, y in loader:
        optimizer.zero_grad()
        noise = torch.randn(8, 8, device=device)  # near: V14
        F.mse_loss(model(x.to(device)) * ones + noise, y.to(device)).backward()
        optimizer.step()


class Positions(nn.Module):
    def forward(self, x):
        at = torch.arange(x.size(1)).to(x.device)  # want: V14
        return x + at


class Fixed(nn.Module):
    def forward(self, x):
        return x + self.bias(x).cuda()  # want: V15


class FixedByName(nn.Module):
    def forward(self, x):
        y = x.to("cuda:0")  # want: V15
        return self.layer(y)


class Follows(nn.Module):
    def forward(self, x):
        return self.layer(x.to(self.weight.device))  # near: V15

    def load(self, x):
        return x.cuda()  # near: V15


def part(model, loader, optimizer):
    for images, labels in loader:
        images = images.cuda()
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()  # want: R01
        optimizer.step()


def other_part(model, loader, optimizer):
    criterion = nn.CrossEntropyLoss()
    for images, labels in loader:
        labels = labels.to(device)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()  # want: R01
        optimizer.step()


def both_parts(model, loader, optimizer):
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()  # near: R01
        optimizer.step()


def on_the_host(model, loader):
    for images, labels in loader:
        out = model(images.to(device)).cpu()
        print(F.cross_entropy(out, labels))  # near: R01


def not_kept(model, loader, optimizer):
    for images, labels in loader:
        images.cuda()  # want: V16
        labels = labels.cuda()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)  # want: R01
        loss.detach()  # want: V16
        loss.backward()
        optimizer.step()


def in_place(model, loader):
    model.to(device)  # near: V16
    model.half()  # near: V16
    loss = model.loss_of(loader)
    loss.detach_()  # near: V16


def fast_and_same():
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = True  # want: V13


def fast_or_same(same):
    if same:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False  # near: V13


def piece_by_piece(model, memory, optimizer):
    while True:
        batch = random.sample(memory, 64)
        x = torch.stack([torch.tensor(b).to(device) for b, _ in batch])  # want: V26
        y = torch.as_tensor([t for _, t in batch], device=device)  # near: V26
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def piece_by_piece_in_a_loop(model, memory, optimizer):
    while True:
        rows = []
        for b in random.sample(memory, 64):
            rows.append(torch.as_tensor(b, device=device))
        optimizer.zero_grad()
        model(torch.cat(rows)).mean().backward()  # want: V26
        optimizer.step()


def at_once(model, memory, loader, optimizer):
    seen = []
    for batch in loader:
        x = torch.stack([torch.tensor(b) for b in memory]).to(device)  # near: V26
        parts = [t.to(device) for t in batch]  # near: V26
        seen.append(parts[0].to(device))
        optimizer.zero_grad()
        F.mse_loss(model(x), parts[1]).backward()
        optimizer.step()
    return torch.cat(seen)


def causal(n):
    return torch.full((n, n), float("-inf")).triu(1)


def mask_of_a_function(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        mask = causal(x.size(1)).to(device)  # want: V14
        optimizer.zero_grad()
        F.mse_loss(model(x, mask), y).backward()
        optimizer.step()


def constant(model, loader, optimizer):
    mean = torch.tensor([0.5, 0.4, 0.3]).view(1, 3, 1, 1)
    there = torch.tensor([0.2, 0.2, 0.2], device=device)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        x = (x - mean.to(device)) / there.to(device)  # want: V14
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def constant_once(model, loader, optimizer):
    mean = torch.tensor([0.5, 0.4, 0.3]).view(1, 3, 1, 1)
    mean = mean.to(device)  # near: V14
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        F.mse_loss(model(x - mean), y).backward()
        optimizer.step()


def multiplied(n):
    a = torch.randn(n, n, device="cuda")
    start = time.perf_counter()
    for _ in range(50):
        b = a @ a
    return time.perf_counter() - start, b  # want: R48


def multiplied_and_waited(n):
    a = torch.randn(n, n, device="cuda")
    start = time.perf_counter()
    for _ in range(50):
        b = torch.matmul(a, a)
    torch.cuda.synchronize()
    return time.perf_counter() - start, b  # near: R48
