package cards

import "strings"

// CPU is a model of processor. Rates are operations a clock of one core, a multiply-add being two, dense; 0: the core has no
// instruction for products of that type.
type CPU struct {
	Name      string // "epyc-9654"
	Model     string
	Cores     int // of performance cores, where there are two kinds
	Efficient int // other cores, which the rates leave out
	Clock     int // MHz, at which all cores run: nominal
	Boost     int // MHz, of one core
	Vector    int // bits of a unit for vectors
	Units     int // that multiply and add, of a core
	BFloat16  int
	Int8      int
	Channels  int // of memory; 0: on the package
	Transfers int // millions a second, of each channel of 64 bits
	Bandwidth int // GB/s, of the memory
	L1, L2    int // KiB of a core, for data; of Apple's L2 what a cluster shares
	L3        int // MiB, of the processor
	Source    string
}

// Float32Rate is the operations a clock of a core in float32: lanes, units, and two for a multiply-add.
func (c *CPU) Float32Rate() int { return 2 * c.Vector / 32 * c.Units }

// peak is that of all cores at the nominal clock, operations a second.
func (c *CPU) peak(rate int) float64 { return float64(c.Cores*rate) * 1e6 * float64(c.Clock) }

// Peaks are those of all performance cores at the nominal clock, operations a second: float32, float64, bfloat16 and int8. Those
// without an instruction are 0.
func (c *CPU) Peaks() (float32, float64, bfloat16, int8 float64) {
	r := c.Float32Rate()
	return c.peak(r), c.peak(r / 2), c.peak(c.BFloat16), c.peak(c.Int8)
}

// CPURatesSource is where the rates of cores are from.
const CPURatesSource = `units and their width: AMD "Software Optimization Guide" for family 19h (56665, 57647) and 1Ah (58455); Intel "64 and IA-32 ` +
	`Architectures Optimization Reference Manual" (AMX: 1,024 products of bfloat16 and 2,048 of int8 a clock); Arm "Neoverse N1", "V1" and "V2 Software ` +
	`Optimization Guide"; dougallj.github.io/applecpu (four units of 128 bits, Apple's cores)`

// CPUs are processors that programs run on, by maker and age: cores, clocks; width and number of units; products of bfloat16 and int8 a
// clock; memory; caches; source. Bandwidth is channels × 8 bytes × transfers where there are channels.
var CPUs = []CPU{
	{"epyc-7763", "AMD EPYC 7763 (Zen 3)", 64, 0, 2450, 3500, 256, 2, 0, 0, 8, 3200, 205, 32, 512, 256, "amd.com, EPYC 7763"},
	{"epyc-9654", "AMD EPYC 9654 (Zen 4)", 96, 0, 2400, 3700, 256, 2, 64, 128, 12, 4800, 461, 32, 1024, 384, "amd.com, EPYC 9654"},
	{"epyc-9755", "AMD EPYC 9755 (Zen 5)", 128, 0, 2700, 4100, 512, 2, 128, 256, 12, 6000, 576, 48, 1024, 512, "amd.com, EPYC 9755"},
	{"ryzen-5950x", "AMD Ryzen 9 5950X (Zen 3)", 16, 0, 3400, 4900, 256, 2, 0, 0, 2, 3200, 51, 32, 512, 64, "amd.com, Ryzen 9 5950X"},
	{"ryzen-7950x", "AMD Ryzen 9 7950X (Zen 4)", 16, 0, 4500, 5700, 256, 2, 64, 128, 2, 5200, 83, 32, 1024, 64, "amd.com, Ryzen 9 7950X"},
	{"ryzen-9950x", "AMD Ryzen 9 9950X (Zen 5)", 16, 0, 4300, 5700, 512, 2, 128, 256, 2, 5600, 90, 48, 1024, 64, "amd.com, Ryzen 9 9950X"},
	{"xeon-8380", "Intel Xeon Platinum 8380 (Ice Lake)", 40, 0, 2300, 3400, 512, 2, 0, 256, 8, 3200, 205, 48, 1280, 60, "ark.intel.com, Xeon Platinum 8380"},
	{"xeon-8480", "Intel Xeon Platinum 8480+ (Sapphire Rapids)", 56, 0, 2000, 3800, 512, 2, 2048, 4096, 8, 4800, 307, 48, 2048, 105, "ark.intel.com, Xeon Platinum 8480+"},
	{"xeon-8592", "Intel Xeon Platinum 8592+ (Emerald Rapids)", 64, 0, 1900, 3900, 512, 2, 2048, 4096, 8, 5600, 358, 48, 2048, 320, "ark.intel.com, Xeon Platinum 8592+"},
	{"xeon-6980p", "Intel Xeon 6980P (Granite Rapids)", 128, 0, 2000, 3900, 512, 2, 2048, 4096, 12, 6400, 614, 48, 2048, 504, "ark.intel.com, Xeon 6980P (DDR5; MRDIMM reaches 845 GB/s)"},
	{"apple-m1", "Apple M1", 4, 4, 3200, 3200, 128, 4, 0, 128, 0, 0, 68, 128, 12288, 8, "apple.com, M1; dougallj.github.io/applecpu"},
	{"apple-m3-max", "Apple M3 Max", 12, 4, 4050, 4050, 128, 4, 0, 128, 0, 0, 400, 128, 16384, 0, "apple.com, M3 Max (16 cores)"},
	{"apple-m4", "Apple M4", 4, 6, 4400, 4400, 128, 4, 0, 128, 0, 0, 120, 128, 16384, 0, "apple.com, M4"},
	{"graviton2", "AWS Graviton2 (Neoverse N1)", 64, 0, 2500, 2500, 128, 2, 0, 64, 8, 3200, 205, 64, 1024, 32, "aws.amazon.com, Graviton; Arm Neoverse N1"},
	{"altra-q80", "Ampere Altra Q80-30 (Neoverse N1)", 80, 0, 3000, 3000, 128, 2, 0, 64, 8, 3200, 205, 64, 1024, 32, "amperecomputing.com, Altra data sheet"},
	{"graviton3", "AWS Graviton3 (Neoverse V1)", 64, 0, 2600, 2600, 256, 2, 128, 256, 8, 4800, 307, 64, 1024, 32, "aws.amazon.com, Graviton; Arm Neoverse V1"},
	{"graviton4", "AWS Graviton4 (Neoverse V2)", 96, 0, 2800, 2800, 128, 4, 128, 256, 12, 5600, 538, 64, 2048, 36, "aws.amazon.com, Graviton; Arm Neoverse V2"},
	{"grace", "NVIDIA Grace (Neoverse V2)", 72, 0, 3100, 3400, 128, 4, 128, 256, 0, 0, 500, 64, 1024, 114, "nvidia.com, Grace CPU data sheet"},
}

// MatchCPU finds the processor that the machine calls by a name, as /proc/cpuinfo has it; false where the table lacks it.
func MatchCPU(model string) (CPU, bool) {
	model = plain(model) + " "
	for _, c := range CPUs {
		name, _, _ := strings.Cut(c.Model, " (")
		if strings.Contains(model, plain(name)+" ") {
			return c, true
		}
	}
	return CPU{}, false
}

// plain is a processor's name without the signs of its trademarks.
func plain(name string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("(R)", " ", "(TM)", " ", "(r)", " ", "(tm)", " ").Replace(name)), " ")
}
