// Package cards has the facts of GPUs that devices without hardware imitate. It is plain data.
package cards

// GiB is the unit of memory sizes.
const GiB = 1 << 30

// Card is a model of GPU.
type Card struct {
	Name    string // as in device names: "a100-80"
	Model   string
	Memory  int64  // bytes, nominal; a driver reports up to 3 % less
	SMs     int    // streaming multiprocessors
	Compute [2]int // compute capability: major, minor
	Source  string
}

// Default is the card that is imitated when none is named.
const Default = "a100-80"

// All is every card, ordered by compute capability, then memory.
var All = []Card{
	{"v100-16", "V100 SXM2 16 GB", 16 * GiB, 80, [2]int{7, 0}, "sysrqmts.com, V100 comparison"},
	{"v100-32", "V100 SXM2 32 GB", 32 * GiB, 80, [2]int{7, 0}, "sysrqmts.com, V100 comparison"},
	{"gtx-1650", "GeForce GTX 1650", 4 * GiB, 14, [2]int{7, 5}, "nvidia.com, GTX 1650 specification: 896 cores, 64 to a multiprocessor"},
	{"t4", "T4", 16 * GiB, 40, [2]int{7, 5}, "sysrqmts.com, T4 comparison"},
	{"a100-40", "A100 40 GB", 40 * GiB, 108, [2]int{8, 0}, "sysrqmts.com, A100 comparison"},
	{"a100-80", "A100 80 GB", 80 * GiB, 108, [2]int{8, 0}, "sysrqmts.com, A100 comparison"},
	{"rtx-3090", "GeForce RTX 3090", 24 * GiB, 82, [2]int{8, 6}, "gist zthxxx, GA10x comparison"},
	{"l4", "L4", 24 * GiB, 58, [2]int{8, 9}, "hmc-tech.com, L4; 7,424 cores, 128 to a multiprocessor"},
	{"rtx-4090", "GeForce RTX 4090", 24 * GiB, 128, [2]int{8, 9}, "hmc-tech.com, RTX 4090"},
	{"l40s", "L40S", 48 * GiB, 142, [2]int{8, 9}, "hmc-tech.com, L40S; data sheet"},
	{"h100-pcie", "H100 PCIe 80 GB", 80 * GiB, 114, [2]int{9, 0}, "chipsandcheese.com, H100 PCIe; hmc-tech.com"},
	{"h100-80", "H100 SXM 80 GB", 80 * GiB, 132, [2]int{9, 0}, "hmc-tech.com, H100; glennklockwood.com, h100"},
	{"h200", "H200", 141 * GiB, 132, [2]int{9, 0}, "hmc-tech.com, H200; multiprocessors measured"},
	{"b200", "B200", 180 * GiB, 148, [2]int{10, 0}, "chipsandcheese.com, B200; glennklockwood.com, B200 (180 to 192 GB)"},
	{"rtx-5090", "GeForce RTX 5090", 32 * GiB, 170, [2]int{12, 0}, "Linux Format, RTX 5090"},
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
