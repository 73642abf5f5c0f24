package doctor

import (
	"encoding/json"
	"time"
)

// server is a healthy machine of two cards for data centres, as probes see it.
func server() *Facts {
	f := &Facts{Version: Version, Tool: "1.2.3", Time: time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC), OS: "linux", Arch: "amd64", Floor: 11040}
	f.Platform = Platform{Name: "ubuntu", Release: "24.04", Kernel: "6.8.0-45-generic", Vendor: "Supermicro", UID: 1000, GIDs: []int{1000, 44}, UptimeS: 86400}
	for i, address := range []string{"0000:17:00.0", "0000:b3:00.0"} {
		f.PCI = append(f.PCI, PCI{Address: address, Vendor: nvidia, Device: 0x2330, Class: 0x030200, Revision: 0xa1, Subsystem: nvidia<<16 | 0x16c1, Driver: "nvidia", Config: new(uint32(0x233010de)),
			BARs: []int64{16 << 20, 128 << 30, 0, 32 << 20, 0, 0}, Link: &Link{Gen: 1, MaxGen: 5, Width: 16, MaxWidth: 16}, Numa: new(i), CPUs: []string{"0-31", "32-63"}[i],
			Errors: map[string]int64{"correctable": 0, "nonfatal": 0, "fatal": 0}, Upstream: []Bridge{{Address: "0000:16:00.0", Link: &Link{Gen: 5, MaxGen: 5, Width: 16, MaxWidth: 16}, ACS: new(0)}}})
		f.Nodes = append(f.Nodes, Node{Path: "/dev/nvidia" + itoa(i), There: true, Major: 195, Minor: i, Mode: 0o666, Open: "ok"})
		f.NVML.Cards = append(f.NVML.Cards, NVMLCard{Index: i, Name: "NVIDIA H100 80GB HBM3", UUID: "GPU-513536b6-7d19-9063-b049-1e69664bb29" + itoa(i), Bus: address, Reasons: 1,
			Values: map[string]float64{keyTotal: 80 << 30, keyUsed: 1 << 30, keyReserved: 600 << 20, keyFree: 79 << 30, keyUtilization: 0, keyPowerLimit: 700, keyPowerUsual: 700, keyTemperature: 31,
				keySlowdownAt: 89, keyClock: 345e6, keyClockMax: 1980e6, keyGen: 5, keyGenMax: 5, keyWidth: 16, keyWidthMax: 16, keyECC: 1, keyECCPending: 1, keyECCErrors: 0, keyMIG: 0, keyMIGPending: 0,
				keyMode: 0, keyPersistence: 1, keyDisplay: 0, keyRemapped: 0, keyRemapping: 0, keyRemapFailed: 0, keyVirtual: 0},
			Links: []bool{true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true}})
		f.CUDA.Cards = append(f.CUDA.Cards, CUDACard{Index: i, Name: "NVIDIA H100 80GB HBM3", Bus: address, Compute: [2]int{9, 0}, Memory: 80 << 30})
	}
	f.Nodes = append(f.Nodes, Node{Path: "/dev/nvidiactl", There: true, Major: 195, Minor: 255, Mode: 0o666, Open: "ok"}, Node{Path: "/dev/nvidia-uvm", There: true, Major: 510, Mode: 0o666, Open: "ok"})
	f.Kernel = Kernel{Modules: []Module{{Name: "nvidia", Refs: 3, By: []string{"nvidia_uvm"}}, {Name: "nvidia_uvm"}}, Driver: "580.95.05", Open: new(true), Files: []ModuleFile{{"6.8.0-45-generic", true}},
		Headers: new(true), SecureBoot: new(false), Lockdown: "none", Params: map[string]string{"EnableGpuFirmware": "18", "RmProfilingAdminOnly": "0", "DeviceFileMode": "438"}, GSP: new(true), HMMOff: new(false),
		Majors: map[string]int{"nvidia": 195, "nvidia-uvm": 510}, Modprobe: &Tool{There: true, Setuid: true}, Persistent: true, Log: Log{Source: "kmsg"}}
	f.Control = Control{Asked: true, Version: "580.95.05", Cards: new(2)}
	f.UVM = UVM{Asked: true}
	for _, name := range []string{libcuda, libnvml, libjit} {
		f.Libraries = append(f.Libraries, Library{Name: name, Path: "/lib/x86_64-linux-gnu/" + name, Real: "/lib/x86_64-linux-gnu/" + stem(name) + ".so.580.95.05", Version: "580.95.05", Size: 90 << 20, Bits: 64, Why: "cache"})
	}
	f.Env = map[string]string{}
	f.NVML.Child, f.NVML.Name, f.NVML.Driver, f.NVML.CUDA = Child{Asked: true, Path: libnvml, LimitS: 30}, "NVML_SUCCESS", "580.95.05", "13.0"
	f.NVML.Peers = []Peer{{0, 1, 0}, {1, 0, 0}}
	f.CUDA.Child, f.CUDA.Name, f.CUDA.Version = Child{Asked: true, Path: "/lib/x86_64-linux-gnu/libcuda.so.580.95.05", LimitS: 30}, "CUDA_SUCCESS", 13000
	f.Limits = map[string]int64{"nofile": 1 << 20, "memlock": -1, "as": -1}
	f.Cgroup = Cgroup{Version: 2}
	f.CPU = CPU{Model: "AMD EPYC 9354 32-Core Processor", Count: 64, Allowed: 64, Affinity: "0-63", Nodes: 2, Governor: "performance", Busy: 0.2}
	f.Memory = Memory{Total: 512 << 30, Available: 480 << 30}
	f.Places = []Place{{Role: "shm", Path: "/dev/shm", Type: "tmpfs", Total: 256 << 30, Free: 255 << 30}, {Role: "tmp", Path: "/tmp", Type: "ext4", Total: 900 << 30, Free: 500 << 30, Files: new(int64(5e7))},
		{Role: "work", Path: "/home/ada/model", Type: "ext4", Total: 900 << 30, Free: 500 << 30}, {Role: "cache", Path: "/home/ada/.nv/ComputeCache", Type: "ext4", Total: 900 << 30, Free: 500 << 30, Writable: new(true)}}
	f.Network = []Interface{{Name: "lo", Up: true}, {Name: "eth0", Up: true}, {Name: "docker0"}}
	return f
}

// desktop is a healthy one with a card that draws, on Linux.
func desktop() *Facts {
	f := server()
	f.Platform.Name, f.Platform.Vendor = "fedora", "ASUS"
	f.PCI = f.PCI[:1]
	f.PCI[0].Class, f.PCI[0].Device, f.PCI[0].Numa, f.PCI[0].BootVGA = 0x030000, 0x2684, new(-1), true
	f.Nodes = append(f.Nodes[:1], f.Nodes[2:]...)
	f.Control.Cards = new(1)
	f.NVML.Cards, f.NVML.Peers, f.CUDA.Cards = f.NVML.Cards[:1], nil, f.CUDA.Cards[:1]
	c := &f.NVML.Cards[0]
	c.Name, f.CUDA.Cards[0].Name = "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"
	c.Values[keyTotal], c.Values[keyFree], c.Values[keyDisplay], c.Values[keyUsed] = 24<<30, 22<<30, 1, 2<<30
	c.Links = nil
	delete(c.Values, keyECC)
	delete(c.Values, keyECCPending)
	f.CUDA.Cards[0].Compute, f.CUDA.Cards[0].Memory = [2]int{8, 9}, 24<<30
	f.CPU = CPU{Count: 16, Allowed: 16, Affinity: "0-15", Nodes: 1, Governor: "performance"}
	return f
}

// docker is server in a container that was given its cards.
func docker() *Facts {
	f := server()
	f.Platform.Container, f.Platform.UID = "docker", 0
	f.Kernel.Files, f.Kernel.Modprobe = nil, &Tool{}
	f.Env["NVIDIA_VISIBLE_DEVICES"], f.Env["NVIDIA_DRIVER_CAPABILITIES"] = "all", "compute,utility"
	return f
}

// underWindows is a healthy WSL.
func underWindows() *Facts {
	f := desktop()
	f.Platform.WSL, f.Platform.DXG, f.Platform.Hypervisor = true, true, true
	f.PCI, f.Nodes, f.Kernel, f.Control, f.UVM = []PCI{}, nil, Kernel{}, Control{}, UVM{}
	for i := range f.Libraries {
		l := &f.Libraries[i]
		l.Path, l.Real, l.Version, l.Size, l.Why = "/usr/lib/wsl/lib/"+l.Name, "/usr/lib/wsl/lib/"+l.Name, "", 141464, "driver"
	}
	return f
}

// bare is a machine without a card.
func bare() *Facts {
	f := server()
	f.Platform.Hypervisor = true
	f.PCI, f.Nodes, f.Kernel, f.Control, f.UVM, f.Libraries = []PCI{}, nil, Kernel{}, Control{}, UVM{}, nil
	f.NVML, f.CUDA = NVML{Child: Child{Asked: true, Missing: true}}, CUDA{Child: Child{Asked: true, Missing: true}}
	return f
}

// bases are healthy machines but for bare.
var bases = map[string]func() *Facts{"server": server, "desktop": desktop, "docker": docker, "wsl": underWindows}

// replayed are facts as a file of them gives them back.
func replayed(f *Facts) *Facts {
	raw, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	var out Facts
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return &out
}

// fail makes CUDA or NVML begin with a code.
func (f *Facts) fail(cuda, nvml int) {
	if cuda != 0 {
		f.CUDA.Code, f.CUDA.Name, f.CUDA.Cards = cuda, "CUDA_ERROR_X", nil
	}
	if nvml != 0 {
		f.NVML.Code, f.NVML.Name, f.NVML.Cards, f.NVML.Peers = nvml, "NVML_ERROR_X", nil, nil
	}
}

func (f *Facts) unload() {
	f.Kernel.Driver, f.Kernel.Modules, f.Kernel.Open, f.Nodes, f.Control, f.UVM = "", nil, nil, []Node{}, Control{}, UVM{}
	for i := range f.PCI {
		f.PCI[i].Driver = ""
	}
	f.fail(100, 9)
}

func (f *Facts) at(path string) *Node {
	for i := range f.Nodes {
		if f.Nodes[i].Path == path {
			return &f.Nodes[i]
		}
	}
	panic(path)
}

func (f *Facts) lib(name string) *Library {
	for i := range f.Libraries {
		if f.Libraries[i].Name == name {
			return &f.Libraries[i]
		}
	}
	f.Libraries = append(f.Libraries, Library{Name: name, Bits: 64})
	return &f.Libraries[len(f.Libraries)-1]
}

func (f *Facts) logged(kind string, xid int) {
	f.Kernel.Log.Events = append(f.Kernel.Log.Events, Event{Kind: kind, Xid: xid, Bus: "0000:17:00.0", Count: 1})
}

func (f *Facts) values(i int) map[string]float64 { return f.NVML.Cards[i].Values }
