package pyenv

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/fatbin/fatbintest"
)

const (
	elf64  = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x3e\x00"
	mach64 = "\xcf\xfa\xed\xfe\x0c\x00\x00\x01"
)

// pe64 is the beginning of a program for Windows.
func pe64() string { return string(fatbintest.PE(".text")) }

// tree is files by their path. One that begins with "-> " is a symbolic link.
type tree map[string]string

// plant writes a tree into a folder.
func (files tree) plant(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		p := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if to, link := strings.CutPrefix(text, "-> "); link {
			if err := os.Symlink(to, p); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// with returns the tree with more files. Paths that begin with "~" lie in the site-packages of the venv /v.
func (files tree) with(more tree) tree {
	all := tree{}
	for _, m := range []tree{files, more} {
		for path, text := range m {
			if rest, ok := strings.CutPrefix(path, "~"); ok {
				path = "/v/lib/python3.11/site-packages" + rest
			}
			all[path] = text
		}
	}
	return all
}

func (files tree) find(t testing.TB, os string, env ...string) *Found {
	t.Helper()
	s := Search{OS: os, Root: files.plant(t), Home: "/home/me", Dir: "/here", Getenv: func(name string) string {
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}}
	f := s.Find(context.Background())
	b, err := json.Marshal(f)
	if err != nil || strings.Contains(string(b), s.Root) {
		t.Errorf("%v: the folder of the test is in what was found: %s", err, b)
	}
	return f
}

// only is the one environment of a machine that has one, by VIRTUAL_ENV=/v if it has no other name.
func (files tree) only(t testing.TB, os string, env ...string) *Environment {
	t.Helper()
	f := files.find(t, os, append(env, "VIRTUAL_ENV=/v")...)
	if len(f.Environments) == 0 || f.Environments[0].Root != "/v" {
		t.Fatalf("found %+v", f.Environments)
	}
	return f.Environments[0]
}

// version is a version.py of PyTorch.
func version(v, cuda string) string {
	value := "None"
	if cuda != "" {
		value = "'" + cuda + "'"
	}
	return fmt.Sprintf("from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n__version__ = '%s'\ndebug = False\ncuda: Optional[str] = %s\ngit_version = 'd0f2'\nhip: Optional[str] = None\nxpu: Optional[str] = None\n", v, value)
}

func distribution(name, version string, requires ...string) string {
	text := "Metadata-Version: 2.4\nName: " + name + "\nVersion: " + version + "\n"
	for _, r := range requires {
		text += "Requires-Dist: " + r + "\n"
	}
	return text + "\nRequires-Dist: this is the description\n"
}

var (
	venv = tree{
		"/v/pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n", "/v/bin/python3": "-> python3.11", "/v/bin/python3.11": elf64,
		"/usr/bin/python3.11": elf64, "~/pip/__init__.py": "",
	}
	wheel = venv.with(tree{
		"~/torch/__init__.py": "", "~/torch/version.py": version("2.9.0+cu128", "12.8"),
		"~/torch/lib/libtorch_cuda.so": string(fatbintest.ELF(".nv_fatbin", fatbintest.Container("sm_80", "sm_90"), fatbintest.Container("sm_80", "sm_90", "sm_90a"))),
		"~/torch-2.9.0+cu128.dist-info/METADATA": distribution("torch", "2.9.0+cu128", "filelock", `nvidia-cublas-cu12==12.8.4.1; platform_system == "Linux"`,
			`nvidia-cudnn-cu12==9.10.2.21; platform_system == "Linux"`, `triton==3.5.0; platform_system == "Linux"`, `optree; extra == "optree"`),
		"~/torch-2.9.0+cu128.dist-info/WHEEL":              "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_28_x86_64\n",
		"~/torch-2.9.0+cu128.dist-info/INSTALLER":          "pip\n",
		"~/nvidia_cublas_cu12-12.8.4.1.dist-info/METADATA": distribution("nvidia-cublas-cu12", "12.8.4.1"),
		"~/nvidia_cudnn_cu12-9.10.2.21.dist-info/METADATA": distribution("nvidia-cudnn-cu12", "9.10.2.21"),
		"~/triton-3.5.0.dist-info/METADATA":                distribution("triton", "3.5.0"),
	})
)

func TestWheel(t *testing.T) {
	e := wheel.only(t, "linux")
	if e.Kind != Venv || e.Python != "3.11.7" || e.Machine != "x86_64" || e.Interpreter != "/v/bin/python3" || !e.Active() || e.BaseGone != "" {
		t.Errorf("%+v", e)
	}
	w := e.Framework("torch")
	if w == nil || w.Version != "2.9.0+cu128" || w.Device != "cuda" || w.CUDA != "12.8" || w.Source != "wheel" || w.Recorded != "" || w.Unread != "" || len(w.Copies) > 0 {
		t.Fatalf("%+v", w)
	}
	if got := fmt.Sprint(w.Code); got != "[sm_80 sm_90 sm_90a]" {
		t.Error(got)
	}
	for compute, want := range map[[2]int]bool{{8, 0}: true, {8, 9}: true, {9, 0}: true, {7, 5}: false, {12, 0}: false} {
		if _, ok := w.Serves(compute); ok != want {
			t.Errorf("serves %v: %v", compute, ok)
		}
	}
	if u := e.Unmet(); len(u) > 0 {
		t.Error(u)
	}
	if p := e.Package("torch"); p.Build != "cp311-cp311-manylinux_2_28_x86_64" || p.Installer != "pip" || len(p.Requires) != 3 {
		t.Errorf("%+v", p)
	}
}

// builds are PyTorch's of all kinds.
var builds = map[string]struct {
	files                         tree
	version, device, cuda, source string
	code, unread, recorded, rocm  string
	nightly                       bool
}{
	"CPU only":  {tree{"~/torch/version.py": version("2.9.0+cpu", "")}, "2.9.0+cpu", "cpu", "", "", "[]", "", "", "", false},
	"old":       {tree{"~/torch/version.py": "__version__ = '1.7.1'\ndebug = False\ncuda = '10.2'\ngit_version = '57'\n", "~/torch/lib/libtorch_cuda_cu.so": string(fatbintest.ELF(".nv_fatbin", fatbintest.Container("sm_37", "compute_37@6.5")))}, "1.7.1", "cuda", "10.2", "", "[sm_37 compute_37]", "", "", "", false},
	"ROCm":      {tree{"~/torch/version.py": "__version__ = '2.4.0+rocm6.1'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.1.40091-a8dbc0c19'\n"}, "2.4.0+rocm6.1", "rocm", "", "", "[]", "", "", "6.1.40091-a8dbc0c19", false},
	"XPU":       {tree{"~/torch/version.py": "__version__ = '2.9.0+xpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\nxpu: Optional[str] = '20250302'\n"}, "2.9.0+xpu", "xpu", "", "", "[]", "", "", "", false},
	"nightly":   {tree{"~/torch/version.py": version("2.10.0.dev20260901+cu130", "13.0")}, "2.10.0.dev20260901+cu130", "cuda", "13.0", "", "[]", "", "", "", true},
	"NVIDIA's":  {tree{"~/torch/version.py": version("2.3.0a0+40ec155e58.nv24.3", "12.4")}, "2.3.0a0+40ec155e58.nv24.3", "cuda", "12.4", "", "[]", "", "", "", false},
	"no text":   {tree{"~/torch-2.9.0.dist-info/METADATA": distribution("torch", "2.9.0")}, "2.9.0", "", "", "wheel", "[]", "", "", "", false},
	"half way":  {tree{"~/torch/version.py": version("2.9.0+cu128", "12.8"), "~/torch-2.6.0.dist-info/METADATA": distribution("torch", "2.6.0")}, "2.9.0+cu128", "cuda", "12.8", "wheel", "[]", "", "2.6.0", "", false},
	"not ELF":   {tree{"~/torch/version.py": version("2.9.0", "12.8"), "~/torch/lib/libtorch_cuda.so": "text, not code"}, "2.9.0", "cuda", "12.8", "", "[]", "/v/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so: neither ELF nor PE: the file begins with 74 65 78 74", "", "", false},
	"cut":       {tree{"~/torch/version.py": version("2.9.0", "12.8"), "~/torch/lib/libtorch_cuda.so": string(fatbintest.ELF(".nv_fatbin", fatbintest.Container("sm_80"), fatbintest.Container("sm_80")[:40]))}, "2.9.0", "cuda", "12.8", "", "[sm_80]", "cut or broken at byte 168", "", "", false},
	"no kernel": {tree{"~/torch/version.py": version("2.9.0", "12.8"), "~/torch/lib/libtorch_cuda.so": string(fatbintest.ELF(".text"))}, "2.9.0", "cuda", "12.8", "", "[]", "no device code in it", "", "", false},
	"garbage":   {tree{"~/torch/version.py": "\x00\xff__version__\xff= 'x'\n= = =\n'\n"}, "", "", "", "", "[]", "", "", "", false},
}

func TestBuilds(t *testing.T) {
	for name, b := range builds {
		w := venv.with(tree{"~/torch/__init__.py": ""}).with(b.files).only(t, "linux").Framework("torch")
		if w == nil || w.Version != b.version || w.Device != b.device || w.CUDA != b.cuda || w.ROCm != b.rocm || w.Source != b.source || w.Recorded != b.recorded || w.Nightly != b.nightly || fmt.Sprint(w.Code) != b.code || w.Unread != b.unread {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func TestRequirementsUnmet(t *testing.T) {
	for name, c := range map[string]struct {
		files tree
		want  string
	}{
		"another version": {tree{"~/nvidia_cudnn_cu12-9.10.2.21.dist-info/METADATA": distribution("nvidia-cudnn-cu12", "9.1.0.70")}, "[{torch {nvidia-cudnn-cu12 [] ==9.10.2.21 } 9.1.0.70}]"},
		"missing":         {tree{"~/triton-3.5.0.dist-info/METADATA": distribution("something", "1")}, "[{torch {triton [] ==3.5.0 } }]"},
		"companion":       {tree{"~/torchvision-0.23.0.dist-info/METADATA": distribution("torchvision", "0.23.0", "numpy", "torch==2.8.0")}, "[{torchvision {torch [] ==2.8.0 } 2.9.0+cu128}]"},
		"fitting":         {tree{"~/torchvision-0.24.0.dist-info/METADATA": distribution("torchvision", "0.24.0", "torch==2.9.0")}, "[]"},
		"other system":    {tree{"~/torchaudio-2.9.0.dist-info/METADATA": distribution("torchaudio", "2.9.0", `torch==1.0; sys_platform == "win32"`)}, "[]"},
		"extra":           {tree{"~/torchaudio-2.9.0.dist-info/METADATA": distribution("torchaudio", "2.9.0", "cuda-toolkit[nvrtc]==12.8.1"), "~/cuda_toolkit-12.8.1.dist-info/METADATA": distribution("cuda-toolkit", "12.8.1", "nvidia-cuda-nvrtc-cu12==12.8.93.*; extra == 'nvrtc'", "nvidia-npp==1; extra == 'npp'")}, "[{cuda-toolkit {nvidia-cuda-nvrtc-cu12 [] ==12.8.93.* } }]"},
	} {
		if got := fmt.Sprint(wheel.with(c.files).only(t, "linux").Unmet()); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestDamage(t *testing.T) {
	record := func(size int) tree {
		return tree{"~/nvidia_cublas_cu12-12.8.4.1.dist-info/RECORD": fmt.Sprintf("nvidia/cublas/lib/libcublas.so.12,sha256=x,%d\nnvidia/cublas/lib/libgone.so.12,sha256=x,7\nnvidia/cublas/include/cublas.h,sha256=x,99\n\"nvidia/cublas/lib/libcublas.so.12\",sha256=x,4\n", size),
			"~/nvidia/cublas/lib/libcublas.so.12": "four"}
	}
	for size, want := range map[int]string{4: "[libgone.so.12 7 -1]", 5: "[libcublas.so.12 5 4 libgone.so.12 7 -1]"} {
		var got []any
		for _, d := range wheel.with(record(size)).only(t, "linux").Package("nvidia-cublas-cu12").Damaged {
			got = append(got, filepath.Base(d.Path), d.Want, d.Have)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%d: %v", size, got)
		}
	}
}

// Import takes PYTHONPATH before the user's site, and that before the interpreter's; a venv has neither of the last two.
func TestCopies(t *testing.T) {
	torch := func(dir, v string) tree {
		return tree{dir + "/torch/__init__.py": "", dir + "/torch/version.py": version(v, "")}
	}
	all := tree{"/usr/bin/python3": "-> python3.11", "/extra/readme": ""}
	for _, more := range []tree{torch("/extra", "1.1"), torch("/home/me/.local/lib/python3.11/site-packages", "1.2"), torch("/usr/local/lib/python3.11/dist-packages", "1.3"), torch("/v/lib/python3.11/site-packages", "1.4"), torch("/src/pytorch", "1.5"),
		{"/v/lib/python3.11/site-packages/easy.pth": "# made by hand\nimport os; os.system('false')\n/src/pytorch\nnowhere\n"}} {
		all = all.with(more)
	}
	all = venv.with(all)
	for _, c := range []struct {
		os, env []string
		root    string
		want    string
	}{
		{nil, []string{"PATH=/usr/bin", "PYTHONPATH=/extra:/nowhere"}, "/usr", "1.1 PYTHONPATH, 1.2 user site, 1.3 site-packages"},
		{nil, []string{"PATH=/usr/bin"}, "/usr", "1.2 user site, 1.3 site-packages"},
		{nil, []string{"PATH=/usr/bin", "PYTHONNOUSERSITE=1"}, "/usr", "1.3 site-packages"},
		{nil, []string{"VIRTUAL_ENV=/v"}, "/v", "1.4 site-packages, 1.5 .pth file"},
		{nil, []string{"VIRTUAL_ENV=/v", "PYTHONPATH=/extra"}, "/v", "1.1 PYTHONPATH, 1.4 site-packages, 1.5 .pth file"},
	} {
		f := all.find(t, "linux", c.env...)
		i := slices.IndexFunc(f.Environments, func(e *Environment) bool { return e.Root == c.root })
		if i < 0 {
			t.Errorf("%v: no environment %s", c.env, c.root)
			continue
		}
		w := f.Environments[i].Framework("torch")
		got := []string{w.Version + " " + w.By}
		for _, other := range w.Copies {
			got = append(got, other.Version+" "+other.By)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%v: %v", c.env, got)
		}
	}
	shared := all.with(tree{"/v/pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = true\nversion_info = 3.11.7.final.0\n"}).only(t, "linux")
	if w := shared.Framework("torch"); w.Version != "1.4" || len(w.Copies) != 3 || w.Copies[1].By != "user site" {
		t.Errorf("a venv with the system's packages: %+v", w)
	}
	if f := all.with(tree{"/here/torch.py": "", "/here/jax/__init__.py": ""}).find(t, "linux"); len(f.Local) != 1 || f.Local[0].Path != "/here/torch.py" {
		t.Errorf("torch.py in the working directory: %+v", f.Local)
	}
}

func TestWhere(t *testing.T) {
	python := func(root string) tree {
		return tree{root + "/bin/python3": "-> python3.12", root + "/bin/python3.12": elf64}
	}
	for name, c := range map[string]struct {
		os    string
		files tree
		env   []string
		want  string // root by
	}{
		"activated":      {"linux", tree{"/e/pyvenv.cfg": ""}, []string{"VIRTUAL_ENV=/e"}, "/e VIRTUAL_ENV"},
		"conda":          {"linux", tree{"/c/conda-meta/history": ""}, []string{"CONDA_PREFIX=/c/"}, "/c CONDA_PREFIX"},
		"beside":         {"linux", tree{"/here/.venv/pyvenv.cfg": "", "/here/env/readme": ""}, nil, "/here/.venv ./.venv"},
		"path":           {"linux", python("/opt/a").with(python("/opt/b")), []string{"PATH=/none:/opt/a/bin:/opt/b/bin"}, "/opt/a PATH; /opt/b PATH, hidden"},
		"linked":         {"linux", python("/opt/a").with(tree{"/bin/python": "-> ../opt/a/bin/python3"}), []string{"PATH=/bin"}, "/opt/a PATH"},
		"venv of a link": {"linux", python("/opt/a").with(tree{"/e/pyvenv.cfg": "", "/e/bin/python": "-> ../../opt/a/bin/python3"}), []string{"PATH=/e/bin"}, "/e PATH"},
		"shim":           {"linux", python("/home/me/.pyenv/versions/3.12.1").with(tree{"/home/me/.pyenv/shims/python3": "#!/bin/sh", "/home/me/.pyenv/version": "3.12.1\n3.9\n"}), []string{"PATH=/home/me/.pyenv/shims"}, "/home/me/.pyenv/versions/3.12.1 PATH+pyenv"},
		"kernel":         {"linux", tree{"/k/pyvenv.cfg": "", "/k/bin/python": elf64, "/home/me/.local/share/jupyter/kernels/ml/kernel.json": `{"argv":["/k/bin/python","-m","ipykernel_launcher"]}`, "/home/me/.local/share/jupyter/kernels/bad/kernel.json": `{"argv":`}, nil, "/k kernel ml"},
		"own kernel":     {"linux", tree{"/e/pyvenv.cfg": "", "/e/bin/python": elf64, "/e/share/jupyter/kernels/python3/kernel.json": `{"argv":["python"]}`}, []string{"VIRTUAL_ENV=/e"}, "/e VIRTUAL_ENV+kernel python3"},
		"uv":             {"linux", python("/home/me/.local/share/uv/python/cpython-3.12.1"), nil, "/home/me/.local/share/uv/python/cpython-3.12.1 uv"},
		"conda's list":   {"linux", tree{"/home/me/.conda/environments.txt": "/data/envs/a\n/gone\n", "/data/envs/a/conda-meta/history": "", "/home/me/miniconda3/conda-meta/history": "", "/home/me/miniconda3/envs/b/conda-meta/history": ""}, nil, "/home/me/miniconda3 conda; /home/me/miniconda3/envs/b conda; /data/envs/a conda"},
		"framework":      {"darwin", tree{"/Library/Frameworks/Python.framework/Versions/3.12/bin/python3": mach64}, nil, "/Library/Frameworks/Python.framework/Versions/3.12 Python framework"},
		"Windows": {"windows", tree{"/home/me/AppData/Local/Programs/Python/Python312/python.exe": pe64(), "/stub/python.exe": "", "/py/Scripts/python.exe": pe64(), "/py/pyvenv.cfg": "home = /py\n"}, []string{`PATH=/stub;"/py/Scripts"`},
			"/py PATH, hidden; /home/me/AppData/Local/Programs/Python/Python312 Python installation"},
		"gone":  {"linux", tree{"/readme": ""}, []string{"VIRTUAL_ENV=/gone", "PATH=/gone/bin"}, ""},
		"loops": {"linux", tree{"/a/python3": "-> ../a/python3", "/e/pyvenv.cfg": "", "/e/bin/python3": "-> python3"}, []string{"PATH=/a:/e/bin", "VIRTUAL_ENV=/e"}, "/e VIRTUAL_ENV"},
	} {
		var got []string
		for _, e := range c.files.find(t, c.os, c.env...).Environments {
			got = append(got, e.Root+" "+strings.Join(e.By, "+"))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %s", name, strings.Join(got, "; "))
		}
	}
}

func TestVersionOfPython(t *testing.T) {
	for name, c := range map[string]struct {
		os    string
		files tree
		want  string // version machine
	}{
		"configured":   {"linux", tree{"/v/pyvenv.cfg": "version_info = 3.9.18.final.0\nhome = /usr/bin"}, "3.9.18 "},
		"conda":        {"linux", tree{"/v/conda-meta/python-3.10.14-h955ad1f_1.json": "{}", "/v/conda-meta/python-dateutil-2.9-x.json": "{}", "/v/bin/python": elf64}, "3.10.14 x86_64"},
		"header":       {"linux", tree{"/v/bin/python3": "-> python3.13", "/v/bin/python3.13": elf64, "/v/include/python3.13/patchlevel.h": "#define PY_MAJOR_VERSION 3\n#define PY_VERSION   \"3.13.0rc2\"\n"}, "3.13.0rc2 x86_64"},
		"name":         {"linux", tree{"/v/bin/python3": "-> python3.8", "/v/bin/python3.8": "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\xb7\x00"}, "3.8 arm64"},
		"folder":       {"linux", tree{"/v/lib/python3.7/site-packages/x": "", "/v/bin/python3": elf64}, "3.7 x86_64"},
		"Windows":      {"windows", tree{"/v/python.exe": pe64(), "/v/python311.dll": "", "/v/python3.dll": ""}, "3.11 x86_64"},
		"macOS":        {"darwin", tree{"/v/bin/python3.12": mach64, "/v/bin/python3": "-> python3.12"}, "3.12 arm64"},
		"universal":    {"darwin", tree{"/v/bin/python3": "\xca\xfe\xba\xbe\x00\x00\x00\x02"}, " universal"},
		"no Python":    {"linux", tree{"/v/pyvenv.cfg": "\x00\xff=\xff\n"}, " "},
		"not a number": {"linux", tree{"/v/pyvenv.cfg": "version = <script>\n"}, " "},
	} {
		e := c.files.only(t, c.os)
		if got := e.Python + " " + e.Machine; got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestOtherSystems(t *testing.T) {
	windows := tree{"/v/pyvenv.cfg": "home = /Python312\nversion = 3.12.1\n", "/Python312/python.exe": pe64(), "/v/Scripts/python.exe": pe64(), "/v/Lib/site-packages/torch/__init__.py": "", "/v/Lib/site-packages/torch/version.py": strings.ReplaceAll(version("2.9.0+cu126", "12.6"), "\n", "\r\n"),
		"/v/Lib/site-packages/torch/lib/torch_cuda.dll": string(fatbintest.PE(".nv_fatbin", fatbintest.Container("sm_61", "sm_86", "compute_86"))), "/v/Lib/site-packages/~orch/__init__.py": ""}
	e := windows.only(t, "windows")
	if w := e.Framework("torch"); e.Python != "3.12.1" || e.Machine != "x86_64" || w == nil || w.CUDA != "12.6" || fmt.Sprint(w.Code) != "[sm_61 sm_86 compute_86]" {
		t.Errorf("%+v, %+v", e, w)
	}
	if len(e.Leftovers) != 1 || e.BaseGone != "" {
		t.Errorf("%+v", e)
	}
	mac := tree{"/v/bin/python3": mach64, "/v/bin/python3.12": mach64, "/v/lib/python3.12/site-packages/torch/__init__.py": "", "/v/lib/python3.12/site-packages/torch/version.py": version("2.9.0", "")}
	if e := mac.only(t, "darwin"); e.Framework("torch").Device != "cpu" || e.Machine != "arm64" {
		t.Errorf("%+v", e)
	}
	gone := venv.with(tree{"/v/pyvenv.cfg": "home = /usr/local/python3.10/bin\nversion = 3.10.1\n"}).only(t, "linux")
	if gone.BaseGone != "/usr/local/python3.10/bin" {
		t.Errorf("%+v", gone)
	}
}

func TestCondaPackages(t *testing.T) {
	e := tree{"/v/conda-meta/pytorch-2.3.0-py3.11_cpu_0.json": "", "/v/conda-meta/python-3.11.9-h955_0_cpython.json": "", "/v/conda-meta/cpuonly-2.0-0.json": "", "/v/conda-meta/zlib-1-2.json": "", "/v/conda-meta/history": "", "/v/bin/python3.11": elf64, "/v/bin/python": "-> python3.11",
		"/v/lib/python3.11/site-packages/torch/__init__.py": "", "/v/lib/python3.11/site-packages/torch/version.py": version("2.3.0", "")}.only(t, "linux")
	if w := e.Framework("torch"); e.Kind != Conda || w.Source != "conda" || w.Device != "cpu" || e.Package("pytorch").Build != "py3.11_cpu_0" || e.Package("cpuonly") == nil || len(e.Packages) != 3 {
		t.Errorf("%+v, %+v", e, w)
	}
}

func TestJAXAndTensorFlow(t *testing.T) {
	info := func(text string) tree {
		return tree{"~/tensorflow/__init__.py": "", "~/tensorflow/python/platform/build_info.py": "import collections\nbuild_info = " + text + "\n", "~/tensorflow-2.10.dist-info/METADATA": distribution("tensorflow", "2.10.1")}
	}
	lib := string(fatbintest.ELF(".nv_fatbin", fatbintest.Container("sm_75", "sm_90", "compute_90")))
	for name, c := range map[string]struct {
		files           tree
		framework, want string
	}{
		"jax alone":    {tree{"~/jaxlib/__init__.py": "", "~/jaxlib/version.py": "__version__ = \"0.9.0\"\n"}, "jax", "0.9.0 cpu  []"},
		"jax plugin":   {tree{"~/jaxlib/__init__.py": "", "~/jaxlib/version.py": "__version__ = '0.9.0'\n", "~/jax_cuda13_plugin-0.9.0.dist-info/METADATA": distribution("jax-cuda13-plugin", "0.9.0"), "~/jax_plugins/xla_cuda13/xla_cuda_plugin.so": lib}, "jax", "0.9.0 cuda 13 [sm_75 sm_90 compute_90]"},
		"jaxlib old":   {tree{"~/jaxlib/__init__.py": "", "~/jaxlib/xla_extension.so": lib, "~/jaxlib-0.4.13.dist-info/METADATA": distribution("jaxlib", "0.4.13+cuda12.cudnn89")}, "jax", "0.4.13+cuda12.cudnn89 cuda 12 [sm_75 sm_90 compute_90]"},
		"jax metal":    {tree{"~/jaxlib/__init__.py": "", "~/jax_metal-0.1.dist-info/METADATA": distribution("jax-metal", "0.1")}, "jax", " metal  []"},
		"tf Windows":   {info(`collections.OrderedDict([('cpu_compiler', 'cl.exe'), ('cuda_compute_capabilities', ['sm_35', 'sm_75', 'compute_80']), ('cuda_version', '64_112'), ('is_cuda_build', True), ('is_rocm_build', False)])`), "tensorflow", "2.10.1 cuda 11.2 [sm_35 sm_75 sm_80 compute_80]"},
		"tf Linux":     {info(`{"cuda_compute_capabilities": ["sm_60", "compute_90"], "cuda_version": "12.5.1", "is_cuda_build": True}`), "tensorflow", "2.10.1 cuda 12.5 [sm_60 sm_90 compute_90]"},
		"tf processor": {info(`collections.OrderedDict([('is_cuda_build', False), ('is_rocm_build', False)])`), "tensorflow", "2.10.1 cpu  []"},
	} {
		w := venv.with(c.files).only(t, "linux").Framework(c.framework)
		if w == nil || fmt.Sprint(w.Version, " ", w.Device, " ", w.CUDA, " ", w.Code) != c.want {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func TestClashes(t *testing.T) {
	old := tree{"/cuda/lib64/libcublas.so.12": "-> libcublas.so.12.1.3.1", "/cuda/lib64/libcublas.so.12.1.3.1": "x", "/cuda/lib64/libcudnn.so.9": "-> libcudnn.so.9.10.2", "/cuda/lib64/libcudnn.so.9.10.2": "x", "/cuda/lib64/libcufft.so.11": "x", "/cuda/lib64/libz.so.1": "x"}
	f := wheel.with(old).find(t, "linux", "VIRTUAL_ENV=/v", "LD_LIBRARY_PATH=/cuda/lib64::/none")
	e := f.Environments[0]
	if len(f.Loader) != 3 || len(f.Variables) != 2 {
		t.Fatalf("%+v, %+v", f.Loader, f.Variables)
	}
	w := e.Framework("torch")
	if c := f.Clashes(e, w); len(c) != 1 || c[0].Library.Name != "libcublas.so.12" || c[0].Package.Version != "12.8.4.1" || !c[0].Older {
		t.Errorf("%+v", c)
	}
	w.OwnFirst, w.Needs = true, []string{"libcublas.so.12"}
	if c := f.Clashes(e, w); len(c) != 0 {
		t.Errorf("PyTorch looks in its own folders first: %+v", c)
	}
	w.Needs = []string{"libcudart.so.12"}
	if c := f.Clashes(e, w); len(c) != 1 {
		t.Errorf("only for what it asks for itself: %+v", c)
	}
}

func TestBounds(t *testing.T) {
	many := tree{}
	for i := range maxEnvironments + 3 {
		many[fmt.Sprintf("/home/me/.pyenv/versions/%03d/bin/python3", i)] = elf64
	}
	if f := many.find(t, "linux"); len(f.Environments) != maxEnvironments || len(f.Notes) != 1 {
		t.Errorf("%d environments, notes %q", len(f.Environments), f.Notes)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := Search{OS: "linux", Root: wheel.plant(t), Getenv: func(name string) string { return map[string]string{"VIRTUAL_ENV": "/v"}[name] }}
	if f := s.Find(ctx); len(f.Environments) != 0 || len(f.Notes) != 1 {
		t.Errorf("%+v", f)
	}
}

// TestHere looks at this machine, whatever is on it: what is found is there, and nothing is said of files that are not.
func TestHere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, e := range Here().Find(ctx).Environments {
		if st, err := os.Stat(e.Root); err != nil || !st.IsDir() {
			t.Errorf("%+v: %v", e, err)
		}
		for _, w := range e.Frameworks {
			if _, err := os.Stat(w.Path); err != nil || w.Version == "" {
				t.Errorf("%+v: %v", w, err)
			}
		}
		t.Log(e.Root, e.Kind, e.By, e.Python, len(e.Packages), e.Unmet())
	}
}

// BenchmarkFind searches a machine with twelve environments, each with PyTorch and twelve of NVIDIA's packages.
func BenchmarkFind(b *testing.B) {
	all := tree{}
	fat := string(fatbintest.ELF(".nv_fatbin", slices.Repeat([][]byte{fatbintest.Container("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")}, 500)...))
	record := strings.Repeat("torch/include/ATen/ops/add_native.h,sha256=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,1234\n", 15_000)
	for i := range 12 {
		root := fmt.Sprintf("/home/me/.pyenv/versions/3.11.%d", i)
		site := root + "/lib/python3.11/site-packages"
		all = all.with(tree{root + "/bin/python3.11": elf64, root + "/bin/python3": "-> python3.11", site + "/torch/__init__.py": "", site + "/torch/version.py": version("2.9.0+cu128", "12.8"), site + "/torch/lib/libtorch_cuda.so": fat,
			site + "/torch-2.9.0.dist-info/METADATA": distribution("torch", "2.9.0"), site + "/torch-2.9.0.dist-info/RECORD": record})
		for n := range 300 {
			all[fmt.Sprintf("%s/package%d/__init__.py", site, n)] = ""
		}
	}
	s := Search{OS: "linux", Root: all.plant(b), Home: "/home/me", Dir: "/here", Getenv: func(string) string { return "" }}
	for b.Loop() {
		if f := s.Find(b.Context()); len(f.Environments) != 12 {
			b.Fatal(len(f.Environments))
		}
	}
}

// TestKernelCommands: the interpreter of a kernel is found behind launchers too, and a kernel of another language has none.
func TestKernelCommands(t *testing.T) {
	for want, argv := range map[string][]string{
		"/v/bin/python3.12":       {"/v/bin/python3.12", "-m", "ipykernel_launcher", "-f", "{connection_file}"},
		"/w/bin/python":           {"/usr/bin/env", "A=1", "/w/bin/python", "-m", "ipykernel"},
		"python":                  {"bash", "-c", "x", "python"},
		`C:\\envs\\a\\python.exe`: {`C:\\envs\\a\\python.exe`, "-m", "ipykernel_launcher"},
		"python3":                 {"/opt/conda/bin/conda", "run", "-n", "a", "python3", "-m", "ipykernel"},
	} {
		if got := started(argv); got != want {
			t.Errorf("%q: %q", argv, got)
		}
	}
	for _, argv := range [][]string{nil, {""}, {"/usr/bin/julia", "-i"}, {"/opt/conda/bin/conda", "run"}, {"R", "--slave", "-e", "IRkernel::main()"}, {"/usr/bin/pythonium"}} {
		if got := started(argv); got != "" {
			t.Errorf("%q: %q", argv, got)
		}
	}
}

// TestPointedAt: the environment of a process that is looked at comes first, and counts as one in use.
func TestPointedAt(t *testing.T) {
	files := tree{"/w/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.7\n", "/w/bin/python": elf64, "/usr/bin/python3": elf64,
		"/w/lib/python3.11/site-packages/torch/__init__.py": "", "/w/lib/python3.11/site-packages/torch/version.py": "__version__ = '2.9.0+cpu'\n"}
	s := &Search{OS: "linux", Root: files.plant(t), Getenv: func(name string) string { return map[string]string{"PATH": "/usr/bin"}[name] }, Interpreter: "/w/bin/python"}
	f := s.Find(context.Background())
	if len(f.Environments) < 2 || f.Environments[0].Root != "/w" || !f.Environments[0].Active() || f.Environments[0].Framework("torch") == nil {
		t.Errorf("%+v", f.Environments)
	}
}

// TestHostileFiles: what no installer writes is passed over, in bounded time and memory, and what is beside it is found.
func TestHostileFiles(t *testing.T) {
	site := "/v/lib/python3.11/site-packages"
	files := tree{
		"/v/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.7\n", "/v/bin/python": elf64,
		site + "/torch/__init__.py": "", site + "/torch/version.py": "\xef\xbb\xbf# \xff\xfe\n__version__ = '2.9.0+cpu'\ncuda = None\n",
		site + "/torch-2.9.0.dist-info/METADATA":    "Name: torch\nVersion: 2.9.0\n" + strings.Repeat("Requires-Dist: nvidia-x>=1\n", 100_000),
		site + "/torch-2.9.0.dist-info/RECORD":      strings.Repeat("x", 3<<20) + ",sha256=,9\n",
		site + "/nvidia_loop-1.dist-info":           "-> nvidia_loop-1.dist-info",
		site + "/nvidia_there-1.dist-info":          "-> nvidia_back-1.dist-info",
		site + "/nvidia_back-1.dist-info":           "-> nvidia_there-1.dist-info",
		site + "/nvidia_utf16-1.dist-info/METADATA": "\xff\xfeN\x00a\x00m\x00e\x00:\x00 \x00x\x00",
		site + "/nvidia_empty-1.dist-info/METADATA": "",
		site + "/a.pth":                             "../../../../..\n" + site + "\n\x00\n/dev/zero\nimport os; os.system('x')\n",
		site + "/up":                                "-> ..",
		"/u/pyvenv.cfg":                             "\xff\xfeh\x00o\x00m\x00e\x00", "/u/bin/python": elf64,
		"/u/share/jupyter/kernels/deep/kernel.json": strings.Repeat("[", 60_000),
		"/u/share/jupyter/kernels/odd/kernel.json":  `{"argv": [null, 7]}`,
		"/u/share/jupyter/kernels/none/kernel.json": `{"argv": []}`,
		"/u/share/jupyter/kernels/loop":             "-> loop",
		"/c/conda-meta/history":                     "", "/c/conda-meta/-.json": "", "/c/conda-meta/a-b.json": "", "/c/conda-meta/pytorch-2.5.1-py3.12_cuda12.4.json": "[[[[",
	}
	env := map[string]string{"VIRTUAL_ENV": "/v", "CONDA_PREFIX": "/c", "PATH": "/u/bin:/v/bin:relative:\x00:" + strings.Repeat("/x", 3000), "JUPYTER_PATH": "/u/share/jupyter"}
	s := &Search{OS: "linux", Root: files.plant(t), Home: "/nobody", Dir: "/v", Getenv: func(name string) string { return env[name] }}
	f := s.Find(context.Background())
	if len(f.Environments) != 3 {
		t.Fatalf("%d environments", len(f.Environments))
	}
	e := f.Environments[0]
	if w := e.Framework("torch"); w == nil || w.Version != "2.9.0+cpu" || w.Device != "cpu" || len(e.Packages) != 1 {
		t.Errorf("%+v, %d packages", w, len(e.Packages))
	}
	raw, err := json.Marshal(f)
	if err != nil || len(raw) > 1<<20 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

// FuzzFiles: files of an environment, whatever they have, are read without a crash.
func FuzzFiles(f *testing.F) {
	f.Add("home = /usr/bin\nversion = 3.11.7\n", "__version__ = '2.9.0+cu128'\ncuda: Optional[str] = '12.8'\n", `{"argv": ["/v/bin/python", "-m", "ipykernel"]}`, "torch/lib/libtorch_cuda.so,sha256=x,9\n", "nvidia_x.pth\n")
	f.Fuzz(func(t *testing.T, config, version, kernel, record, pth string) {
		for _, text := range []*string{&config, &version, &kernel, &record, &pth} {
			*text = strings.TrimPrefix(*text, "-> ")
		}
		const site = "/v/lib/python3.11/site-packages"
		root := tree{"/v/pyvenv.cfg": config, "/v/bin/python": elf64, site + "/torch/__init__.py": "", site + "/torch/version.py": version, "/v/share/jupyter/kernels/k/kernel.json": kernel,
			site + "/torch-2.dist-info/METADATA": "Name: torch\nVersion: 2\n", site + "/torch-2.dist-info/RECORD": record, site + "/a.pth": pth}.plant(t)
		s := &Search{OS: "linux", Root: root, Getenv: func(name string) string { return map[string]string{"VIRTUAL_ENV": "/v"}[name] }}
		found := s.Find(context.Background())
		if len(found.Environments) == 0 || found.Environments[0].Root != "/v" {
			t.Fatalf("%+v", found)
		}
		for _, e := range found.Environments {
			e.Unmet()
			for i := range e.Frameworks {
				e.Frameworks[i].Serves([2]int{9, 0})
				found.Clashes(e, &e.Frameworks[i])
			}
		}
	})
}
