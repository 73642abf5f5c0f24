losses = []


def step(model, optimizer, x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()  # want: R07
    losses.append(loss)  # want: R06
