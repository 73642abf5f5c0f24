"""What HolisticTraceAnalysis reads of a trace, beside the figures given: by rows, and the largest difference in points."""
import json
import os
import sys

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
from hta.trace_analysis import TraceAnalysis  # noqa: E402

folder, ours = sys.argv[1], json.loads(sys.argv[2])
analysis = TraceAnalysis(trace_files={0: os.path.join(folder, "trace.json")}, trace_dir=folder, include_last_profiler_step=True)
breakdown = analysis.get_temporal_breakdown(visualize=False).iloc[0]
busy = breakdown["compute_time(us)"] + breakdown["non_compute_time(us)"]
print(breakdown.to_string())
span = ours["span"]
for name, mine in (("idle", span - ours["busy"]), ("compute", ours["compute"]), ("non_compute", ours["busy"] - ours["compute"])):
    theirs = breakdown[f"{name}_time(us)"] / breakdown["kernel_time(us)"] * 100
    print(f"{name}: {theirs:.3f} %, ours {mine / span * 100:.3f} %, apart {abs(theirs - mine / span * 100):.4f} points")
print(f"busy: {busy:.3f} us, ours {ours['busy']:.3f}")
_, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, include_memory_kernels=True, duration_ratio=1.0)
theirs = dict(zip(kernels["name"], kernels["sum (us)"]))
whole = sum(ours["kernels"].values())
worst = max(abs(theirs.get(k, 0) - v) / whole * 100 for k, v in ours["kernels"].items())
print(f"{len(ours['kernels'])} kernels, {len(theirs)} by HTA, largest difference {worst:.4f} points of all work")
launches = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
print(f"{len(launches)} launches by HTA, ours {ours['calls']}")
queue = analysis.get_queue_length_summary()
for (row, mine, longest) in zip(queue["queue_length"].itertuples(), ours["queues"], ours["longest"]):
    print(f"queue of {row.Index}: mean {row.mean:.4f}, ours {mine:.4f}; longest {row.max:.0f}, ours {longest}")
