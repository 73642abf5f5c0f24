total = 0.0
for x, y in train_loader:
    loss = train_step(x, y)
    total += loss.detach()
print(total.item())
