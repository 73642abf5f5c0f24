package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/doctor"
)

// root is a planted file system. Names that end in " ->" are links, those of folders end in a slash.
type root map[string]string

func (r root) plant(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range r {
		name, link := strings.CutSuffix(name, " ->")
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		switch {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o777)
		case link:
			err = os.Symlink(content, path)
		default:
			err = os.WriteFile(path, []byte(content), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// card plants a function on the bus behind a bridge.
func (r root) card(address, driver string) {
	dir := "/sys/devices/pci0000:16/0000:16:00.0/" + address
	r[pciFolder+"/"+address+" ->"] = "../../../devices/pci0000:16/0000:16:00.0/" + address
	r[pciFolder+"/0000:16:00.0 ->"] = "../../../devices/pci0000:16/0000:16:00.0"
	for name, v := range map[string]string{"vendor": "0x10de", "device": "0x2330", "class": "0x030200", "revision": "0xa1", "subsystem_vendor": "0x10de", "subsystem_device": "0x16c1",
		"numa_node": "1", "local_cpulist": "32-63", "current_link_speed": "2.5 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe", "current_link_width": "8", "max_link_width": "16",
		"resource": "0x000000a000000000 0x000000a000ffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000000000000000 0x0000001fffffffff 0x000000002014220c\n", "config": "\xde\x10\x30\x23",
		"aer_dev_nonfatal": "Undefined 0\nDLP 2\nTOTAL_ERR_NONFATAL 2\n"} {
		r[dir+"/"+name] = v
	}
	r["/sys/devices/pci0000:16/0000:16:00.0/vendor"] = "0x8086"
	r["/sys/devices/pci0000:16/0000:16:00.0/class"] = "0x060400"
	if driver != "" {
		r[dir+"/driver ->"] = "../../../../bus/pci/drivers/" + driver
	}
}

// bridge is a configuration space with a capability for access control at 0x148, behind another at 0x100.
func bridge(control uint16) string {
	b := make([]byte, 4096)
	binary.LittleEndian.PutUint32(b[0x100:], 0x148<<20|0x10001)
	binary.LittleEndian.PutUint32(b[0x148:], 0x1000d)
	binary.LittleEndian.PutUint16(b[0x148+acsControl:], control)
	return string(b)
}

// linux is a machine without anything of NVIDIA's.
func linux() root {
	return root{"/proc/sys/kernel/osrelease": "6.8.0-45-generic\n", "/proc/version": "Linux version 6.8.0-45-generic", "/etc/os-release": "ID=ubuntu\nVERSION_ID=\"24.04\"\n", pciFolder + "/": "",
		"/proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu vme\n\nprocessor\t: 1\n", "/proc/self/status": "Cpus_allowed_list:\t0-1\n", "/proc/meminfo": "MemTotal: 1024 kB\nMemAvailable: 512 kB\n",
		"/proc/stat": "cpu  60 0 20 900 0 0 0 20 0 0\n", "/dev/": "", "/lib/modules/6.8.0-45-generic/modules.dep": "kernel/fs/ext4.ko:\n", "/proc/cmdline": "root=UUID=1 iommu=pt quiet", "/proc/devices": "Character devices:\n  1 mem\n"}
}

// driven is linux with two cards and a driver.
func driven() root {
	r := linux()
	r.card("0000:17:00.0", "nvidia")
	r.card("0000:18:00.0", "nvidia")
	r["/proc/driver/nvidia/version"] = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@host)  Tue Sep 23\nGCC version:  gcc version 13.3.0\n"
	r["/proc/modules"] = "nvidia_uvm 2170880 4 - Live 0x0 (OE)\nnvidia 14376960 36 nvidia_uvm,nvidia_modeset, Live 0x0 (OE)\next4 1 1 - Live 0x0\n"
	r["/proc/driver/nvidia/params"] = "ResmanDebugLevel: 4294967295\nEnableGpuFirmware: 0\nRmProfilingAdminOnly: 1\nRegistryDwords: \"\"\n"
	r["/proc/devices"] = "Character devices:\n195 nvidia\n510 nvidia-uvm\n"
	r["/lib/firmware/nvidia/580.95.05/gsp_ga10x.bin"] = "x"
	for _, n := range []string{"nvidiactl", "nvidia0", "nvidia1", "nvidia-uvm", "nvidia-caps/nvidia-cap1"} {
		r["/dev/"+n] = ""
	}
	r["/usr/lib/x86_64-linux-gnu/libcuda.so.1 ->"] = "libcuda.so.580.95.05"
	r["/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05"] = "no ELF"
	return r
}

// look collects the facts of a planted machine. What is Linux' alone is skipped elsewhere.
func look(t *testing.T, r root, c Config) *doctor.Facts {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the probes of /proc and /sys are Linux'")
	}
	c.Root = r.plant(t)
	if c.stat == nil {
		c.stat = func(path string) doctor.Node {
			if _, ok := r[path]; !ok {
				return doctor.Node{}
			}
			return doctor.Node{There: true, Major: majorOf(path), Mode: 0o666, Open: "ok"}
		}
	}
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	f := Collect(context.Background(), c)
	if len(f.Notes) > 0 {
		t.Errorf("notes: %v", f.Notes)
	}
	return f
}

func TestBus(t *testing.T) {
	r := driven()
	r["/sys/devices/pci0000:16/0000:16:00.0/config"] = bridge(0x1d)
	r[pciFolder+"/0000:19:00.0/vendor"], r[pciFolder+"/0000:19:00.0/class"] = "0x10de", "0x068000"
	f := look(t, r, Config{})
	want := doctor.PCI{Address: "0000:17:00.0", Vendor: 0x10de, Device: 0x2330, Class: 0x030200, Revision: 0xa1, Subsystem: 0x10de<<16 | 0x16c1, Driver: "nvidia", Config: new(uint32(0x233010de)),
		BARs: []int64{16 << 20, 0}, Link: &doctor.Link{Gen: 1, MaxGen: 5, Width: 8, MaxWidth: 16}, Numa: new(1), CPUs: "32-63", Errors: map[string]int64{"nonfatal": 2},
		Upstream: []doctor.Bridge{{Address: "0000:16:00.0", ACS: new(0x1d)}}}
	if len(f.PCI) != 2 || !reflect.DeepEqual(f.PCI[0], want) {
		t.Errorf("%+v, want %+v", f.PCI[0], want)
	}
	if f.Fabric.Switches != 1 {
		t.Errorf("%d NVSwitches", f.Fabric.Switches)
	}
	if f := look(t, linux(), Config{}); f.PCI == nil || len(f.PCI) > 0 {
		t.Errorf("a bus without cards: %v", f.PCI)
	}
}

func TestKernel(t *testing.T) {
	r := driven()
	r[secureVariable] = "\x06\x00\x00\x00\x01"
	r["/sys/module/module/parameters/sig_enforce"] = "N\n"
	r["/sys/kernel/security/lockdown"] = "none [integrity] confidentiality\n"
	r["/sys/module/nvidia_uvm/parameters/uvm_disable_hmm"] = "N\n"
	r["/lib/modules/6.8.0-44-generic/updates/dkms/nvidia.ko.zst"] = "x"
	r["/lib/modules/6.8.0-45-generic/build/Makefile"] = "x"
	r["/etc/modprobe.d/b.conf"] = "# blacklist nvidia\nblacklist nouveau\noptions nouveau modeset=0\n"
	r["/usr/bin/nvidia-modprobe"] = "x"
	r["/proc/driver/nvidia/warnings/README"] = "x"
	r["/proc/driver/nvidia/warnings/fbdev"] = "trouble"
	k := look(t, r, Config{}).Kernel
	if k.Driver != "580.95.05" || !*k.Open || !*k.SecureBoot || *k.Enforced || k.Lockdown != "integrity" || *k.HMMOff || !*k.GSP || !*k.Headers {
		t.Errorf("%+v", k)
	}
	if want := []doctor.ModuleFile{{Kernel: "6.8.0-44-generic", There: true}, {Kernel: "6.8.0-45-generic"}}; !slices.Equal(k.Files, want) {
		t.Errorf("files %v, want %v", k.Files, want)
	}
	if len(k.Modules) != 2 || k.Modules[1].Refs != 36 || !slices.Equal(k.Modules[1].By, []string{"nvidia_uvm", "nvidia_modeset"}) {
		t.Errorf("modules %+v", k.Modules)
	}
	if k.Params["EnableGpuFirmware"] != "0" || k.Majors["nvidia-uvm"] != 510 || !slices.Equal(k.Blacklists, []string{"nouveau"}) || k.Warned != 1 || !k.Modprobe.There || k.Modprobe.Setuid {
		t.Errorf("%+v", k)
	}
}

// logText has lines of drivers and kernels as people posted them.
const logText = `6,1,2,-;[Mon Nov 23 02:00:01 2026] usb 1-2: new device at 12:34:56
NVRM: Xid (PCI:0000:b3:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:20b5)
NVRM: installed in this system has fallen off the bus and is not responding to commands.
NVRM: Xid (PCI:0000:17:00): 119, pid=1234, name=python3, Timeout after 6s of waiting for RPC response from GPU0 GSP!
NVRM: Xid (PCI:0000:17:00): 119, pid=1234, name=python3, Timeout after 6s of waiting for RPC response from GPU0 GSP!
NVRM: GPU 0000:17:00.0: RmInitAdapter failed! (0x62:0xffff:2477)
NVRM: API mismatch: the client 'python3' (pid 88) has the version 550.54.15, but this kernel module has the version 550.54.14.
NVRM: The NVIDIA probe routine was not called for 1 device(s).
NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:
Loading of module with unavailable key is rejected
`

func TestLog(t *testing.T) {
	r := driven()
	r["/dev/kmsg"] = logText
	l := look(t, r, Config{}).Kernel.Log
	got := map[string]int{}
	for _, e := range l.Events {
		got[strings.TrimSpace(fmt.Sprintf("%s %d %s", e.Kind, e.Xid, e.Bus))] = e.Count
	}
	want := map[string]int{"xid 79 0000:b3:00.0": 1, "fallen-off 0": 1, "xid 119 0000:17:00.0": 2, "init-failed 0 0000:17:00.0": 1, "version-mismatch 0": 1, "other-driver 0": 1, "invalid-region 0": 1, "key-rejected 0": 1}
	if l.Source != "kmsg" || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", l.Source, got, want)
	}
	r = driven()
	r["/var/log/kern.log"] = logText
	if l := look(t, r, Config{}).Kernel.Log; l.Source != "file" || len(l.Events) != len(want) || l.Errno != "ENOENT" {
		t.Errorf("%+v", l)
	}
}

func TestPlatform(t *testing.T) {
	for want, change := range map[string]root{
		"docker":     {"/.dockerenv": ""},
		"podman":     {"/run/.containerenv": ""},
		"kubernetes": {"/.dockerenv": "", "/proc/self/cgroup": "0::/kubepods.slice/pod1\n"},
		"lxc":        {"/proc/1/environ": "HOME=/\x00container=lxc\x00"},
		"unknown":    {"/run/systemd/container": "systemd-nspawn\n"},
		"":           {"/proc/self/cgroup": "0::/user.slice\n"},
	} {
		r := linux()
		for k, v := range change {
			r[k] = v
		}
		p := look(t, r, Config{}).Platform
		if p.Container != want || p.Name != "ubuntu" || p.Release != "24.04" || p.Kernel != "6.8.0-45-generic" || p.WSL || p.Hypervisor || !slices.Equal(p.CommandLine, []string{"iommu=pt"}) {
			t.Errorf("%q: %+v", want, p)
		}
	}
	r := linux()
	r["/proc/version"], r["/dev/dxg"], r["/usr/lib/wsl/lib/libcuda.so.1"] = "Linux version 5.15.167.4-microsoft-standard-WSL2", "", "x"
	if f := look(t, r, Config{}); !f.Platform.WSL || !f.Platform.DXG || f.Libraries[0].Path != "/usr/lib/wsl/lib/libcuda.so.1" || f.Libraries[0].Why != "driver" {
		t.Errorf("%+v, %+v", f.Platform, f.Libraries[0])
	}
}

// cache is an ld.so.cache of the newer form.
func cache(entries [][2]string) string {
	const bits64 = 0x0303
	var strs bytes.Buffer
	head := append([]byte(cacheMagic), make([]byte, cacheHead-len(cacheMagic))...)
	binary.NativeEndian.PutUint32(head[len(cacheMagic):], uint32(len(entries)))
	var list []byte
	base := cacheHead + cacheEntry*len(entries)
	for _, e := range entries {
		entry := make([]byte, cacheEntry)
		binary.NativeEndian.PutUint32(entry, bits64)
		for i, s := range e {
			binary.NativeEndian.PutUint32(entry[4+4*i:], uint32(base+strs.Len()))
			strs.WriteString(s + "\x00")
		}
		list = append(list, entry...)
	}
	return string(head) + string(list) + strs.String()
}

func TestLibraries(t *testing.T) {
	r := driven()
	r["/etc/ld.so.cache"] = cache([][2]string{{"libcuda.so.1", "/opt/b/libcuda.so.1"}, {"libcudart.so.12", "/opt/b/libcudart.so.12"}, {"libc.so.6", "/lib/libc.so.6"}})
	r["/opt/a/libcuda.so.1 ->"], r["/opt/a/libcuda.so.550.54.14"] = "libcuda.so.550.54.14", "stub"
	r["/opt/b/libcuda.so.1"] = "x"
	r["/opt/b/libcudart.so.12 ->"], r["/opt/b/libcudart.so.12.4.127"] = "libcudart.so.12.4.127", "x"
	f := look(t, r, Config{Getenv: func(name string) string {
		return map[string]string{"LD_LIBRARY_PATH": "/opt/none:/opt/a"}[name]
	}})
	l := f.Libraries[0]
	if l.Path != "/opt/a/libcuda.so.1" || l.Real != "/opt/a/libcuda.so.550.54.14" || l.Version != "550.54.14" || l.Why != "LD_LIBRARY_PATH" || l.Size != 4 {
		t.Errorf("%+v", l)
	}
	if len(l.Others) < 1 || l.Others[0].Path != "/opt/b/libcuda.so.1" || l.Others[0].Why != "cache" {
		t.Errorf("others %+v", l.Others)
	}
	last := f.Libraries[len(f.Libraries)-1]
	if last.Name != "libcudart.so" || last.Version != "12.4.127" || last.Why != "cache" {
		t.Errorf("%+v", last)
	}
}

// TestRealCache reads this machine's own, whose paths must be there.
func TestRealCache(t *testing.T) {
	all := ldCache("/etc/ld.so.cache")
	paths := all["libc.so.6"]
	if all == nil {
		t.Skip("this machine has no ld.so.cache of the newer form")
	}
	if len(paths) == 0 {
		t.Fatal("it has no libc.so.6")
	}
	if _, err := os.Stat(paths[0]); err != nil {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	r := linux()
	r["/proc/self/cgroup"] = "0::/job/step\n"
	r["/sys/fs/cgroup/cgroup.controllers"] = "cpu memory pids\n"
	r["/sys/fs/cgroup/job/memory.max"], r["/sys/fs/cgroup/job/memory.current"] = "8589934592\n", "1024\n"
	r["/sys/fs/cgroup/job/step/memory.max"], r["/sys/fs/cgroup/job/step/memory.events"] = "max\n", "low 0\noom_kill 3\n"
	r["/sys/fs/cgroup/job/step/cpu.max"], r["/sys/fs/cgroup/job/step/cpu.stat"] = "150000 100000\n", "usage_usec 1\nnr_periods 10\nnr_throttled 4\n"
	r["/sys/fs/cgroup/job/pids.max"] = "100\n"
	f := look(t, r, Config{})
	if want := (doctor.Cgroup{Version: 2, Memory: 8 << 30, Used: 1024, Kills: 3, CPUs: 1.5, Throttled: 0.4, PIDs: 100}); !reflect.DeepEqual(f.Cgroup, want) {
		t.Errorf("%+v, want %+v", f.Cgroup, want)
	}
	if f.CPU.Count != 2 || f.CPU.Allowed != 2 || f.CPU.Steal != 0.02 || f.CPU.Busy != 0.1 || f.Memory.Total != 1<<20 || f.Memory.Available != 512<<10 {
		t.Errorf("%+v, %+v", f.CPU, f.Memory)
	}
	r = linux()
	r["/proc/self/cgroup"] = "5:devices:/docker/1\n4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n"
	r["/sys/fs/cgroup/memory/memory.limit_in_bytes"], r["/sys/fs/cgroup/memory/memory.usage_in_bytes"] = "1073741824\n", "5\n"
	r["/sys/fs/cgroup/devices/devices.list"] = "c 195:* m\nc 1:3 rwm\n"
	if c := look(t, r, Config{}).Cgroup; c.Version != 1 || c.Memory != 1<<30 || !slices.Equal(c.Devices, []string{"c 195:* m", "c 1:3 rwm"}) {
		t.Errorf("%+v", c)
	}
}

func TestProcesses(t *testing.T) {
	r := driven()
	for name, v := range map[string]string{"comm": "python3\n", "status": "Name:\tpython3\nState:\tD (disk sleep)\nThreads:\t7\nVmRSS:\t2048 kB\nCpus_allowed_list:\t0-3,8\n", "wchan": "uvm_va_block", "task/42/status": "State:\tD (disk sleep)\n",
		"task/43/status": "State:\tS (sleeping)\n", "limits": "Limit Soft Hard Units\nMax open files            1024                 4096                 files     \nMax address space         unlimited            unlimited            bytes     \n",
		"environ": "HOME=/home/ada\x00CUDA_VISIBLE_DEVICES=3\x00SECRET_TOKEN=x\x00", "cgroup": "0::/docker/1\n",
		"maps":    "7f00-7f01 r-xp 0 0:0 1 /usr/lib/libcuda.so.550.54.14 (deleted)\n7f02-7f03 r-xp 0 0:0 1 /usr/lib/libc.so.6\n7f04-7f05 r-xp 0 0:0 1 /usr/lib/libcuda.so.550.54.14 (deleted)\n",
		"fd/3 ->": "/dev/nvidiactl", "fd/4 ->": "/dev/nvidia0", "fd/5 ->": "/tmp/x"} {
		r["/proc/42/"+name] = v
	}
	r["/proc/7/comm"] = "nvidia-persiste\n"
	r["/proc/8/comm"], r["/proc/8/cmdline"] = "nvidia-cuda-mps\n", "nvidia-cuda-mps-server\x00"
	f := look(t, r, Config{PID: 42})
	p := f.Process
	if p.State != "D" || p.Wait != "uvm_va_block" || p.Threads != 7 || p.Stuck != 1 || p.Resident != 2<<20 || p.Allowed != 5 || len(p.Nodes) != 2 || p.Files != 3 || p.Deleted != 1 || !p.Container {
		t.Errorf("%+v", p)
	}
	if want := map[string]string{"CUDA_VISIBLE_DEVICES": "3"}; !reflect.DeepEqual(p.Env, want) {
		t.Errorf("variables %v: only those of the list are read", p.Env)
	}
	if p.Limits["nofile"] != 1024 || p.Limits["as"] != -1 || len(p.Libraries) != 1 || p.Libraries[0].Version != "550.54.14" {
		t.Errorf("%+v", p)
	}
	if len(f.Holders) != 1 || f.Holders[0].PID != 42 || f.Holders[0].Library != "550.54.14" || !f.Kernel.Persistent || !f.MPS.Server {
		t.Errorf("holders %+v, %+v, %+v", f.Holders, f.Kernel.Persistent, f.MPS)
	}
	if f := look(t, driven(), Config{PID: 99}); f.Process.Errno != "ENOENT" {
		t.Errorf("a process that is not there: %+v", f.Process)
	}
}

func TestServices(t *testing.T) {
	r := driven()
	r["/etc/docker/daemon.json"] = `{"runtimes":{"nvidia":{"path":"nvidia-container-runtime"}},"exec-opts":["native.cgroupdriver=cgroupfs"]}`
	r["/etc/cdi/nvidia.yaml"] = "- hostPath: /usr/lib/libcuda.so.550.54.14\n"
	r["/dev/char/"], r["/tmp/nvidia-mps/control"], r["/usr/bin/nvidia-ctk"] = "", "", ""
	r["/sys/class/net/eth0/operstate"], r["/sys/class/net/docker0/operstate"] = "up\n", "down\n"
	r["/sys/class/infiniband/mlx5_0/ports/1/state"] = "4: ACTIVE\n"
	f := look(t, r, Config{})
	if c := f.Container; !c.Docker || !*c.Runtime || !c.Cgroupfs || c.CDI != "550.54.14" || *c.CharLink || !c.Toolkit || !f.MPS.Pipe {
		t.Errorf("%+v, %+v", c, f.MPS)
	}
	if want := []doctor.Interface{{Name: "docker0"}, {Name: "eth0", Up: true}, {Name: "mlx5_0:1", Up: true, IB: true}}; !slices.Equal(f.Network, want) {
		t.Errorf("%v", f.Network)
	}
}

// TestPlantedMachines: from the files of a machine to the rule that breaks it.
func TestPlantedMachines(t *testing.T) {
	for want, change := range map[string]func(r root, c *Config){
		"D01": func(r root, c *Config) { clear(r); maps.Copy(r, linux()) },
		"D28": func(r root, c *Config) {
			clear(r)
			maps.Copy(r, linux())
			r.card("0000:17:00.0", "nouveau")
		},
		"D02": func(r root, c *Config) {
			clear(r)
			maps.Copy(r, linux())
			r.card("0000:17:00.0", "")
			r["/lib/modules/6.8.0-44-generic/updates/dkms/nvidia.ko"] = "x"
		},
		"D27": func(r root, c *Config) {
			clear(r)
			maps.Copy(r, linux())
			r.card("0000:17:00.0", "")
			r[secureVariable] = "\x06\x00\x00\x00\x01"
			r["/lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko"] = "x"
		},
		"D48": func(r root, c *Config) {
			r["/sys/devices/pci0000:16/0000:16:00.0/0000:18:00.0/config"] = "\xff\xff\xff\xff"
		},
		"D38": func(r root, c *Config) {
			for name := range r {
				if strings.HasPrefix(name, "/dev/nvidia") {
					delete(r, name)
				}
			}
		},
		"D24": func(r root, c *Config) {
			for name := range r {
				if strings.HasPrefix(name, "/dev/nvidia") {
					delete(r, name)
				}
			}
			r["/.dockerenv"] = ""
		},
		"D25": func(r root, c *Config) {
			c.stat = func(path string) doctor.Node {
				return doctor.Node{There: true, Major: majorOf(path), Mode: 0o660, GID: 44, Open: "EACCES"}
			}
		},
		"D26": func(r root, c *Config) {
			c.stat = func(path string) doctor.Node {
				return doctor.Node{There: true, Major: majorOf(path), Mode: 0o666, Open: "EPERM"}
			}
		},
		"D05": func(r root, c *Config) {
			r["/opt/cuda/stubs/libcuda.so.1"] = "x"
			c.Getenv = func(name string) string {
				return map[string]string{"LD_LIBRARY_PATH": "/opt/cuda/stubs"}[name]
			}
		},
	} {
		t.Run(want, func(t *testing.T) {
			r, c := driven(), Config{}
			change(r, &c)
			for name := range r { // regions as they are on a machine that is well
				if strings.HasSuffix(name, "/resource") {
					r[name] = "0x1000 0x1fff 0x40200\n0x10000 0x1ffff 0x40200\n"
				}
			}
			d := doctor.Judge(look(t, r, c))
			if d.Verdict.Rule != want || d.Verdict.Command == "" {
				t.Errorf("verdict %+v", d.Verdict)
			}
		})
	}
}

// majorOf is that of a node in the planted /proc/devices.
func majorOf(path string) int {
	if strings.HasPrefix(path, "/dev/nvidia-uvm") {
		return 510
	}
	return 195
}

// FuzzLog: a log of the kernel, whatever it has, gives events of known kinds that are no longer than they may be.
func FuzzLog(f *testing.F) {
	f.Add([]byte("6,3973,227996636,-;NVRM: Xid (PCI:0000:65:00): 79, pid=123, name=python, GPU has fallen off the bus.\n"))
	f.Add([]byte("NVRM: API mismatch: the client 'python3' (pid 7) has the version 580.95.05, but\nOut of memory: Killed process 3\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, e := range events(text) {
			if !slices.Contains(doctor.EventKinds, e.Kind) || e.Count < 1 || len(e.Text) > longest || !utf8.ValidString(e.Text) {
				t.Errorf("%+v", e)
			}
		}
	})
}

// FuzzCache: a cache of the loader, whatever it has, is read within its bounds.
func FuzzCache(f *testing.F) {
	head := append([]byte("glibc-ld.so.cache1.1"), make([]byte, 28)...)
	head[20] = 1
	f.Add(append(append(head, 1, 3, 0, 0, 72, 0, 0, 0, 75, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "ab\x00/lib/ab\x00"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(t.TempDir(), "cache")
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for key, paths := range ldCache(name) {
			if key == "" || len(paths) == 0 {
				t.Errorf("%q: %q", key, paths)
			}
		}
	})
}
