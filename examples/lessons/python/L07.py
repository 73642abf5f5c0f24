def preflight(model, batch, device):
    places = {p.device for p in model.parameters()} | {v.device for v in batch.values()}
    if places != {device}:
        raise RuntimeError(f"model and batch are on {places}, not on {device}")
