// Package cards has the facts of GPUs that devices without hardware imitate. It is plain data.
package cards

// GiB is the unit of memory sizes.
const GiB = 1 << 30

// Card is a model of GPU.
type Card struct {
	Name        string // as in device names: "a100-80"
	Model       string
	Memory      int64  // bytes that the driver reports, which are fewer than on the box: see MemorySource
	SMs         int    // streaming multiprocessors
	Compute     [2]int // compute capability: major, minor
	Clock       int    // MHz, boost
	TensorClock int    // MHz, at which the maker states the rate of the tensor cores
	Half        int    // FLOP a clock of a multiprocessor's tensor cores: dense, float16 with sums in float32; 0: it has none
	L2          int64  // bytes
	L2Rate      int    // bytes a clock of the whole L2; 0: not published
	Bus         int    // bits, of the memory
	Bandwidth   int    // of the memory, GB/s
	Link        int    // to the host, GB/s that copies of pinned memory reach
	Peer        int    // to other cards (NVLink), GB/s of both directions together; 0: by way of the host
	Source      string
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

// Where figures are from that a card's own source does not have.
const (
	LinkSource = "what copies of pinned memory commonly reach over 16 lanes of PCI Express: 12 GB/s of the 15.8 of generation 3, 25 of the 31.5 of " +
		"generation 4, 53 of the 63.0 of generation 5 (PCI-SIG)"
	MemorySource = "the total capacity in PyTorch's messages of users who ran out of it, with ECC where the card has it by default; other drivers " +
		"report up to 2 % more or less"
	PeerSource   = "NVIDIA's data sheet of the card: NVLink, both directions together"
	L2RateSource = "bytes a clock × clock; A100: 5,120, its white paper; V100: 2,048 and H100: 5,120, which give the 3.1 and 9.0 TB/s of PMC10448217, table 3; " +
		"others: 32 a multiprocessor, assumed"
)

// mib is the unit of cache sizes.
const mib = 1 << 20

// gib is so many GiB in bytes, of whole pages of 2 MiB.
func gib(v float64) int64 { return int64(v*GiB) / (2 * mib) * (2 * mib) }

// All is every card, ordered by compute capability, then memory: name, model, memory; multiprocessors, compute capability,
// clock, clock and rate of the tensor cores; L2 and its rate; bus and bandwidth of the memory; link to the host, to other
// cards; source. That of the rates of L2: 5,120 bytes a clock of A100 are its white paper's; 2,048 of V100 and the same 5,120 of H100
// give the 3.1 and 9.0 TB/s of PMC10448217, table 3. Links between cards: NVIDIA's data sheets.
var All = []Card{
	{"v100-16", "V100 SXM2 16 GB", gib(15.78), 80, [2]int{7, 0}, 1530, 1530, 1024, 6 * mib, 2048, 4096, 900, pcie3, 300, "sysrqmts.com, V100 comparison"},
	{"v100-32", "V100 SXM2 32 GB", gib(31.75), 80, [2]int{7, 0}, 1530, 1530, 1024, 6 * mib, 2048, 4096, 900, pcie3, 300, "sysrqmts.com, V100 comparison"},
	{"gtx-1650", "GeForce GTX 1650", gib(3.81), 14, [2]int{7, 5}, 1665, 1665, 0, 1 * mib, 0, 128, 128, pcie3, 0, "nvidia.com, GTX 1650 specification (GDDR5): 896 cores, 64 to a multiprocessor; techpowerup.com (L2)"},
	{"t4", "T4", gib(14.56), 40, [2]int{7, 5}, 1590, 1590, 1024, 4 * mib, 0, 256, 320, pcie3, 0, "sysrqmts.com, T4 comparison"},
	{"a100-40", "A100 40 GB", gib(39.39), 108, [2]int{8, 0}, 1410, 1410, 2048, 40 * mib, 5120, 5120, 1555, pcie4, 600, "sysrqmts.com, A100 comparison"},
	{"a100-80", "A100 80 GB", gib(79.15), 108, [2]int{8, 0}, 1410, 1410, 2048, 40 * mib, 5120, 5120, 2039, pcie4, 600, "sysrqmts.com, A100 comparison"},
	{"rtx-3090", "GeForce RTX 3090", gib(23.56), 82, [2]int{8, 6}, 1695, 1695, 512, 6 * mib, 0, 384, 936, pcie4, 112, "gist zthxxx, GA10x comparison"},
	{"rtx-a6000", "RTX A6000", gib(47.40), 84, [2]int{8, 6}, 1800, 1800, 1024, 6 * mib, 0, 384, 768, pcie4, 112, "nvidia.com, RTX A6000 data sheet: 10,752 cores, 38.7 and 309.7 TFLOP/s (the latter sparse)"},
	{"l4", "L4", gib(22.03), 58, [2]int{8, 9}, 2040, 2040, 1024, 48 * mib, 0, 192, 300, pcie4, 0, "hmc-tech.com, L4; 7,424 cores, 128 to a multiprocessor"},
	{"rtx-4090", "GeForce RTX 4090", gib(23.52), 128, [2]int{8, 9}, 2520, 2520, 512, 72 * mib, 0, 384, 1008, pcie4, 0, "hmc-tech.com, RTX 4090"},
	{"l40s", "L40S", gib(44.42), 142, [2]int{8, 9}, 2520, 2520, 1024, 96 * mib, 0, 384, 864, pcie4, 0, "hmc-tech.com, L40S; data sheet"},
	{"h100-pcie", "H100 PCIe 80 GB", gib(79.11), 114, [2]int{9, 0}, 1755, 1620, 4096, 50 * mib, 5120, 5120, 2039, pcie5, 600, "chipsandcheese.com, H100 PCIe; hmc-tech.com"},
	{"h100-80", "H100 SXM 80 GB", gib(79.11), 132, [2]int{9, 0}, 1980, 1830, 4096, 50 * mib, 5120, 5120, 3352, pcie5, 900, "hmc-tech.com, H100; glennklockwood.com, h100"},
	{"h200", "H200", gib(139.80), 132, [2]int{9, 0}, 1980, 1830, 4096, 60 * mib, 5120, 6144, 4800, pcie5, 900, "hmc-tech.com, H200; multiprocessors, clock and L2 measured"},
	{"b200", "B200", gib(178.35), 148, [2]int{10, 0}, 1965, 1860, 8192, 126 * mib, 0, 8192, 8000, pcie5, 1800, "chipsandcheese.com, B200; glennklockwood.com, B200 (180 to 192 GB, 7.7 to 8 TB/s; L2 65.5 to 126 MB by source)"},
	{"rtx-5090", "GeForce RTX 5090", gib(31.36), 170, [2]int{12, 0}, 2407, 2407, 512, 96 * mib, 0, 512, 1792, pcie5, 0, "Linux Format, RTX 5090"},
}

// Context is the bytes of a card's memory that the driver takes for a process whose kernels are loaded as they are needed: 0.47 GiB on
// an A100 (Stas Bekman, Machine Learning Engineering, by torch 2.1.1). Other cards and drivers differ by some 0.2 GiB.
const Context = 481 * mib

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

// Match returns the card whose figures a driver reports: compute capability, multiprocessors and bytes of memory, which differ
// by driver, and by a sixteenth with ECC on or off. Names differ by driver and by who sells the card.
func Match(compute [2]int, sms int, memory int64) (Card, bool) {
	for _, c := range All {
		if c.Compute == compute && c.SMs == sms && memory < c.Memory+c.Memory/8 && memory > c.Memory-c.Memory/8 {
			return c, true
		}
	}
	return Card{}, false
}
