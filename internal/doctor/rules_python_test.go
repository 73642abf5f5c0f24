package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/fatbin"
	"github.com/warpline-ml/warpline/internal/fatbin/fatbintest"
	"github.com/warpline-ml/warpline/internal/pyenv"
)

// trained is a desktop on which PyTorch computes.
func trained() *Facts {
	f := desktop()
	f.Python = &pyenv.Found{OS: "linux", Environments: []*pyenv.Environment{{
		Root: "/home/ada/.venv", Kind: pyenv.Venv, By: []string{pyenv.ByVenv}, Interpreter: "/home/ada/.venv/bin/python", Python: "3.12.1", Machine: "x86_64",
		Packages: []pyenv.Package{{Name: "torch", Version: "2.9.0+cu128", Site: "/s", Installer: "pip", Requires: []pyenv.Requirement{{Name: "nvidia-cublas-cu12", Spec: "==12.8.4.1"}}},
			{Name: "nvidia-cublas-cu12", Version: "12.8.4.1", Site: "/s"}, {Name: "torchvision", Version: "0.24.0", Site: "/s", Requires: []pyenv.Requirement{{Name: "torch", Spec: "==2.9.0"}}}},
		Frameworks: []pyenv.Framework{{Name: "torch", Version: "2.9.0+cu128", Path: "/s/torch", By: "site-packages", Device: "cuda", CUDA: "12.8", Source: "wheel", Library: "/s/torch/lib/libtorch_cuda.so",
			Code: []fatbin.Row{{Target: fatbin.Target{SM: 75}}, {Target: fatbin.Target{SM: 86}}, {Target: fatbin.Target{SM: 120}}, {Target: fatbin.Target{SM: 120, PTX: true}, Version: [2]int{8, 8}}}}},
	}}}
	return f
}

// driven gives the machine another driver, of a version of CUDA.
func driven(f *Facts, driver string, cuda int) {
	f.Kernel.Driver, f.Control.Version, f.NVML.Driver, f.NVML.CUDA, f.CUDA.Version = driver, driver, driver, cudaText(cuda), cuda
	for i := range f.Libraries {
		f.Libraries[i].Version = driver
	}
}

func (f *Facts) env() *pyenv.Environment { return f.Python.Environments[0] }
func (f *Facts) torch() *pyenv.Framework { return &f.env().Frameworks[0] }

// cpuOnly makes the build one for the CPU.
func cpuOnly(f *Facts) {
	f.torch().Version, f.torch().Device, f.torch().CUDA, f.torch().Code = "2.9.0+cpu", "cpu", "", nil
}

// card replaces the card by another.
func card(f *Facts, device int, compute [2]int) {
	f.PCI[0].Device = device
	f.CUDA.Cards[0].Compute, f.CUDA.Cards[0].Name, f.NVML.Cards[0].Name = compute, "NVIDIA GeForce", "NVIDIA GeForce"
}

func elsewhere(f *Facts) { f.env().By = []string{"conda"} }

// windows makes a laptop with Windows of it, as its probes see it.
func windows(f *Facts) {
	*f = Facts{Version: Version, OS: "windows", Arch: "amd64", Platform: Platform{Name: "windows", Release: "23H2", Kernel: "10.0.22631"}, Python: f.Python, Env: map[string]string{},
		Adapters: []Adapter{{Name: "Intel(R) UHD Graphics", Vendor: 0x8086, Device: 0x46a8, Driver: "igfxn", Version: "31.0.101.4502", Source: "registry"},
			{Name: "NVIDIA GeForce RTX 4060 Laptop GPU", Vendor: nvidia, Device: 0x28e0, Driver: "nvlddmkm", Version: "581.29", Source: "registry"}},
		Libraries: []Library{{Name: "nvcuda.dll", Path: "C:/Windows/System32/nvcuda.dll", Version: "581.29", Bits: 64}}}
	f.Python.OS = "windows"
}

// mac makes a Mac of it.
func mac(f *Facts) {
	*f = Facts{Version: Version, OS: "darwin", Arch: "arm64", Platform: Platform{Name: "macos", Release: "14.5"}, CPU: CPU{Model: "Apple M2 Pro"}, Python: f.Python, Env: map[string]string{},
		Adapters: []Adapter{{Name: "Apple M2 Pro", Vendor: 0x106b, Source: "metal"}}, Shows: Answers{Metal: true}}
	f.env().Machine, f.Python.OS = "arm64", "darwin"
	cpuOnly(f)
}

// pythonFixtures are, by row, machines that it finds something on, and machines that come near and are fine. Each begins with
// trained.
var pythonFixtures = map[string]struct {
	found, near []func(f *Facts)
	says        string // in the title, the fix or the evidence
}{
	"python-build": {
		says:  "--index-url",
		found: []func(f *Facts){cpuOnly, func(f *Facts) { f.torch().Device, f.torch().CUDA = "rocm", "" }, func(f *Facts) { windows(f); cpuOnly(f) }},
		near:  []func(f *Facts){func(f *Facts) { cpuOnly(f); f.PCI = nil }, func(f *Facts) { cpuOnly(f); elsewhere(f) }, mac, func(f *Facts) { f.torch().Device = "" }},
	},
	"python-build-elsewhere": {
		found: []func(f *Facts){func(f *Facts) { cpuOnly(f); elsewhere(f) }},
		near:  []func(f *Facts){elsewhere, cpuOnly},
	},
	"python-code": {
		says: "no kernel image",
		found: []func(f *Facts){func(f *Facts) { card(f, 0x1b06, [2]int{6, 1}) }, func(f *Facts) { card(f, 0x2684, [2]int{8, 9}); f.torch().Code = f.torch().Code[2:3] },
			func(f *Facts) { card(f, 0x1b06, [2]int{6, 1}); f.CUDA = CUDA{} }, func(f *Facts) { card(f, 0x2b85, [2]int{12, 0}); f.torch().Code = f.torch().Code[:2] },
			func(f *Facts) { windows(f); f.Adapters[1].Device = 0x1c82 }},
		near: []func(f *Facts){func(f *Facts) { card(f, 0x1b06, [2]int{6, 1}); elsewhere(f) }, func(f *Facts) { card(f, 0x1b06, [2]int{6, 1}); f.torch().Code = nil }, func(f *Facts) { card(f, 0x2204, [2]int{8, 6}) }, func(f *Facts) { card(f, 0x2e12, [2]int{12, 1}) }},
	},
	"python-code-elsewhere": {
		found: []func(f *Facts){func(f *Facts) { card(f, 0x1b06, [2]int{6, 1}); elsewhere(f) }},
		near:  []func(f *Facts){elsewhere},
	},
	"python-ptx": {
		says:  "PTX alone",
		found: []func(f *Facts){func(f *Facts) { driven(f, "550.54.14", 12040); card(f, 0x3182, [2]int{13, 0}) }},
		near:  []func(f *Facts){func(f *Facts) { card(f, 0x3182, [2]int{13, 0}); f.CUDA.Version = 12090 }, func(f *Facts) { card(f, 0x2b85, [2]int{12, 0}) }},
	},
	"python-ptx-elsewhere": {
		found: []func(f *Facts){func(f *Facts) { driven(f, "550.54.14", 12040); card(f, 0x3182, [2]int{13, 0}); elsewhere(f) }},
		near:  []func(f *Facts){func(f *Facts) { card(f, 0x3182, [2]int{13, 0}); elsewhere(f) }},
	},
	"python-driver": {
		says: "or later",
		found: []func(f *Facts){func(f *Facts) { driven(f, "550.54.14", 12040); f.torch().CUDA = "13.0" }, func(f *Facts) { driven(f, "515.105.01", 11070) }, func(f *Facts) { driven(f, "515.105.01", 11070); f.CUDA = CUDA{} },
			func(f *Facts) { windows(f); f.Adapters[1].Version = "516.94" }},
		near: []func(f *Facts){func(f *Facts) { driven(f, "525.60.13", 12000) }, func(f *Facts) { f.torch().CUDA = "13.2" }, func(f *Facts) { f.torch().CUDA = "10.2" }, func(f *Facts) { f.torch().CUDA = "8.0" },
			func(f *Facts) { windows(f); f.Adapters[1].Version = "528.33" }, func(f *Facts) {
				f.CUDA = CUDA{}
				f.NVML.Driver, f.NVML.CUDA, f.Kernel.Driver, f.Libraries = "", "", "", nil
			},
			// A package for forward compatibility: the driver is old, and CUDA says that it is new enough.
			func(f *Facts) { f.Kernel.Driver, f.torch().CUDA = "535.183.01", "13.0" }},
	},
	"python-driver-elsewhere": {
		found: []func(f *Facts){func(f *Facts) { driven(f, "550.54.14", 12040); f.torch().CUDA = "13.0"; elsewhere(f) }},
		near:  []func(f *Facts){func(f *Facts) { f.torch().CUDA = "13.0"; elsewhere(f) }},
	},
	"python-missing": {
		says: "--force-reinstall",
		found: []func(f *Facts){func(f *Facts) { f.env().Packages = f.env().Packages[:1] }, func(f *Facts) {
			f.env().Packages[1].Damaged = []pyenv.Damage{{Path: "/s/nvidia/cublas/lib/libcublas.so.12", Want: 10, Have: 4}}
		},
			func(f *Facts) {
				f.env().Packages[0].Damaged = []pyenv.Damage{{Path: "/s/torch/lib/libtorch_cuda.so", Want: 10, Have: -1}}
			}},
		near: []func(f *Facts){func(f *Facts) { f.env().Packages[1].Version = "12.8.3.14" }, func(f *Facts) { cpuOnly(f); f.env().Packages = f.env().Packages[:1] }},
	},
	"python-missing-elsewhere": {
		found: []func(f *Facts){func(f *Facts) { f.env().Packages = f.env().Packages[:1]; elsewhere(f) }},
		near:  []func(f *Facts){elsewhere},
	},
	"python-versions": {
		says: "asks for",
		found: []func(f *Facts){func(f *Facts) { f.env().Packages[1].Version = "12.1.3.1" }, func(f *Facts) { f.env().Packages[2].Requires[0].Spec = "==2.8.0" }, func(f *Facts) {
			f.env().Packages[2].Requires = append(f.env().Packages[2].Requires, pyenv.Requirement{Name: "triton"})
		}},
		near: []func(f *Facts){func(f *Facts) { f.env().Packages[2].Requires[0].Spec = ">=2.8.0,<3" }, func(f *Facts) { f.env().Packages = f.env().Packages[:1] }},
	},
	"python-copies": {
		says: "only copy",
		found: []func(f *Facts){func(f *Facts) {
			f.torch().Copies = []pyenv.Copy{{Path: "/usr/lib/python3/dist-packages/torch", By: "site-packages", Version: "1.13.1"}}
		},
			func(f *Facts) { f.torch().By, f.torch().Copies = "user site", []pyenv.Copy{{Path: "/s2/torch"}} }, func(f *Facts) { f.torch().Recorded = "2.6.0" }},
		near: []func(f *Facts){func(f *Facts) {
			f.torch().Copies = []pyenv.Copy{{Path: "/s2/torch", By: "site-packages", Version: "2.9.0+cu128"}}
		}, func(f *Facts) { f.env().Leftovers = []string{"/s/~orch"} }},
	},
	"python-local": {
		says:  "comes first",
		found: []func(f *Facts){func(f *Facts) { f.Python.Local = []pyenv.Copy{{Path: "/home/me/torch.py"}} }},
		near:  []func(f *Facts){func(f *Facts) { f.Python.Local = []pyenv.Copy{{Path: "/home/me/torch.py"}}; elsewhere(f) }},
	},
	"python-loader": {
		says: "unset LD_LIBRARY_PATH",
		found: []func(f *Facts){func(f *Facts) {
			f.Python.Loader = []pyenv.Library{{Name: "libcublas.so.12", Path: "/usr/local/cuda-12.1/lib64/libcublas.so.12", Version: "12.1.3.1"}}
		}},
		near: []func(f *Facts){func(f *Facts) {
			f.Python.Loader = []pyenv.Library{{Name: "libcublas.so.12", Path: "/usr/local/cuda/lib64/libcublas.so.12", Version: "12.9.0.13"}}
		},
			func(f *Facts) {
				f.Python.Loader = []pyenv.Library{{Name: "libcublas.so.11", Path: "/usr/local/cuda-11/lib64/libcublas.so.11", Version: "11.1"}}
			},
			func(f *Facts) {
				f.Python.Loader, f.torch().OwnFirst, f.torch().Needs = []pyenv.Library{{Name: "libcublas.so.12", Path: "/c/libcublas.so.12", Version: "12.1.3.1"}}, true, []string{"libcublas.so.12"}
			}},
	},
	"python-gone": {
		says:  "venv --clear",
		found: []func(f *Facts){func(f *Facts) { f.env().BaseGone = "/usr/local/python3.10/bin" }},
		near:  []func(f *Facts){func(f *Facts) { f.env().BaseGone = "/usr/local/python3.10/bin"; elsewhere(f) }},
	},
	"rosetta": {
		says:  "arm64",
		found: []func(f *Facts){func(f *Facts) { mac(f); f.env().Machine = "x86_64" }},
		near:  []func(f *Facts){func(f *Facts) { mac(f); f.env().Machine = "universal" }, func(f *Facts) { mac(f); f.env().Machine, f.CPU.Model = "x86_64", "Intel(R) Core(TM) i7" }},
	},
	"macos": {
		says:  "12.3",
		found: []func(f *Facts){func(f *Facts) { mac(f); f.Platform.Release = "11.7.10" }},
		near:  []func(f *Facts){func(f *Facts) { mac(f); f.Platform.Release = "12.3" }, func(f *Facts) { f.Platform.Release = "11" }},
	},
	"windows-driver": {
		says: "nvidia.com/drivers",
		found: []func(f *Facts){func(f *Facts) { windows(f); f.Adapters[1].Driver, f.Adapters[1].Version = "BasicDisplay", "10.0.1" }, func(f *Facts) {
			windows(f)
			f.Adapters[1].Driver, f.Adapters[1].Version, f.Adapters[1].Problem = "", "", 28
		}},
		near: []func(f *Facts){windows, func(f *Facts) { windows(f); f.Adapters[0].Driver = "BasicDisplay" }},
	},
	"turned-off": {
		says:  "Enable-PnpDevice",
		found: []func(f *Facts){func(f *Facts) { windows(f); f.Adapters[1].Problem = 22 }, func(f *Facts) { windows(f); f.Adapters[1].Problem = 45; f.Adapters = f.Adapters[1:] }},
		near:  []func(f *Facts){windows, func(f *Facts) { windows(f); f.Adapters[0].Problem = 22 }},
	},
	"windows-problem": {
		says:  "code",
		found: []func(f *Facts){func(f *Facts) { windows(f); f.Adapters[1].Problem = 43 }, func(f *Facts) { windows(f); f.Adapters[1].Problem = 99 }},
		near:  []func(f *Facts){windows, func(f *Facts) { windows(f); f.Adapters[1].Problem = 22 }},
	},
	"windows-cuda": {
		says:  "nvcuda.dll",
		found: []func(f *Facts){func(f *Facts) { windows(f); f.Libraries = []Library{{Name: "nvcuda.dll"}} }},
		near:  []func(f *Facts){windows, func(f *Facts) { windows(f); f.Libraries, f.Adapters[1].Problem = []Library{{Name: "nvcuda.dll"}}, 43 }},
	},
}

// The fixtures join the table of all rules: each machine that something is found on, beside one that comes near.
func init() {
	for _, r := range slices.Concat(pythonRules, desktopRules) {
		fixtures := pythonFixtures[r.name]
		for i := range min(1, len(fixtures.found)*len(fixtures.near)) * max(len(fixtures.found), len(fixtures.near)) {
			ruleCases = append(ruleCases, ruleCase{r.id + " " + r.name, trained, fixtures.found[i%len(fixtures.found)], fixtures.near[i%len(fixtures.near)], fixtures.says})
		}
	}
}

// A machine on which PyTorch computes, a laptop with Windows, and one whose environments are not there have nothing to be found.
func TestHealthyPython(t *testing.T) {
	for name, change := range map[string]func(*Facts){"Linux": func(*Facts) {}, "Windows": windows, "nothing": func(f *Facts) { f.Python = nil }, "no environment": func(f *Facts) { f.Python.Environments = nil }} {
		f := trained()
		change(f)
		if d := Judge(replayed(f)); len(d.Findings) > 0 {
			t.Errorf("%s: %s", name, titles(d))
		}
	}
	f := trained()
	mac(f)
	if d := Judge(replayed(f)); len(d.Findings) != 1 || d.Findings[0].Rule != "D01" {
		t.Errorf("a Mac: %s", titles(d))
	}
}

// The command that is advised names a build that has code for the card and runs under the driver.
func TestAdvisedWheel(t *testing.T) {
	for _, c := range []struct {
		compute [2]int
		cuda    int
		want    string
	}{{[2]int{8, 9}, 13000, "cu130"}, {[2]int{8, 9}, 12040, "cu128"}, {[2]int{6, 1}, 13000, "cu126"}, {[2]int{7, 0}, 13000, "cu128"}, {[2]int{8, 6}, 11040, "cu118"}, {[2]int{12, 0}, 12080, "cu128"}, {[2]int{12, 0}, 11080, ""}, {[2]int{3, 5}, 11040, ""}} {
		f := trained()
		card(f, 0, c.compute)
		driven(f, "", c.cuda)
		cpuOnly(f)
		if got := f.wheel(); got != c.want {
			t.Errorf("card %v, CUDA %d: %s", c.compute, c.cuda, got)
		}
		ills := otherBuild(f, f.builds()[0])
		if want := "https://download.pytorch.org/whl/" + c.want; c.want != "" && (len(ills) != 1 || !strings.HasSuffix(ills[0].Fix, want) || !strings.Contains(ills[0].Fix, "torch torchvision ")) {
			t.Errorf("%+v", ills)
		}
	}
}

// TestPlantedPython goes all the way: files on the disk, the search, the rules.
func TestPlantedPython(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"pyvenv.cfg": "version = 3.12.1\n", "bin/python": "\x7fELF", "lib/python3.12/site-packages/torch/__init__.py": "", "lib/python3.12/site-packages/torch/version.py": "__version__ = '2.9.0+cu130'\ncuda = '13.0'\n",
		"lib/python3.12/site-packages/torch/lib/libtorch_cuda.so": string(fatbintest.ELF(".nv_fatbin", fatbintest.Container("sm_75", "sm_120"))),
	} {
		p := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	search := pyenv.Search{OS: "linux", Getenv: func(name string) string { return map[string]string{"VIRTUAL_ENV": root}[name] }}
	f := trained()
	driven(f, "550.54.14", 12040)
	card(f, 0x1b06, [2]int{6, 1})
	f.Python = search.Find(context.Background())
	d := Judge(f)
	var ids []string
	for _, x := range d.Findings {
		ids = append(ids, x.Rule)
	}
	if !slices.Contains(ids, "D09") || !slices.Contains(ids, "D07") {
		t.Error(ids)
	}
}
