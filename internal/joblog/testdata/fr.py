# Makes gloo_2.json and gloo_2.pickle: what PyTorch's flight recorder has of rank 2 after three sums. Three processes:
#   for r in 0 1 2; do RANK=$r python fr.py & done; wait
import os, torch, torch.distributed as dist, torch._C._distributed_c10d as c
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", WORLD_SIZE="3", TORCH_FR_BUFFER_SIZE="100")
dist.init_process_group("gloo")
for _ in range(3):
    dist.all_reduce(torch.ones(4, 4))
if dist.get_rank() == 2:
    open("gloo_2.pickle", "wb").write(c._dump_fr_trace())
    open("gloo_2.json", "w").write(c._dump_fr_trace_json())
