package probe

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/doctor"
)

// modules that matter: NVIDIA's, and those that may have its cards.
var modules = []string{"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem", "gdrdrv", "nouveau", "nova_core", "vfio_pci", "nvidiafb"}

func (p *prober) kernel() {
	if p.facts.OS != "linux" {
		return
	}
	k := &p.facts.Kernel
	k.Modules = p.modules()
	k.Driver, k.Open = p.driver()
	k.Files, k.Headers = p.moduleFiles()
	k.SecureBoot, k.Enforced, k.Lockdown = p.secureBoot()
	k.Params = p.params()
	k.Warnings = p.warnings()
	k.Warned = len(k.Warnings)
	if k.Driver != "" && p.there("/lib/firmware") {
		names := p.list("/lib/firmware/nvidia/" + k.Driver)
		k.GSP = new(slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "gsp_") }))
	}
	if v := p.read("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm"); v != "" {
		k.HMMOff = new(v == "Y" || v == "1")
	}
	k.Majors = p.majors()
	k.Modprobe = p.tool("nvidia-modprobe")
	k.Profiler = p.tool("ncu").There || p.there("/opt/nvidia/nsight-compute") || p.there("/usr/local/cuda/bin/ncu")
	k.Blacklists = p.blacklists()
	k.Log = p.log()
	if p.there("/sys/class/iommu") {
		k.IOMMU = new(len(p.list("/sys/class/iommu")))
	}
}

func (p *prober) modules() (out []doctor.Module) {
	for line := range strings.Lines(p.read("/proc/modules")) {
		f := strings.Fields(line) // name size refs by state address
		if len(f) < 4 || !slices.Contains(modules, f[0]) {
			continue
		}
		refs, _ := strconv.Atoi(f[2])
		m := doctor.Module{Name: f[0], Refs: refs}
		for by := range strings.SplitSeq(f[3], ",") {
			if slices.Contains(modules, by) {
				m.By = append(m.By, by)
			}
		}
		out = append(out, m)
	}
	return out
}

var versionForm = regexp.MustCompile(`\b(\d{3}\.\d{2,3}(?:\.\d{2})?)\b`)

// driver is the version and the flavour of the module that is loaded.
func (p *prober) driver() (version string, open *bool) {
	line, _, _ := strings.Cut(p.read("/proc/driver/nvidia/version"), "\n")
	if line == "" {
		return "", nil
	}
	if m := versionForm.FindString(line); m != "" {
		return m, new(strings.Contains(line, "Open Kernel Module"))
	}
	return "", nil
}

// places of a module below /lib/modules/KERNEL.
var modulePlaces = []string{"updates/dkms", "updates", "extra", "extra/nvidia", "kernel/drivers/video", "kernel/drivers/video/nvidia", "kernel/nvidia", "misc", "weak-updates/nvidia", "extramodules",
	"kernel/drivers/char/drm", "kernel/nvidia-550", "kernel/nvidia-560-open"}

// moduleFiles tells for each kernel that is installed whether nvidia.ko is there, and of the running one whether its headers are.
func (p *prober) moduleFiles() (out []doctor.ModuleFile, headers *bool) {
	running := p.facts.Platform.Kernel
	for _, kernel := range p.list("/lib/modules") {
		dir := "/lib/modules/" + kernel
		there := strings.Contains(p.read(dir+"/modules.dep"), "/nvidia.ko")
		for _, place := range modulePlaces {
			there = there || slices.ContainsFunc(p.list(dir+"/"+place), func(n string) bool { return strings.HasPrefix(n, "nvidia.ko") })
		}
		out = append(out, doctor.ModuleFile{Kernel: kernel, There: there})
		if kernel == running {
			headers = new(p.there(dir + "/build"))
		}
	}
	return out, headers
}

// secureVariable is the firmware's variable SecureBoot: four bytes of attributes, and the value.
const secureVariable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

func (p *prober) secureBoot() (secure, enforced *bool, lockdown string) {
	if b, err := os.ReadFile(p.path(secureVariable)); err == nil && len(b) == 5 {
		secure = new(b[4] == 1)
	}
	if v := p.read("/sys/module/module/parameters/sig_enforce"); v != "" {
		enforced = new(v == "Y")
	}
	if _, rest, ok := strings.Cut(p.read("/sys/kernel/security/lockdown"), "["); ok {
		lockdown, _, _ = strings.Cut(rest, "]")
	}
	return secure, enforced, lockdown
}

func (p *prober) params() map[string]string {
	text := p.read("/proc/driver/nvidia/params")
	if text == "" {
		return nil
	}
	return colons(text)
}

func (p *prober) warnings() (out []string) {
	const dir = "/proc/driver/nvidia/warnings"
	for _, name := range p.list(dir) {
		if name != "README" {
			out = append(out, strings.TrimSpace(name+": "+p.read(path.Join(dir, name))))
		}
	}
	return out
}

// majors are the numbers of NVIDIA's devices in /proc/devices.
func (p *prober) majors() map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(p.read("/proc/devices")) {
		f := strings.Fields(line)
		if len(f) == 2 && strings.HasPrefix(f[1], "nvidia") {
			out[f[1]], _ = strconv.Atoi(f[0])
		}
	}
	return out
}

// programs are folders of programs.
var programs = []string{"/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/run/current-system/sw/bin"}

// tool looks for a program; its version is not asked, since nothing is run.
func (p *prober) tool(name string) *doctor.Tool {
	for _, dir := range programs {
		if info, err := os.Stat(p.path(dir + "/" + name)); err == nil {
			return &doctor.Tool{There: true, Setuid: info.Mode()&os.ModeSetuid != 0}
		}
	}
	return &doctor.Tool{}
}

// blacklists are modules that files of modprobe.d keep out.
func (p *prober) blacklists() (out []string) {
	for _, dir := range []string{"/etc/modprobe.d", "/lib/modprobe.d", "/usr/lib/modprobe.d"} {
		for _, name := range p.list(dir) {
			for line := range strings.Lines(p.read(dir + "/" + name)) {
				f := strings.Fields(line)
				if len(f) == 2 && f[0] == "blacklist" && slices.Contains(modules, f[1]) && !slices.Contains(out, f[1]) {
					out = append(out, f[1])
				}
			}
		}
	}
	return out
}
