package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

var limitRules = []rule{
	{id: "D45", name: "shm", step: P10, what: "/dev/shm has room", can: func(f *Facts) bool { p, ok := f.place("shm"); return ok && p.Total > 0 }, saw: (*Facts).sawShared, judge: sharedMemory},
	{id: "D41", name: "memlock", step: P10, what: "memory may be pinned", can: func(f *Facts) bool { return f.Limits != nil && f.several() }, saw: (*Facts).pins, judge: memlock},
	{id: "D42", name: "files", step: P10, what: "enough files and processes may be open", can: func(f *Facts) bool { return f.Limits != nil }, saw: (*Facts).sawFiles, judge: openFiles},
	{id: "D43", name: "memory-limit", step: P10, what: "the control group leaves memory", can: func(f *Facts) bool { return f.Cgroup.Version > 0 }, saw: (*Facts).sawMemory, judge: memoryLimit},
	{id: "D43", name: "out-of-memory", step: P10, what: "the kernel killed nothing for want of memory", can: func(f *Facts) bool { return f.Kernel.Log.Source == "kmsg" }, judge: outOfMemory},
	{id: "D43", name: "cpu-limit", step: P10, what: "the control group leaves processors", can: func(f *Facts) bool { return f.Cgroup.Version > 0 && f.CPU.Count > 0 }, judge: cpuLimit},
	{id: "D67", name: "tmp", step: P10, what: "the folder for temporary files takes programs and has room", can: func(f *Facts) bool { _, ok := f.place("tmp"); return ok }, saw: (*Facts).sawTmp, judge: tmp},
	{id: "D67", name: "network-files", step: P10, what: "the working folder is on a disk of this machine", can: func(f *Facts) bool { _, ok := f.place("work"); return ok }, saw: (*Facts).sawDisk, judge: networkFiles},
	{id: "D46", name: "interface", step: P9, what: "NCCL_SOCKET_IFNAME names an interface that is up", can: func(f *Facts) bool { return f.Env["NCCL_SOCKET_IFNAME"] != "" && len(f.Network) > 0 }, judge: interfaceName},
}

// several reports whether there is more than one card, so that processes talk to each other.
func (f *Facts) several() bool { return f.count() > 1 }

// perRank is what NCCL takes of /dev/shm for each pair of ranks, and loaders' batches beside it.
const perRank = 10 << 20

func sharedMemory(f *Facts) []ill {
	p, _ := f.place("shm")
	n := max(f.count(), 1)
	need := max(int64(n*n)*perRank, 128<<20)
	if p.Free >= need {
		return nil
	}
	evidence := []finding.Evidence{value("free", p.Free, "/dev/shm has %s, %s of them free; workers of loaders and %d cards want some %s", render.Bytes(p.Total), render.Bytes(p.Free), n, render.Bytes(need))}
	if p.Stale > 0 {
		evidence = append(evidence, value("stale", p.StaleB, "%d files of NCCL there, %s, are of processes that are gone", p.Stale, render.Bytes(p.StaleB)))
		return gains(one("/dev/shm is full of what dead jobs left", evidence, "rm /dev/shm/nccl-*", "while no job runs", finding.High, "they are of a job that runs in another container"), "loaders and NCCL that do not end with a bus error")
	}
	if f.contained() {
		return gains(one("/dev/shm is too small: workers of loaders end with a bus error", evidence, "docker run --rm --shm-size=8g ubuntu df -h /dev/shm", "in Kubernetes an emptyDir of medium Memory at /dev/shm; --ipc=host gives the host's", finding.High, "loaders have no workers, and there is one card"), "loaders and NCCL that do not end with a bus error")
	}
	return gains(one("/dev/shm is too small: workers of loaders end with a bus error", evidence, "sudo mount -o remount,size=50% /dev/shm", "", finding.High, "loaders have no workers, and there is one card"), "loaders and NCCL that do not end with a bus error")
}

// leastLocked is below what registering buffers with a network card takes.
const leastLocked = 64 << 20

func memlock(f *Facts) []ill {
	v, ok := f.Limits["memlock"]
	ib := slices.ContainsFunc(f.Network, func(i Interface) bool { return i.IB })
	if !ok || v < 0 || v >= leastLocked || !ib {
		return nil
	}
	do := "ulimit -l unlimited"
	if f.contained() {
		do = "docker run --rm --ulimit memlock=-1 ubuntu bash -c 'ulimit -l'"
	}
	return gains(one("little memory may be pinned: NCCL cannot register buffers with InfiniBand", []finding.Evidence{value("memlock", v, "ulimit -l is %s", render.Bytes(v))}, do,
		"for good in /etc/security/limits.d or the batch system's settings", finding.High, "NCCL's log has NET/IB, and no ibv_reg_mr that failed"), "NCCL over InfiniBand")
}

func openFiles(f *Facts) []ill {
	limits, whose := f.Limits, "this shell"
	var evidence []finding.Evidence
	if p := f.Process; p != nil && p.Limits != nil {
		limits, whose = p.Limits, fmt.Sprintf("process %d", p.PID)
		if n := limits["nofile"]; n > 0 && int64(p.Files) > n*8/10 {
			evidence = append(evidence, value("files", p.Files, "it has %d of %d files open", p.Files, n))
		}
	}
	if n, ok := limits["nofile"]; ok && n > 0 && n < 1024 {
		evidence = append(evidence, value("nofile", n, "%s may open %d files", whose, n))
	}
	if n := f.Cgroup.PIDs; n > 0 && n < int64(64+32*f.CPU.Allowed) && n < 512 {
		evidence = append(evidence, value("pids", n, "the control group lets %d processes and threads be", n))
	}
	if evidence == nil {
		return nil
	}
	return gains(one("few files or processes may be open: many workers of a loader end with \"Too many open files\"", evidence, "ulimit -n 65536", "for a container: docker run --ulimit nofile=65536 --pids-limit -1 …", finding.Medium, "a loader with all of its workers runs"), "loaders with many workers")
}

func memoryLimit(f *Facts) []ill {
	c := &f.Cgroup
	var cards float64
	for i := range f.NVML.Cards {
		cards = max(cards, f.NVML.Cards[i].Values[keyTotal])
	}
	small := c.Memory > 0 && f.Memory.Total > c.Memory && (c.Memory-c.Used < 1<<30 || cards > 0 && float64(c.Memory) < cards/2)
	if c.Kills == 0 && !small {
		return nil
	}
	evidence := []finding.Evidence{value("memory", c.Memory, "the control group has %s, %s of them in use; the machine has %s", limitText(c.Memory), render.Bytes(c.Used), render.Bytes(f.Memory.Total))}
	if c.Kills > 0 {
		evidence = append(evidence, value("oom_kills", c.Kills, "%d processes of the group were killed for want of memory", c.Kills))
	}
	return gains(one("the control group's memory is too small: processes are killed (exit status 137) without a word", evidence, "docker update --memory 64g --memory-swap 64g CONTAINER", "or ask the batch system for more; weights pass the host's memory on their way to a card", finding.Medium, "no process has ended with 137"), "programs that are not killed")
}

// outOfMemory finds what the kernel killed where no control group tells of it. A log that is kept in files is of earlier times too.
func outOfMemory(f *Facts) []ill {
	logged := f.events(OutOfMemory)
	if len(logged) == 0 || f.Cgroup.Kills > 0 {
		return nil
	}
	return gains(one("the machine ran out of memory, and the kernel killed processes (exit status 137, or just Killed)", []finding.Evidence{value("log", logged[0].Count, "the kernel's log says so %d times since the start; the machine has %s, %s of them free now", logged[0].Count, render.Bytes(f.Memory.Total), render.Bytes(f.Memory.Available))},
		"sudo dmesg -T | grep -iE 'out of memory|oom-kill' | tail -5", "it names the process; weights pass the host's memory on their way to a card, and each worker of a loader has its own copy of the data set's lists", finding.Low, "what was killed was no training"), "programs that are not killed")
}

func limitText(n int64) string {
	if n == 0 {
		return "no limit"
	}
	return render.Bytes(n)
}

func cpuLimit(f *Facts) []ill {
	c := &f.Cgroup
	if c.CPUs == 0 || c.CPUs >= float64(f.CPU.Allowed)/2 && c.Throttled < 0.1 || c.CPUs >= float64(4*max(f.count(), 1)) && c.Throttled < 0.1 {
		return nil
	}
	return gains(one("the control group gives less processor time than the machine shows", []finding.Evidence{value("cpus", c.CPUs, "time of %.3g processors, while programs see %d; held in %s of its periods", c.CPUs, f.CPU.Allowed, render.Percent(c.Throttled))},
		fmt.Sprintf("export OMP_NUM_THREADS=%d", max(1, int(c.CPUs))), "and as many workers of loaders; more time: docker update --cpus, or the batch system", finding.High, "the group is not held while the program runs"), "loaders that do not wait for processors")
}

func tmp(f *Facts) []ill {
	p, _ := f.place("tmp")
	full := p.Total > 0 && p.Free < 256<<20 || p.Files != nil && *p.Files == 0 && p.Total > 0 && !slices.Contains(countless, p.Type)
	if !p.NoExec && !full && !p.ReadOnly {
		return nil
	}
	text := "it has " + render.Bytes(p.Free) + " free"
	title := "the folder for temporary files is full"
	switch {
	case p.ReadOnly:
		text, title = "it is mounted read-only", "the folder for temporary files cannot be written"
	case p.NoExec:
		text, title = "it is mounted noexec", "the folder for temporary files takes no programs, and compilers put theirs there"
	}
	return gains(one(title, []finding.Evidence{value("tmp", p.Free, "%s: %s", p.Path, text)}, "export TMPDIR=/var/tmp", "or another folder on a disk with room", finding.High, "df -h and mount say otherwise of it"), "compiled kernels, and checkpoints that are written")
}

// countless are file systems that do not count files.
var countless = []string{"btrfs", "zfs", "overlay", "nfs", "9p", "virtiofs", "ceph", "fuse"}

// distant are file systems on the other side of a network.
var distant = []string{"nfs", "nfs4", "cifs", "smb2", "ceph", "fuse", "9p", "afs", "gpfs", "lustre"}

func networkFiles(f *Facts) []ill {
	p, _ := f.place("work")
	if !slices.Contains(distant, p.Type) {
		return nil
	}
	return gains(one("the working folder is on a network: small files are read slowly", []finding.Evidence{value("type", p.Type, "%s is of type %s", orNone(p.Path), p.Type)},
		"cp -r DATA /var/tmp/ && cd /var/tmp", "or read big files in order (tar, parquet) in place of millions of small ones", finding.Low, "the loader's share of a step is small: warpline diagnose TRACE tells"), "a first epoch that does not wait for files")
}

// chosen are the interfaces that NCCL takes of a list: "eth" is a prefix, "=eth0" a whole name, "^docker" all but those.
func chosen(v string, all []Interface) (out []Interface) {
	exclude := strings.HasPrefix(v, "^")
	v = strings.TrimPrefix(v, "^")
	exact := strings.HasPrefix(v, "=")
	v = strings.TrimPrefix(v, "=")
	for _, i := range all {
		hit := slices.ContainsFunc(strings.Split(v, ","), func(name string) bool {
			name, _, _ = strings.Cut(name, ":")
			return name != "" && (i.Name == name || !exact && strings.HasPrefix(i.Name, name))
		})
		if hit != exclude && !i.IB {
			out = append(out, i)
		}
	}
	return out
}

func interfaceName(f *Facts) []ill {
	v := f.Env["NCCL_SOCKET_IFNAME"]
	got := chosen(v, f.Network)
	if slices.ContainsFunc(got, func(i Interface) bool { return i.Up }) {
		return nil
	}
	evidence := []finding.Evidence{value("NCCL_SOCKET_IFNAME", v, "NCCL_SOCKET_IFNAME is %q; the machine has %s", v, list(f.Network, func(i Interface) string { return path.Base(i.Name) + " (" + unless(i.Up, "up") + ")" }))}
	return gains(one("NCCL is told to use a network interface that is not there or not up", evidence, "unset NCCL_SOCKET_IFNAME", "or set it to one that is up", finding.High, "NCCL's log says Bootstrap : Using that interface"), "ranks that find each other")
}
