package cards

// Chip is a kind of NVIDIA's processors, by the numbers that its cards have on the PCI bus.
type Chip struct {
	Name        string // of the generation
	First, Last int    // numbers of devices
	Compute     [2]int // compute capability: major, minor
}

// Chips are the blocks in which numbers are given out. Source: the numbers and names of NVIDIA's open kernel modules
// (g_nv_name_released.h, March 2026), and for what these do not drive the PCI ID Repository; compute capabilities: CUDA C++
// Programming Guide. Blocks that two kinds share are left out.
var Chips = []Chip{
	{"Kepler", 0x0FC0, 0x0FFF, [2]int{3, 0}}, {"Kepler", 0x1180, 0x11FF, [2]int{3, 0}}, {"Kepler", 0x1280, 0x12BF, [2]int{3, 5}},
	{"Maxwell", 0x1340, 0x13BF, [2]int{5, 0}}, {"Maxwell", 0x13C0, 0x143F, [2]int{5, 2}}, {"Pascal", 0x15F0, 0x15FF, [2]int{6, 0}},
	{"Maxwell", 0x1617, 0x161A, [2]int{5, 2}}, {"Maxwell", 0x1667, 0x1667, [2]int{5, 2}}, {"Maxwell", 0x174D, 0x174E, [2]int{5, 0}},
	{"Maxwell", 0x179C, 0x179C, [2]int{5, 0}}, {"Maxwell", 0x17C0, 0x17FF, [2]int{5, 2}}, {"Pascal", 0x1B00, 0x1D7F, [2]int{6, 1}},
	{"Volta", 0x1D80, 0x1DFF, [2]int{7, 0}}, {"Turing", 0x1E00, 0x1FFF, [2]int{7, 5}}, {"Ampere", 0x2080, 0x20FF, [2]int{8, 0}},
	{"Turing", 0x2180, 0x21FF, [2]int{7, 5}}, {"Ampere", 0x2200, 0x227F, [2]int{8, 6}}, {"Hopper", 0x2300, 0x237F, [2]int{9, 0}},
	{"Ampere", 0x2400, 0x25FF, [2]int{8, 6}}, {"Ada", 0x2680, 0x28FF, [2]int{8, 9}}, {"Blackwell", 0x2900, 0x297F, [2]int{10, 0}},
	{"Blackwell", 0x2B80, 0x2DFF, [2]int{12, 0}}, {"Blackwell", 0x2E00, 0x2E3F, [2]int{12, 1}}, {"Blackwell", 0x2F00, 0x2F7F, [2]int{12, 0}},
	{"Blackwell", 0x3180, 0x31FF, [2]int{10, 3}},
}

// ChipOf returns the chip of a device of NVIDIA's by its number on the bus, which tells the compute capability without a driver.
func ChipOf(device int) (Chip, bool) {
	for _, c := range Chips {
		if device >= c.First && device <= c.Last {
			return c, true
		}
	}
	return Chip{}, false
}
