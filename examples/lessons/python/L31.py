for x, y in train_loader:
    optimizer.zero_grad()
    loss_of(model(x), y).backward()
    optimizer.step()
