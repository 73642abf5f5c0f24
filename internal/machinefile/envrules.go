package machinefile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/drivers"
	"github.com/warpline-ml/warpline/internal/finding"
)

// envRules are the rules of environments.
var envRules = []struct {
	rule  string
	judge func(*Environment) *finding.Finding
}{
	{"D34", (*Environment).processorOnly},
	{"D07", (*Environment).oldDriver},
	{"D09", (*Environment).noCode},
	{"D18", (*Environment).hidden},
	{"D02", (*Environment).noDriver},
	{"D12", (*Environment).unavailable},
	{"D40", (*Environment).mixed},
	{"D62", (*Environment).slowVariables},
}

func (e *Environment) report(r *finding.Report) {
	for _, rule := range envRules {
		f := rule.judge(e)
		if f == nil {
			continue
		}
		f.Rule = rule.rule
		r.Findings = append(r.Findings, *f)
	}
	if len(r.Findings) > 0 {
		return
	}
	if e.Available == "True" {
		r.Checked = append(r.Checked, "CUDA is available"+e.fits())
	}
	if e.Available == "False" && e.mac() {
		r.Checked = append(r.Checked, "a Mac has no CUDA: device \"mps\" is its GPU")
	}
}

// fits is what else is known of an environment in which CUDA is available.
func (e *Environment) fits() string {
	unknown := func(gpu string) bool { return computeOf(gpu) == 0 }
	if e.Torch == "" || version(e.Built)[0] == 0 || len(e.GPUs) == 0 || slices.ContainsFunc(e.GPUs, unknown) {
		return ""
	}
	return ", and the build has code for the cards"
}

func (e *Environment) mac() bool {
	return strings.Contains(e.OS+e.Platform, "darwin") || strings.Contains(e.OS+e.Platform, "mac") || strings.Contains(e.OS, "Mac")
}

// version are the numbers that a version begins with.
func version(s string) (out [3]int) {
	for i, word := range strings.SplitN(leadingVersion.FindString(s), ".", 3) {
		out[i], _ = strconv.Atoi(word)
	}
	return out
}

var leadingVersion = regexp.MustCompile(`^\d+(?:\.\d+){0,2}`)

func older(a, b [3]int) bool { return slices.Compare(a[:], b[:]) < 0 }

func (e *Environment) finding(title, fix, gain, disproved string, confidence finding.Confidence, evidence ...finding.Evidence) *finding.Finding {
	return &finding.Finding{Title: title, Fix: fix, Gain: finding.Gain{Text: gain}, DisprovedBy: disproved, Confidence: confidence, Evidence: evidence}
}

func (e *Environment) processorOnly() *finding.Finding {
	if e.Built != "None" || e.ROCm != "" || e.mac() || e.Torch == "" || strings.HasSuffix(e.Torch, "+xpu") {
		return nil
	}
	title, sure := "this PyTorch is built for the CPU only", finding.High
	if len(e.GPUs) == 0 && e.Driver == "" { // as it should be, where there is no card
		title, sure = title+"; the list names no NVIDIA card and no driver", finding.Low
	}
	return e.finding(title, "install a build with CUDA: pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu126 (the card and the driver say which)", "the card",
		"the machine has no NVIDIA card", sure, says("torch", e.Torch, "PyTorch %s, CUDA used to build it: %s", e.Torch, e.Built))
}

func (e *Environment) oldDriver() *finding.Finding {
	system := "linux"
	if strings.Contains(e.OS+e.Platform, "indows") {
		system = "windows"
	}
	least, driver := drivers.Min(leadingVersion.FindString(e.Built), system), leadingVersion.FindString(e.Driver)
	if least == "" || driver == "" || drivers.Compare(driver, least) >= 0 || e.Available == "True" {
		return nil
	}
	return e.finding("the driver is too old for this PyTorch", "install a driver of at least "+least+", or a PyTorch built with an older CUDA", "CUDA is available", "the driver was updated since",
		finding.High, says("driver", e.Driver, "driver %s; CUDA %s wants %s", e.Driver, e.Built, least))
}

// models are compute capabilities of cards, by their names. The first that matches counts.
var models = []struct {
	re      *regexp.Regexp
	compute int // 10 × major + minor
}{
	{regexp.MustCompile(`RTX 50\d\d|RTX PRO \d+ Blackwell`), 120},
	{regexp.MustCompile(`GB[23]00|\bB[123]00`), 100},
	{regexp.MustCompile(`H[128]00|GH200`), 90},
	{regexp.MustCompile(`RTX 40\d\d|\bL40?S?\b|RTX \d+ Ada|RTX \d+ .*Ada`), 89},
	{regexp.MustCompile(`RTX 30\d\d|\bA(?:2|10|10G|16|40)\b|RTX A\d{4}`), 86},
	{regexp.MustCompile(`A100|A30|A800`), 80},
	{regexp.MustCompile(`\bT4\b|RTX 20\d\d|GTX 16\d\d|Quadro RTX|TITAN RTX|T\d{3,4}\b`), 75},
	{regexp.MustCompile(`V100|TITAN V`), 70},
	{regexp.MustCompile(`P100`), 60},
	{regexp.MustCompile(`GTX 10\d\d|\bP40?\b|P6000|TITAN Xp|TITAN X \(Pascal\)|GT 10\d\d|MX[123]\d0`), 61},
	{regexp.MustCompile(`GTX 9\d\d|\bM\d0\b|GTX TITAN X`), 52},
	{regexp.MustCompile(`K80|K40|K20`), 37},
}

func computeOf(name string) int {
	for _, m := range models {
		if m.re.MatchString(name) {
			return m.compute
		}
	}
	return 0
}

// architectures are the compute capabilities that PyTorch's builds of a CUDA have code for: from the first to the last.
func architectures(torch, built [3]int) (least, most int) {
	switch {
	case built[0] >= 13:
		least = 75
	case built[0] == 12 && built[1] >= 8:
		least = 70
		if older(torch, [3]int{2, 8, 0}) {
			least = 75
		}
	case torch[0] >= 2 || built[0] >= 11:
		least = 50
		if older(torch, [3]int{1, 13, 0}) {
			least = 37
		}
	default:
		least = 35
	}
	switch {
	case built[0] >= 13 || built[0] == 12 && built[1] >= 8:
		most = 120
	case built[0] == 12 || built[0] == 11 && built[1] >= 8:
		most = 90
	case built[0] == 11:
		most = 89 // code for 8.0 or 8.6 runs there
	case built[0] == 10:
		most = 75
	default:
		most = 70
	}
	return least, most
}

func (e *Environment) noCode() *finding.Finding {
	built := version(e.Built)
	if built[0] == 0 || e.Torch == "" {
		return nil
	}
	least, most := architectures(version(e.Torch), built)
	for _, gpu := range e.GPUs {
		c := computeOf(gpu)
		if c == 0 || c >= least && c <= most {
			continue
		}
		fix := "install a PyTorch built with CUDA 12.8 or later (2.7 and later: cu128)"
		if c < least {
			fix = "install a PyTorch whose build still has code for the card (2.9 with cu126 has from 5.0 on)"
		}
		return e.finding("this PyTorch has no code for the card: kernels fail with \"no kernel image is available\"", fix, "kernels run", "torch.cuda.get_arch_list() names the card's architecture",
			finding.High, says("compute_capability", float64(c)/10, "%s is of compute capability %d.%d; a build of PyTorch %s with CUDA %s has %d.%d to %d.%d", gpu, c/10, c%10, e.Torch, e.Built, least/10, least%10, most/10, most%10))
	}
	return nil
}

func (e *Environment) hidden() *finding.Finding {
	v, ok := e.Variables["CUDA_VISIBLE_DEVICES"]
	if !ok || e.Available == "True" || strings.Trim(v, " ") != "" && v != "-1" && v != "NoDevFiles" {
		return nil
	}
	return e.finding("CUDA_VISIBLE_DEVICES hides every card", "unset CUDA_VISIBLE_DEVICES", "the cards", "the variable is set otherwise where the program runs", finding.High, says("CUDA_VISIBLE_DEVICES", v, "CUDA_VISIBLE_DEVICES=%q", v))
}

func (e *Environment) noDriver() *finding.Finding {
	if e.Available != "False" || version(e.Built)[0] == 0 || e.Driver != "" || e.hidden() != nil {
		return nil
	}
	fix := "nvidia-smi says whether the driver runs; in a container: start it with --gpus all; warpline doctor says which layer is broken"
	if strings.Contains(strings.ToLower(e.Platform), "microsoft") || strings.Contains(e.Platform, "WSL") {
		fix = "in WSL the driver is Windows': update it there, then wsl --update, and install no Linux driver inside"
	}
	return e.finding("no driver was found beside a PyTorch that is built for CUDA", fix, "the card", "nvidia-smi lists the card", finding.Medium,
		says("driver", "", "PyTorch %s with CUDA %s, CUDA available: %s, no driver version", e.Torch, e.Built, e.Available))
}

func (e *Environment) unavailable() *finding.Finding {
	if e.Available != "False" || version(e.Built)[0] == 0 || e.Driver == "" || e.oldDriver() != nil || e.noCode() != nil || e.hidden() != nil {
		return nil
	}
	return e.finding("driver and build fit, and CUDA is not available: the driver's memory module (nvidia_uvm), its fabric, or a variable", "sudo nvidia-modprobe -c 0 -u, and run warpline doctor, which asks each layer", "the card",
		"torch.cuda.is_available() is True in a new shell", finding.Low, says("driver", e.Driver, "driver %s, CUDA %s, CUDA available: %s", e.Driver, e.Built, e.Available))
}

// of is the version of a package, by who installed it.
func (e *Environment) of(name string) (out []string) {
	for _, p := range e.Packages {
		if w := strings.Fields(p); w[1] == name {
			out = append(out, w[0]+" "+w[2])
		}
	}
	return out
}

// companion is the version of torchvision that belongs to one of PyTorch: 2.m has 0.(15+m), 1.m has 0.(m+1).
func companion(torch [3]int) (minor int, ok bool) {
	switch {
	case torch[0] == 2:
		return 15 + torch[1], true
	case torch[0] == 1 && torch[1] >= 4:
		return torch[1] + 1, true
	}
	return 0, false
}

var cudaPackage = regexp.MustCompile(`^nvidia-(cublas|cudnn|cuda-runtime|nccl)-cu(\d+)$`)

func (e *Environment) mixed() *finding.Finding {
	var evidence []finding.Evidence
	torches := e.of("torch")
	if slices.ContainsFunc(torches, func(s string) bool { return version(strings.Fields(s)[1]) != version(strings.Fields(torches[0])[1]) }) {
		evidence = append(evidence, says("torch", len(torches), "PyTorch is there more than once: %s", strings.Join(torches, ", ")))
	}
	for _, vision := range e.of("torchvision") {
		v := version(strings.Fields(vision)[1])
		if want, ok := companion(version(e.Torch)); ok && v[0] == 0 && v[1] != want {
			evidence = append(evidence, says("torchvision", vision, "torchvision %s belongs to another PyTorch; %s wants 0.%d", vision, e.Torch, want))
		}
	}
	for _, p := range e.Packages {
		w := strings.Fields(p)
		if m := cudaPackage.FindStringSubmatch(w[1]); m != nil && e.Built != "" && m[2] != strconv.Itoa(version(e.Built)[0]) && version(e.Built)[0] > 0 {
			evidence = append(evidence, says(w[1], w[2], "%s %s is of CUDA %s, PyTorch of CUDA %s", w[1], w[2], m[2], e.Built))
		}
	}
	if evidence == nil {
		return nil
	}
	return e.finding("libraries of different versions are mixed", "make a new environment, and install torch, torchvision and torchaudio in one command", "imports that do not fail, and kernels that are found", "python -c 'import torch, torchvision' succeeds and kernels run", finding.Medium, evidence...)
}

// slow are variables that cost speed, by the value that does.
var slow = map[string]string{"CUDA_LAUNCH_BLOCKING": "1", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_IB_DISABLE": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "TORCH_SHOW_CPP_STACKTRACES": "1", "NCCL_DEBUG": "TRACE", "CUDA_MODULE_LOADING": "EAGER"}

func (e *Environment) slowVariables() *finding.Finding {
	var set []string
	for name, value := range slow {
		if e.Variables[name] == value {
			set = append(set, name)
		}
	}
	if set == nil {
		return nil
	}
	slices.Sort(set)
	return e.finding("variables slow programs down: "+strings.Join(set, ", "), "unset "+strings.Join(set, " "), "the speed that they cost", "they are set on purpose, to look for an error", finding.Medium, says("variables", len(set), "set: %s", strings.Join(set, ", ")))
}
