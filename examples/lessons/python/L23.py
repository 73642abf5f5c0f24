from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=schedule(wait=1, warmup=1, active=3, repeat=2),
    on_trace_ready=tensorboard_trace_handler("log"),
    record_shapes=True,
    profile_memory=True,
) as p:
    for x, y in train_loader:
        train_step(x, y)
        p.step()
print(p.key_averages().table(sort_by="device_time_total", row_limit=10))
