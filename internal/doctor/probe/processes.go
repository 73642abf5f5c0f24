package probe

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/doctor"
)

// mostHolders is more than anybody reads.
const mostHolders = 32

// processes looks for those that serve the driver or have its nodes open, and at the one that was pointed at.
func (p *prober) processes() {
	if p.facts.OS != "linux" {
		return
	}
	for _, name := range p.list("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		comm := p.read("/proc/" + name + "/comm")
		p.daemon(comm)
		if comm == "nvidia-cuda-mps" && strings.Contains(p.read("/proc/"+name+"/cmdline"), "mps-server") {
			p.facts.MPS.Server = true
		}
		if p.facts.Kernel.Driver == "" || len(p.facts.Holders) >= mostHolders {
			continue
		}
		if nodes := p.opened(pid); len(nodes) > 0 {
			lib := p.mappedLibrary(pid)
			p.facts.Holders = append(p.facts.Holders, doctor.Holder{PID: pid, UID: owner(p.path("/proc/" + name)), Command: comm, Nodes: len(nodes), Library: lib})
		}
	}
	if p.PID != 0 {
		p.facts.Process = p.process(p.PID)
	}
}

// opened are the driver's nodes that a process has open.
func (p *prober) opened(pid int) (out []string) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	for _, fd := range p.list(dir) {
		if to := p.link(dir + "/" + fd); strings.HasPrefix(to, "/dev/nvidia") {
			out = append(out, to)
		}
	}
	return out
}

var libcudaForm = regexp.MustCompile(`/libcuda\.so\.(\d{3}\.[0-9.]+)`)

// mappedLibrary is the version of libcuda that a process has mapped.
func (p *prober) mappedLibrary(pid int) string {
	if m := libcudaForm.FindStringSubmatch(p.read("/proc/" + strconv.Itoa(pid) + "/maps")); m != nil {
		return strings.TrimRight(m[1], ".")
	}
	return ""
}

// mapped are files with a prefix that any process has mapped or open.
func (p *prober) mapped(prefix string) map[string]bool {
	out := map[string]bool{}
	for _, name := range p.list("/proc") {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		for line := range strings.Lines(p.read("/proc/" + name + "/maps")) {
			if i := strings.Index(line, prefix); i >= 0 {
				out[strings.TrimSpace(line[i:])] = true
			}
		}
	}
	return out
}

// process looks at one that lives.
func (p *prober) process(pid int) *doctor.Process {
	dir := "/proc/" + strconv.Itoa(pid)
	out := &doctor.Process{PID: pid, UID: owner(p.path(dir))}
	status := colons(p.read(dir + "/status"))
	if len(status) == 0 {
		out.Errno = "ENOENT"
		return out
	}
	out.Command = p.read(dir + "/comm")
	out.State, _, _ = strings.Cut(status["State"], " ")
	out.Wait = strings.Trim(p.read(dir+"/wchan"), "0")
	out.Threads, _ = strconv.Atoi(status["Threads"])
	out.Resident = kilobytes(status["VmRSS"])
	out.Affinity = status["Cpus_allowed_list"]
	out.Allowed = doctor.CPUs(out.Affinity)
	for _, task := range p.list(dir + "/task") {
		if state := colons(p.read(dir + "/task/" + task + "/status"))["State"]; strings.HasPrefix(state, "D") {
			out.Stuck++
		}
	}
	out.Nodes, out.Files = p.opened(pid), len(p.list(dir+"/fd"))
	p.interpreter = p.interpreterOf(dir)
	out.Libraries, out.Deleted = p.mappedLibraries(dir)
	out.Limits = limitsOf(p.read(dir + "/limits"))
	group := p.read(dir + "/cgroup")
	out.Same = group == p.read("/proc/self/cgroup")
	out.Container = containerOf(group) != ""
	out.Env = p.environment(dir)
	if out.Env == nil {
		out.Errno = "EACCES"
		p.note("process %d: its environment, open files and mapped libraries may not be read by this user: run the same with sudo, or as the user that it belongs to", pid)
	}
	return out
}

// interpreterOf is the Python that a process was started as, by its path; "" of another program, or one without a path.
func (p *prober) interpreterOf(dir string) string {
	started, _, _ := strings.Cut(p.read(dir+"/cmdline"), "\x00")
	if strings.HasPrefix(path.Base(started), "python") && path.IsAbs(started) {
		return started
	}
	return ""
}

// environment is what the process was started with, of the variables of the list; nil if that may not be read.
func (p *prober) environment(dir string) map[string]string {
	text := p.read(dir + "/environ")
	if text == "" {
		return nil
	}
	out := map[string]string{}
	for line := range strings.SplitSeq(text, "\x00") {
		name, v, _ := strings.Cut(line, "=")
		if _, listed := doctor.Variables[name]; listed {
			out[name] = v
		}
	}
	return out
}

// mappedLibraries are those of NVIDIA's that a process has mapped, and how many of their files are gone.
func (p *prober) mappedLibraries(dir string) (out []doctor.Library, deleted int) {
	seen := map[string]bool{}
	for line := range strings.Lines(p.read(dir + "/maps")) {
		i := strings.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		file, gone := strings.CutSuffix(strings.TrimSpace(line[i:]), " (deleted)")
		name := path.Base(file)
		if seen[file] || !strings.HasPrefix(name, "libcuda") && !strings.HasPrefix(name, "libnvidia") && !strings.HasPrefix(name, "libcu") && !strings.HasPrefix(name, "libnccl") {
			continue
		}
		seen[file] = true
		if gone {
			deleted++
		}
		lib := doctor.Library{Name: name, Path: file}
		if m := suffixForm.FindStringSubmatch(name); m != nil {
			lib.Version = m[1]
		}
		out = append(out, lib)
	}
	return out, deleted
}

// limitNames are the words of /proc/PID/limits, by ulimit's.
var limitNames = map[string]string{"Max open files": "nofile", "Max locked memory": "memlock", "Max address space": "as", "Max processes": "nproc", "Max stack size": "stack"}

func limitsOf(text string) map[string]int64 {
	if text == "" {
		return nil
	}
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		for words, name := range limitNames {
			rest, ok := strings.CutPrefix(line, words)
			f := strings.Fields(rest)
			if !ok || len(f) == 0 {
				continue
			}
			n, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				n = -1
			}
			out[name] = n
		}
	}
	return out
}

// containerOf is the container that a process' control groups name, in short, or "".
func containerOf(cgroups string) string {
	for _, kind := range []string{"kubepods", "docker", "libpod", "lxc"} {
		if strings.Contains(cgroups, kind) {
			return "a container (" + kind + ")"
		}
	}
	return ""
}
