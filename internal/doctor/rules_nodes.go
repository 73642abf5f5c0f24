package doctor

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

var nodeRules = []rule{
	{id: "D24", name: "container-without-cards", step: P3, breaks: true, what: "the container was given the driver's nodes", can: func(f *Facts) bool { return f.contained() && f.loaded() && f.Nodes != nil }, saw: (*Facts).sawNodes, judge: givenNothing},
	{id: "D38", name: "no-nodes", step: P3, breaks: true, what: "the driver's nodes were made", can: func(f *Facts) bool { return f.loaded() && !f.contained() && f.Nodes != nil }, judge: noNodes},
	{id: "D37", name: "stale-nodes", step: P3, breaks: true, what: "the nodes' numbers are the kernel's", can: (*Facts).loaded, saw: (*Facts).sawNumbers, judge: staleNodes},
	{id: "D25", name: "no-permission", step: P3, breaks: true, what: "this user may open the nodes", can: (*Facts).loaded, saw: (*Facts).opens, judge: noPermission},
	{id: "D26", name: "revoked", step: P3, breaks: true, what: "no control group keeps the nodes from this process", can: (*Facts).loaded, saw: (*Facts).opens, judge: revoked},
	{id: "D26", name: "will-be-revoked", step: P3, what: "a reload of systemd takes no card from a container", can: func(f *Facts) bool { return f.loaded() && f.Container.Docker }, saw: (*Facts).keepsCards, judge: willRevoke},
	{id: "D24", name: "no-runtime", step: P3, what: "Docker can give cards to containers", can: func(f *Facts) bool { return f.loaded() && !f.contained() && f.Container.Docker }, saw: (*Facts).lendsCards, judge: noRuntime},
	{id: "D24", name: "stale-cdi", step: P3, what: "/etc/cdi names the driver that is loaded", can: func(f *Facts) bool { return f.loaded() && f.Container.CDI != "" }, judge: staleCDI},
}

func givenNothing(f *Facts) []ill {
	if !f.contained() || f.Nodes == nil || len(f.cardNodes()) > 0 || !f.loaded() {
		return nil
	}
	evidence := []finding.Evidence{value("nodes", 0, "/dev/nvidiactl is %s, and there is no /dev/nvidia0 in this container (%s)", unless(f.node("/dev/nvidiactl").There, "there"), f.Platform.Container),
		value("driver_kernel", f.Kernel.Driver, "the host's kernel has driver %s", f.Kernel.Driver)}
	do, fix := "docker run --rm --gpus all ubuntu nvidia-smi", "on the host it lists the cards; then start this container with the same options (the host needs nvidia-container-toolkit)"
	switch f.Platform.Container {
	case "kubernetes":
		do, fix = "kubectl explain pod.spec.containers.resources.limits", "ask for nvidia.com/gpu: 1 there; the cluster needs NVIDIA's device plugin, and perhaps runtimeClassName: nvidia"
	case "podman":
		do, fix = "podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi", "on the host it lists the cards; then start this container with the same options; sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml on the host comes first"
	case "lxc":
		do, fix = "lxc config device add NAME gpu gpu", "on the host; on Proxmox name the nodes as dev0: /dev/nvidia0 and so on"
	}
	if v, ok := f.Env["NVIDIA_VISIBLE_DEVICES"]; ok && (v == "void" || v == "none" || v == "") {
		evidence = append(evidence, value("NVIDIA_VISIBLE_DEVICES", v, "NVIDIA_VISIBLE_DEVICES is %q: the runtime was told to give none", v))
		fix += "; NVIDIA_VISIBLE_DEVICES must be all, or the cards"
	}
	return one("the host has a driver, and this container was given no card", evidence, do, fix, finding.High, "ls /dev/nvidia* lists nodes in the container")
}

func noNodes(f *Facts) []ill {
	if f.node("/dev/nvidiactl").There && len(f.cardNodes()) > 0 {
		return nil
	}
	evidence := []finding.Evidence{value("nodes", len(f.cardNodes()), "the module is loaded; /dev/nvidiactl is %s, and %d nodes of cards are there", unless(f.node("/dev/nvidiactl").There, "there"), len(f.cardNodes()))}
	if m := f.Kernel.Modprobe; m != nil {
		evidence = append(evidence, value("nvidia-modprobe", m.Setuid, "nvidia-modprobe, which makes them, is %s, and may %sact as root", unless(m.There, "there"), map[bool]string{false: "not "}[m.Setuid]))
	}
	return one("the driver's device nodes were not made", evidence, "sudo nvidia-modprobe -c 0 -u", "it lasts until the next start: sudo systemctl enable --now nvidia-persistenced makes them each time", finding.High, "ls /dev/nvidia0 lists it")
}

// major of a node, by the name under which /proc/devices has it.
func (f *Facts) major(n Node) (want int, known bool) {
	switch {
	case strings.HasPrefix(n.Path, "/dev/nvidia-uvm"):
		want, known = f.Kernel.Majors["nvidia-uvm"]
	case strings.HasPrefix(n.Path, "/dev/nvidia-caps"):
		want, known = f.Kernel.Majors["nvidia-caps"]
	case n.Path == "/dev/nvidiactl" || n.isCard():
		return 195, true
	}
	return want, known
}

func staleNodes(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, n := range f.Nodes {
		if want, known := f.major(n); known && n.There && n.Major != want {
			evidence = append(evidence, value("major", n.Major, "%s has the number %d:%d, the kernel's is %d", n.Path, n.Major, n.Minor, want))
		}
	}
	if evidence == nil {
		return nil
	}
	return one("device nodes lead nowhere: their numbers are of an earlier start of the machine", evidence, "sudo nvidia-modprobe -c 0 -u",
		"for a container write the number of /proc/devices into its settings (lxc.cgroup2.devices.allow), which changes from start to start", finding.High, "grep nvidia /proc/devices has the nodes' numbers")
}

// refused are nodes that do not open for a reason.
func (f *Facts) refused(errno string) (out []Node) {
	for _, n := range f.Nodes {
		if n.There && n.Open == errno && n.needed() {
			out = append(out, n)
		}
	}
	return out
}

// needed reports whether every program that computes opens a node: those of capabilities and switches are root's.
func (n *Node) needed() bool {
	return n.isCard() || n.Path == "/dev/nvidiactl" || n.Path == "/dev/nvidia-uvm"
}

func nodeText(n Node) string {
	return fmt.Sprintf("%s (mode %04o, owner %d:%d) gives %s", n.Path, n.Mode, n.UID, n.GID, n.Open)
}

func noPermission(f *Facts) []ill {
	bad := f.refused("EACCES")
	if len(bad) == 0 {
		return nil
	}
	evidence := []finding.Evidence{value("nodes", len(bad), "%s", list(bad, nodeText)), value("uid", f.Platform.UID, "this is user %d, of groups %v", f.Platform.UID, f.Platform.GIDs)}
	for _, p := range []string{"DeviceFileMode", "DeviceFileGID"} {
		if v, ok := f.Kernel.Params[p]; ok {
			evidence = append(evidence, value(p, v, "the driver makes nodes with %s %s", p, v))
		}
	}
	if f.contained() {
		return one("this user may not open the card's nodes", evidence, "docker run --rm --gpus all --group-add "+fmt.Sprint(bad[0].GID)+" ubuntu nvidia-smi", "on the host it lists the cards; then start this container with the same options", finding.High, "id lists the group already")
	}
	return one("this user may not open the card's nodes", evidence, "sudo usermod -aG $(stat -c %G "+bad[0].Path+") $USER", "then log in again", finding.High, "id lists the group already")
}

// allows reports whether the mode of a node lets this process open it.
func (f *Facts) allows(n Node) bool {
	if f.Platform.UID == 0 || n.Mode&0o006 == 0o006 {
		return true
	}
	for _, g := range f.Platform.GIDs {
		if g == n.GID && n.Mode&0o060 == 0o060 {
			return true
		}
	}
	return n.UID == f.Platform.UID && n.Mode&0o600 == 0o600
}

func revoked(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, n := range f.refused("EPERM") {
		if f.allows(n) {
			evidence = append(evidence, value("open", n.Open, "%s, although its mode allows it", nodeText(n)))
		}
	}
	if f.nvmlCode(17) {
		evidence = append(evidence, value("nvml", 17, "NVML says that the system's control groups have blocked the device"))
	} else if f.contained() && f.nvmlCode(999) && len(f.refused("EPERM")) > 0 {
		evidence = append(evidence, value("nvml", 999, "NVML begins with NVML_ERROR_UNKNOWN, as it does then"))
	}
	if evidence == nil {
		return nil
	}
	if f.Cgroup.Version == 1 && len(f.Cgroup.Devices) > 0 {
		evidence = append(evidence, value("devices", len(f.Cgroup.Devices), "devices.list has %s", strings.Join(f.Cgroup.Devices, ", ")))
	}
	return one("a control group keeps the card from this process: the container lost it while it ran", evidence, "docker restart CONTAINER",
		"systemctl daemon-reload on the host does this; it ends with sudo nvidia-ctk system create-dev-char-symlinks --create-all there, with CDI, or with --device /dev/nvidia0 given by name", finding.High, "a fresh container fails alike")
}

func willRevoke(f *Facts) []ill {
	c := &f.Container
	if f.contained() || c.Runtime == nil || !*c.Runtime || c.CharLink == nil || *c.CharLink || c.Cgroupfs || c.CDI != "" {
		return nil
	}
	return gains(one("containers of this host will lose their cards when systemd is told to reload", []finding.Evidence{value("char_links", false, "/dev/char has no links to the card's nodes, and Docker's control groups are systemd's")},
		"sudo nvidia-ctk system create-dev-char-symlinks --create-all", "and at each start, by a rule of udev", finding.Medium, "systemctl daemon-reload leaves nvidia-smi in a container working"), "jobs that keep their card")
}

func noRuntime(f *Facts) []ill {
	c := &f.Container
	if c.Runtime == nil || *c.Runtime || c.CDI != "" {
		return nil
	}
	return gains(one("Docker here cannot give cards to containers", []finding.Evidence{value("nvidia_runtime", false, "/etc/docker/daemon.json names no runtime nvidia; its toolkit is %s", unless(c.Toolkit, "installed"))},
		"sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker", "nvidia-container-toolkit comes first, where it is not installed", finding.Medium, "docker run --rm --gpus all ubuntu nvidia-smi works"), "containers that have cards")
}

func staleCDI(f *Facts) []ill {
	if f.Container.CDI == f.Kernel.Driver {
		return nil
	}
	return gains(one("/etc/cdi/nvidia.yaml is of another driver: containers get files that are gone",
		[]finding.Evidence{value("cdi", f.Container.CDI, "it names %s, the driver is %s", f.Container.CDI, f.Kernel.Driver)},
		"sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml", "", finding.High, "podman run --device nvidia.com/gpu=all starts"), "containers that start")
}
