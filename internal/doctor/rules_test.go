package doctor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/xid"
)

// ruleCase is a machine that a rule finds something on, and one on which it nearly does. Both are a healthy base, changed.
type ruleCase struct {
	rule string // id and name: a row of the table
	base func() *Facts
	ill  func(f *Facts)
	near func(f *Facts) // nil: the base itself is near enough
	says string         // in the title, the fix or the evidence
}

var ruleCases = []ruleCase{
	{"D01 no-card", bare, func(f *Facts) {
		f.PCI = []PCI{{Address: "0000:00:02.0", Vendor: 0x8086, Device: 0x9a49, Class: 0x030000, Driver: "i915"}}
	},
		func(f *Facts) { f.PCI = server().PCI }, "cpu and sim:0 work"},
	{"D48 fallen-off-the-bus", server, func(f *Facts) { f.PCI[1].Config, f.PCI[1].Revision = new(uint32(gone)), 255 }, func(f *Facts) { f.logged(Xid, 31) }, "does not answer"},
	{"D48 bus-errors", server, func(f *Facts) { f.PCI[0].Errors["nonfatal"] = 3 }, func(f *Facts) { f.PCI[0].Errors["correctable"] = 12 }, "errors of PCI Express"},
	{"D31 no-region", server, func(f *Facts) { f.PCI[0].BARs[1] = 0; f.NVML.Cards = f.NVML.Cards[:1] }, func(f *Facts) { f.PCI[0].BARs[2] = 0 }, "Above 4G"},

	{"D28 other-driver", server, func(f *Facts) { f.unload(); f.PCI[0].Driver, f.PCI[1].Driver = "nouveau", "nouveau" }, func(f *Facts) { f.PCI[1].Driver = "vfio-pci" }, "blacklist nouveau"},
	{"D27 secure-boot", server, func(f *Facts) { f.unload(); f.Kernel.SecureBoot = new(true); f.logged(KeyRejected, 0) }, func(f *Facts) { f.Kernel.SecureBoot = new(true) }, "mokutil"},
	{"D02 module-not-loaded", server, func(f *Facts) {
		f.unload()
		f.Kernel.Files = []ModuleFile{{"6.8.0-44-generic", true}, {"6.8.0-45-generic", false}}
		f.Kernel.Headers = new(false)
	}, func(f *Facts) { f.unload(); f.PCI[0].Driver, f.PCI[1].Driver = "nouveau", "nouveau" }, "dkms autoinstall"},
	{"D29 wrong-branch", server, func(f *Facts) { f.logged(NeedsOpen, 0); f.NVML.Cards = nil }, func(f *Facts) { f.logged(NeedsOpen, 0) }, "open flavour"},
	{"D30 card-not-started", server, func(f *Facts) { f.NVML.Cards = f.NVML.Cards[:1]; f.logged(InitFailed, 0) }, func(f *Facts) { f.logged(InitFailed, 0) }, "could not start"},
	{"D32 parameters", server, func(f *Facts) { f.Kernel.Params["EnableGpuFirmware"] = "0" }, func(f *Facts) { f.Kernel.Params["DeviceFileMode"] = "432" }, "EnableGpuFirmware: 0"},
	{"D12 no-uvm", server, func(f *Facts) { f.at("/dev/nvidia-uvm").There = false; f.fail(999, 0) }, func(f *Facts) { f.Kernel.Modules = f.Kernel.Modules[:1] }, "nvidia-modprobe -u"},
	{"D14 uvm-broken", server, func(f *Facts) { f.UVM.Status = 0x40; f.Platform.Suspends = 2; f.fail(999, 0) }, func(f *Facts) { f.Platform.Suspends = 2 }, "rmmod nvidia_uvm"},

	{"D24 container-without-cards", docker, func(f *Facts) { f.Nodes = []Node{}; f.fail(100, 9); f.Libraries = nil }, nil, "--gpus all"},
	{"D38 no-nodes", server, func(f *Facts) { f.Nodes = []Node{}; f.Kernel.Modprobe.Setuid = false; f.fail(100, 9) }, func(f *Facts) { f.Kernel.Modprobe.Setuid = false }, "nvidia-modprobe -c 0"},
	{"D37 stale-nodes", docker, func(f *Facts) {
		f.at("/dev/nvidia-uvm").Major = 506
		f.at("/dev/nvidia-uvm").Open = "ENXIO"
		f.fail(999, 0)
	}, func(f *Facts) { f.Kernel.Majors["nvidia-caps"] = 506 }, "506"},
	{"D25 no-permission", server, func(f *Facts) {
		for i := range f.Nodes {
			f.Nodes[i].Mode, f.Nodes[i].GID, f.Nodes[i].Open = 0o660, 109, "EACCES"
		}
		f.fail(100, 4)
	}, func(f *Facts) {
		f.Nodes = append(f.Nodes, Node{Path: "/dev/nvidia-caps/nvidia-cap1", There: true, Major: 508, Minor: 1, Mode: 0o400, Open: "EACCES"})
	}, "usermod"},
	{"D26 revoked", docker, func(f *Facts) {
		for i := range f.Nodes {
			f.Nodes[i].Open = "EPERM"
		}
		f.fail(100, 999)
	}, func(f *Facts) {
		f.Nodes = append(f.Nodes, Node{Path: "/dev/nvidia-modeset", There: true, Major: 195, Minor: 254, Open: "EPERM"})
	}, "daemon-reload"},
	{"D26 will-be-revoked", server, func(f *Facts) { f.Container = Container{Docker: true, Runtime: new(true), CharLink: new(false)} }, func(f *Facts) { f.Container = Container{Docker: true, Runtime: new(true), CharLink: new(true)} }, "create-dev-char-symlinks"},
	{"D24 no-runtime", server, func(f *Facts) { f.Container = Container{Docker: true, Runtime: new(false)} }, func(f *Facts) { f.Container = Container{Docker: true, Runtime: new(false), CDI: "580.95.05"} }, "nvidia-ctk runtime configure"},
	{"D24 stale-cdi", server, func(f *Facts) { f.Container.CDI = "550.54.14" }, func(f *Facts) { f.Container.CDI = "580.95.05" }, "cdi generate"},

	{"D35 capabilities", docker, func(f *Facts) {
		*f.lib(libcuda) = Library{Name: libcuda}
		f.Env["NVIDIA_DRIVER_CAPABILITIES"] = "utility"
		f.CUDA = CUDA{Child: Child{Asked: true, Missing: true}}
	}, func(f *Facts) { f.Env["NVIDIA_DRIVER_CAPABILITIES"] = "utility" }, "no compute"},
	{"D03 no-libcuda", server, func(f *Facts) {
		*f.lib(libcuda) = Library{Name: libcuda}
		f.CUDA = CUDA{Child: Child{Asked: true, Missing: true}}
	}, func(f *Facts) { f.lib(libcuda).Why = "driver" }, "only the kernel's half"},
	{"D03 no-nvml", server, func(f *Facts) {
		*f.lib(libnvml) = Library{Name: libnvml}
		f.NVML = NVML{Child: Child{Asked: true, Missing: true}}
	}, func(f *Facts) { f.lib(libnvml).Why = "driver" }, "NVML is missing"},
	{"D05 stub", server, func(f *Facts) {
		l := f.lib(libcuda)
		l.Path, l.Real, l.Size, l.Why, l.Version = "/usr/local/cuda/lib64/stubs/libcuda.so.1", "/usr/local/cuda/lib64/stubs/libcuda.so", 60<<10, "LD_LIBRARY_PATH", ""
		f.fail(34, 0)
	}, func(f *Facts) { f.lib(libcuda).Size = 300 << 10 }, "grep -v stubs"},
	{"D08 forward-compat", docker, func(f *Facts) {
		l := f.lib(libcuda)
		l.Path, l.Real, l.Version = "/usr/local/cuda/compat/libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.590.44.01", "590.44.01"
		f.NVML.Cards[0].Name = "NVIDIA GeForce RTX 4090"
		f.fail(804, 0)
	}, func(f *Facts) {
		l := f.lib(libcuda)
		l.Path, l.Real, l.Version = "/usr/local/cuda/compat/libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.590.44.01", "590.44.01"
	}, "grep -v compat"},
	{"D04 version-mismatch", server, func(f *Facts) {
		f.Kernel.Driver, f.Control.Version = "550.54.14", "550.54.14"
		f.Holders = []Holder{{PID: 4242, Command: "python3", Nodes: 5}}
		f.fail(803, 18)
	}, func(f *Facts) { f.Holders = []Holder{{PID: 4242, Command: "python3", Nodes: 5}} }, "4242 (python3)"},
	{"D04 version-mismatch", server, func(f *Facts) {
		f.lib(libcuda).Version, f.lib(libnvml).Version, f.lib(libjit).Version = "", "", ""
		f.logged(Mismatch, 0)
		f.fail(999, 999)
	}, func(f *Facts) { f.logged(Mismatch, 0) }, "API mismatch"},
	{"D06 mixed-set", server, func(f *Facts) { f.lib(libjit).Version = "550.54.14" }, func(f *Facts) { f.lib(libjit).Version = "" }, "libcuda of 580.95.05"},
	{"D11 no-jit", docker, func(f *Facts) { *f.lib(libjit) = Library{Name: libjit} }, func(f *Facts) { f.Env["CUDA_DISABLE_PTX_JIT"] = "0" }, "221"},
	{"D11 jit-cache", server, func(f *Facts) { f.Env["CUDA_CACHE_DISABLE"] = "1" }, func(f *Facts) { f.Env["CUDA_CACHE_DISABLE"] = "0" }, "CUDA_CACHE_DISABLE=1"},
	{"D07 driver-too-old", server, func(f *Facts) { f.CUDA.Version, f.CUDA.Cards = 11020, nil }, func(f *Facts) { f.CUDA.Version = 11040 }, "470"},
	{"D07 toolkit-newer", server, func(f *Facts) {
		f.Kernel.Driver, f.NVML.Driver = "570.86.15", "570.86.15"
		*f.lib("libcudart.so") = Library{Name: "libcudart.so", Path: "/usr/local/cuda/lib64/libcudart.so.13", Real: "/usr/local/cuda/lib64/libcudart.so.13.0.48", Version: "13.0.48", Bits: 64, Why: "cache"}
	}, func(f *Facts) {
		*f.lib("libcudart.so") = Library{Name: "libcudart.so", Path: "/usr/local/cuda/lib64/libcudart.so.13", Version: "13.0.48", Bits: 64, Why: "cache"}
	}, "580.65.06"},
	{"D10 ptx-newer", server, func(f *Facts) {
		f.CUDA.Version = 12040
		*f.lib("libnvrtc.so") = Library{Name: "libnvrtc.so", Path: "/usr/local/cuda/lib64/libnvrtc.so.12", Version: "12.8.93", Bits: 64}
	}, func(f *Facts) {
		*f.lib("libnvrtc.so") = Library{Name: "libnvrtc.so", Path: "/usr/local/cuda/lib64/libnvrtc.so.13", Version: "13.0.48", Bits: 64}
	}, "222"},
	{"D40 compute-libraries", server, func(f *Facts) {
		*f.lib("libcudnn.so") = Library{Name: "libcudnn.so", Path: "/usr/lib/x86_64-linux-gnu/libcudnn.so.9", Version: "9.1.0", Bits: 64, Missing: []string{"libcublasLt.so.12"}}
	}, func(f *Facts) {
		*f.lib("libcudnn.so") = Library{Name: "libcudnn.so", Path: "/usr/lib/x86_64-linux-gnu/libcudnn.so.9", Version: "9.1.0", Bits: 64, Needs: []string{"libcublasLt.so.12"}}
	}, "libcublasLt.so.12"},
	{"D40 shadowed", server, func(f *Facts) {
		f.Env["LD_LIBRARY_PATH"] = "/usr/local/cuda-12.1/lib64"
		*f.lib("libnvJitLink.so") = Library{Name: "libnvJitLink.so", Path: "/usr/local/cuda-12.1/lib64/libnvJitLink.so.12", Version: "12.1.55", Bits: 64, Why: "LD_LIBRARY_PATH",
			Others: []Library{{Path: "/usr/lib/x86_64-linux-gnu/libnvJitLink.so.12", Version: "12.4.127"}}}
	}, func(f *Facts) {
		f.Env["LD_LIBRARY_PATH"] = "/usr/local/cuda-12.1/lib64"
		*f.lib("libnvJitLink.so") = Library{Name: "libnvJitLink.so", Path: "/usr/local/cuda-12.1/lib64/libnvJitLink.so.12", Version: "12.1.55", Bits: 64, Why: "LD_LIBRARY_PATH"}
	}, "unset LD_LIBRARY_PATH"},

	{"D15 fabric", server, func(f *Facts) { f.Fabric = Fabric{Switches: 4, Tool: &Tool{}}; f.fail(802, 0) }, func(f *Facts) { f.Fabric = Fabric{Switches: 4, Manager: true, Tool: &Tool{There: true}} }, "nvidia-fabricmanager-580"},
	{"D13 hmm", server, func(f *Facts) {
		f.Kernel.Driver = "575.57.08"
		f.lib(libcuda).Version = "575.57.08"
		f.lib(libnvml).Version = "575.57.08"
		f.lib(libjit).Version = "575.57.08"
		f.Control.Version = "575.57.08"
		f.fail(3, 0)
	},
		func(f *Facts) { f.Kernel.HMMOff = new(true); f.fail(3, 0) }, "uvm_disable_hmm=1"},
	{"D36 wsl", underWindows, func(f *Facts) {
		l := f.lib(libcuda)
		l.Path, l.Real, l.Why = "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05", "cache"
		f.fail(100, 0)
	}, nil, "apt purge"},
	{"D22 licence", server, func(f *Facts) { f.fail(102, 0) }, func(f *Facts) { f.values(0)[keyVirtual] = 2 }, "nvidia-gridd"},
	{"D22 licence", server, func(f *Facts) { f.values(0)[keyVirtual], f.values(0)[keyLicensed] = 2, 0 }, func(f *Facts) { f.values(0)[keyVirtual], f.values(0)[keyLicensed] = 2, 1 }, "not licensed"},
	{"D17 mps", server, func(f *Facts) { f.MPS = MPS{Pipe: true, UID: 1001}; f.fail(806, 0) }, func(f *Facts) { f.MPS = MPS{Pipe: true, Control: true, Server: true, UID: 1000} }, "nvidia-cuda-mps-control"},
	{"D17 mps-limits", server, func(f *Facts) {
		f.MPS.Pipe, f.MPS.Control = true, true
		f.Env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = "25"
	},
		func(f *Facts) {
			f.MPS.Pipe, f.MPS.Control = true, true
			f.Env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = "100"
		}, "25"},
	{"D16 compute-mode", server, func(f *Facts) { f.values(1)[keyMode] = 3; f.NVML.Cards[1].Processes = []NVMLProcess{{PID: 77}} }, func(f *Facts) { f.values(1)[keyMode] = 3 }, "77 (not visible from here)"},
	{"D44 address-space", server, func(f *Facts) { f.Limits["as"] = 16 << 30; f.fail(2, 0) }, func(f *Facts) { f.Limits["stack"] = 8 << 20 }, "ulimit -v unlimited"},
	{"P7 nvml", server, func(f *Facts) {
		f.NVML = NVML{Child: Child{Asked: true, TimedOut: true, LimitS: 30, At: "card", AtCard: 1}}
	}, nil, "no answer in 30 s"},
	{"P8 cuda", server, func(f *Facts) { f.CUDA = CUDA{Child: Child{Asked: true, Signal: "segmentation fault", At: "init"}} }, nil, "ended the process"},
	{"P8 deep", server, func(f *Facts) {
		f.Deep = []Deep{{Device: "cuda:0", Part: "op", Name: "matmul", Cases: 4, Failed: 1, First: "x[3] is 2, want 1"}}
	}, func(f *Facts) { f.Deep = []Deep{{Device: "cuda:0", Part: "op", Name: "matmul", Cases: 4}} }, "x[3] is 2"},

	{"D18 hidden", server, func(f *Facts) { f.Env[visible] = "0,9,1" }, func(f *Facts) { f.Env[visible] = "1,0" }, `stops reading at "9"`},
	{"D19 ordinal", server, func(f *Facts) { f.Env["LOCAL_RANK"] = "2" }, func(f *Facts) { f.Env["LOCAL_RANK"] = "1" }, "LOCAL_RANK is 2"},
	{"D20 order", server, func(f *Facts) {
		f.CUDA.Cards[0], f.CUDA.Cards[1] = f.CUDA.Cards[1], f.CUDA.Cards[0]
		f.CUDA.Cards[0].Name = "NVIDIA A100"
	},
		func(f *Facts) { f.CUDA.Cards[0].Name = "NVIDIA A100" }, "PCI_BUS_ID"},
	{"D21 changed-after-start", server, func(f *Facts) {
		f.Env[visible] = "0"
		f.Process = &Process{PID: 9, State: "S", Env: map[string]string{visible: "1"}}
	},
		func(f *Facts) {
			f.Env[visible] = "0"
			f.Process = &Process{PID: 9, State: "S", Env: map[string]string{visible: "0"}}
		}, "in process 9"},
	{"D23 mig", server, func(f *Facts) { f.values(0)[keyMIG], f.values(0)[keyMIGPending] = 1, 1 }, func(f *Facts) { f.values(0)[keyMIG], f.values(0)[keyMIGPending] = 1, 1; f.NVML.Cards[0].Instances = 2 }, "mig -i 0 -cgi"},
	{"D33 display-card", server, func(f *Facts) { f.values(0)[keyDisplay], f.values(0)[keyFree] = 1, 4<<30 }, func(f *Facts) { f.values(0)[keyDisplay] = 1 }, "CUDA_VISIBLE_DEVICES=1"},

	{"D45 shm", docker, func(f *Facts) { f.Places[0].Total, f.Places[0].Free = 64<<20, 64<<20 }, func(f *Facts) { f.Places[0].Total, f.Places[0].Free = 512<<20, 512<<20 }, "--shm-size"},
	{"D41 memlock", server, func(f *Facts) {
		f.Limits["memlock"] = 64 << 10
		f.Network = append(f.Network, Interface{Name: "mlx5_0:1", IB: true, Up: true})
	}, func(f *Facts) { f.Limits["memlock"] = 64 << 10 }, "64.0 KiB"},
	{"D42 files", server, func(f *Facts) { f.Limits["nofile"] = 256 }, func(f *Facts) { f.Limits["nofile"] = 1024 }, "ulimit -n"},
	{"D43 memory-limit", docker, func(f *Facts) { f.Cgroup.Memory, f.Cgroup.Used, f.Cgroup.Kills = 16<<30, 15<<30, 2 }, func(f *Facts) { f.Cgroup.Memory, f.Cgroup.Used = 200<<30, 15<<30 }, "137"},
	{"D43 out-of-memory", server, func(f *Facts) { f.logged(OutOfMemory, 0) }, func(f *Facts) { f.logged(OutOfMemory, 0); f.Cgroup.Kills = 1 }, "137"},
	{"D43 cpu-limit", docker, func(f *Facts) { f.Cgroup.CPUs = 1 }, func(f *Facts) { f.Cgroup.CPUs = 48 }, "OMP_NUM_THREADS=1"},
	{"D67 tmp", server, func(f *Facts) { f.Places[1].NoExec = true }, func(f *Facts) { f.Places[1].Files, f.Places[1].Type = new(int64(0)), "btrfs" }, "TMPDIR"},
	{"D67 network-files", server, func(f *Facts) { f.Places[2].Type = "nfs" }, func(f *Facts) { f.Places[1].Type = "nfs" }, "nfs"},
	{"D46 interface", server, func(f *Facts) { f.Env["NCCL_SOCKET_IFNAME"] = "=docker0" }, func(f *Facts) { f.Env["NCCL_SOCKET_IFNAME"] = "^docker,lo" }, "docker0 (not up)"},

	{"D49 memory-errors", server, func(f *Facts) { f.values(1)[keyRemapping] = 1; f.logged(Xid, 63) }, func(f *Facts) { f.values(1)[keyRetiredSBE] = 3 }, "--gpu-reset"},
	{"D50 timeouts", server, func(f *Facts) { f.logged(Xid, 119) }, func(f *Facts) { f.logged(Xid, 43) }, "Xid 119"},
	{"D50 reset-required", server, func(f *Facts) { f.NVML.Cards[1].Code = 16 }, func(f *Facts) { f.NVML.Cards[1].Code = 3 }, "RESET_REQUIRED"},
	{"D51 inforom", server, func(f *Facts) { f.logged(CorruptInfoROM, 0) }, func(f *Facts) { f.logged(Xid, 45) }, "InfoROM"},
	{"D52 nvlink", server, func(f *Facts) { f.NVML.Cards[0].Links[4] = false }, func(f *Facts) { f.NVML.Cards[0].Links = make([]bool, 6) }, "17 of 18"},
	{"D52 nvlink", server, func(f *Facts) {
		f.Fabric = Fabric{Switches: 4, Manager: true}
		f.NVML.Cards[0].Links = make([]bool, 18)
	}, func(f *Facts) { f.NVML.Cards[0].Links = make([]bool, 18) }, "0 of 18"},
	{"D53 power", server, func(f *Facts) { f.NVML.Cards[0].Reasons = 0x80 }, func(f *Facts) { f.NVML.Cards[0].Reasons = 0x4 }, "slow down"},
	{"D65 pending", server, func(f *Facts) { f.values(0)[keyECCPending] = 0 }, func(f *Facts) { delete(f.values(0), keyECCPending) }, "after the next reset"},

	{"D39 peers", server, func(f *Facts) { f.NVML.Peers[0].Status = 4 }, func(f *Facts) { f.NVML.Peers[0].Status = 2; f.NVML.Cards[0].Name = "NVIDIA GeForce RTX 4090" }, "turned off"},
	{"D39 acs", server, func(f *Facts) { f.PCI[0].Upstream[0].ACS = new(0x1d) }, func(f *Facts) { f.PCI[0].Upstream[0].ACS = new(0x2) }, "ECAP_ACS"},
	{"D54 throttled", server, func(f *Facts) {
		v := f.values(0)
		v[keyUtilization], v[keyClock], v[keyTemperature], f.NVML.Cards[0].Reasons = 98, 900e6, 88, 0x40
	}, func(f *Facts) { f.values(0)[keyClock], f.NVML.Cards[0].Reasons = 345e6, 0x21 }, "88 °C"},
	{"D54 throttled", server, func(f *Facts) {
		v := f.values(0)
		v[keyUtilization], v[keyClock], v[keyPowerShare], v[keyHeatShare] = 98, 900e6, 0.4, 0
	}, func(f *Facts) { // a reason at one moment, and a window in which nothing held it
		v := f.values(0)
		v[keyUtilization], v[keyClock], v[keyPowerShare], v[keyHeatShare], f.NVML.Cards[0].Reasons = 98, 900e6, 0, 0, 0x44
	}, "40.00 %"},
	{"D54 power-limit", server, func(f *Facts) { f.values(0)[keyPowerLimit] = 500 }, func(f *Facts) { delete(f.values(0), keyPowerUsual) }, "-pl 700"},
	{"D55 narrow-link", server, func(f *Facts) { f.PCI[0].Link.Width = 8 }, func(f *Facts) { f.PCI[0].Upstream[0].Link.MaxWidth, f.PCI[0].Link.Gen = 32, 1 }, "8 of 16"},
	{"D55 narrow-link", underWindows, func(f *Facts) { f.values(0)[keyWidth] = 4 }, func(f *Facts) { f.values(0)[keyWidth], f.values(0)[keyWidthMax] = 8, 8 }, "4 of 16 lanes"},
	{"D56 counters-locked", server, func(f *Facts) { f.Kernel.Params["RmProfilingAdminOnly"] = "1"; f.Kernel.Profiler = true }, func(f *Facts) { f.Kernel.Params["RmProfilingAdminOnly"] = "1" }, "NVreg_RestrictProfilingToAdminUsers"},
	{"D57 watchdog", desktop, func(f *Facts) { f.CUDA.Cards[0].Watchdog = true }, nil, "702"},
	{"D59 persistence", server, func(f *Facts) { f.values(1)[keyPersistence] = 0; f.Kernel.Persistent = false }, func(f *Facts) { f.values(1)[keyPersistence] = 0 }, "persistenced"},
	{"D60 affinity", server, func(f *Facts) { f.CPU.Affinity, f.CPU.Allowed = "0-31", 32 }, func(f *Facts) { f.CPU.Affinity, f.CPU.Allowed = "16-47", 32 }, "cpunodebind=1"},
	{"D61 processors", server, func(f *Facts) { f.CPU.Governor, f.CPU.Scaling = "powersave", "acpi-cpufreq" }, func(f *Facts) { f.CPU.Governor, f.CPU.Scaling = "powersave", "amd-pstate-epp" }, "powersave"},
	{"D62 variables", server, func(f *Facts) { f.Env["CUDA_LAUNCH_BLOCKING"] = "1" }, func(f *Facts) { f.Env["CUDA_LAUNCH_BLOCKING"] = "0" }, "unset CUDA_LAUNCH_BLOCKING"},
	{"D63 someone-else", server, func(f *Facts) { f.values(0)[keyUsed] = 40 << 30 }, func(f *Facts) {
		f.values(0)[keyUsed] = 40 << 30
		f.NVML.Cards[0].Processes = []NVMLProcess{{PID: 7, Memory: new(int64(39 << 30)), Visible: true}}
	}, "fuser"},
	{"D64 shared-memory", server, func(f *Facts) { delete(f.values(0), keyTotal); f.NVML.Cards[0].Name = "NVIDIA GB10" }, func(f *Facts) { f.Kernel.Params["CoherentGPUMemoryMode"] = "driver" }, "no memory of its own"},
	{"D66 steal", server, func(f *Facts) { f.Platform.Hypervisor, f.CPU.Steal = true, 0.12 }, func(f *Facts) { f.Platform.Hypervisor, f.CPU.Steal = true, 0.02 }, "vmstat"},
	{"P10 stuck", server, func(f *Facts) { f.Process = &Process{PID: 9, State: "D", Wait: "uvm_va_block", Stuck: 1} }, func(f *Facts) { f.Process = &Process{PID: 9, State: "S", Wait: "futex_wait"} }, "uvm_va_block"},
	{"D04 replaced-under", server, func(f *Facts) {
		f.Process = &Process{PID: 9, State: "R", Libraries: []Library{{Name: "libcuda.so.550.54.14"}}, Deleted: 1}
	},
		func(f *Facts) {
			f.Process = &Process{PID: 9, State: "R", Libraries: []Library{{Name: "libcuda.so.580.95.05"}}}
		}, "were replaced"},
}

// found are the findings of a row on a machine.
func (d *Diagnosis) found(row string) (out []int) {
	for i := range d.Findings {
		if d.Findings[i].Rule+" "+d.Findings[i].Name == row {
			out = append(out, i)
		}
	}
	return out
}

// TestRules: every row of the table has a machine on which it finds something, with all that a finding must have, and one on which
// it nearly does; both as they come back from a file.
func TestRules(t *testing.T) {
	for _, r := range slices.Concat(rules, lastRules) {
		row := r.id + " " + r.name
		if !slices.ContainsFunc(ruleCases, func(c ruleCase) bool { return c.rule == row }) {
			t.Errorf("%s has no machine that it is tried on", row)
		}
	}
	for _, c := range ruleCases {
		t.Run(c.rule, func(t *testing.T) {
			f := c.base()
			c.ill(f)
			d := Judge(replayed(f))
			at := d.found(c.rule)
			if len(at) != 1 {
				t.Fatalf("found %d times; findings: %s", len(at), titles(d))
			}
			x := d.Findings[at[0]]
			if x.Title == "" || len(x.Evidence) == 0 || x.Fix == "" || x.Confidence == "" || x.DisprovedBy == "" || x.Gain.Text == "" {
				t.Errorf("it lacks something: %+v", x)
			}
			if all := x.Title + x.Fix + x.More + fmt.Sprint(x.Evidence); !strings.Contains(all, c.says) {
				t.Errorf("it does not say %q: %s", c.says, all)
			}
			near := c.base()
			if c.near != nil {
				c.near(near)
			}
			if d := Judge(replayed(near)); len(d.found(c.rule)) > 0 {
				t.Errorf("it is found on the machine that is near, too: %s", titles(d))
			}
		})
	}
}

func titles(d *Diagnosis) string {
	var out []string
	for _, f := range d.Findings {
		out = append(out, f.Rule+" "+f.Name+": "+f.Title)
	}
	return strings.Join(out, "\n")
}

// TestVerdicts: on a machine on which a rule that breaks the ladder finds something, the verdict is that rule's or one of a lower
// step's, and has a command.
func TestVerdicts(t *testing.T) {
	for _, c := range ruleCases {
		f := c.base()
		c.ill(f)
		d := Judge(f)
		v := d.Verdict
		if v.Rule == "" || v.Command == "" || v.Text == "" || len(v.Evidence) == 0 || v.Rule != d.Findings[0].Rule {
			t.Errorf("%s: verdict %+v", c.rule, v)
		}
		id, name, _ := strings.Cut(c.rule, " ")
		i := slices.IndexFunc(rules, func(r rule) bool { return r.id == id && r.name == name })
		if i >= 0 && rules[i].breaks && (v.Broken == "" || v.Rule != id) {
			t.Errorf("%s: the verdict is %s %s: %s\n%s", c.rule, v.Broken, v.Rule, v.Text, titles(d))
		}
	}
}

// TestHealthy: nothing is found on machines that are well, and no step is untested that is there.
func TestHealthy(t *testing.T) {
	for name, base := range bases {
		d := Judge(replayed(base()))
		if len(d.Findings) > 0 || d.Verdict.Broken != "" || len(d.Checked) == 0 {
			t.Errorf("%s: %s\n%+v", name, titles(d), d.Verdict)
		}
		for _, r := range d.Ladder {
			if r.State != OK && r.State != Absent {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

// TestDocs: docs/doctor.md has a row for each rule.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range slices.Concat(rules, lastRules) {
		breaks := map[bool]string{true: "yes"}[r.breaks]
		if row := fmt.Sprintf("| `%s` | `%s` | %s | %s | %s |\n", r.id, r.name, r.step.ID(), breaks, r.what); !strings.Contains(string(text), row) {
			t.Errorf("docs/doctor.md lacks the row\n%s", row)
		}
	}
}

// TestNoCardByOS: without a card the finding names what each system has, and how to look for one there.
func TestNoCardByOS(t *testing.T) {
	for os, want := range map[string][2]string{
		"linux":   {"a card that should be there is off", "lspci"},
		"windows": {"a card that should be there is off", "Device Manager"},
		"darwin":  {"macOS drives no card", "system_profiler"},
	} {
		f := bare()
		f.OS, f.PCI = os, nil
		f.Platform.Hypervisor, f.Platform.Container = false, ""
		if os == "linux" {
			f.PCI = []PCI{}
		}
		f.Adapters = []Adapter{{Name: "Apple M2", Vendor: 0x106b}}
		ills := noCard(f)
		if len(ills) != 1 || !strings.Contains(ills[0].More, want[0]) || !strings.Contains(ills[0].DisprovedBy, want[1]) || !strings.Contains(ills[0].Evidence[1].Text, "mps") {
			t.Errorf("%s: %+v", os, ills)
		}
	}
}

// TestNumbers: a number of the driver's errors is of the same rule here as in a log of another machine, and one that wants
// nothing done, or is a program's own, is no finding.
func TestNumbers(t *testing.T) {
	for n := range 200 {
		c, f := xid.Of(n), server()
		f.logged(Xid, n)
		got := map[string]bool{}
		for _, said := range Judge(f).Findings {
			got[said.Rule] = true
		}
		for _, rule := range []string{"D22", "D48", "D49", "D50", "D51", "D52", "D53"} {
			if want := c.Rule == rule && c.Class != xid.Ignore; got[rule] != want {
				t.Errorf("%v: %s %t, want %t", c, rule, got[rule], want)
			}
		}
	}
}
