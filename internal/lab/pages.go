package lab

import (
	"net/url"
	"strings"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/formula"
)

// processors are the names of those in the table.
func processors() (names []string) {
	for i := range cards.CPUs {
		names = append(names, cards.CPUs[i].Name)
	}
	return names
}

// onCard is the choice of a card.
func onCard() control {
	return control{name: "card", label: "card", kind: choice, value: cards.Default, options: cards.Names(), flag: "--card"}
}

// pages are all explorers, in the order of the navigation.
var pages = []explorer{
	{
		id: "architecture", title: "Architecture",
		about: []string{"A GPU is many small cores in groups, the streaming multiprocessors (SMs), and memories that are slower the farther away they are. Change how many there are, and watch an operation on many elements pass over them, one element to a core in each step."},
		widgets: []widget{{
			id: "architecture", title: "Cores and memory", command: []string{"lab", "architecture"},
			controls: []control{
				onCard(),
				{name: "sms", label: "multiprocessors (SMs)", kind: slider, value: "4", min: 1, max: 170, step: 1, flag: "--sms"},
				{name: "cores-per-sm", label: "cores of each", kind: slider, value: "32", min: 8, max: 256, step: 8, flag: "--cores-per-sm"},
				{name: "shape", label: "shape of the operation", kind: text, value: "1000", flag: "--shape", pattern: made("x"), help: "sizes with x between, as in 1024x512"},
				{name: "block", label: "threads of a block", kind: choice, value: "256", options: []string{"32", "64", "128", "256", "512", "1024"}, flag: "--block"},
				{name: "step", kind: hidden, value: "0", flag: "--step", pattern: made(""), help: "a number of a step, from 0"},
			},
			actions: []string{"start=play", "pause=pause", "step=step", "back=back", "reset=reset"},
			presets: []preset{
				{"4 × 32, as in the lesson", url.Values{"card": {"a100-80"}, "sms": {"4"}, "cores-per-sm": {"32"}, "shape": {"1000"}}},
				{"A100: ReLU of (1024, 512)", url.Values{"card": {"a100-80"}, "sms": {"108"}, "cores-per-sm": {"64"}, "shape": {"1024x512"}}},
				{"GTX 1650", url.Values{"card": {"gtx-1650"}, "sms": {"14"}, "cores-per-sm": {"64"}, "shape": {"1024x512"}}},
				{"H100", url.Values{"card": {"h100-80"}, "sms": {"132"}, "cores-per-sm": {"128"}, "shape": {"1024x512"}}},
			},
			values: []value{
				{name: "total-cores", label: "cores", path: "total_cores"}, {name: "active", label: "active", path: "active"}, {name: "idle", label: "idle", path: "idle"},
				{name: "step", label: "step, from 0", path: "step"}, {name: "steps", label: "steps", path: "steps"}, {name: "batches", label: "elements for each core", path: "batches"},
				{name: "elements", label: "elements", path: "elements"}, {name: "threads", label: "threads", path: "threads"}, {name: "warps", label: "warps", path: "warps"},
				{name: "blocks", label: "blocks", path: "blocks"}, {name: "waves", label: "waves of blocks", path: "waves"},
				{name: "memory-time", label: "memory takes", path: "memory_seconds", unit: "s"}, {name: "compute-time", label: "cores would take", path: "compute_seconds", unit: "s"}, {name: "bound", label: "bound by", path: "bound"},
			},
		}, {
			id: "steps", title: "A kernel, step by step", about: "The real instructions of a kernel, on the simulated GPU: which line a warp is at, which of its 32 lanes run, what registers and shared memory hold. It goes back too. Choose a line to stop there.",
			command: []string{"sim", "debug"}, session: true, controls: launches(), presets: launchPresets,
			actions: []string{"start=play", "pause=pause", "step=step", "back=back", "continue=to the next stop", "reset=reset"},
			values: []value{
				{name: "line", label: "line of the PTX"}, {name: "block", label: "block"}, {name: "warp", label: "warp"}, {name: "lane", label: "lane in focus"}, {name: "active", label: "active lanes"}, {name: "event", label: "instruction"}, {name: "reason", label: "it waits because of"}, {name: "findings", label: "findings"},
			},
		}},
	},
	{
		id: "race", title: "CPU against GPU",
		about: []string{"A few quick cores against many slow ones. What cannot be shared runs on one core of the CPU on both sides; the GPU pays for its launch and for copies there and back. Make the tasks small, or few, and see who wins."},
		widgets: []widget{{
			id: "race", title: "The race, modelled", command: []string{"lab", "race"},
			controls: []control{
				{name: "cpu", label: "CPU, whose rates count", kind: choice, value: "ryzen-7950x", options: processors(), flag: "--cpu"},
				onCard(),
				{name: "cpu-cores", label: "cores of the CPU", kind: slider, value: "8", min: 1, max: 128, step: 1, flag: "--cpu-cores"},
				{name: "gpu-cores", label: "cores of the GPU", kind: slider, value: "256", min: 1, max: 16896, step: 1, flag: "--gpu-cores"},
				{name: "tasks", label: "tasks", kind: slider, value: "128", min: 1, max: 20000, step: 1, flag: "--tasks"},
				{name: "parallel", label: "share that is parallel", kind: percent, value: "95", min: 0, max: 100, step: 0.5, flag: "--parallel"},
				{name: "work", label: "operations of a task", kind: choice, value: "1e6", options: []string{"1e3", "1e4", "1e5", "1e6", "1e7", "1e8"}, flag: "--work"},
				{name: "bytes", label: "bytes of a task", kind: choice, value: "4096", options: []string{"0", "64", "4096", "262144", "16777216"}, flag: "--bytes"},
				{name: "vectors", label: "the CPU's cores use their vectors", kind: check, value: "false", flag: "--vectors"},
			},
			actions: []string{"start=start", "reset=reset"},
			presets: []preset{
				{"8 against 256, as in the lesson", url.Values{"cpu-cores": {"8"}, "gpu-cores": {"256"}, "tasks": {"128"}, "parallel": {"95"}, "work": {"1e6"}, "bytes": {"4096"}, "vectors": {"false"}}},
				{"tiny tasks", url.Values{"cpu-cores": {"8"}, "gpu-cores": {"256"}, "tasks": {"128"}, "parallel": {"100"}, "work": {"1e3"}, "bytes": {"4096"}, "vectors": {"false"}}},
				{"a whole A100", url.Values{"cpu-cores": {"16"}, "gpu-cores": {"6912"}, "tasks": {"20000"}, "parallel": {"100"}, "work": {"1e8"}, "bytes": {"4096"}, "vectors": {"true"}}},
			},
			values: []value{
				{name: "completed", label: "CPU: completed", side: "cpu"}, {name: "percent", label: "CPU: of all", unit: "%", side: "cpu"}, {name: "active", label: "CPU: active cores", side: "cpu"}, {name: "elapsed", label: "CPU: elapsed", path: "cpu.elapsed", unit: "s", side: "cpu"},
				{name: "completed", label: "GPU: completed", side: "gpu"}, {name: "percent", label: "GPU: of all", unit: "%", side: "gpu"}, {name: "active", label: "GPU: active cores", side: "gpu"}, {name: "elapsed", label: "GPU: elapsed", path: "gpu.elapsed", unit: "s", side: "gpu"},
				{name: "speedup", label: "speed-up of the GPU", path: "speedup", unit: "x"},
				{name: "amdahl-cpu", label: "Amdahl: the CPU's cores", path: "amdahl.cpu_cores_speedup", unit: "x"}, {name: "amdahl-gpu", label: "as many as the GPU's", path: "amdahl.gpu_cores_speedup", unit: "x"}, {name: "amdahl-limit", label: "any number of them", path: "amdahl.limit", unit: "x"},
			},
		}, {
			id: "race-run", title: "The race, run", about: "The same program on this machine's processor, measured, and on a simulated card, whose time is modelled: products of two square matrices, or a step of a small network, with its input copied there each time.",
			command: []string{"compare"}, lines: true, slow: true, measured: true,
			controls: []control{
				{name: "task", label: "program", kind: choice, value: "matmul", options: []string{"matmul", "mlp"}},
				{name: "devices", label: "on", kind: choice, value: "cpu,sim:a100-80", options: []string{"cpu,sim:a100-80", "cpu,sim:gtx-1650", "cpu,sim:h100-80", "cpu,cuda:0"}, flag: "--devices"},
				{name: "sizes", label: "sizes", kind: choice, value: "16,64,256", options: []string{"16", "16,64", "16,64,256", "16,64,256,512"}, flag: "--sizes"},
			},
			actions: []string{"start=run it"},
		}},
	},
	{
		id: "transfer", title: "Copies",
		about: []string{"Host and device have memory of their own. Choose tensors and move them: what it costs depends on the link, and on whether the host's memory is pinned. The console has the same in Go and in PyTorch. An operation on tensors that are apart is an error: see what it says."},
		widgets: []widget{{
			id: "transfer", title: "Two memories and a link", command: []string{"lab", "transfer"},
			controls: []control{
				onCard(),
				{name: "tensor-batch", label: "batch, f32 (32, 3, 224, 224), 19.27 MB", kind: check, value: "false", flag: "--move=batch"},
				{name: "tensor-weight", label: "weight, f32 (512, 512), 1.05 MB", kind: check, value: "false", flag: "--move=weight"},
				{name: "tensor-bias", label: "bias, f32 (512), 2.05 KB", kind: check, value: "false", flag: "--move=bias"},
				{name: "direction", label: "direction", kind: choice, value: "to-device", options: []string{"to-device", "to-host"}, flag: "--direction"},
				{name: "pinned", label: "pinned memory on the host", kind: check, value: "false", flag: "--pinned"},
				{name: "nonblocking", label: "the host goes on meanwhile", kind: check, value: "false", flag: "--nonblocking"},
				{name: "device", kind: hidden, flag: "--on-device", pattern: made(","), help: "names with commas between"},
			},
			actions: []string{"move=move", "reset=reset"},
			values: []value{
				{name: "host-bytes", label: "on the host", path: "host_bytes", unit: "bytes"}, {name: "device-bytes", label: "on the device", path: "device_bytes", unit: "bytes"}, {name: "total-bytes", label: "together", path: "total_bytes", unit: "bytes"},
				{name: "moved-bytes", label: "moved", path: "moved_bytes", unit: "bytes"}, {name: "link-gbps", label: "the link gives", path: "link_gbps", unit: "GB/s"}, {name: "seconds", label: "the copies take", path: "seconds", unit: "s"},
				{name: "host-seconds", label: "the host is held", path: "host_seconds", unit: "s"}, {name: "memory-ratio", label: "the card's own memory is quicker by", path: "device_memory_over_link", unit: "x"},
			},
		}},
	},
	{
		id: "timeline", title: "Timeline",
		about: []string{"The host queues work and goes on; the device carries it out later. A timer that does not wait for the device tells how long it takes to queue. Reading a result, or printing one, waits."},
		widgets: []widget{{
			id: "timeline", title: "Host and device", command: []string{"lab", "timeline"},
			controls: []control{
				{name: "launch-ms", label: "launching a step, ms", kind: slider, value: "2", min: 0.5, max: 100, step: 0.5, flag: "--launch"},
				{name: "device-ms", label: "its work on the device, ms", kind: slider, value: "40", min: 0.5, max: 100, step: 0.5, flag: "--device"},
				{name: "steps", label: "steps", kind: slider, value: "1", min: 1, max: 40, step: 1, flag: "--steps"},
				{name: "every", label: "read a result every … steps (0: never)", kind: slider, value: "0", min: 0, max: 40, step: 1, flag: "--every"},
			},
			presets: []preset{
				{"2 ms and 40 ms, as in the lesson", url.Values{"launch-ms": {"2"}, "device-ms": {"40"}, "steps": {"1"}, "every": {"0"}}},
				{"ten steps, one print each", url.Values{"launch-ms": {"20"}, "device-ms": {"20"}, "steps": {"10"}, "every": {"1"}}},
				{"the same, one print in ten", url.Values{"launch-ms": {"20"}, "device-ms": {"20"}, "steps": {"10"}, "every": {"10"}}},
				{"bound by the host", url.Values{"launch-ms": {"40"}, "device-ms": {"10"}, "steps": {"10"}, "every": {"0"}}},
			},
			values: []value{
				{name: "timer-ms", label: "a timer that does not wait", path: "timer_ms", unit: "ms"}, {name: "true-ms", label: "one that does", path: "true_ms", unit: "ms"}, {name: "step-ms", label: "a step", path: "step_ms", unit: "ms"},
				{name: "idle-ms", label: "the device is idle", path: "device_idle_ms", unit: "ms"}, {name: "waits-ms", label: "the host waits", path: "host_waits_ms", unit: "ms"}, {name: "ahead-ms", label: "the host is ahead, at most", path: "host_ahead_ms", unit: "ms"}, {name: "bound", label: "bound by", path: "bound"},
			},
		}},
	},
	{
		id: "memory", title: "Memory",
		about: []string{"What a training needs on a card, before it is run: by formulas for anybody's model, and by a dry run, to the byte, for the models of this program. And what it had, in a snapshot of PyTorch's or ours."},
		widgets: []widget{{
			id: "memory", title: "A budget by formulas", command: []string{"plan"},
			controls: []control{
				{name: "model", label: "model", kind: choice, value: "gpt2", options: formula.PresetNames()},
				onCard(),
				{name: "batch", label: "batch", kind: slider, value: "8", min: 1, max: 256, step: 1, flag: "--batch", omit: "1"},
				{name: "context", label: "tokens of a sample (0: the model's)", kind: slider, value: "0", min: 0, max: 8192, step: 128, flag: "--context", omit: "0"},
				{name: "amp", label: "products in", kind: choice, value: "none", options: []string{"none", "bf16", "fp16", "tf32"}, flag: "--amp"},
				{name: "optimizer", label: "optimizer", kind: choice, value: "adamw", options: formula.OptimizerNames(), flag: "--optimizer"},
				{name: "recompute", label: "computed again", kind: choice, value: "none", options: []string{"none", "block"}, flag: "--recompute", omit: "none"},
				{name: "attention", label: "attention", kind: choice, value: "fused", options: []string{"fused", "whole"}, flag: "--attention", omit: "fused"},
				{name: "accumulate", label: "parts of a batch", kind: choice, value: "1", options: []string{"1", "2", "4", "8"}, flag: "--accumulate", omit: "1"},
			},
			presets: []preset{
				{"GPT-2", url.Values{"model": {"gpt2"}, "batch": {"8"}, "context": {"0"}, "amp": {"none"}, "recompute": {"none"}}},
				{"GPT-2, half the batch", url.Values{"model": {"gpt2"}, "batch": {"4"}, "context": {"0"}, "amp": {"none"}, "recompute": {"none"}}},
				{"GPT-2, half the tokens", url.Values{"model": {"gpt2"}, "batch": {"8"}, "context": {"512"}, "amp": {"none"}, "recompute": {"none"}}},
			},
			values: []value{
				{name: "parameters", label: "parameters", path: "parameters"}, {name: "weights", label: "weights", path: "weights", unit: "bytes"}, {name: "gradients", label: "gradients", path: "gradients", unit: "bytes"},
				{name: "optimizer-state", label: "optimizer", path: "optimizer", unit: "bytes"}, {name: "activations", label: "activations", path: "activations", unit: "bytes"}, {name: "total", label: "at most at once", path: "total", unit: "bytes"},
				{name: "fits", label: "fits", path: "cards.0.fits"}, {name: "largest-batch", label: "largest batch", path: "cards.0.largest_batch"}, {name: "step-seconds", label: "a step, by a roofline", path: "cards.0.step_seconds", unit: "s"},
			},
		}, {
			id: "floor", title: "The floor of a number of parameters", about: "Weights, gradients and the optimizer's states alone; activations, buffers and the allocator come on top.", command: []string{"plan"},
			controls: []control{
				{name: "parameters", label: "parameters", kind: choice, value: "1e9", options: []string{"1e8", "1e9", "7e9", "70e9"}},
				onCard(),
				{name: "optimizer", label: "optimizer", kind: choice, value: "adamw", options: formula.OptimizerNames(), flag: "--optimizer"},
			},
			values: []value{{name: "floor", label: "at least", path: "total", unit: "bytes"}, {name: "floor-fits", label: "fits", path: "cards.0.fits"}},
		}, {
			id: "dryrun", title: "A dry run, to the byte", about: "The program itself runs, on a device that computes nothing and keeps books.", command: []string{"train"},
			controls: []control{
				{name: "task", label: "model", kind: choice, value: "mlp", options: []string{"mlp", "digits", "resnet18", "triage", "vae"}},
				{name: "card", label: "card", kind: choice, value: "gtx-1650", options: cards.Names(), flag: "--dry-run"},
				{name: "batch", label: "batch", kind: choice, value: "64", options: []string{"16", "32", "64", "128", "256", "1024"}, flag: "--batch"},
			},
			values: []value{
				{name: "requested", label: "of values, at most at once", path: "peak_requested", unit: "bytes"}, {name: "reserved", label: "as the allocator takes it", path: "peak_reserved", unit: "bytes"}, {name: "context", label: "for the driver", path: "context_bytes", unit: "bytes"}, {name: "limit", label: "the card has", path: "limit_bytes", unit: "bytes"}, {name: "largest", label: "largest batch", path: "largest_batch"},
			},
			slow: true, measured: true, actions: []string{"start=run it"},
		}, {
			id: "snapshot", title: "A snapshot", about: "Drop a memory snapshot here, of torch.cuda.memory._dump_snapshot or of prof.History, or a raw timeline: who held memory when, and at the peak.", command: []string{"report"},
			controls: []control{{name: "file", label: "file", kind: file}},
			slow:     true, measured: true, needs: "file",
			values: []value{{name: "peak", label: "peak", path: "pictures.0.memory.0.peak", unit: "bytes"}, {name: "in-use", label: "in use at the end", path: "pictures.0.memory.0.reserved.in_use", unit: "bytes"}, {name: "stuck", label: "free, but stuck beside live blocks", path: "pictures.0.memory.0.reserved.stuck", unit: "bytes"}, {name: "reclaimable", label: "free in whole segments", path: "pictures.0.memory.0.reserved.reclaimable", unit: "bytes"}, {name: "findings", label: "findings", path: "files.0.findings.#"}},
		}},
	},
	{
		id: "training", title: "Training",
		about: []string{"A training on this machine, while it goes on: its loss here, and in its live view also memory by kind, a timeline of the last steps, what is wrong, and profiles. On a simulated card the very kernels of a GPU run, slowly."},
		widgets: []widget{{
			id: "training", title: "A training", command: []string{"train"}, session: true, slow: true,
			controls: []control{
				{name: "task", label: "model", kind: choice, value: "mlp", options: []string{"mlp", "digits", "tabular", "triage", "vae"}},
				{name: "device", label: "on", kind: choice, value: "cpu", options: []string{"cpu", "sim:0", "cuda:0"}, flag: "--device"},
				{name: "steps", label: "steps", kind: slider, value: "300", min: 10, max: 5000, step: 10, flag: "--steps"},
				{name: "batch", label: "batch", kind: choice, value: "64", options: []string{"16", "32", "64", "128"}, flag: "--batch"},
			},
			actions: []string{"start=start", "pause=stop"},
			values:  []value{{name: "step", label: "step"}, {name: "loss", label: "loss"}, {name: "step-seconds", label: "a step", unit: "s"}, {name: "accuracy", label: "held out: accuracy", unit: "share"}, {name: "peak", label: "memory, peak", unit: "bytes"}},
		}},
	},
	{
		id: "trace", title: "Traces",
		about: []string{"Drop a trace of PyTorch's profiler here, or one of ours (warpline train --profile): who works when on host and device, where the time of a step goes, and what is wrong."},
		widgets: []widget{{
			id: "trace", title: "A trace", command: []string{"report"},
			controls: []control{{name: "file", label: "file", kind: file}},
			slow:     true, measured: true, needs: "file",
			values: []value{{name: "steps", label: "steps that are judged", path: "pictures.0.steps"}, {name: "window", label: "their time", path: "pictures.0.window_seconds", unit: "s"}, {name: "findings", label: "findings", path: "files.0.findings.#"}},
		}},
	},
	{
		id: "kernel", title: "Kernels",
		about: []string{"One kernel on the simulated GPU, under all checks: what it executes and touches, how long it would take on a card and why, and which of its lines cost it. Choose one, or drop a file of PTX."},
		widgets: []widget{{
			id: "kernel", title: "A kernel under the microscope", command: []string{"sim", "run"}, lines: true,
			controls: launches(
				control{name: "check", label: "checks", kind: choice, value: "all", options: []string{"all", "none", "memcheck", "racecheck", "initcheck", "synccheck"}, flag: "--check"},
				control{name: "warm", label: "launched often: what it touches is in L2", kind: check, value: "false", flag: "--warm"},
			),
			presets: launchPresets,
			values: []value{
				{name: "findings", label: "findings", path: "findings"}, {name: "seconds", label: "on the card, modelled", path: "model.seconds", unit: "s"}, {name: "limiter", label: "bound by", path: "model.limiter"}, {name: "occupancy", label: "occupancy", path: "occupancy.ratio", unit: "share"},
				{name: "instructions", label: "instructions of warps", path: "instructions"}, {name: "lanes", label: "lanes active", path: "lanes", unit: "share"}, {name: "divergent", label: "divergent branches", path: "divergent_branches"}, {name: "global-sectors", label: "sectors of global memory", path: "global_sectors"},
				{name: "bank-conflicts", label: "bank conflicts", path: "bank_conflicts"}, {name: "registers", label: "registers of a thread", path: "registers"}, {name: "shared", label: "shared memory of a block", path: "shared_bytes", unit: "bytes"}, {name: "waves", label: "waves", path: "model.waves"},
			},
		}},
	},
	{
		id: "gpus", title: "GPUs",
		about: []string{"The cards that can be imitated, this machine now, and a training on several cards that share a batch."},
		widgets: []widget{{
			id: "scaling", title: "Several GPUs, data parallel", about: "Each card has a part of the batch; gradients are summed over the links between them. The time is that of the model of links.", command: []string{"plan"},
			controls: []control{
				{name: "model", label: "model", kind: choice, value: "gpt2", options: formula.PresetNames()},
				{name: "card", label: "card", kind: choice, value: "h100-80", options: cards.Names(), flag: "--card"},
				{name: "devices", label: "cards", kind: choice, value: "8", options: []string{"1", "2", "4", "8", "16", "64"}, flag: "--devices"},
				{name: "batch", label: "batch on each", kind: slider, value: "8", min: 1, max: 64, step: 1, flag: "--batch"},
				{name: "zero", label: "shared: 1 optimizer, 2 gradients, 3 weights", kind: choice, value: "0", options: []string{"0", "1", "2", "3"}, flag: "--zero"},
				{name: "amp", label: "products in", kind: choice, value: "bf16", options: []string{"none", "bf16", "tf32"}, flag: "--amp"},
			},
			values: []value{
				{name: "step-seconds", label: "a step", path: "cards.0.step_seconds", unit: "s"}, {name: "per-second", label: "tokens or samples a second, of all", path: "cards.0.per_second"}, {name: "total", label: "memory of each", path: "total", unit: "bytes"}, {name: "fits", label: "fits", path: "cards.0.fits"}, {name: "mfu", label: "of the cards' peak", path: "cards.0.mfu", unit: "share"},
			},
		}, {
			id: "machine", title: "This machine", command: []string{"top", "--once"}, measured: true,
			values: []value{{name: "devices", label: "devices", path: "devices.#"}, {name: "processes", label: "processes on them", path: "processes.#"}},
		}, {
			id: "cards", title: "Cards and processors", command: []string{"sim", "cards"}, lines: true, measured: true,
		}},
	},
}

// launches are the controls of a kernel's launch, and others.
func launches(others ...control) []control {
	return append([]control{
		{name: "file", label: "file of PTX", kind: file, value: "sum.ptx"},
		{name: "kernel", label: "kernel, if the file has several", kind: text, flag: "--kernel", pattern: identifier, help: "the name of a kernel in the file"},
		{name: "grid", label: "blocks", kind: text, value: "4", flag: "--grid", pattern: made(","), help: "blocks as X or X,Y or X,Y,Z"},
		{name: "block", label: "threads of a block", kind: text, value: "256", flag: "--block", pattern: made(","), help: "threads as X or X,Y or X,Y,Z"},
		{name: "shared", label: "bytes of dynamic shared memory", kind: number, value: "0", min: 0, max: 232448, step: 4, flag: "--shared", omit: "0"},
		onCard(),
		{name: "args", label: "arguments", kind: several, value: "f32[1000]=1 f32[4] i32:1000", pattern: made("[]=:,.-+"), help: "buffers as f32[1000]=1 and numbers as i32:5, with spaces between; files are for the command alone"},
	}, others...)
}

// identifier reports whether a text may be the name of a kernel.
func identifier(s string) bool { return made("_$")(strings.TrimLeft(s, "_$")) && s != "" }

// launchPresets are kernels that the lab brings along.
var launchPresets = []preset{
	{"sum of a block's numbers", launch("sum.ptx", "", "4", "256", "0", "f32[1000]=1 f32[4] i32:1000")},
	{"the same with two mistakes", launch("sum_bug.ptx", "", "4", "256", "0", "f32[1000]=1 f32[4] i32:1000")},
	{"inner product", launch("tour.ptx", "dot", "4", "256", "0", "f32[4096]=1 f32[4096]=1 f32[1]=0 i32:1024")},
	{"histogram in shared memory", launch("tour.ptx", "histogram", "4", "128", "1024", "u8[4096]=7 u32[256]=0 i32:4096 i32:256")},
	{"numbers reversed by a barrier", launch("tour.ptx", "exchange", "1", "256", "0", "f32[256]=1 f32[256]")},
}

func launch(file, kernel, grid, block, shared, args string) url.Values {
	return url.Values{"file": {file}, "kernel": {kernel}, "grid": {grid}, "block": {block}, "shared": {shared}, "args": {args}}
}
