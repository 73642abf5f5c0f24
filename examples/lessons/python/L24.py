import torch

torch.cuda.memory._record_memory_history(max_entries=100_000)
train_step(x, y)
torch.cuda.memory._dump_snapshot("snapshot.pickle")
torch.cuda.memory._record_memory_history(enabled=None)
# python -m torch.cuda._memory_viz trace_plot snapshot.pickle -o out.html
