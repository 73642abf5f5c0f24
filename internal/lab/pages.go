package lab

import (
	"net/url"

	"github.com/warpline-ml/warpline/internal/cards"
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
}
