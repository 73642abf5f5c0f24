package probe

import (
	"encoding/json"
	"regexp"
	"strings"
)

var cdiForm = regexp.MustCompile(`libcuda\.so\.(\d{3}\.\d{2,3}(?:\.\d{2})?)`)

// services looks at programs and settings around the driver: those of NVSwitches, of MPS, of containers.
func (p *prober) services() {
	if p.facts.OS != "linux" {
		return
	}
	p.facts.Fabric.Tool = p.tool("nv-fabricmanager")
	if p.there("/dev/nvidia-caps-imex-channels") {
		p.facts.Fabric.Channels = new(len(p.list("/dev/nvidia-caps-imex-channels")))
	}
	p.mps()
	p.containers()
}

func (p *prober) mps() {
	dir := p.facts.Env["CUDA_MPS_PIPE_DIRECTORY"]
	if dir == "" {
		dir = "/tmp/nvidia-mps"
	}
	if p.there(dir + "/control") {
		p.facts.MPS.Pipe, p.facts.MPS.UID = true, owner(p.path(dir+"/control"))
	}
}

func (p *prober) containers() {
	c := &p.facts.Container
	text := p.read("/etc/docker/daemon.json")
	c.Docker = text != "" || p.there("/var/run/docker.sock") || p.there("/run/docker.sock")
	if c.Docker {
		var settings struct {
			Runtimes map[string]json.RawMessage `json:"runtimes"`
			Options  []string                   `json:"exec-opts"`
		}
		_ = json.Unmarshal([]byte(text), &settings) // Docker itself says what is wrong with it
		_, has := settings.Runtimes["nvidia"]
		c.Runtime = &has
		c.Cgroupfs = strings.Contains(strings.Join(settings.Options, " "), "cgroupdriver=cgroupfs")
	}
	c.Toolkit = p.tool("nvidia-ctk").There || p.tool("nvidia-container-cli").There
	for _, name := range []string{"/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"} {
		if m := cdiForm.FindStringSubmatch(p.read(name)); m != nil && c.CDI == "" {
			c.CDI = m[1]
		}
	}
	if p.facts.Kernel.Driver != "" && p.there("/dev/char") {
		c.CharLink = new(p.link("/dev/char/195:255") != "")
	}
}

// daemons are processes that serve the driver, by the names that the kernel has of them, which it cuts at 15 letters.
func (p *prober) daemon(comm string) {
	f := p.facts
	switch comm {
	case "nvidia-persiste":
		f.Kernel.Persistent = true
	case "nv-fabricmanage":
		f.Fabric.Manager = true
	case "nvidia-imex":
		f.Fabric.IMEX = true
	case "nvidia-cuda-mps":
		f.MPS.Control = true // the server has the same first letters; its command line tells
	}
}
