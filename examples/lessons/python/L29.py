x = x.to(next(model.parameters()).device)
y = model(x)
