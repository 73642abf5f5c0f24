package machinefile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

// Environment is what a list of versions says, as torch.utils.collect_env and its like print it. What it does not say is empty.
type Environment struct {
	Torch     string            `json:"torch,omitempty"`
	Built     string            `json:"cuda_built,omitempty"` // the CUDA that PyTorch was built with; "None" of a build without
	ROCm      string            `json:"rocm_built,omitempty"`
	Available string            `json:"cuda_available,omitempty"` // "True" or "False"
	Driver    string            `json:"driver,omitempty"`
	OS        string            `json:"os,omitempty"`
	Platform  string            `json:"platform,omitempty"`
	GPUs      []string          `json:"gpus,omitempty"`
	Packages  []string          `json:"packages,omitempty"` // "pip torch 2.9.0"
	Variables map[string]string `json:"variables,omitempty"`
	lines     map[string]int    // of fields
}

// fields are the names that lists have for what is read of them, in lower case and without what decorates them: those of
// PyTorch (of all versions), vLLM, MMEngine, detectron2, and transformers and accelerate.
var fields = map[string]func(*Environment) *string{
	"pytorch version": (*Environment).torch, "pytorch": (*Environment).torch, "pytorch version (gpu?)": (*Environment).torch,
	"cuda used to build pytorch": (*Environment).built,
	"rocm used to build pytorch": (*Environment).rocm,
	"is cuda available":          (*Environment).available, "cuda available": (*Environment).available, "gpu available": (*Environment).available,
	"nvidia driver version": (*Environment).driver, "driver version": (*Environment).driver,
	"os": (*Environment).os, "sys.platform": (*Environment).os, "platform": (*Environment).platform, "python platform": (*Environment).platform,
}

func (e *Environment) torch() *string     { return &e.Torch }
func (e *Environment) built() *string     { return &e.Built }
func (e *Environment) rocm() *string      { return &e.ROCm }
func (e *Environment) available() *string { return &e.Available }
func (e *Environment) driver() *string    { return &e.Driver }
func (e *Environment) os() *string        { return &e.OS }
func (e *Environment) platform() *string  { return &e.Platform }

var (
	envRow     = regexp.MustCompile("^[-*` \t]*([A-Za-z][\\w .()?]*?)`?\\s*(?::\\s*|\\s{2,})(.*)$")
	gpuLine    = regexp.MustCompile(`^\s*(?:GPU models and configuration\s*:\s*)?(?:- GPU type: |GPU [\d, ]+(?::|\s{2,})\s*)(.+?)(?: \(arch=[\d.]+\))?$`)
	packageRow = regexp.MustCompile(`^\s*\[(pip3?|conda)\]\s+([\w.-]+)(?:==|\s+)(\S+)`)
	variable   = regexp.MustCompile(`^((?:CUDA|NCCL|NVIDIA|TORCH|PYTORCH|LD_LIBRARY|CUBLAS)_\w+)=(.*)$`)
	gpuFlag    = regexp.MustCompile(`^(\S+) \((True|False)\)$`)
)

// envHead are fields of which a list has at least two, on lines of their own.
var envHead = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^\s*(?:- )?PyTorch(?: version)?(?: \(GPU\?\))?\s*(?::|\s{2,})\s*\S`),
	regexp.MustCompile(`(?m)^\s*CUDA used to build PyTorch\s*:`),
	regexp.MustCompile(`(?m)^\s*(?:Is )?(?:CUDA|GPU) available\s*(?::|\s{2,})`),
	regexp.MustCompile(`(?m)^\s*(?:sys\.platform\s*(?::|\s{2,})|- Platform: )`),
	regexp.MustCompile("(?m)^\\s*- (?:`?transformers`?|`?Accelerate`?) version: "),
}

func isEnv(head string) bool {
	n := 0
	for _, re := range envHead {
		if re.MatchString(head) {
			n++
		}
	}
	return n >= 2
}

// Bounds of a list.
const (
	mostGPUs     = 1024
	mostPackages = 4096
)

func diagnoseEnv(r *finding.Report, text *reader) error {
	e := &Environment{Variables: map[string]string{}, lines: map[string]int{}}
	if err := text.lines(e.read); err != nil {
		return err
	}
	e.settle()
	r.Figures["environment"] = e
	r.Detail = e
	e.report(r)
	return nil
}

func (e *Environment) read(n int, line string) {
	line = strings.TrimSpace(line)
	if m := gpuLine.FindStringSubmatch(line); m != nil && len(e.GPUs) < mostGPUs {
		e.GPUs = append(e.GPUs, strings.TrimSpace(m[1]))
		return
	}
	if m := packageRow.FindStringSubmatch(line); m != nil && len(e.Packages) < mostPackages {
		e.Packages = append(e.Packages, strings.TrimSuffix(m[1], "3")+" "+m[2]+" "+m[3])
		return
	}
	if m := variable.FindStringSubmatch(line); m != nil && len(e.Variables) < mostPackages {
		e.Variables[m[1]] = m[2]
		return
	}
	m := envRow.FindStringSubmatch(line)
	if m == nil {
		return
	}
	name := strings.ToLower(m[1])
	if field := fields[name]; field != nil && *field(e) == "" {
		*field(e) = strings.TrimSpace(m[2])
		e.lines[name] = n
	}
}

// settle brings the values of different lists into one form.
func (e *Environment) settle() {
	if m := gpuFlag.FindStringSubmatch(e.Torch); m != nil { // transformers: "2.1.0+cu121 (True)"
		e.Torch = m[1]
		if e.Available == "" {
			e.Available = m[2]
		}
	}
	e.Torch, _, _ = strings.Cut(e.Torch, " ") // detectron2: "1.10.0+cu113 @/usr/lib/…"
	e.Available, _, _ = strings.Cut(e.Available, " ")
	switch strings.TrimSuffix(e.Available, ":") { // detectron2: "No: torch.cuda.is_available() == False"
	case "Yes":
		e.Available = "True"
	case "No":
		e.Available = "False"
	}
	for _, p := range []*string{&e.Driver, &e.ROCm} {
		if unknown(*p) {
			*p = ""
		}
	}
	e.GPUs = slices.DeleteFunc(e.GPUs, unknown)
	switch e.Built {
	case "N/A": // of a build for ROCm, or where PyTorch could not be imported
		e.Built = ""
	case "Could not collect": // collect_env's word for None, which torch.version.cuda is of a build for the CPU
		e.Built = "None"
	}
	if _, local, ok := strings.Cut(e.Torch, "+"); ok && e.Built == "" {
		e.Built = builtOf(local)
	}
}

// unknown is what lists have in place of a value.
func unknown(s string) bool {
	return s == "N/A" || s == "No CUDA" || strings.HasPrefix(s, "Could not collect") || s == "None"
}

var localCUDA = regexp.MustCompile(`^cu(\d\d)(\d)$|^cu(9)(\d)$`)

// builtOf is what a wheel's local version says: "cu121" is 12.1.
func builtOf(local string) string {
	if local == "cpu" {
		return "None"
	}
	if m := localCUDA.FindStringSubmatch(local); m != nil {
		return m[1] + m[3] + "." + m[2] + m[4]
	}
	return ""
}
