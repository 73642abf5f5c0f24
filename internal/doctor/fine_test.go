package doctor

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/fatbin"
	"github.com/warpline-ml/warpline/internal/pyenv"
)

// Parts of the least facts of rules.

func seesBus(f *Facts, c PCI) {
	f.OS, c.Vendor, c.Class = "linux", nvidia, 0x030200
	f.PCI = []PCI{c}
}

func seesDriver(f *Facts) { f.Kernel.Driver = "580.95.05" }

func seesNVML(f *Facts, c NVMLCard) { f.NVML.Asked, f.NVML.Cards = true, []NVMLCard{c} }

func seesCUDA(f *Facts, c CUDACard) { f.CUDA.Asked, f.CUDA.Cards = true, []CUDACard{c} }

func seesNodes(f *Facts, open string) {
	f.Nodes = []Node{{Path: "/dev/nvidiactl", There: true, Open: open}, {Path: "/dev/nvidia0", There: true, Open: open}}
}

func seesLibrary(f *Facts, l Library) { f.Libraries = append(f.Libraries, l) }

func tells(keys ...string) NVMLCard {
	c := NVMLCard{Values: map[string]float64{}}
	for _, key := range keys {
		c.Values[key] = 1
	}
	return c
}

func seesBuild(f *Facts, by string, b pyenv.Framework) {
	e := &pyenv.Environment{Frameworks: []pyenv.Framework{b}}
	if by != "" {
		e.By = []string{by}
	}
	f.Python = &pyenv.Found{Environments: []*pyenv.Environment{e}}
}

func seesWindows(f *Facts, a Adapter) {
	a.Vendor = nvidia
	f.OS, f.Adapters = "windows", []Adapter{a}
}

var sm90 = []fatbin.Row{{Target: fatbin.Target{SM: 90}}}

func cudaBuild(by string) func(*Facts) {
	return func(f *Facts) {
		seesBuild(f, by, pyenv.Framework{Device: "cuda", Code: sm90})
		seesCUDA(f, CUDACard{Compute: [2]int{9}})
		f.CUDA.Version = 13000
	}
}

func cudaVersion(by string) func(*Facts) {
	return func(f *Facts) {
		seesBuild(f, by, pyenv.Framework{Device: "cuda", CUDA: "12.8"})
		f.CUDA.Version = 13000
	}
}

func recordedBuild(by string) func(*Facts) {
	return func(f *Facts) {
		seesBuild(f, by, pyenv.Framework{Name: "torch", Device: "cuda"})
		f.env().Packages = []pyenv.Package{{Name: "torch"}}
	}
}

// least are the facts that each rule needs to say that all is well: with any of them missing it must not.
var least = map[string]func(f *Facts){
	"D01 no-card":            func(f *Facts) { seesBus(f, PCI{}); f.OS = "" },
	"D48 fallen-off-the-bus": func(f *Facts) { seesBus(f, PCI{Config: new(uint32(0x233010de))}) },
	"D48 bus-errors":         func(f *Facts) { seesBus(f, PCI{Errors: map[string]int64{}}) },
	"D31 no-region":          func(f *Facts) { seesBus(f, PCI{BARs: []int64{1, 1}}) },
	"D28 other-driver":       func(f *Facts) { seesBus(f, PCI{Driver: "nvidia"}) },
	"D27 secure-boot":        func(f *Facts) { seesBus(f, PCI{}); f.Kernel.SecureBoot = new(false) },
	"D02 module-not-loaded":  func(f *Facts) { seesBus(f, PCI{}); seesDriver(f) },
	"D29 wrong-branch":       func(f *Facts) { seesBus(f, PCI{}); seesNVML(f, NVMLCard{}) },
	"D30 card-not-started":   func(f *Facts) { seesBus(f, PCI{}); seesDriver(f); seesNVML(f, NVMLCard{}) },
	"D32 parameters":         func(f *Facts) { seesDriver(f); f.Kernel.Params = map[string]string{} },
	"D12 no-uvm": func(f *Facts) {
		seesDriver(f)
		f.Nodes = []Node{{Path: "/dev/nvidiactl", Open: "ok"}, {Path: "/dev/nvidia-uvm", There: true}}
		f.UVM.Asked = true
	},
	"D14 uvm-broken": func(f *Facts) {
		seesDriver(f)
		f.Nodes = []Node{{Path: "/dev/nvidiactl", Open: "ok"}}
		f.UVM.Asked = true
	},
	"D24 container-without-cards": func(f *Facts) { f.Platform.Container = "docker"; seesDriver(f); seesNodes(f, "") },
	"D38 no-nodes":                func(f *Facts) { seesDriver(f); seesNodes(f, "") },
	"D37 stale-nodes": func(f *Facts) {
		seesDriver(f)
		f.Nodes = []Node{{Path: "/dev/nvidia-uvm", There: true, Major: 510}}
		f.Kernel.Majors = map[string]int{"nvidia-uvm": 510}
	},
	"D25 no-permission":   func(f *Facts) { seesDriver(f); seesNodes(f, "ok") },
	"D26 revoked":         func(f *Facts) { seesDriver(f); seesNodes(f, "ok") },
	"D26 will-be-revoked": func(f *Facts) { seesDriver(f); f.Container = Container{Docker: true, CharLink: new(true)} },
	"D24 no-runtime":      func(f *Facts) { seesDriver(f); f.Container = Container{Docker: true, Runtime: new(true)} },
	"D24 stale-cdi":       func(f *Facts) { seesDriver(f); f.Container.CDI = "580.95.05" },
	"D35 capabilities": func(f *Facts) {
		f.Platform.Container = "docker"
		seesDriver(f)
		seesLibrary(f, Library{Name: libcuda, Path: "/a", Bits: 64})
	},
	"D03 no-libcuda":       func(f *Facts) { seesDriver(f); seesLibrary(f, Library{Name: libcuda, Path: "/a", Bits: 64}) },
	"D03 no-nvml":          func(f *Facts) { seesDriver(f); seesLibrary(f, Library{Name: libnvml, Path: "/a"}) },
	"D05 stub":             func(f *Facts) { seesLibrary(f, Library{Name: libcuda, Path: "/a", Size: 90 << 20}) },
	"D08 forward-compat":   func(f *Facts) { seesLibrary(f, Library{Name: libcuda, Path: "/a"}) },
	"D04 version-mismatch": func(f *Facts) { seesDriver(f); seesLibrary(f, Library{Name: libcuda, Version: "580.95.05"}) },
	"D06 mixed-set": func(f *Facts) {
		seesDriver(f)
		seesLibrary(f, Library{Name: libcuda, Version: "580.95.05"})
		seesLibrary(f, Library{Name: libjit, Version: "580.95.05"})
	},
	"D11 no-jit": func(f *Facts) {
		seesDriver(f)
		seesLibrary(f, Library{Name: libcuda, Path: "/a"})
		seesLibrary(f, Library{Name: libjit, Path: "/b"})
	},
	"D11 jit-cache":      func(f *Facts) { seesDriver(f); f.Places = []Place{{Role: "cache", Writable: new(true)}} },
	"D07 driver-too-old": func(f *Facts) { f.CUDA.Version, f.Floor = 13000, 11040 },
	"D07 toolkit-newer":  func(f *Facts) { seesDriver(f); seesLibrary(f, Library{Name: "libcudart.so", Version: "12.8.90"}) },
	"D10 ptx-newer": func(f *Facts) {
		f.CUDA.Version = 13000
		seesLibrary(f, Library{Name: "libnvrtc.so", Path: "/a", Version: "12.8.93"})
	},
	"D40 compute-libraries": func(f *Facts) { seesLibrary(f, Library{Name: "libcudnn.so", Path: "/a", Bits: 64}) },
	"D40 shadowed":          func(f *Facts) { f.Env, f.Libraries = map[string]string{"LD_LIBRARY_PATH": "/a"}, []Library{} },
	"D15 fabric":            func(f *Facts) { seesDriver(f); f.Fabric.Switches = 4; seesCUDA(f, CUDACard{}) },
	"D13 hmm":               func(f *Facts) { seesDriver(f); f.CUDA.Asked = true },
	"D36 wsl": func(f *Facts) {
		f.Platform.WSL, f.Platform.DXG = true, true
		seesLibrary(f, Library{Name: libcuda, Path: inWSL})
	},
	"D22 licence": func(f *Facts) {
		seesBus(f, PCI{})
		f.OS = ""
		seesNVML(f, tells(keyLicensed, keyVirtual))
		f.values(0)[keyVirtual] = virtual
	},
	"D17 mps":           func(f *Facts) { seesDriver(f); f.CUDA.Asked = true },
	"D17 mps-limits":    func(f *Facts) { f.MPS.Pipe, f.Env = true, map[string]string{} },
	"D16 compute-mode":  func(f *Facts) { seesNVML(f, tells(keyMode)); f.values(0)[keyMode] = 0 },
	"D44 address-space": func(f *Facts) { seesBus(f, PCI{}); f.OS = ""; f.Limits = map[string]int64{"as": -1} },
	"P8 deep":           func(f *Facts) { f.Deep = []Deep{{Cases: 4}} },
	"P7 nvml":           func(f *Facts) { seesBus(f, PCI{}); f.OS = ""; f.NVML.Asked = true },
	"P8 cuda":           func(f *Facts) { seesBus(f, PCI{}); f.OS = ""; f.CUDA.Asked = true },
	"D18 hidden":        func(f *Facts) { seesBus(f, PCI{}); f.OS = ""; f.Env = map[string]string{visible: "0"} },
	"D19 ordinal":       func(f *Facts) { f.Env = map[string]string{"LOCAL_RANK": "0"}; seesCUDA(f, CUDACard{}) },
	"D20 order": func(f *Facts) {
		f.CUDA.Cards, f.NVML.Cards = []CUDACard{{Bus: "a"}, {Bus: "b"}}, []NVMLCard{{Bus: "a"}, {Bus: "b"}}
	},
	"D21 changed-after-start": func(f *Facts) { f.Process, f.Env = &Process{Env: map[string]string{}}, map[string]string{} },
	"D23 mig": func(f *Facts) {
		seesNVML(f, tells(keyMIG))
		f.NVML.Asked, f.NVML.Cards[0].Instances = false, 2
		seesCUDA(f, CUDACard{})
	},
	"D33 display-card": func(f *Facts) {
		seesNVML(f, tells(keyDisplay, keyFree, keyTotal))
		f.NVML.Cards = append(f.NVML.Cards, tells(keyDisplay, keyFree, keyTotal))
	},
	"D34 python-build": func(f *Facts) {
		seesBus(f, PCI{})
		f.OS = ""
		seesBuild(f, pyenv.ByPath, pyenv.Framework{Device: "cuda"})
	},
	"D34 python-build-elsewhere":   func(f *Facts) { seesBus(f, PCI{}); f.OS = ""; seesBuild(f, "", pyenv.Framework{Device: "cuda"}) },
	"D09 python-code":              func(f *Facts) { cudaBuild(pyenv.ByPath)(f); f.CUDA.Version, f.CUDA.Asked = 0, false },
	"D09 python-code-elsewhere":    func(f *Facts) { cudaBuild("")(f); f.CUDA.Version, f.CUDA.Asked = 0, false },
	"D10 python-ptx":               func(f *Facts) { cudaBuild(pyenv.ByPath)(f); f.CUDA.Asked = false },
	"D10 python-ptx-elsewhere":     func(f *Facts) { cudaBuild("")(f); f.CUDA.Asked = false },
	"D07 python-driver":            cudaVersion(pyenv.ByPath),
	"D07 python-driver-elsewhere":  cudaVersion(""),
	"D40 python-missing":           recordedBuild(pyenv.ByPath),
	"D40 python-missing-elsewhere": recordedBuild(""),
	"D40 python-versions": func(f *Facts) {
		seesBuild(f, "", pyenv.Framework{Name: "torch"})
		f.env().Packages = []pyenv.Package{{Name: "torch", Requires: []pyenv.Requirement{{}}}, {}}
	},
	"D40 python-copies": func(f *Facts) { seesBuild(f, "", pyenv.Framework{}) },
	"D40 python-local":  func(f *Facts) { seesBuild(f, pyenv.ByPath, pyenv.Framework{Name: "torch"}) },
	"D40 python-loader": func(f *Facts) {
		seesBuild(f, "", pyenv.Framework{Device: "cuda"})
		f.OS, f.env().Packages = "linux", []pyenv.Package{{}}
	},
	"D40 python-gone": func(f *Facts) {
		seesBuild(f, pyenv.ByPath, pyenv.Framework{})
		f.env().Frameworks, f.env().Interpreter = nil, "/a"
	},
	"D34 rosetta": func(f *Facts) {
		seesBuild(f, pyenv.ByPath, pyenv.Framework{Name: "torch"})
		f.OS, f.CPU.Model, f.env().Machine = "darwin", "Apple M2", "arm64"
	},
	"D34 macos":           func(f *Facts) { f.OS, f.CPU.Model, f.Platform.Release = "darwin", "Apple M2", "14.5" },
	"D02 windows-driver":  func(f *Facts) { seesWindows(f, Adapter{Source: "registry", Driver: "nvlddmkm"}) },
	"D33 turned-off":      func(f *Facts) { seesWindows(f, Adapter{Source: "registry"}) },
	"D30 windows-problem": func(f *Facts) { seesWindows(f, Adapter{Source: "registry", Driver: "nvlddmkm"}) },
	"D03 windows-cuda":    func(f *Facts) { seesWindows(f, Adapter{}); seesLibrary(f, Library{Name: "nvcuda.dll", Path: "C:/a"}) },
	"D45 shm":             func(f *Facts) { f.Places = []Place{{Role: "shm", Total: 1 << 30, Free: 1 << 30}} },
	"D41 memlock": func(f *Facts) {
		seesNVML(f, NVMLCard{})
		f.NVML.Asked = false
		f.NVML.Cards = make([]NVMLCard, 2)
		f.Limits = map[string]int64{"memlock": -1}
	},
	"D42 files":         func(f *Facts) { f.Limits = map[string]int64{"nofile": -1} },
	"D43 memory-limit":  func(f *Facts) { f.Cgroup.Version = 2 },
	"D43 out-of-memory": func(f *Facts) { f.Kernel.Log.Source = "kmsg" },
	"D43 cpu-limit":     func(f *Facts) { f.Cgroup.Version, f.CPU.Count = 2, 8 },
	"D67 tmp":           func(f *Facts) { f.Places = []Place{{Role: "tmp", Total: 1 << 30, Free: 1 << 30}} },
	"D67 network-files": func(f *Facts) { f.Places = []Place{{Role: "work", Type: "ext4"}} },
	"D46 interface": func(f *Facts) {
		f.Env = map[string]string{"NCCL_SOCKET_IFNAME": "eth0"}
		f.Network = []Interface{{Name: "eth0", Up: true}}
	},
	"D49 memory-errors":  func(f *Facts) { seesNVML(f, tells(keyECCErrors)); f.values(0)[keyECCErrors] = 0 },
	"D50 timeouts":       func(f *Facts) { seesBus(f, PCI{}); f.OS = ""; seesDriver(f); f.Kernel.Log.Source = "kmsg" },
	"D51 inforom":        func(f *Facts) { seesBus(f, PCI{}); f.OS = ""; seesNVML(f, NVMLCard{}) },
	"D52 nvlink":         func(f *Facts) { seesNVML(f, NVMLCard{Links: []bool{true}}) },
	"D53 power":          func(f *Facts) { seesBus(f, PCI{}); f.OS = ""; seesNVML(f, NVMLCard{}) },
	"D65 pending":        func(f *Facts) { seesNVML(f, tells(keyMIGPending)) },
	"D50 reset-required": func(f *Facts) { seesBus(f, PCI{}); f.OS = ""; seesNVML(f, NVMLCard{}) },
	"D39 peers":          func(f *Facts) { f.NVML.Asked, f.NVML.Peers = true, []Peer{{}} },
	"D39 acs": func(f *Facts) {
		seesBus(f, PCI{Upstream: []Bridge{{ACS: new(0)}}})
		f.OS = ""
		f.NVML.Cards = make([]NVMLCard, 2)
	},
	"D54 throttled": func(f *Facts) {
		seesNVML(f, tells(keyUtilization, keyClock, keyClockMax))
		f.values(0)[keyUtilization] = 90
	},
	"D54 power-limit": func(f *Facts) { seesNVML(f, tells(keyPowerLimit, keyPowerUsual)) },
	"D55 narrow-link": func(f *Facts) { seesBus(f, PCI{Link: &Link{Width: 16, MaxWidth: 16}}); f.OS = "" },
	"D56 counters-locked": func(f *Facts) {
		seesDriver(f)
		f.Kernel.Params, f.Platform.UID, f.Kernel.Profiler = map[string]string{"RmProfilingAdminOnly": "0"}, 1000, true
	},
	"D57 watchdog":    func(f *Facts) { f.CUDA.Cards = []CUDACard{{}} },
	"D59 persistence": func(f *Facts) { seesNVML(f, NVMLCard{}); f.OS, f.Kernel.Persistent = "linux", true },
	"D60 affinity": func(f *Facts) {
		seesBus(f, PCI{Numa: new(0), CPUs: "0-3"})
		f.OS = ""
		f.CPU.Nodes, f.CPU.Affinity = 2, "0-7"
	},
	"D61 processors": func(f *Facts) {
		seesBus(f, PCI{})
		f.OS = ""
		f.CPU.Count, f.CPU.Allowed, f.CPU.Governor = 8, 8, "performance"
	},
	"D62 variables":      func(f *Facts) { f.Env = map[string]string{} },
	"D63 someone-else":   func(f *Facts) { seesNVML(f, tells(keyUsed)) },
	"D64 shared-memory":  func(f *Facts) { seesNVML(f, tells(keyTotal)) },
	"D66 steal":          func(f *Facts) { f.Platform.Hypervisor, f.CPU.Count, f.CPU.Busy = true, 8, 0.5 },
	"P10 stuck":          func(f *Facts) { f.Process = &Process{State: "S"} },
	"D04 replaced-under": func(f *Facts) { f.Process = &Process{Libraries: []Library{{}}} },
}

// without calls do with each fact of v taken away in turn, and its name; v is then as before.
func without(v reflect.Value, name string, do func(name string)) {
	gone := func() {
		if !v.IsZero() {
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			v.SetZero()
			do(name)
			v.Set(old)
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				without(v.Field(i), name+"."+f.Name, do)
			}
		}
	case reflect.Pointer:
		gone()
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct {
			without(v.Elem(), name, do)
		}
	case reflect.Slice:
		gone()
		for i := range v.Len() {
			without(reflect.Indirect(v.Index(i)), name, do)
		}
	case reflect.Map:
		gone()
		for _, key := range v.MapKeys() {
			value := v.MapIndex(key)
			v.SetMapIndex(key, reflect.Value{})
			do(name + "[" + key.String() + "]")
			v.SetMapIndex(key, value)
		}
	case reflect.Array:
	default:
		gone()
	}
}

// fine reports whether a row says of facts that all is well.
func fine(r *rule, f *Facts) bool {
	d := &Diagnosis{}
	d.apply(f, []rule{*r})
	return len(d.Checked) > 0
}

// TestFineIsWhatWasSeen: of nothing a rule says nothing, with the least that it needs it says that all is well, and with any of
// that missing it does not: every rule, so that a new one joins.
func TestFineIsWhatWasSeen(t *testing.T) {
	if d := Judge(&Facts{}); len(d.Checked) > 0 || len(d.Findings) > 0 {
		t.Errorf("of nothing: %v, %s", d.Checked, titles(d))
	}
	rows := slices.Concat(rules, lastRules)
	for i := range rows {
		r := &rows[i]
		name := r.id + " " + r.name
		set := least[name]
		if set == nil {
			t.Errorf("%s has no least facts", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			f := &Facts{}
			set(f)
			if f = replayed(f); !fine(r, f) {
				raw, _ := json.Marshal(f)
				t.Fatalf("not fine with %s", raw)
			}
			n := 0
			without(reflect.ValueOf(f).Elem(), "", func(fact string) {
				if n++; fine(r, f) {
					t.Errorf("fine without %s", fact)
				}
			})
			if n == 0 {
				t.Error("it needs nothing")
			}
		})
	}
	for name := range maps.Keys(least) {
		if !slices.ContainsFunc(rows, func(r rule) bool { return r.id+" "+r.name == name }) {
			t.Errorf("there is no rule %s", name)
		}
	}
}

// TestIllIsNotFine: on a machine on which a rule of an id finds something no row of that rule says that it is fine, and nothing
// is fine that is judged by what was lost.
func TestIllIsNotFine(t *testing.T) {
	for _, c := range ruleCases {
		f := c.base()
		c.ill(f)
		d := Judge(f)
		_, name, _ := strings.Cut(c.rule, " ")
		i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
		if i >= 0 && slices.Contains(d.Checked, rules[i].id+" "+rules[i].what) {
			t.Errorf("%s is fine", c.rule)
		}
	}
	f := server()
	f.unload()
	for _, fine := range Judge(f).Checked {
		for _, id := range []string{"D02 ", "D04 ", "D06 ", "D11 ", "D12 ", "D14 ", "D16 ", "D22 ", "D25 ", "D26 ", "D29 ", "D30 ", "D37 ", "D38 ", "D49 ", "D50 ", "D52 ", "D53 ", "D54 "} {
			if strings.HasPrefix(fine, id) {
				t.Errorf("without a driver: %q", fine)
			}
		}
	}
}

// TestUntestedIsSaid: where nothing is broken and not everything was looked at, both are said.
func TestUntestedIsSaid(t *testing.T) {
	f := trained()
	windows(f)
	v := Judge(f).Verdict
	if v.Broken != "" || !strings.Contains(v.Text, "that could be looked at") || len(v.Untested) == 0 || !strings.Contains(v.text(100), "\nuntested: P6") {
		t.Errorf("%+v", v)
	}
	if v := Judge(server()).Verdict; v.Text != "no layer is broken" || len(v.Untested) > 0 {
		t.Errorf("%+v", v)
	}
}
