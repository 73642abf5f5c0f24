package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// nvidia is the company's number on the PCI bus.
const nvidia = 0x10de

// cards are NVIDIA's display and compute controllers on the bus.
func (f *Facts) cards() (out []PCI) {
	for _, p := range f.PCI {
		if p.Vendor == nvidia && p.Class>>8&^0x2 == 0x0300 {
			out = append(out, p)
		}
	}
	return out
}

// hasModule reports whether the system is one on which the driver has nodes and a module of its own: Linux, but not under
// Windows.
func (f *Facts) hasModule() bool { return f.OS == "linux" && !f.Platform.DXG }

// expects reports whether there should be a driver for a card: one is on the bus, and it is the kernel's to have.
func (f *Facts) expects() bool { return f.hasModule() && (len(f.cards()) > 0 || f.Platform.Tegra) }

// loaded reports whether the kernel's half of the driver is there.
func (f *Facts) loaded() bool { return f.Kernel.Driver != "" }

func (f *Facts) contained() bool { return f.Platform.Container != "" }

// usable reports whether the kernel's half and its nodes work, so that what fails above has its cause there.
func (f *Facts) usable() bool {
	return f.loaded() && f.node("/dev/nvidiactl").Open == "ok"
}

func (f *Facts) module(name string) (Module, bool) {
	i := slices.IndexFunc(f.Kernel.Modules, func(m Module) bool { return m.Name == name })
	if i < 0 {
		return Module{}, false
	}
	return f.Kernel.Modules[i], true
}

func (f *Facts) node(path string) Node {
	for _, n := range f.Nodes {
		if n.Path == path {
			return n
		}
	}
	return Node{Path: path}
}

// isCard reports whether a node is one of a card: /dev/nvidia0.
func (n *Node) isCard() bool {
	_, err := strconv.Atoi(strings.TrimPrefix(n.Path, "/dev/nvidia"))
	return err == nil && n.There
}

// cardNodes are the nodes of cards that are there.
func (f *Facts) cardNodes() (out []Node) {
	for _, n := range f.Nodes {
		if n.isCard() {
			out = append(out, n)
		}
	}
	return out
}

// library is the first that the loader finds of a name.
func (f *Facts) library(name string) Library {
	for _, l := range f.Libraries {
		if l.Name == name {
			return l
		}
	}
	return Library{Name: name}
}

func (f *Facts) place(role string) (Place, bool) {
	for _, p := range f.Places {
		if p.Role == role {
			return p, true
		}
	}
	return Place{}, false
}

// events are those of the kernel's log of a kind.
func (f *Facts) events(kind string) (out []Event) {
	for _, e := range f.Kernel.Log.Events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

func (c *Child) ended() bool {
	return c.Asked && !c.TimedOut && c.Signal == "" && !c.Missing && c.Error == ""
}

func (n *NVML) works() bool { return n.ended() && n.Code == 0 }

func (c *CUDA) works() bool { return c.ended() && c.Code == 0 }

// cudaCode reports whether CUDA began with one of the codes.
func (f *Facts) cudaCode(codes ...int) bool {
	return f.CUDA.Asked && f.CUDA.Code != 0 && slices.Contains(codes, f.CUDA.Code)
}

func (f *Facts) nvmlCode(codes ...int) bool {
	return f.NVML.Asked && f.NVML.Code != 0 && slices.Contains(codes, f.NVML.Code)
}

// value is a figure of a card, and whether it tells it.
func (c *NVMLCard) value(key string) (float64, bool) {
	v, ok := c.Values[key]
	return v, ok
}

// is reports whether a card tells a figure, and it is v.
func (c *NVMLCard) is(key string, v float64) bool {
	got, ok := c.Values[key]
	return ok && got == v
}

// Free are the cards that no process uses, as this program names them; Used are the others. CUDA's order counts.
func (f *Facts) Free() []string { return f.byUse(false) }

// Used are the cards that a process uses.
func (f *Facts) Used() []string { return f.byUse(true) }

func (f *Facts) byUse(used bool) (out []string) {
	for _, c := range f.CUDA.Cards {
		busy := slices.ContainsFunc(f.NVML.Cards, func(n NVMLCard) bool { return n.Bus == c.Bus && len(n.Processes) > 0 })
		if busy == used {
			out = append(out, fmt.Sprintf("cuda:%d", c.Index))
		}
	}
	return out
}

// cudaText is 12.4 of 12040.
func cudaText(v int) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", v/1000, v%1000/10)
}

// cudaNumber is 12040 of "12.4", or of "12.4.127".
func cudaNumber(v string) int {
	p := parts(v)
	if len(p) < 1 {
		return 0
	}
	minor := 0
	if len(p) > 1 {
		minor = p[1]
	}
	return p[0]*1000 + minor*10
}

// parts are the numbers of a version.
func parts(v string) (out []int) {
	for _, p := range strings.Split(v, ".") {
		n, err := strconv.Atoi(p)
		if err != nil {
			return out
		}
		out = append(out, n)
	}
	return out
}

// before compares versions by their numbers.
func before(a, b string) bool { return slices.Compare(parts(a), parts(b)) < 0 }

// stem is libcublas of libcublas.so.12.
func stem(library string) string {
	name, _, _ := strings.Cut(library, ".so")
	return name
}

// computeLibraries are those that frameworks need beside the driver.
var computeLibraries = []string{"libcudart", "libcublas", "libcublasLt", "libcudnn", "libnccl", "libnvrtc", "libnvJitLink"}

func isCompute(library string) bool { return slices.Contains(computeLibraries, stem(library)) }

// list joins the texts of things.
func list[T any](all []T, text func(T) string) string {
	var out []string
	for _, v := range all {
		out = append(out, text(v))
	}
	return strings.Join(out, ", ")
}

func itoa(n int) string { return strconv.Itoa(n) }

// mostCPUs is beyond what a machine has.
const mostCPUs = 1 << 16

// cpuSet reads a list of processors: "0-3,8".
func cpuSet(text string) map[int]bool {
	out := map[int]bool{}
	for _, r := range strings.Split(text, ",") {
		low, high, ranged := strings.Cut(strings.TrimSpace(r), "-")
		a, err := strconv.Atoi(low)
		b := a
		if ranged && err == nil {
			b, err = strconv.Atoi(high)
		}
		for i := a; err == nil && a >= 0 && i <= b && b < mostCPUs; i++ {
			out[i] = true
		}
	}
	return out
}

func overlap(a, b map[int]bool) bool {
	for i := range a {
		if b[i] {
			return true
		}
	}
	return false
}

// CPUs is how many processors a list such as "0-3,8" has.
func CPUs(text string) int { return len(cpuSet(text)) }
