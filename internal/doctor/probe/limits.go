package probe

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/doctor"
)

func (p *prober) limits() {
	p.facts.Limits = ulimits()
	if p.facts.OS != "linux" {
		return
	}
	// Go raises its own limit of open files at the start: what other programs get is the shell's.
	if n, ok := limitsOf(p.read(fmt.Sprintf("/proc/%d/limits", os.Getppid())))["nofile"]; ok && n >= 0 && p.facts.Limits != nil {
		if own := p.facts.Limits["nofile"]; own < 0 || n < own {
			p.facts.Limits["nofile"] = n
		}
	}
	p.facts.Cgroup = p.cgroup()
	p.facts.CPU = p.cpu()
	mem := colons(p.read("/proc/meminfo"))
	m := &p.facts.Memory
	m.Total, m.Available, m.Overcommit = kilobytes(mem["MemTotal"]), kilobytes(mem["MemAvailable"]), p.int("/proc/sys/vm/overcommit_memory")
}

// kilobytes reads "123 kB".
func kilobytes(text string) int64 {
	number, _, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseInt(number, 10, 64)
	return n << 10
}

const cgroups = "/sys/fs/cgroup"

// unlimited is above any limit that is one.
const unlimited = 1 << 60

// folder is where a controller of this process is, by its path in /proc/self/cgroup or, in a container that has its own view, by the root.
func (p *prober) folder(controller string) string {
	for line := range strings.Lines(p.read("/proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || controller != "" && !strings.Contains(","+f[1]+",", ","+controller+",") || controller == "" && f[0] != "0" {
			continue
		}
		if dir := path.Join(cgroups, controller, f[2]); p.there(dir) {
			return dir
		}
	}
	return path.Join(cgroups, controller)
}

func (p *prober) cgroup() (c doctor.Cgroup) {
	switch {
	case p.there(cgroups + "/cgroup.controllers"):
		return p.cgroup2(p.folder(""))
	case !p.there(cgroups + "/memory"):
		return c
	}
	c.Version = 1
	memory, cpu, pids := p.folder("memory"), p.folder("cpu"), p.folder("pids")
	c.Memory = p.limit(memory + "/memory.limit_in_bytes")
	c.Used, _ = p.number(memory + "/memory.usage_in_bytes")
	c.Kills = counter(p.read(memory+"/memory.oom_control"), "oom_kill")
	if quota, period := p.int(cpu+"/cpu.cfs_quota_us"), p.int(cpu+"/cpu.cfs_period_us"); quota > 0 && period > 0 {
		c.CPUs = float64(quota) / float64(period)
	}
	c.Throttled = throttled(p.read(cpu + "/cpu.stat"))
	c.PIDs = p.limit(pids + "/pids.max")
	for line := range strings.Lines(p.read(p.folder("devices") + "/devices.list")) {
		c.Devices = append(c.Devices, strings.TrimSpace(line))
	}
	return c
}

// cgroup2 takes of each limit the tightest on the way from the process' group to the root.
func (p *prober) cgroup2(dir string) doctor.Cgroup {
	c := doctor.Cgroup{Version: 2, Kills: counter(p.read(dir+"/memory.events"), "oom_kill"), Throttled: throttled(p.read(dir + "/cpu.stat"))}
	for ; strings.HasPrefix(dir, cgroups); dir = path.Dir(dir) {
		if m := p.limit(dir + "/memory.max"); m > 0 && (c.Memory == 0 || m < c.Memory) {
			c.Memory = m
			c.Used, _ = p.number(dir + "/memory.current")
		}
		if n := p.limit(dir + "/pids.max"); n > 0 && (c.PIDs == 0 || n < c.PIDs) {
			c.PIDs = n
		}
		quota, period, _ := strings.Cut(p.read(dir+"/cpu.max"), " ")
		q, err := strconv.ParseFloat(quota, 64)
		per, err2 := strconv.ParseFloat(period, 64)
		if err == nil && err2 == nil && per > 0 && (c.CPUs == 0 || q/per < c.CPUs) {
			c.CPUs = q / per
		}
	}
	return c
}

// limit is a number of a file, 0 of "max" and of what is as good as none.
func (p *prober) limit(name string) int64 {
	n, ok := p.number(name)
	if !ok || n >= unlimited || n < 0 {
		return 0
	}
	return n
}

// counter is a number in lines "name number".
func counter(text, name string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// throttled is the share of periods in which the group was held.
func throttled(stat string) float64 {
	periods := counter(stat, "nr_periods")
	if periods == 0 {
		return 0
	}
	return float64(counter(stat, "nr_throttled")) / float64(periods)
}

func (p *prober) cpu() (c doctor.CPU) {
	info := p.cpuinfo()
	c.Model = info["model name"]
	c.Count = strings.Count("\n"+p.read("/proc/cpuinfo"), "\nprocessor")
	c.Affinity = colons(p.read("/proc/self/status"))["Cpus_allowed_list"]
	c.Allowed = doctor.CPUs(c.Affinity)
	for _, name := range p.list("/sys/devices/system/node") {
		if rest, ok := strings.CutPrefix(name, "node"); ok && rest != "" && strings.Trim(rest, "0123456789") == "" {
			c.Nodes++
		}
	}
	c.Governor = p.read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	c.Scaling = p.read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver")
	c.ThreadsOf = doctor.CPUs(p.read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"))
	c.Steal, c.Busy = shares(p.read("/proc/stat"))
	return c
}

// shares are those of the time since the start that the hypervisor took, and that processors were at work. The line has user, nice,
// system, idle, iowait, irq, softirq, steal.
func shares(stat string) (steal, busy float64) {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, 0
	}
	var ticks [8]float64
	all := 0.0
	for i := range ticks {
		ticks[i], _ = strconv.ParseFloat(f[i+1], 64)
		all += ticks[i]
	}
	if all == 0 {
		return 0, 0
	}
	return ticks[7] / all, (all - ticks[3] - ticks[4]) / all
}
