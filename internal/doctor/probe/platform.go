package probe

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/doctor"
)

// env reads the variables of the list.
func (p *prober) env() {
	p.facts.Env = map[string]string{}
	for name := range doctor.Variables {
		if p.Getenv != nil {
			if v := p.Getenv(name); v != "" {
				p.facts.Env[name] = v
			}
		} else if v, ok := os.LookupEnv(name); ok {
			p.facts.Env[name] = v
		}
	}
}

func (p *prober) platform() {
	s := &p.facts.Platform
	s.UID, s.GIDs = os.Getuid(), groups()
	if p.facts.OS != "linux" {
		return
	}
	s.Kernel = p.read("/proc/sys/kernel/osrelease")
	release := properties(p.read("/etc/os-release"))
	s.Name, s.Release = release["ID"], release["VERSION_ID"]
	version := strings.ToLower(p.read("/proc/version"))
	s.WSL = strings.Contains(version, "microsoft") && (p.there("/proc/sys/fs/binfmt_misc/WSLInterop") || strings.Contains(version, "wsl") || p.there("/run/WSL") || p.there("/usr/lib/wsl"))
	s.DXG = p.there("/dev/dxg")
	s.Container = p.container()
	s.Hypervisor = slices.Contains(strings.Fields(p.cpuinfo()["flags"]), "hypervisor") || p.there("/sys/hypervisor/type")
	s.Vendor = p.read("/sys/class/dmi/id/sys_vendor")
	s.Tegra = strings.Contains(p.read("/proc/device-tree/compatible"), "nvidia,tegra")
	s.CommandLine = p.commandLine()
	s.Suspends, _ = p.number("/sys/power/suspend_stats/success")
	up, _, _ := strings.Cut(p.read("/proc/uptime"), " ")
	seconds, _ := strconv.ParseFloat(up, 64)
	s.UptimeS = int64(seconds)
}

// groups of this process; none where the system has no numbers for them.
func groups() []int {
	g, err := os.Getgroups()
	if err != nil {
		return nil
	}
	if e := os.Getegid(); e >= 0 && !slices.Contains(g, e) {
		g = append(g, e)
	}
	return g
}

// properties reads lines NAME="value".
func properties(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			out[name] = strings.Trim(v, `"'`)
		}
	}
	return out
}

// container is the kind of container that this process lives in, empty for none.
func (p *prober) container() string {
	groups := p.read("/proc/1/cgroup") + p.read("/proc/self/cgroup") + p.read("/proc/self/mountinfo")
	marked := p.read("/run/systemd/container")
	for line := range strings.SplitSeq(p.read("/proc/1/environ"), "\x00") {
		if v, ok := strings.CutPrefix(line, "container="); ok {
			marked = v
		}
	}
	switch {
	case strings.Contains(groups, "kubepods") || p.there("/var/run/secrets/kubernetes.io") || p.there("/run/secrets/kubernetes.io"):
		return "kubernetes"
	case p.there("/run/.containerenv") || marked == "podman":
		return "podman"
	case p.there("/.dockerenv") || strings.Contains(groups, "/docker/") || marked == "docker":
		return "docker"
	case strings.Contains(marked, "lxc") || strings.Contains(groups, "/lxc/"):
		return "lxc"
	case p.there("/.singularity.d") || p.there("/.apptainer.d"):
		return "apptainer"
	case marked != "":
		return "unknown"
	}
	return ""
}

// cpuinfo is the first processor of /proc/cpuinfo.
func (p *prober) cpuinfo() map[string]string {
	first, _, _ := strings.Cut(p.read("/proc/cpuinfo"), "\n\n")
	return colons(first)
}

// options of the kernel that concern cards.
var options = []string{"iommu", "intel_iommu", "amd_iommu", "pci", "pcie_aspm", "nokaslr", "nomodeset", "nouveau.modeset", "rd.driver.blacklist", "modprobe.blacklist",
	"module_blacklist", "vfio-pci.ids", "pcie_acs_override", "nvidia-drm.modeset", "lockdown"}

func (p *prober) commandLine() (out []string) {
	for _, word := range strings.Fields(p.read("/proc/cmdline")) {
		if name, _, _ := strings.Cut(word, "="); slices.Contains(options, name) {
			out = append(out, word)
		}
	}
	return out
}
