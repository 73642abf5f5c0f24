// Package cards has the facts of GPUs that devices without hardware imitate. It is plain data.
package cards

// GiB is the unit of memory sizes.
const GiB = 1 << 30

// Card is a model of GPU.
type Card struct {
	Name      string // as in device names: "a100-80"
	Model     string
	Memory    int64  // bytes, nominal; a driver reports up to 3 % less
	SMs       int    // streaming multiprocessors
	Compute   [2]int // compute capability: major, minor
	Clock     int    // MHz, boost
	L2        int64  // bytes
	Bus       int    // bits, of the memory
	Bandwidth int    // of the memory, GB/s
	Link      int    // to the host, GB/s that copies of pinned memory reach
	Source    string
}

// MemoryClock is the clock in kHz, of two transfers a cycle, that gives the card its bandwidth.
func (c Card) MemoryClock() int {
	if c.Bus == 0 {
		return 0
	}
	return c.Bandwidth * 8 * 1000_000 / (2 * c.Bus)
}

// Default is the card that is imitated when none is named.
const Default = "a100-80"

// What copies of pinned memory reach over 16 lanes of PCI Express, in GB/s, as commonly measured.
const (
	pcie3 = 12
	pcie4 = 25
	pcie5 = 53
)

// mib is the unit of cache sizes.
const mib = 1 << 20

// All is every card, ordered by compute capability, then memory.
var All = []Card{
	{"v100-16", "V100 SXM2 16 GB", 16 * GiB, 80, [2]int{7, 0}, 1530, 6 * mib, 4096, 900, pcie3, "sysrqmts.com, V100 comparison"},
	{"v100-32", "V100 SXM2 32 GB", 32 * GiB, 80, [2]int{7, 0}, 1530, 6 * mib, 4096, 900, pcie3, "sysrqmts.com, V100 comparison"},
	{"gtx-1650", "GeForce GTX 1650", 4 * GiB, 14, [2]int{7, 5}, 1665, 1 * mib, 128, 128, pcie3, "nvidia.com, GTX 1650 specification (GDDR5): 896 cores, 64 to a multiprocessor; techpowerup.com (L2)"},
	{"t4", "T4", 16 * GiB, 40, [2]int{7, 5}, 1590, 4 * mib, 256, 320, pcie3, "sysrqmts.com, T4 comparison"},
	{"a100-40", "A100 40 GB", 40 * GiB, 108, [2]int{8, 0}, 1410, 40 * mib, 5120, 1555, pcie4, "sysrqmts.com, A100 comparison"},
	{"a100-80", "A100 80 GB", 80 * GiB, 108, [2]int{8, 0}, 1410, 40 * mib, 5120, 2039, pcie4, "sysrqmts.com, A100 comparison"},
	{"rtx-3090", "GeForce RTX 3090", 24 * GiB, 82, [2]int{8, 6}, 1695, 6 * mib, 384, 936, pcie4, "gist zthxxx, GA10x comparison"},
	{"l4", "L4", 24 * GiB, 58, [2]int{8, 9}, 2040, 48 * mib, 192, 300, pcie4, "hmc-tech.com, L4; 7,424 cores, 128 to a multiprocessor"},
	{"rtx-4090", "GeForce RTX 4090", 24 * GiB, 128, [2]int{8, 9}, 2520, 72 * mib, 384, 1008, pcie4, "hmc-tech.com, RTX 4090"},
	{"l40s", "L40S", 48 * GiB, 142, [2]int{8, 9}, 2520, 96 * mib, 384, 864, pcie4, "hmc-tech.com, L40S; data sheet"},
	{"h100-pcie", "H100 PCIe 80 GB", 80 * GiB, 114, [2]int{9, 0}, 1755, 50 * mib, 5120, 2039, pcie5, "chipsandcheese.com, H100 PCIe; hmc-tech.com"},
	{"h100-80", "H100 SXM 80 GB", 80 * GiB, 132, [2]int{9, 0}, 1980, 50 * mib, 5120, 3352, pcie5, "hmc-tech.com, H100; glennklockwood.com, h100"},
	{"h200", "H200", 141 * GiB, 132, [2]int{9, 0}, 1980, 60 * mib, 6144, 4800, pcie5, "hmc-tech.com, H200; multiprocessors, clock and L2 measured"},
	{"b200", "B200", 180 * GiB, 148, [2]int{10, 0}, 1965, 126 * mib, 8192, 8000, pcie5, "chipsandcheese.com, B200; glennklockwood.com, B200 (180 to 192 GB, 7.7 to 8 TB/s; L2 65.5 to 126 MB by source)"},
	{"rtx-5090", "GeForce RTX 5090", 32 * GiB, 170, [2]int{12, 0}, 2407, 96 * mib, 512, 1792, pcie5, "Linux Format, RTX 5090"},
}

// Names returns the names of all cards, in their order.
func Names() []string {
	names := make([]string, len(All))
	for i, c := range All {
		names[i] = c.Name
	}
	return names
}

// Find returns the card of a name.
func Find(name string) (Card, bool) {
	for _, c := range All {
		if c.Name == name {
			return c, true
		}
	}
	return Card{}, false
}
